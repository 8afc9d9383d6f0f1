"""Picture of one piece of evidence for an anomaly: operations of clients, responses of nodes, and the partition's log.

    picture = draw_anomaly(open_history(run_dir), "lost-write", anomaly.evidence[0])

Operations that do not touch the partition are left out, except those of the same processes that determine the meaning
of the shown operations: begin, commit and abort of transactions, `init_producer_id`, `subscribe`, `assign` and `seek`.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

from linearizability.history.reader import History
from linearizability.judgement import Evidence
from linearizability.operation import Outcome
from linearizability.picture import rows
from linearizability.picture.drawing import Band, Bar, Break, Lane, LaneKind, Mark, Picture, short
from linearizability.picture.labels import operation_details, operation_label, state_details, state_label
from linearizability.picture.log import draw_log
from linearizability.picture.window import around, gaps
from linearizability.printable import counted

Row = dict[str, Any]

STATES_MAX: Final = 60
"""Maximum number of responses of nodes in a picture."""
BANDS_MAX: Final = 40
"""Maximum number of faults in a picture."""


def draw_anomaly(history: History, name: str, evidence: Evidence, *, bars_max: int = 160) -> Picture:
    """Return the picture, with at most `bars_max` operations. Raises HistoryError if the history cannot be read.

    :param name: name of the anomaly.
    """
    return _Drawing(history, name, evidence, bars_max).picture()


class _Drawing:
    def __init__(self, history: History, name: str, evidence: Evidence, bars_max: int) -> None:
        self._history, self._name, self._evidence = history, name, evidence
        self._outline = rows.outline(history, evidence)
        self._states = rows.states(history, evidence) if evidence.topic is not None else []
        self._places = self._window(bars_max)
        op_ids = [int(self._outline.op_ids[place]) for place in self._places]
        self._operations = sorted(rows.operations(history, op_ids), key=lambda op: (op["invoke_ns"], op["op_id"]))
        # The operation of the evidence that was invoked last is marked as bad.
        evident = [op["op_id"] for op in self._operations if op["op_id"] in evidence.op_ids]
        self._bad = evident[-1] if evident else None
        self._records = self._by_operation("records", op_ids)
        self._moves = self._by_operation("positions", op_ids)

    def picture(self) -> Picture:
        """Return the whole picture."""
        evidence, shown = self._evidence, self._operations
        begin_ns, end_ns = self._span()
        states = self._states_between(begin_ns, end_ns)
        faults = [
            fault
            for fault in self._history.table("faults").to_pylist()
            if fault["inject_ns"] <= end_ns and (fault["heal_ns"] is None or fault["heal_ns"] >= begin_ns)
        ]
        where = _where(evidence)
        return Picture(
            title=f"{self._name}{f' in {where}' if where else ''}",
            statement=short(evidence.text, 600),
            facts=tuple(self._facts()),
            origin_ns=self._outline.origin_ns,
            begin_ns=begin_ns,
            end_ns=end_ns,
            lanes=self._lanes(states),
            bands=tuple(map(_band, faults[:BANDS_MAX])),
            breaks=tuple(
                Break(int(self._outline.invoke_ns[self._places[index]]), count) for index, count in gaps(self._places)
            ),
            log=draw_log(self._history, evidence),
            notes=tuple(self._notes(len(faults) - BANDS_MAX, len(shown), len(states))),
        )

    def _window(self, bars_max: int) -> list[int]:
        found = self._outline
        focus = found.places(list(reversed(self._evidence.op_ids)))
        if not focus:
            focus = [min(int(np.searchsorted(found.invoke_ns, self._moment())), max(0, len(found.op_ids) - 1))]
        return around(len(found.op_ids), focus, bars_max)

    def _moment(self) -> int:
        """Return the time of the last reported state with the offset of the evidence.

        If no state has this offset, return the time of the last state. If there are no states, return the time at which
        the history begins.
        """
        columns = ("high_watermark", "last_stable_offset", "log_start_offset")
        matching = [state for state in self._states if self._evidence.offset in [state[column] for column in columns]]
        return int(next(reversed(matching or self._states), {"asked_ns": self._outline.origin_ns})["asked_ns"])

    def _span(self) -> tuple[int, int]:
        moments = [op["invoke_ns"] for op in self._operations]
        moments += [op["complete_ns"] for op in self._operations if op["complete_ns"] is not None]
        if not moments:
            moments = [self._moment()]
        return min(moments), max(moments)

    def _by_operation(self, name: str, op_ids: Sequence[int]) -> dict[int, list[Row]]:
        found: dict[int, list[Row]] = defaultdict(list)
        if self._evidence.topic is not None:
            for row in rows.partition_rows(self._history, name, self._evidence, op_ids):
                found[row["op_id"]].append(row)
        elsewhere = [op_id for op_id in self._evidence.op_ids if op_id not in found]
        for row in rows.operation_rows(self._history, name, elsewhere) if elsewhere else ():
            found[row["op_id"]].append(row)
        return found

    def _states_between(self, begin_ns: int, end_ns: int) -> list[Row]:
        """Return at most `STATES_MAX` states that nodes reported in a period: those nearest to the evidence."""
        found = [
            state
            for state in self._states
            if state["node"] is not None and begin_ns <= state["answered_ns"] and state["asked_ns"] <= end_ns
        ]
        own = set(self._evidence.op_ids)
        moments = [op["invoke_ns"] for op in self._operations if op["op_id"] in own] or [self._moment()]
        found.sort(key=lambda state: min(abs(state["asked_ns"] - moment) for moment in moments))
        return sorted(found[:STATES_MAX], key=lambda state: (state["asked_ns"], state["answered_ns"]))

    def _lanes(self, states: Sequence[Row]) -> tuple[Lane, ...]:
        """Return the lanes of processes, then those of nodes. Bars are numbered by time across all lanes."""
        calls = [("process", op["process"], op["invoke_ns"], op) for op in self._operations]
        calls += [("node", state["node"], state["asked_ns"], state) for state in states]
        lanes: dict[tuple[str, int], list[Bar]] = defaultdict(list)
        for number, (kind, owner, _, row) in enumerate(sorted(calls, key=lambda call: call[2])):
            lanes[kind, owner].append(self._bar(number, row) if kind == "process" else _state_bar(number, row))
        order = sorted(lanes, key=lambda lane: (lane[0] == "node", lane[1]))
        return tuple(Lane(f"{kind} {owner}", LaneKind(kind), tuple(lanes[kind, owner])) for kind, owner in order)

    def _bar(self, number: int, op: Row) -> Bar:
        records, moves = self._records[op["op_id"]], self._moves[op["op_id"]]
        is_evidence = op["op_id"] in self._evidence.op_ids
        mark = Mark.BAD if op["op_id"] == self._bad else Mark.EVIDENCE if is_evidence else Mark.PLAIN
        return Bar(
            number=number,
            name=str(op["op_id"]),
            label=operation_label(op, records, moves) + self._elsewhere([*records, *moves]),
            begin_ns=op["invoke_ns"],
            end_ns=op["complete_ns"],
            outcome=Outcome(op["outcome"]),
            mark=mark,
            details=operation_details(op, records, moves),
        )

    def _elsewhere(self, found: Sequence[Row]) -> str:
        """Return a text with the partitions of an operation; empty if it has none but the partition of the picture."""
        places = sorted({f"{row['topic']}-{row['partition']}" for row in found})
        return "" if places in ([], [_partition(self._evidence)]) else f" in {short(', '.join(places), 40)}"

    def _facts(self) -> Iterable[tuple[str, str]]:
        evidence, run = self._evidence, self._history.run
        if evidence.op_ids:
            yield "Operations of the evidence", ", ".join(map(str, evidence.op_ids[:20]))
        if evidence.value is not None:
            yield "Value", str(evidence.value)
        yield "Run", short(run.run_id, 60)
        if run.target is not None:
            yield "Target", short(run.target, 60)
        if run.seed is not None:
            yield "Seed", str(run.seed)

    def _notes(self, bands: int, shown: int, states: int) -> Iterable[str]:
        found, evidence = self._outline, self._evidence
        others = found.operations - len(found.op_ids)
        if others:
            where = _partition(evidence)
            yield f"{counted(others, 'operation')} of {found.operations:,} left out because they did not touch {where}."
        if len(found.op_ids) > shown:
            yield f"{counted(len(found.op_ids) - shown, 'more operation')} left out around those shown."
        if len(self._states) > states:
            yield f"{counted(len(self._states) - states, 'response')} of nodes left out."
        if bands > 0:
            yield f"{counted(bands, 'fault')} in the window left out."


def _partition(evidence: Evidence) -> str:
    return f"{evidence.topic}{'' if evidence.partition is None else f'-{evidence.partition}'}"


def _where(evidence: Evidence) -> str:
    if evidence.topic is None:
        return ""
    return _partition(evidence) + ("" if evidence.offset is None else f" at offset {evidence.offset}")


def _state_bar(number: int, state: Row) -> Bar:
    return Bar(
        number=number,
        name=f"{state['source']} to node {state['node']}",
        label=state_label(state),
        begin_ns=state["asked_ns"],
        end_ns=state["answered_ns"],
        details=state_details(state),
    )


def _band(fault: Row) -> Band:
    parts = " ".join(short(fault[column], 40) for column in ("kind", "target", "argument") if fault[column] is not None)
    return Band(parts, fault["inject_ns"], fault["heal_ns"])
