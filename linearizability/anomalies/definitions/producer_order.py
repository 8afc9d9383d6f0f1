"""`producer-order`: a producer's records stand in the log in another order than the one in which it sent them.

An idempotent producer is a process with a producer id and an epoch; any other producer is a process. A producer sends
its records in the order of (op_id, seq).

If the id of an idempotent producer is unknown (-1), a process counts as one producer until its next init_producer_id.
But after a timeout the client may have continued under another id, which the history does not show, and its earlier
records may validly arrive late. So such a pair is a violation only if the first produce was ok.

Choice: a pair is a violation only if both records certainly were in the log at the same time. A record certainly stays
in the log if its promise never ended, or if it was read after healing and no record of a later epoch is at or below its
offset. Without this rule there would be false alarms: a record may validly be truncated (a record with acks=1 on a
deposed leader, or any record after an unclean election), and later records are then written below its old offset.
"""

from collections.abc import Iterable
from functools import partial
from typing import Final

import numpy as np

from linearizability.anomalies.columns import NO_OFFSET, OK, Flags, Indexes, Int32s, Int64s
from linearizability.anomalies.definition import Definition, Shown, finding, name_of, op, place, value_of
from linearizability.anomalies.faults import NEVER_NS
from linearizability.anomalies.log import PartitionLog
from linearizability.judgement import Anomaly, Verdict

NAME = "producer-order"

_ID_UNKNOWN: Final = -1


class _Sent:
    """The sent records whose offset is known, grouped by producer, in the order in which each producer sent them."""

    def __init__(self, log: PartitionLog) -> None:
        records, operations = log.records, log.rows.operations
        record = np.flatnonzero((records.send >= 0) & (records.offset != NO_OFFSET))
        operation = records.send_operation[record]
        idempotent = operations.idempotent[operation]
        identity = (
            np.where(idempotent, operations.producer_epoch[operation], -1),
            np.where(idempotent, operations.producer_id[operation], -1),
            _opened(log, operation),
            idempotent,
            operations.process[operation],
        )
        order = np.lexsort((log.rows.sends.seq[records.send[record]], operation, *identity))
        self.record, self.operation = record[order], operation[order]
        self.idempotent = idempotent[order]
        acknowledged = operations.outcome[self.operation] == OK
        fresh = np.zeros(len(order), np.bool_)
        for column in identity:
            fresh[1:] |= column[order][1:] != column[order][:-1]
        self.producer = np.cumsum(fresh)
        self.offset = records.offset[self.record]
        self.settled = _settled(log)[self.record]
        self.binding = self.settled & (acknowledged | (operations.producer_id[self.operation] != _ID_UNKNOWN))
        """Whether each record binds the later ones of an idempotent producer: none of them may stand below it."""


def _opened(log: PartitionLog, operation: Int32s) -> Int64s:
    """Return, per idempotent operation with an unknown producer id, how many producers its process had opened before.

    All other operations get 0.
    """
    operations = log.rows.operations
    opened = np.zeros(len(operation), np.int64)
    unknown = operations.idempotent[operation] & (operations.producer_id[operation] == _ID_UNKNOWN)
    for process, op_ids in log.context.producers_opened.items():
        own = unknown & (operations.process[operation] == process)
        opened[own] = np.searchsorted(op_ids, operations.op_id[operation[own]])
    return opened


def find(log: PartitionLog) -> Iterable[Anomaly]:
    """Return the findings; each counts records. Of each pair, the one that was sent later is counted."""
    if log.ambiguous:
        return
    records, operations = log.records, log.rows.operations
    sent = _Sent(log)
    overtook = _below_highest(sent, np.ones(len(sent.record), np.bool_))
    violation = np.zeros(len(sent.record), np.bool_)
    if overtook.any():
        violation = overtook & sent.settled & sent.idempotent & _below_highest(sent, sent.binding)
        acknowledged = sent.settled & (operations.outcome[sent.operation] == OK)
        violation |= overtook & sent.settled & ~sent.idempotent & _below_acknowledged(log, sent, acknowledged)
    for verdict, found in ((Verdict.VIOLATION, violation), (Verdict.PERMITTED, overtook & ~violation)):
        flags = np.zeros(len(records), np.bool_)
        flags[sent.record[found]] = True
        yield from finding(log, NAME, verdict, flags, offsets=records.offset, show=partial(_show, log, sent, verdict))


