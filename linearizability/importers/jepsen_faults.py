"""Faults of a Jepsen nemesis as rows of the table `faults`.

A nemesis writes two rows for each action, one before and one after. A fault begins with the first row of the action
that begins it, and ends with the second row of the action that ends it. An action that removes or alters data is a
fault from its first row to its second. So is an unknown action; its name is the kind of the fault. An action that may
have removed or altered data is assumed to have done so. Otherwise the check would expect records that Kafka may have
lost.
"""

from collections.abc import Sequence
from typing import Any, Final

from linearizability.importers.jepsen_log import NemesisRow
from linearizability.importers.source import shown

# Kinds of faults: by the action that begins one, the kinds that an action ends, and by the action that is one itself.
_BEGINS: Final = {
    "start-partition": "cut",
    "partition": "cut",
    "kill": "kill",
    "pause": "pause",
    "start-packet": "delay",
    "bump-clock": "clock",
    "strobe-clock": "clock",
}
_ENDS: Final = {
    "stop-partition": ("cut",),
    "stop": ("cut",),
    "heal": ("cut",),
    "start": ("kill",),
    "resume": ("pause",),
    "stop-packet": ("delay",),
    "reset-clock": ("clock",),
}
_WITHOUT_EFFECT: Final = ("check-offsets", "check-clock-offsets", "sleep", "log")
_LOSSES: Final = {
    "bitflip": "disk",
    "truncate": "disk",
    "bitflip-file-chunks": "disk",
    "copy-file-chunks": "disk",
    "restore-file-chunks": "disk",
    "snapshot-file-chunks": "disk",
    "free-node": "wipe",
    "wipe": "wipe",
    "lose-unfsynced-writes": "power",
}


def fault_rows(rows: Sequence[NemesisRow]) -> list[dict[str, Any]]:
    """Return the faults in the order of their injection. The heal_ns of a fault that was not ended is None."""
    faults: list[dict[str, Any]] = []
    acting: dict[str, dict[str, Any]] = {}
    begun: set[str] = set()
    nodes_restart = any(row.f == "kill" for row in rows)
    for row in rows:
        is_before = row.f not in begun
        (begun.add if is_before else begun.remove)(row.f)
        if row.f in _WITHOUT_EFFECT:
            continue
        ends = _ENDS.get(row.f)
        if row.f == "start" and not nodes_restart:  # without kills, `start` begins a cut of the network
            ends = None
        if ends is None and is_before:
            kind = _BEGINS.get(row.f) or _LOSSES.get(row.f) or ("cut" if row.f == "start" else row.f)
            acting[row.f] = _fault(len(faults), kind, row)
            faults.append(acting[row.f])
        elif ends is None and row.f not in _BEGINS and row.f != "start":
            acting[row.f]["heal_ns"] = row.time_ns
        elif ends is not None and not is_before:
            for fault in faults:
                if fault["kind"] in ends and fault["heal_ns"] is None:
                    fault["heal_ns"] = row.time_ns
    return faults


def _fault(number: int, kind: str, row: NemesisRow) -> dict[str, Any]:
    argument = row.f if row.value is None else f"{row.f} {shown(row.value)}"
    return {"fault_id": number, "kind": kind, "argument": argument, "inject_ns": row.time_ns, "heal_ns": None}
