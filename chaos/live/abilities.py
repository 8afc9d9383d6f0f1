"""What a target cannot do of a schedule, said before anything starts."""

from collections.abc import Iterable
from typing import Final

from chaos.faults import (
    AddBroker,
    ClockDrift,
    ClockJump,
    Configure,
    Cut,
    DamageDisk,
    DiskError,
    DiskFull,
    Elect,
    Fault,
    FlipBit,
    HalfOpen,
    Isolate,
    Kill,
    Pause,
    PowerCut,
    Reassign,
    Reset,
    Ring,
    ShutDown,
    Slow,
    SlowFlush,
    Split,
    Timed,
    Unregister,
    Wipe,
)
from fixtures.targets.target import Capability, Explaining, Target

NEEDS: Final[dict[type, Capability]] = {
    **dict.fromkeys((Cut, Isolate, Split, Ring, Slow, Reset, HalfOpen), Capability.NETWORK_FAULTS),
    **dict.fromkeys((DiskError, DiskFull, SlowFlush), Capability.DISK_FAULTS),
    PowerCut: Capability.POWER_CUTS,
    **dict.fromkeys((Kill, ShutDown, Pause, AddBroker, Unregister), Capability.PROCESS_CONTROL),
    **dict.fromkeys((Wipe, DamageDisk, FlipBit), Capability.LOG_DIRECTORIES),
    **dict.fromkeys((ClockJump, ClockDrift), Capability.CLOCK_FAULTS),
    **dict.fromkeys((Reassign, Elect, Configure), Capability.TOPIC_ADMIN),
}
"""By the kind of fault. A kind that is not here is for the simulation alone."""


def lacking(target: Target, needed: Capability) -> str:
    """Why a target cannot do what takes a capability; empty where it can."""
    if needed in target.capabilities:
        return ""
    reasons = target.lacking if isinstance(target, Explaining) else {}
    return reasons.get(needed, f"{target.name} has no {needed}")


def refusals(target: Target, schedule: Iterable[Timed]) -> dict[Fault, str]:
    """The faults of a schedule that a target cannot do, each with the reason."""
    reasons = {timed.fault: _refusal(target, timed.fault) for timed in schedule}
    return {fault: reason for fault, reason in reasons.items() if reason}


def needs_of(schedule: Iterable[Timed]) -> frozenset[Capability]:
    """All that a schedule takes."""
    return frozenset(NEEDS[type(timed.fault)] for timed in schedule if type(timed.fault) in NEEDS)


def _refusal(target: Target, fault: Fault) -> str:
    needed = NEEDS.get(type(fault))
    return f"{type(fault).__name__} is for the simulation alone" if needed is None else lacking(target, needed)
