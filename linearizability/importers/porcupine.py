"""Importer of the two kinds of log in porcupine's own tests: Jepsen's runs against etcd, and runs of a key-value store.

Inputs and outputs are those of `models.compare_and_set` and `models.key_value`, which judge them. A completion must
repeat the operation and the arguments of its invocation (`:timed-out` only the operation); otherwise the log is
rejected. Lines of the nemesis and of other loggers are ignored. If a client's line cannot be parsed, the log is
rejected, because this line may decide the verdict.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from linearizability.importers.source import bad_line, read_lines, shown
from linearizability.models.call import describe_call
from linearizability.operation import Event, EventKind

_ETCD: Final = re.compile(r"INFO\s+jepsen\.util\s+-\s+(\d+)\s+:(invoke|ok|fail|info)\s+:(read|write|cas)\s+(.*?)\s*$")
_ETCD_FOREIGN: Final = re.compile(
    r"(?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL)\s+(?:(?!jepsen\.util\s)[\w.$-]+\s+-\s|jepsen\.util\s+-\s+:nemesis\s)"
)
_KEY_VALUE: Final = re.compile(
    r'\{:process (\d+), :type :(invoke|ok|fail|info), :f :(get|put|append), :key "(.*?)", :value (?:nil|"(.*)")\}\s*$'
)
_KEY_VALUE_FOREIGN: Final = re.compile(r"\{:process :nemesis,")
_NUMBER: Final = re.compile(r"-?[0-9]+$")
_PAIR: Final = re.compile(r"\[(-?[0-9]+)\s+(-?[0-9]+)\]$")
_TIMED_OUT: Final = ":timed-out"


@dataclass(frozen=True, slots=True)
class _Line:
    """A client's line. `given` is the input of its operation, or None in a completion that does not repeat the input.

    `output` is the output of an ok completion.
    """

    process: str
    kind: EventKind
    f: str
    given: tuple[Any, ...] | None
    output: Any = None


def read_etcd_log(path: Path) -> list[Event]:
    """Read a log of one register. Raises HistoryError with the line that cannot be parsed."""
    return list(_events(path, _etcd_line, _ETCD_FOREIGN))


def read_key_value_log(path: Path) -> list[Event]:
    """Read a log of a store with get, put and append. Raises HistoryError with the line that cannot be parsed."""
    return list(_events(path, _key_value_line, _KEY_VALUE_FOREIGN))


def _events(path: Path, parse: Callable[[str], _Line | None], foreign: re.Pattern[str]) -> Iterator[Event]:
    """Yield events with ids in order of invocation; in these logs a process has one operation at a time."""
    running: dict[str, tuple[int, int, tuple[Any, ...]]] = {}
    invoked = 0
    for number, text in read_lines(path):
        if not text.strip() or foreign.match(text):
            continue
        line = parse(text)
        if line is None:
            raise bad_line(path, number, f"not a line of a log of this form: {shown(text)}")
        process, kind, value = line.process, line.kind, line.output
        if kind is EventKind.INVOKE and process in running:
            raise bad_line(path, number, f"process {process} invokes, but its previous operation has not completed")
        if kind is EventKind.INVOKE:
            assert line.given is not None
            op_id, invoked, value = invoked, invoked + 1, line.given
            running[process] = op_id, number, line.given
        elif process in running:
            op_id, begin_line, given = running.pop(process)
            if line.f != given[0] or line.given not in (None, given):
                repeated = describe_call(line.given or (line.f,), None)
                before = f"invoked {describe_call(given, None)} on line {begin_line}"
                what = f"process {process} completes {repeated}, but {before}"
                raise bad_line(path, number, what)
        else:
            raise bad_line(path, number, f"process {process} completes what it did not invoke")
        yield Event(kind=kind, op_id=op_id, value=value, process=process)


def _etcd_line(text: str) -> _Line | None:
    """Parse a line. A compare-and-set that failed has a result, so it is returned as ok with the output False."""
    found = _ETCD.match(text)
    if found is None:
        return None
    process, kind, f, rest = found[1], EventKind(found[2]), found[3], found[4]
    if rest == _TIMED_OUT:
        return _Line(process, kind, f, None) if kind in (EventKind.FAIL, EventKind.INFO) else None
    pair, is_number = _PAIR.match(rest), _NUMBER.match(rest) is not None
    if f == "read" and (rest == "nil" or is_number):
        return _Line(process, kind, f, ("read",), int(rest) if is_number else None)
    if f == "write" and is_number:
        return _Line(process, kind, f, ("write", int(rest)))
    if f == "cas" and pair is not None:
        given = ("cas", int(pair[1]), int(pair[2]))
        if kind in (EventKind.OK, EventKind.FAIL):
            return _Line(process, EventKind.OK, f, given, kind is EventKind.OK)
        return _Line(process, kind, f, given)
    return None


def _key_value_line(text: str) -> _Line | None:
    found = _KEY_VALUE.match(text)
    if found is None:
        return None
    process, kind, f, key, value = found[1], EventKind(found[2]), found[3], found[4], found[5]
    if f == "get":
        is_read = value is not None or kind is not EventKind.OK
        return _Line(process, kind, f, ("get", key), value) if is_read else None
    return None if value is None else _Line(process, kind, f, (f, key, value))