def _settled(log: PartitionLog) -> Flags:
    """Whether each record was certainly in the log at the end of the run."""
    records, operations = log.records, log.rows.operations
    settled = np.zeros(len(records), np.bool_)
    settled[log.read_ids[log.settled_reads()]] = True
    sent = np.flatnonzero(records.acknowledged)
    kept = log.promise.acknowledged.end_ns(records.acknowledged_ns[sent]) == NEVER_NS
    settled[sent] |= kept & (operations.acks[records.send_operation[sent]] == -1)
    return settled


def _below_highest(sent: _Sent, among: Flags) -> Flags:
    """Whether, per record, an earlier record of the same producer that is in `among` stands above it."""
    offsets, rank = np.unique(sent.offset, return_inverse=True)
    rank = np.where(among, rank + 1, 0)
    highest = np.maximum.accumulate(sent.producer * (len(offsets) + 1) + rank) - sent.producer * (len(offsets) + 1)
    below = np.zeros(len(rank), np.bool_)
    same = sent.producer[1:] == sent.producer[:-1]
    before = highest[:-1][same]
    below[1:][same] = np.where(before > 0, offsets[np.maximum(before, 1) - 1], NO_OFFSET) > sent.offset[1:][same]
    return below


def _below_acknowledged(log: PartitionLog, sent: _Sent, among: Flags) -> Flags:
    """Whether each record was sent after a record of its producer was ok, and stands below that record.

    That record must be in `among`.
    """
    operations = log.rows.operations
    offsets, rank = np.unique(sent.offset, return_inverse=True)
    width = len(offsets) + 1
    first = np.flatnonzero(among)
    complete_ns = operations.complete_ns[sent.operation[first]]
    order = np.lexsort((complete_ns, sent.producer[first]))
    first, complete_ns = first[order], complete_ns[order]
    highest = np.maximum.accumulate(sent.producer[first] * width + rank[first] + 1)
    # The place of each record among `first`: after those of its producer that completed before it was invoked.
    times = np.unique(np.append(complete_ns, operations.invoke_ns[sent.operation]))
    keys = sent.producer[first] * len(times) + np.searchsorted(times, complete_ns)
    wanted = sent.producer * len(times) + np.searchsorted(times, operations.invoke_ns[sent.operation])
    place = np.searchsorted(keys, wanted, side="left") - 1
    below = place >= 0
    below[below] = highest[place[below]] > sent.producer[below] * width + rank[below] + 1
    return below


def _show(log: PartitionLog, sent: _Sent, verdict: Verdict, record: int) -> Shown:
    operations = log.rows.operations
    at = int(np.flatnonzero(sent.record == record)[0])
    invoke_ns = operations.invoke_ns[sent.operation[at]]
    above = (sent.producer == sent.producer[at]) & (sent.offset > sent.offset[at])
    if verdict is Verdict.VIOLATION:
        above &= sent.binding if sent.idempotent[at] else sent.settled
    if verdict is Verdict.VIOLATION and not sent.idempotent[at]:
        above &= (operations.outcome[sent.operation] == OK) & (operations.complete_ns[sent.operation] < invoke_ns)
    else:
        above &= np.arange(len(above)) < at
    candidates: Indexes = np.flatnonzero(above)
    first = int(candidates[np.lexsort((sent.offset[candidates], sent.operation[candidates]))[0]])
    sender, earlier = int(sent.operation[at]), int(sent.operation[first])
    text = (
        f"process {int(operations.process[sender])} sent {name_of(log, int(sent.record[first]))} in operation"
        f" {op(log, earlier)} before {name_of(log, record)} in operation {op(log, sender)}, but the log has them the"
        f" other way round: {place(log, int(sent.offset[first]))} and at {int(sent.offset[at])}"
    )
    return Shown((earlier, sender), value_of(log, record), text)


PRODUCER_ORDER = Definition(
    name=NAME,
    text="Two records of one producer are in the log in another order than the producer sent them.",
    levels="For an idempotent producer a violation; if its producer id is unknown, only if the produce of the first"
    " record was ok. For any other producer a violation if the produce of the first record was ok before that of the"
    " second one was invoked. Else permitted. Also permitted if one record may validly have been removed before the"
    " other was written.",
    counted="records: of a pair, the one that was sent later and has the lower offset",
    evidence="the lowest produce of a record that was sent earlier and has a higher offset, and the produce of the"
    " counted record",
    find=find,
)
