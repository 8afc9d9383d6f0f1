"""`watermark-regress`: the high watermark, last stable offset or log start offset decreases within a leader epoch.

The responses to list_offsets and fetch are compared if they have no error, so that they come from the leader. They are
rows of `states` with a leader epoch. Two responses are compared only if the same node returned both in the same epoch,
and the first one arrived before the request of the second one was sent.
"""

from collections.abc import Iterable
from functools import partial
from typing import Final

import numpy as np

from linearizability.anomalies.columns import NO_OFFSET, Flags, Indexes, Int64s
from linearizability.anomalies.definition import Definition, Shown, finding
from linearizability.anomalies.log import PartitionLog
from linearizability.judgement import Anomaly, Verdict

NAME = "watermark-regress"
_MARKS: Final = {
    "high_watermark": "high watermark",
    "last_stable_offset": "last stable offset",
    "log_start_offset": "log start offset",
}


def find(log: PartitionLog) -> Iterable[Anomaly]:
    """Return the findings. Each counts the responses with a lower offset than an earlier response."""
    if log.ambiguous:
        return
    states = log.rows.states
    regressed = np.zeros(len(states), np.bool_)
    for mark in _MARKS:
        regressed |= _regressed(log, getattr(states, mark))
    offsets = np.full(len(states), NO_OFFSET, np.int64)
    for row in np.flatnonzero(regressed):
        offsets[row] = _decrease(log, int(row))[1]
    yield from finding(log, NAME, Verdict.VIOLATION, regressed, offsets=offsets, show=partial(_show, log))


def _groups(log: PartitionLog, values: Int64s) -> Iterable[Indexes]:
    """Return the leader's responses that contain the offset in `values`, grouped by leader epoch and node."""
    states = log.rows.states
    rows = np.flatnonzero(states.from_leader & (values != NO_OFFSET))
    if not len(rows):
        return []
    order = np.lexsort((states.node[rows], states.leader_epoch[rows]))
    epoch, node = states.leader_epoch[rows[order]], states.node[rows[order]]
    return np.split(rows[order], np.flatnonzero((np.diff(epoch) != 0) | (np.diff(node) != 0)) + 1)


def _regressed(log: PartitionLog, values: Int64s) -> Flags:
    """Whether, per response, an earlier response to which it is compared had a higher offset in `values`."""
    states = log.rows.states
    regressed = np.zeros(len(states), np.bool_)
    for rows in _groups(log, values):
        arrived = rows[np.argsort(states.received_ns[rows], kind="stable")]
        highest = np.append(NO_OFFSET, np.maximum.accumulate(values[arrived]))
        highest_before = highest[np.searchsorted(states.received_ns[arrived], states.requested_ns[rows], side="left")]
        regressed[rows] = highest_before > values[rows]
    return regressed


def _decrease(log: PartitionLog, row: int) -> tuple[str, int, int]:
    """Return the first of `_MARKS` that decreased in a response: its name, its value, and the highest earlier value."""
    states = log.rows.states
    before = np.flatnonzero(
        states.from_leader
        & (states.leader_epoch == states.leader_epoch[row])
        & (states.node == states.node[row])
        & (states.received_ns < states.requested_ns[row])
    )
    for mark, name in _MARKS.items():
        values: Int64s = getattr(states, mark)
        highest = int(values[before].max(initial=NO_OFFSET))
        if highest > values[row] != NO_OFFSET:
            return name, int(values[row]), highest
    raise AssertionError(row)


def _show(log: PartitionLog, row: int) -> Shown:
    name, later, before = _decrease(log, row)
    states = log.rows.states
    text = (
        f"node {int(states.node[row])}, leader of {log.rows.topic}-{log.rows.partition} in epoch"
        f" {int(states.leader_epoch[row])}, returned a {name} of {before}, and {later} to a later request"
    )
    return Shown((), None, text)


WATERMARK_REGRESS = Definition(
    name=NAME,
    text="The high watermark, last stable offset or log start offset decreased from one response of a leader to a later"
    " response of the same leader in the same epoch.",
    levels="Always a violation.",
    counted="responses: the later one of two",
    evidence="none: responses are rows of `states`. The evidence has the offset of the later response",
    find=find,
)
