"""Violation of a requirement, an invariant or another check in a trial, on any target."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Violation:
    """A violation that a run showed.

    :ivar name: name of an anomaly, an invariant or another check: `endless`, `exception`, `malformed-message`,
        `malformed-response`, `node-ended`, `not-converged`, `not-recovered`, `not-stopped`, `periodic-work-overdue`,
        `replicas-differ`, `residue`, `wrong-response`.
    :ivar text: a sentence for a person.
    :ivar at_ms: virtual time of the violation; for an anomaly, when the first operation of its evidence was invoked.
    :ivar evidence: op_ids of the operations that prove it.
    """

    name: str
    text: str
    at_ms: int = 0
    evidence: tuple[int, ...] = ()
