"""`read-above-watermark`: a consumer received a record above the high watermark, and the record was removed.

Consumers may only receive records below the high watermark. Every in-sync replica has such a record, so it stays. The
record was removed if a later read returned another value at its offset, or if a later end offset is at or below it.
Only end offsets that the same node returned, or that were returned in the newest epoch of the history, count. Another
leader may have been deposed, and its high watermark may be below a record that a later leader returned, even if the
record's batch has the epoch of the deposed leader.
"""

from collections.abc import Iterable
from functools import partial

import numpy as np

from linearizability.anomalies.columns import NO_NODE, NO_OFFSET, Indexes, Int64s
from linearizability.anomalies.definition import Definition, Shown, finding, name_of, op, place, value_of
from linearizability.anomalies.end_offsets import known_end_offsets
from linearizability.anomalies.faults import NEVER_NS
from linearizability.anomalies.log import PartitionLog
from linearizability.anomalies.loss import before_end
from linearizability.anomalies.promise import NOT_PROMISED
from linearizability.judgement import Anomaly, Verdict

NAME = "read-above-watermark"


def find(log: PartitionLog) -> Iterable[Anomaly]:
    """Return the findings; each counts records, with the lowest offset at which each was read and later removed."""
    reads = log.rows.reads
    rows = np.flatnonzero(reads.offset != NO_OFFSET)
    if log.ambiguous or not len(rows):
        return
    complete_ns = log.rows.operations.complete_ns[reads.operation[rows]]
    gone_ns = np.minimum(_another_read_ns(log, rows, complete_ns), _left_out_ns(log, rows, complete_ns))
    end_ns = log.promise.read.end_ns(complete_ns)
    gone = gone_ns != NEVER_NS
    broken = gone & (end_ns != NOT_PROMISED) & before_end(gone_ns, end_ns)
    for verdict, found in ((Verdict.VIOLATION, broken), (Verdict.PERMITTED, gone)):
        kept = rows[found]
        if verdict is Verdict.PERMITTED:
            kept = kept[~np.isin(log.read_ids[kept], log.read_ids[rows[broken]])]
        yield from _findings(log, verdict, kept)


def _findings(log: PartitionLog, verdict: Verdict, rows: Indexes) -> Iterable[Anomaly]:
    """Return the findings of one verdict. Each record is counted once, at the lowest of its read rows."""
    reads = log.rows.reads
    first = reads.first_rows(rows, log.read_ids)
    yield from finding(log, NAME, verdict, first, offsets=reads.offset, show=partial(_show, log))


def _another_read_ns(log: PartitionLog, rows: Indexes, complete_ns: Int64s) -> Int64s:
    """Return, per read row, when another record was next read at its offset, NEVER_NS if never."""
    offset, ids = log.rows.reads.offset[rows], log.read_ids[rows]
    order = np.lexsort((complete_ns, offset))
    offset, ids, at_ns = offset[order], ids[order], complete_ns[order]
    changes = np.flatnonzero((np.diff(offset) != 0) | (np.diff(ids) != 0))
    # Another record that was read at the same moment counts too, so the search begins at the first row of that moment.
    fresh = np.flatnonzero((np.diff(offset, prepend=offset[0] - 1) != 0) | (np.diff(at_ns, prepend=-1) != 0))
    start = fresh[np.searchsorted(fresh, np.arange(len(order)), side="right") - 1]
    bounded = np.append(changes + 1, len(order))
    following = bounded[np.searchsorted(changes, start, side="left")]
    other = np.where(ids[start] != ids, start, following)
    inside = other < len(order)
    inside[inside] = offset[other[inside]] == offset[inside]
    next_ns = np.full(len(order), NEVER_NS, np.int64)
    next_ns[inside] = at_ns[other[inside]]
    result = np.empty_like(next_ns)
    result[order] = next_ns
    return result


def _left_out_ns(log: PartitionLog, rows: Indexes, complete_ns: Int64s) -> Int64s:
    """Return, per read row, when an end at or below its offset was first returned by its node or in the newest epoch.

    Only requests that were sent after the read completed count. The time is NEVER_NS if there is no such response.
    """
    reads, states = log.rows.reads, log.rows.states
    known_ends = np.flatnonzero(log.once(known_end_offsets))
    newest = known_ends[states.leader_epoch[known_ends] == log.newest_epoch]
    left_out_ns = _first_below(log, newest, reads.offset[rows], complete_ns)
    node = log.rows.operations.node[reads.operation[rows]]
    for leader in np.unique(node[node != NO_NODE]):
        own = np.flatnonzero(node == leader)
        ends = known_ends[states.node[known_ends] == leader]
        left_out_ns[own] = np.minimum(
            left_out_ns[own], _first_below(log, ends, reads.offset[rows[own]], complete_ns[own])
        )
    return left_out_ns


def _first_below(log: PartitionLog, rows: Indexes, offset: Int64s, complete_ns: Int64s) -> Int64s:
    """Return, per offset and `complete_ns`, when an end at or below the offset was first returned to a later request.

    The time is NEVER_NS if there is no such response.
    """
    states = log.rows.states
    rows = rows[np.argsort(states.requested_ns[rows], kind="stable")]
    sent_ns, ends = states.requested_ns[rows], states.end_offset[rows]
    lowest = np.append(np.minimum.accumulate(ends[::-1])[::-1], NEVER_NS)
    after = np.searchsorted(sent_ns, complete_ns, side="left")
    first_ns = np.full(len(offset), NEVER_NS, np.int64)
    for row in np.flatnonzero(lowest[after] <= offset):  # rare
        below = rows[after[row] :][ends[after[row] :] <= offset[row]]
        first_ns[row] = states.received_ns[below].min()
    return first_ns


def _show(log: PartitionLog, row: int) -> Shown:
    reads, operations, states = log.rows.reads, log.rows.operations, log.rows.states
    record, offset, reader = int(log.read_ids[row]), int(reads.offset[row]), int(reads.operation[row])
    read_ns = operations.complete_ns[reader]
    others = (reads.offset == offset) & (log.read_ids != record) & (operations.complete_ns[reads.operation] >= read_ns)
    read = f"operation {op(log, reader)} read {name_of(log, record)} ({place(log, offset)})"
    if others.any():
        other = int(reads.operation[others].min())
        return Shown((reader, other), value_of(log, record), f"{read}; operation {op(log, other)} read another there")
    ends = log.once(known_end_offsets) & (states.end_offset <= offset) & (states.requested_ns >= read_ns)
    node = operations.node[reader]
    by_node = (states.node == node) & (node != NO_NODE)
    state = int(np.flatnonzero(ends & (by_node | (states.leader_epoch == log.newest_epoch)))[0])
    text = (
        f"{read}; to a later request, node {int(states.node[state])} returned an end of"
        f" {int(states.end_offset[state])} in leader epoch {int(states.leader_epoch[state])}"
    )
    return Shown((reader,), value_of(log, record), text)


READ_ABOVE_WATERMARK = Definition(
    name=NAME,
    text="A record was read and later removed. Either another value was read at its offset, or a read_uncommitted"
    " ListOffsets returned an end offset at or below the record. Such a response counts only if it is from the node"
    " that returned the record, or from a leader of the newest epoch of the history.",
    levels="A violation if the record was still promised when it was found to be removed; else permitted.",
    counted="records",
    evidence="the lowest operation that read the record there, and the lowest one that later read another value there",
    find=find,
)
