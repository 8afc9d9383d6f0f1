"""Jepsen's log of a test: a row for each invocation and completion, paired into calls.

`history.edn` has one map per line. The same rows are also read as JSON objects, one per line or in one array. A row has
`process` (a number, or the name of a nemesis, -1 in some JSON), `type` (invoke, ok, fail, info; always info for a
nemesis), `f`, `value`, and `time` in nanoseconds. If no row has a time, the row's number is used.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from linearizability.importers.edn import read_forms
from linearizability.importers.source import RepeatedMemberError, bad_line, no_member_twice, read_lines, shown
from linearizability.operation import EventKind

_BETWEEN: Final = re.compile(r"[\s,\[\]]*")
_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")
_PROCESS_MAX: Final = 2**31 - 1
_NEMESIS: Final = -1
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Call:
    """An invocation and its completion, if it has one. `begin` and `end` are their positions in the log.

    Without a completion, `end` is the number of rows of the log.
    """

    process: int
    f: str
    begin: int
    line: int
    invoke_ns: int
    invoked: Row
    end: int
    complete_ns: int | None = None
    completed: Row | None = None
    last_line: int = 0
    """The line of the completion, or of the invocation if it has none."""

    @property
    def outcome(self) -> str:
        """The outcome: ok, fail or info (also without a completion)."""
        return "info" if self.completed is None else str(self.completed["type"])


@dataclass(frozen=True, slots=True)
class NemesisRow:
    """A row of a nemesis. A nemesis writes one row before and one after each action."""

    line: int
    time_ns: int
    f: str
    value: Any


def read_edn_rows(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield (line number, row) for each row of an EDN file. Raises HistoryError with the line."""
    return read_forms(path, read_lines(path))


def read_json_rows(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield (line number, row) for each JSON object of a file, one per line or in one array. Raises HistoryError."""
    text = "".join(line for _, line in read_lines(path))
    decoder, line, at = json.JSONDecoder(object_pairs_hook=no_member_twice), 1, 0
    while at < len(text):
        begin = _BETWEEN.match(text, at).end()  # type: ignore[union-attr]
        line += text.count("\n", at, begin)
        if begin == len(text):
            return
        try:
            row, at = decoder.raw_decode(text, begin)
        except RepeatedMemberError as error:
            raise bad_line(path, line, str(error)) from None
        except (ValueError, RecursionError) as error:
            where = error.lineno if isinstance(error, json.JSONDecodeError) else line
            raise bad_line(path, where, f"not JSON: {shown(text[begin:])}") from None
        if _SURROGATE.search(text, begin, at) and not _is_text(row):
            raise bad_line(path, line, f"half of a surrogate pair: {shown(text[begin:at])}")
        yield line, row
        line += text.count("\n", begin, at)


def _is_text(row: Any) -> bool:
    try:
        json.dumps(row, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def pair_rows(path: Path, rows: Iterable[tuple[int, Any]]) -> tuple[list[Call], list[NemesisRow]]:
    """Return the calls of all clients, by invocation, and the rows of nemeses. Raises HistoryError with the line."""
    pairing = _Pairing(path)
    for line, row in rows:
        pairing.add(line, row)
    return pairing.calls(), pairing.nemesis


class _Pairing:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._running: dict[int, tuple[int, int, int, Row]] = {}
        self._calls: list[Call] = []
        self.nemesis: list[NemesisRow] = []
        self._count = self._now_ns = 0
        self._timed: bool | None = None

    def calls(self) -> list[Call]:
        """Return all calls, including those that never returned."""
        unfinished = [
            Call(process, str(invoked["f"]), begin, line, begin_ns, invoked, self._count, last_line=line)
            for process, (begin, line, begin_ns, invoked) in self._running.items()
        ]
        return sorted([*self._calls, *unfinished], key=lambda call: call.begin)

    def add(self, line: int, row: Any) -> None:
        """Add the next row of the log."""
        if not isinstance(row, Mapping):
            raise bad_line(self._path, line, f"not an operation: {shown(row)}")
        kind, f, process = row.get("type"), row.get("f"), row.get("process")
        if kind not in list(EventKind) or not isinstance(f, str):
            raise bad_line(self._path, line, f"an operation has a type (invoke, ok, fail, info) and an f: {shown(row)}")
        now_ns = self._time_ns(line, row)
        number, self._count = self._count, self._count + 1
        if isinstance(process, str) or (kind == EventKind.INFO and type(process) is int and process == _NEMESIS):
            self.nemesis.append(NemesisRow(line, now_ns, f, row.get("value")))
            return
        if type(process) is not int or not 0 <= process <= _PROCESS_MAX:
            raise bad_line(self._path, line, f"process is {shown(process)}, neither a number nor a nemesis")
        if kind == EventKind.INVOKE:
            if process in self._running:
                before = self._running[process][1]
                raise bad_line(
                    self._path, line, f"process {process} invokes, but its operation of line {before} has not completed"
                )
            self._running[process] = number, line, now_ns, row
            return
        if process not in self._running:
            raise bad_line(self._path, line, f"process {process} completes what it did not invoke")
        begin, invoked_line, begin_ns, invoked = self._running.pop(process)
        if invoked["f"] != f:
            what = f"process {process} completes {f}, but invoked {invoked['f']} on line {invoked_line}"
            raise bad_line(self._path, line, what)
        self._calls.append(Call(process, f, begin, invoked_line, begin_ns, invoked, number, now_ns, row, line))

    def _time_ns(self, line: int, row: Row) -> int:
        time_ns = row.get("time")
        if self._timed is None:
            self._timed = time_ns is not None
        if not self._timed:
            if time_ns is not None:
                raise bad_line(self._path, line, f"time is {shown(time_ns)}, but the first row has none")
            return self._count
        if type(time_ns) is not int or not 0 <= time_ns < 2**62:
            raise bad_line(self._path, line, f"time is {shown(time_ns)}, not nanoseconds from 0 as in other rows")
        if time_ns < self._now_ns:
            raise bad_line(self._path, line, f"time goes back, from {self._now_ns} to {time_ns}")
        self._now_ns = time_ns
        return time_ns
