"""Violation of an anomaly rule, an invariant or another check in a trial, on any target."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Violation:
    """A violation in one run of a trial.

    :ivar name: name of an anomaly, an invariant or another check: `endless`, `exception`, `malformed-message`,
        `malformed-response`, `node-ended`, `not-converged`, `not-recovered`, `not-stopped`, `periodic-work-overdue`,
        `replicas-differ`, `residue`, `wrong-response`.
    :ivar text: description for a person.
    :ivar at_ms: virtual time of the violation. For an anomaly, it is the time at which the first operation of its
        evidence was invoked; on real clusters it is 0.
    :ivar evidence: `op_id`s of the operations that prove the violation.
    """

    name: str
    text: str
    at_ms: int = 0
    evidence: tuple[int, ...] = ()
