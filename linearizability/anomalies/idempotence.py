"""Permitted duplicates: a restarted broker has lost the producer state of a batch (`ProducerStateManager`, KIP-98).

While a broker runs, it recognises the last five batches of a producer. Its producer snapshots hold only the last one,
and a log is always loaded from a snapshot: a clean stop writes one at the end of the log, and the recovery after a
crash writes one at the end of each segment. So a leader that has restarted knows only the last of several batches that
were in flight when it stopped. It rejects the retry of another batch with OUT_OF_ORDER_SEQUENCE_NUMBER. A client that
then bumps its producer epoch, as Java's producer and librdkafka do, appends the batch again.

A further copy of a record is permitted if all `CONDITIONS` hold, and the produce was idempotent, outside of a
transaction, and could be retried by its client. The restart must overlap the produce, and begin before the copy was
read. It must be the restart of the leader in the copy's leader epoch; if the history does not show that leader, the
restart of any replica counts. A producer epoch of 0 was never bumped. If the history does not show the epoch, it may
have been bumped.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Final

import numpy as np

from linearizability.anomalies.columns import NO_EPOCH, NO_NODE, Flags
from linearizability.anomalies.faults import Fault
from linearizability.anomalies.log import PartitionLog

_IN_FLIGHT: Final = ("max.in.flight.requests.per.connection", "max.in.flight")
"""The property that Java's producer and librdkafka share, and librdkafka's second name for it."""
_FIRST_EPOCH: Final = 0
CONDITIONS: Final = (
    (
        "the leader of the further copy restarted while the record was in flight, after a kill or a clean stop",
        (
            "a running broker knows the last five batches of a producer. When it loads a log, it starts from a"
            " producer snapshot, which has only the last batch of each producer. A clean stop writes a snapshot at the"
            " end of the log, and so does the recovery after a crash. So this happens even if no segment was rolled"
        ),
    ),
    (
        "several requests were in flight (`max.in.flight.requests.per.connection` is above 1)",
        "with only one request in flight, the batch that is sent again is the last one, which the snapshot has",
    ),
    ("the record was not acknowledged before the restart", "a client does not send an acknowledged record again"),
    (
        "the client bumped its producer epoch",
        (
            "a retry in the same epoch gets OUT_OF_ORDER_SEQUENCE_NUMBER. Java's producer then bumps its epoch and"
            " sends all batches in flight again (KIP-360). librdkafka ends with a fatal error, except that it bumps its"
            " epoch if an earlier batch failed with another error"
        ),
    ),
    (
        "each further copy has a higher leader epoch than the copy before it",
        "a leader recognises a retry of a batch that it has appended since it became leader",
    ),
)
"""The conditions that `retries_unrecognised` checks, each with its reason."""


@dataclass(frozen=True, slots=True)
class _Copy:
    """A record at one offset: the leader epoch of its batch, NO_EPOCH where unknown, and when it was first read."""

    leader_epoch: int
    first_read_ns: int


@dataclass(frozen=True, slots=True)
class _InFlight:
    """The time in which a produce was in flight: from its invocation to its completion."""

    invoke_ns: int
    complete_ns: int

    def overlaps(self, fault: Fault, first_read_ns: int) -> bool:
        """Whether a fault overlaps the produce and began before a copy was read for the first time."""
        return fault.heal_ns > self.invoke_ns and fault.inject_ns < min(self.complete_ns, first_read_ns)


def retries_unrecognised(log: PartitionLog, records: Flags, reads: Flags) -> Flags:
    """Whether each record in `records` may stand at several offsets because a restarted leader missed its retry.

    :param reads: flags of the read rows that are considered.
    """
    unrecognised = np.zeros(len(records), np.bool_)
    restarts = [fault for fault in log.context.settings.faults if fault.restarts_a_node]
    if not restarts or not records.any():
        return unrecognised
    leaders, operations = _leaders(log), log.rows.operations
    for record, copies in _copies(log, records, reads):
        operation = log.records.send_operation[record]
        if not _may_be_sent_again(log, operation):
            continue
        produce = _InFlight(int(operations.invoke_ns[operation]), int(operations.complete_ns[operation]))
        unrecognised[record] = all(
            _may_be_of_later_epoch(one, other)
            and any(
                produce.overlaps(fault, other.first_read_ns)
                and fault.affects_any(leaders.get(other.leader_epoch, log.replicas))
                for fault in restarts
            )
            for one, other in pairwise(copies)
        )
    return unrecognised


def _may_be_sent_again(log: PartitionLog, operation: np.int32) -> bool:
    """Whether the client could send the record again in another producer epoch, with several requests in flight."""
    operations = log.rows.operations
    if not operations.idempotent[operation] or operations.transaction[operation] >= 0:
        return False
    if operations.sent_once[operation] or operations.producer_epoch[operation] == _FIRST_EPOCH:
        return False
    properties = log.context.clients.get(int(operations.process[operation]), {})
    return all(properties.get(name, "").strip() != "1" for name in _IN_FLIGHT)


def _copies(log: PartitionLog, records: Flags, among: Flags) -> Iterator[tuple[int, list[_Copy]]]:
    """Yield each record with its copies in the order of offsets; only the read rows in `among` are considered."""
    reads, complete_ns = log.rows.reads, log.rows.operations.complete_ns
    rows = np.flatnonzero(among & records[log.read_ids])
    rows = rows[np.lexsort((reads.offset[rows], log.read_ids[rows]))]
    for record, record_rows in groupby(rows.tolist(), key=lambda row: int(log.read_ids[row])):
        copies = [list(copy_rows) for _, copy_rows in groupby(record_rows, key=lambda row: int(reads.offset[row]))]
        yield (
            record,
            [
                _Copy(int(reads.leader_epoch[copy].max()), int(complete_ns[reads.operation[copy]].min()))
                for copy in copies
            ],
        )


def _may_be_of_later_epoch(one: _Copy, other: _Copy) -> bool:
    """Whether `other` may have a higher leader epoch than `one`."""
    return NO_EPOCH in {one.leader_epoch, other.leader_epoch} or one.leader_epoch < other.leader_epoch


def _leaders(log: PartitionLog) -> dict[int, frozenset[int]]:
    """Return the nodes that led according to the history, by leader epoch: one, unless the log has `two-leaders`."""
    states, sends = log.rows.states, log.rows.sends
    node = log.rows.operations.node[sends.operation]
    epochs = np.concatenate([states.leader_epoch[states.from_leader], sends.leader_epoch])
    nodes = np.concatenate([states.node[states.from_leader], node])
    known = (epochs != NO_EPOCH) & (nodes != NO_NODE)
    pairs = np.unique(np.stack([epochs[known], nodes[known]]), axis=1)
    return {int(epoch): frozenset(pairs[1][pairs[0] == epoch].tolist()) for epoch in np.unique(pairs[0])}
