"""Faults of a schedule that a target does not support, determined before the target starts."""

from collections.abc import Iterable

from fixtures.faults import AnyFault, Timed
from fixtures.targets.target import Capability, Target


def unsupported_faults(target: Target, schedule: Iterable[Timed]) -> dict[AnyFault, str]:
    """Return the faults of a schedule that a target does not support, with the reasons."""
    reasons = {timed.fault: timed.fault.missing(target) for timed in schedule}
    return {fault: reason for fault, reason in reasons.items() if reason}


def required_capabilities(schedule: Iterable[Timed]) -> frozenset[Capability]:
    """Return all capabilities that a schedule needs."""
    return frozenset(timed.fault.needed_capability for timed in schedule)
