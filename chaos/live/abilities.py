"""What a target cannot do of a schedule, said before anything starts."""

from collections.abc import Iterable
from typing import Final

from chaos.faults import (
    AddBroker,
    ClockDrift,
    ClockJump,
    Configure,
    Cut,
    CutShort,
    DamageDisk,
    DiskError,
    DiskFull,
    Elect,
    Fault,
    FlipBit,
    HalfOpen,
    HoldRequests,
    Isolate,
    Kill,
    LimitMemory,
    Pause,
    PowerCut,
    Reassign,
    Refuse,
    Reset,
    RestartWith,
    Ring,
    ShutDown,
    Slice,
    Slow,
    SlowFlush,
    Split,
    StaleCopy,
    Starve,
    Timed,
    Unregister,
    Upgrade,
    Wipe,
)
from fixtures.targets.target import Capability, Explaining, Target

NEEDS: Final[dict[type, Capability]] = {
    **dict.fromkeys((Cut, Isolate, Split, Ring, Slow, Reset, HalfOpen, Refuse, Slice), Capability.NETWORK_FAULTS),
    **dict.fromkeys((DiskError, DiskFull, SlowFlush), Capability.DISK_FAULTS),
    PowerCut: Capability.POWER_CUTS,
    **dict.fromkeys((Kill, ShutDown, Pause, AddBroker, Unregister, RestartWith), Capability.PROCESS_CONTROL),
    **dict.fromkeys((Wipe, DamageDisk, FlipBit, CutShort, StaleCopy), Capability.LOG_DIRECTORIES),
    **dict.fromkeys((Starve, LimitMemory), Capability.RESOURCE_LIMITS),
    HoldRequests: Capability.REQUEST_FAULTS,
    Upgrade: Capability.UPGRADES,
    **dict.fromkeys((ClockJump, ClockDrift), Capability.CLOCK_FAULTS),
    **dict.fromkeys((Reassign, Elect, Configure), Capability.TOPIC_ADMIN),
}
"""By the kind of fault; every kind is here."""


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


def _refusal(target: Target, fault: Fault) -> str:
    if isinstance(fault, Upgrade) and fault.version == target.version:
        return f"{target.name} is of that version already, and would only be restarted"
    return lacking(target, NEEDS[type(fault)])


def needs_of(schedule: Iterable[Timed]) -> frozenset[Capability]:
    """All that a schedule takes."""
    return frozenset(NEEDS[type(timed.fault)] for timed in schedule)
