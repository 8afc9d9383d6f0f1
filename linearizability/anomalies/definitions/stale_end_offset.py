"""`stale-end-offset`: a leader returns an end offset at or below a record acknowledged in its epoch or an earlier one.

A deposed leader may return stale end offsets in its older epoch. An unknown epoch of an acknowledgement counts as the
newest epoch of the history. It may be newer than the epoch of the record's batch: if an idempotent producer sends the
batch again to the next leader, this leader acknowledges the batch because it has it already. A node that acknowledged a
record never returns an end offset at or below it later, whatever the epochs are.
"""

from collections.abc import Iterable, Iterator
from functools import partial

import numpy as np

from linearizability.anomalies.columns import NO_EPOCH, NO_NODE, NO_OFFSET, Flags, Indexes, Int32s
from linearizability.anomalies.definition import Definition, Shown, finding, name_of, op, place, value_of
from linearizability.anomalies.end_offsets import known_end_offsets
from linearizability.anomalies.log import PartitionLog
from linearizability.anomalies.loss import before_end
from linearizability.anomalies.promise import NOT_PROMISED
from linearizability.judgement import Anomaly, Verdict

NAME = "stale-end-offset"


def find(log: PartitionLog) -> Iterable[Anomaly]:
    """Return the findings; each counts responses."""
    states, records = log.rows.states, log.records
    known_ends = np.flatnonzero(log.once(known_end_offsets))
    if log.ambiguous or not len(known_ends):
        return
    acknowledged = np.flatnonzero(records.committed & records.acknowledged & (records.offset != NO_OFFSET))
    acknowledged = acknowledged[np.argsort(records.acknowledged_ns[acknowledged], kind="stable")]
    stale = _misses_one(log, known_ends, acknowledged)
    violation = np.zeros(len(states), np.bool_)
    # Few rounds, because few faults end promises. Each record is found in the round for its own promise.
    end_ns = records.acknowledged_end_ns
    for end in np.unique(end_ns[acknowledged]) if stale.any() else ():
        if end != NOT_PROMISED:
            kept = acknowledged[end_ns[acknowledged] == end]
            in_force = before_end(states.received_ns[known_ends], np.broadcast_to(end, known_ends.shape))
            violation |= _misses_one(log, known_ends[in_force], kept)
    for verdict, found in ((Verdict.VIOLATION, violation), (Verdict.PERMITTED, stale & ~violation)):
        yield from finding(log, NAME, verdict, found, offsets=states.end_offset, show=partial(_show, log, verdict))


def _misses_one(log: PartitionLog, rows: Indexes, acknowledged: Indexes) -> Flags:
    """Whether each state is in `rows`, and its end is at or below a record that the response had to include.

    :param acknowledged: the records that count, by the time of their acknowledgement, which must precede the request.
    """
    records, states = log.records, log.rows.states
    missing = np.zeros(len(states), np.bool_)
    for own, included in _included(log, rows, acknowledged):
        highest = np.append(NO_OFFSET, np.maximum.accumulate(records.offset[included]))
        before = np.searchsorted(records.acknowledged_ns[included], states.requested_ns[own], side="left")
        missing[own] |= highest[before] >= states.end_offset[own]
    return missing


def _included(log: PartitionLog, rows: Indexes, acknowledged: Indexes) -> Iterator[tuple[Indexes, Indexes]]:
    """Yield responses and the records that they had to include: those of their epochs, then those of their nodes."""
    states = log.rows.states
    epoch, node = (column[acknowledged] for column in log.once(_acknowledged_by))
    for leader_epoch in np.unique(states.leader_epoch[rows]):
        yield rows[states.leader_epoch[rows] == leader_epoch], acknowledged[epoch <= leader_epoch]
    for leader in np.unique(node[node != NO_NODE]):
        yield rows[states.node[rows] == leader], acknowledged[node == leader]


def _acknowledged_by(log: PartitionLog) -> tuple[Int32s, Int32s]:
    """Return the leader epoch of each record's acknowledgement, and the node that sent it; NO_NODE if unknown."""
    records, sends = log.records, log.rows.sends
    epoch = np.full(len(records), NO_EPOCH, np.int32)
    node = np.full(len(records), NO_NODE, np.int32)
    sent = records.send >= 0
    epoch[sent] = sends.leader_epoch[records.send[sent]]
    node[sent] = log.rows.operations.node[records.send_operation[sent]]
    return np.where(epoch != NO_EPOCH, epoch, log.newest_epoch).astype(np.int32), node


def _show(log: PartitionLog, verdict: Verdict, row: int) -> Shown:
    records, states = log.records, log.rows.states
    sent_ns, end_offset = states.requested_ns[row], int(states.end_offset[row])
    epoch, node = log.once(_acknowledged_by)
    missed = (
        records.committed
        & (records.acknowledged_ns < sent_ns)
        & (records.offset >= end_offset)
        & ((epoch <= states.leader_epoch[row]) | ((node == states.node[row]) & (node != NO_NODE)))
    )
    if verdict is Verdict.VIOLATION:
        end_ns = records.acknowledged_end_ns
        missed &= (end_ns != NOT_PROMISED) & before_end(np.broadcast_to(states.received_ns[row], end_ns.shape), end_ns)
    candidates = np.flatnonzero(missed)
    seq = log.rows.sends.seq[records.send[candidates]]
    order = np.lexsort((seq, records.offset[candidates], records.send_operation[candidates]))
    record = int(candidates[order[0]])
    sender = int(records.send_operation[record])
    text = (
        f"{name_of(log, record)} was acknowledged to operation {op(log, sender)}"
        f" ({place(log, int(records.offset[record]))}); to a later request, node {int(states.node[row])} returned"
        f" an end of {end_offset} in leader epoch {int(states.leader_epoch[row])}"
    )
    return Shown((sender,), value_of(log, record), text)


STALE_END_OFFSET = Definition(
    name=NAME,
    text="A read_uncommitted ListOffsets returned an end offset that is not above a committed record, although it was"
    " sent after the record had been acknowledged. The response counts only if it is from the node that acknowledged"
    " the record, or has the leader epoch of the acknowledgement or a newer one.",
    levels="A violation if the record was promised when the response arrived; else permitted.",
    counted="responses",
    evidence="the lowest produce of a record that the response left out. The evidence has the returned end offset",
    find=find,
)
