"""Violation of a requirement, an invariant or another check in a trial, on any target."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Violation:
    """A violation that a run showed.

    :ivar name: name of an anomaly, an invariant or another check: `exception`, `node-ended`, `not-converged`,
        `periodic-work-overdue`, `not-recovered`, `not-stopped`, `replicas-differ`, `residue`.
    :ivar text: a sentence for a person.
    :ivar at_ms: virtual time of the violation; for an anomaly, when the first operation of its evidence was invoked.
    :ivar evidence: op_ids of the operations that prove it.
    """

    name: str
    text: str
    at_ms: int = 0
    evidence: tuple[int, ...] = ()
