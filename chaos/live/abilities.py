"""What a target cannot do of a schedule, said before anything starts."""

from collections.abc import Iterable
from typing import Final

from chaos.faults import (
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
    Wipe,
)
from fixtures.targets.target import Capability, Explaining, Target

NEEDS: Final[dict[type, Capability]] = {
    **dict.fromkeys((Cut, Isolate, Split, Ring, Slow, Reset, HalfOpen), Capability.NETWORK_FAULTS),
    **dict.fromkeys((DiskError, DiskFull, SlowFlush), Capability.DISK_FAULTS),
    PowerCut: Capability.POWER_CUTS,
    **dict.fromkeys((Kill, ShutDown, Pause), Capability.PROCESS_CONTROL),
    **dict.fromkeys((Wipe, DamageDisk, FlipBit), Capability.LOG_DIRECTORIES),
    **dict.fromkeys((ClockJump, ClockDrift), Capability.CLOCK_FAULTS),
    **dict.fromkeys((Reassign, Elect, Configure), Capability.TOPIC_ADMIN),
}
"""By the kind of fault."""


def lacking(target: Target, needed: Capability) -> str:
    """Why a target cannot do what takes a capability; empty where it can."""
    if needed in target.capabilities:
        return ""
    reasons = target.lacking if isinstance(target, Explaining) else {}
    return reasons.get(needed, f"{target.name} has no {needed}")


def refusals(target: Target, schedule: Iterable[Timed]) -> dict[Fault, str]:
    """The faults of a schedule that a target cannot do, each with the reason."""
    reasons = {timed.fault: lacking(target, NEEDS[type(timed.fault)]) for timed in schedule}
    return {fault: reason for fault, reason in reasons.items() if reason}
