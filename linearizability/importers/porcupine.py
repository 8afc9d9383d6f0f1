"""The two kinds of log that porcupine's own tests read: Jepsen's runs against etcd, and runs of a key-value store.

Inputs and outputs are those of `models.compare_and_set` and `models.key_value`, which judge them.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from linearizability.importers.source import bad_line, read_lines, shown
from linearizability.operation import Event, EventKind

_ETCD = re.compile(r"INFO\s+jepsen\.util\s+-\s+(\d+)\s+:(invoke|ok|fail|info)\s+:(read|write|cas)\s+(.*?)\s*$")
_KEY_VALUE = re.compile(
    r'\{:process (\d+), :type :(invoke|ok), :f :(get|put|append), :key "(.*?)", :value (?:nil|"(.*)")\}\s*$'
)
_PAIR = re.compile(r"\[(\d+)\s+(\d+)\]$")

Line = tuple[str, EventKind, Any]
"""A process, what it did, and the input or output."""


def read_etcd_log(path: Path) -> list[Event]:
    """A log of one register. Raises HistoryError naming the line that cannot be read."""
    return _read(path, _etcd_line)


def read_key_value_log(path: Path) -> list[Event]:
    """A log of a store with get, put and append. Raises HistoryError naming the line that cannot be read."""
    return _read(path, _key_value_line)


def _read(path: Path, parse: Callable[[str], Line | None]) -> list[Event]:
    return list(_events(path, parse))


def _events(path: Path, parse: Callable[[str], Line | None]) -> Iterator[Event]:
    """Events with ids in order of invocation: in these logs a process has one operation at a time."""
    running: dict[str, int] = {}
    invoked = 0
    for number, text in read_lines(path):
        if not text.strip():
            continue
        line = parse(text)
        if line is None:
            raise bad_line(path, number, f"not a line of such a log: {shown(text)}")
        process, kind, value = line
        if kind is EventKind.INVOKE and process in running:
            raise bad_line(path, number, f"process {process} invokes, but what it invoked before has not ended")
        if kind is EventKind.INVOKE:
            running[process], invoked = invoked, invoked + 1
            op_id = running[process]
        elif process in running:
            op_id = running.pop(process)
        else:
            raise bad_line(path, number, f"process {process} completes what it did not invoke")
        yield Event(kind=kind, op_id=op_id, value=value, process=process)


def _etcd_line(text: str) -> Line | None:
    """A compare-and-set that failed was answered: it is ok, with the answer False."""
    found = _ETCD.match(text)
    if found is None:
        return None
    process, kind, f, rest = found[1], EventKind(found[2]), found[3], found[4]
    if rest == ":timed-out":
        return process, kind, None
    pair = _PAIR.match(rest)
    given: tuple[Any, ...] | None = None
    if f == "read" and (rest == "nil" or rest.isdecimal()):
        given = ("read",)
    elif f == "write" and rest.isdecimal():
        given = ("write", int(rest))
    elif f == "cas" and pair is not None:
        given = ("cas", int(pair[1]), int(pair[2]))
    if given is None:
        return None
    if kind is EventKind.INVOKE:
        return process, kind, given
    if f == "read":
        return process, kind, None if rest == "nil" else int(rest)
    if f == "cas":
        return process, EventKind.OK, kind is EventKind.OK
    return process, kind, None


def _key_value_line(text: str) -> Line | None:
    found = _KEY_VALUE.match(text)
    if found is None:
        return None
    process, kind, f, key, value = found[1], EventKind(found[2]), found[3], found[4], found[5]
    if kind is EventKind.INVOKE:
        return process, kind, ("get", key) if f == "get" else (f, key, value)
    return process, kind, value if f == "get" else None
