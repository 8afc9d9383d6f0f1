"""What a target cannot do of a schedule, returned before anything starts."""

from collections.abc import Iterable

from fixtures.faults import AnyFault, Timed
from fixtures.targets.target import Capability, Target


def refusals(target: Target, schedule: Iterable[Timed]) -> dict[AnyFault, str]:
    """Return the faults of a schedule that a target cannot have, each with the reason."""
    reasons = {timed.fault: timed.fault.missing(target) for timed in schedule}
    return {fault: reason for fault, reason in reasons.items() if reason}


def needs_of(schedule: Iterable[Timed]) -> frozenset[Capability]:
    """Return all capabilities that a schedule needs."""
    return frozenset(timed.fault.capability for timed in schedule)
