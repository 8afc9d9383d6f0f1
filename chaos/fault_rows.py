"""The rows of the table `faults` of a history, and how they speak of each fault: its kind and its argument.

A row begins before its fault does, and ends when that is over. Kinds and arguments are the words that the definitions
of anomalies know (`linearizability.anomalies.faults`): what lost content is `power`, `wipe`, or a `disk` fault whose
words say so.
"""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, Final

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
    Operation,
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
    Unregister,
    Upgrade,
    Wipe,
)
from linearizability.history.recorder import Recorder

Heal = Callable[[], object]
"""Ends a fault, and its row."""
LAST_HAS_LOST: Final = "unclean: the last in-sync replica lost content"
"""The argument of an `election` that follows without KIP-966: it leads again, whatever it lost."""
_OPERATIONS = {Operation.TRUNCATE: "shortening", Operation.DELETE: "removal"}
"""Whose own names would say that content was lost."""


def begun(recorder: Recorder, fault: Fault, target: str | None) -> ExitStack:
    """A fault's row, which begins now, and ends when what is returned is closed."""
    return row(recorder, *words_of(fault), target)


def row(recorder: Recorder, kind: str, argument: str | None, target: str | None) -> ExitStack:
    """The same of words that are not the fault's own."""
    stack = ExitStack()
    stack.enter_context(recorder.fault(kind, target, argument))
    return stack


def words_of(fault: Fault) -> tuple[str, str | None]:
    """Kind and argument."""
    return WORDS[type(fault)](fault)


def _of_cut(fault: Cut | Isolate) -> tuple[str, str]:
    limited = "" if fault.listener is None else f", listener {fault.listener} alone"
    return "cut", f"keeps {fault.keeps}{limited}"


def _of_disk_error(fault: DiskError) -> tuple[str, str]:
    operation = "every operation"
    if fault.operation is not None:
        operation = _OPERATIONS.get(fault.operation, str(fault.operation))
    return "disk", f"{fault.error}: {operation} of {fault.files or 'every file'}"


WORDS: Final[dict[type, Callable[[Any], tuple[str, str | None]]]] = {
    **dict.fromkeys((Split, Ring), lambda fault: ("cut", f"keeps {fault.keeps}")),
    **dict.fromkeys((Cut, Isolate), _of_cut),
    Slow: lambda fault: ("delay", f"{fault.delay_ms} ms, jitter {fault.jitter_ms} ms"),
    Reset: lambda _: ("reset", "both told"),
    HalfOpen: lambda _: ("reset", "half open"),
    Kill: lambda _: ("kill", None),
    ShutDown: lambda _: ("shutdown", None),
    Pause: lambda _: ("pause", None),
    Wipe: lambda _: ("wipe", None),
    PowerCut: lambda fault: ("power", None if fault.after_writes is None else "in the middle of a write"),
    DamageDisk: lambda fault: (fault.what.kind, str(fault.what)),
    FlipBit: lambda fault: ("disk", f"bit flipped in {fault.files}"),
    DiskError: _of_disk_error,
    DiskFull: lambda _: ("disk", "ENOSPC: full"),
    SlowFlush: lambda fault: ("disk", f"slow: a flush takes {fault.flush_ms} ms"),
    ClockJump: lambda fault: ("clock", f"jump {fault.by_ms} ms"),
    ClockDrift: lambda fault: ("clock", f"drift {fault.rate_ppm} ppm"),
    Configure: lambda fault: ("configuration", f"{fault.name}={fault.value}"),
    Elect: lambda fault: ("election", "unclean" if fault.unclean else "preferred"),
    AddBroker: lambda _: ("reassignment", "a broker more"),
    Unregister: lambda _: ("kill", "unregistered"),
    RestartWith: lambda fault: ("kill", f"{fault.name}={fault.value}"),
    Refuse: lambda _: ("refuse", None),
    Slice: lambda fault: ("delay", f"in pieces of {fault.slice_bytes} bytes"),
    HoldRequests: lambda fault: ("delay", f"{fault.held} of APIs {', '.join(map(str, fault.api_keys))} held"),
    CutShort: lambda fault: ("disk", f"{fault.files} truncated"),
    StaleCopy: lambda _: ("disk", "stale copy put back"),
    Starve: lambda fault: ("starve", f"{fault.cpu_per_mille} thousandths of a processor"),
    LimitMemory: lambda fault: ("memory", f"at most {fault.bytes_max} bytes"),
    Upgrade: lambda fault: ("shutdown", f"started as {fault.version}"),
    Reassign: lambda fault: ("reassignment", ",".join(map(str, fault.replicas))),
}
"""Of each kind of fault."""
