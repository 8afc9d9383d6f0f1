"""`reprocessed-input`: an input record takes effect twice under exactly-once (KIP-98, KIP-129, KIP-447).

Choices. A transaction processed an input under exactly-once for a group if it is committed, sent an output made from
the input, and committed a higher offset of that group in the input's partition. Two groups are two applications. The
record was validly processed again if a commit may have moved the group back to the record or below it, and began after
the first of the transactions had begun to commit offsets. A commit of unknown offset may have done so. The groups and
partitions that are left out by the rules for [group offsets](#which-commits-explain-a-group-offset) are not judged.
Reprocessing is permitted if the input's partition or `__consumer_offsets` could have lost content.
"""

from collections.abc import Iterable
from functools import partial

import numpy as np

from linearizability.anomalies.columns import FAIL, NO_OFFSET, Flags, Indexes, Int64s, OffsetColumns
from linearizability.anomalies.definition import Definition, Shown, finding, op, place
from linearizability.anomalies.faults import NEVER_NS
from linearizability.anomalies.group_offsets import group_verdict, judged_groups
from linearizability.anomalies.log import PartitionLog
from linearizability.judgement import Anomaly, Verdict

NAME = "reprocessed-input"


def find(log: PartitionLog) -> Iterable[Anomaly]:
    """Return the findings; each counts input records."""
    if not len(log.rows.inputs) or not len(log.context.transactions):
        return
    again = [_processed_again(log, group) for group in judged_groups(log)]
    offsets = np.unique(np.concatenate([np.empty(0, np.int64), *(offset for offset, _ in again)]))
    kept = group_verdict(log) is Verdict.VIOLATION and log.context.keeps_content(log.rows.topic)
    verdict = Verdict.VIOLATION if kept else Verdict.PERMITTED
    show = partial(_show, log, offsets, [(offset, keys) for offset, keys in again if len(offset)])
    yield from finding(log, NAME, verdict, np.ones(len(offsets), np.bool_), offsets=offsets, show=show)


def _processed_again(log: PartitionLog, group: str) -> tuple[Int64s, Indexes]:
    """Return the inputs that a group processed in several transactions: their offsets, ascending, and their rows."""
    inputs, operations, transactions = log.rows.inputs, log.rows.operations, log.context.transactions
    commits = log.rows.offsets.take((log.rows.offsets.group == group) & log.rows.offsets.is_commit)
    commits = commits.take(operations.outcome[commits.operation] != FAIL)
    both = operations.transaction[np.concatenate([inputs.operation, commits.operation])]
    used, numbers = np.unique(both, return_inverse=True)
    processor, committer = numbers[: len(inputs)], numbers[len(inputs) :]
    done = (used >= 0) & transactions.committed[used] & ~transactions.aborted[used]
    aborted = ((used >= 0) & transactions.aborted[used])[committer]
    reached = np.full(len(used), NO_OFFSET, np.int64)
    np.maximum.at(reached, committer, commits.offset)
    begun_ns = np.full(len(used), NEVER_NS)
    np.minimum.at(begun_ns, committer, operations.invoke_ns[commits.operation])

    rows = np.flatnonzero(done[processor] & (reached[processor] > inputs.offset))
    rows = rows[np.lexsort((inputs.operation[rows], processor[rows], inputs.offset[rows]))]
    offsets, offset_index = np.unique(inputs.offset[rows], return_inverse=True)
    lowest, highest = np.full(len(offsets), len(used)), np.full(len(offsets), -1)
    np.minimum.at(lowest, offset_index, processor[rows])
    np.maximum.at(highest, offset_index, processor[rows])
    first_ns = np.full(len(offsets), NEVER_NS)
    np.minimum.at(first_ns, offset_index, begun_ns[processor[rows]])
    again = (lowest < highest) & ~_taken_back(log, commits.take(~aborted), offsets, first_ns)
    chosen = rows[again[offset_index]]
    return inputs.offset[chosen], chosen


def _taken_back(log: PartitionLog, commits: OffsetColumns, offsets: Int64s, after_ns: Int64s) -> Flags:
    """Whether, per input, a commit that began after the input's `after_ns` may have an offset at or below the input.

    An unknown offset (NO_OFFSET) is below every input.
    """
    begin_ns = log.rows.operations.invoke_ns[commits.operation]
    order = np.argsort(begin_ns)
    lowest = np.append(np.minimum.accumulate(commits.offset[order][::-1])[::-1], NEVER_NS)
    back: Flags = lowest[np.searchsorted(begin_ns[order], after_ns, side="right")] <= offsets
    return back


def _show(log: PartitionLog, offsets: Int64s, again: list[tuple[Int64s, Indexes]], index: int) -> Shown:
    offset, operations = int(offsets[index]), log.rows.operations
    rows = next(rows[own == offset] for own, rows in again if offset in own)
    produces = log.rows.inputs.operation[rows]
    first = int(produces.min())
    second = int(produces[operations.transaction[produces] != operations.transaction[first]].min())
    text = (
        f"the input {place(log, offset)} has an output of operation {op(log, first)} and one of operation"
        f" {op(log, second)}, in two committed transactions that both committed a group offset above it"
    )
    return Shown((first, second), None, text)


REPROCESSED_INPUT = Definition(
    name=NAME,
    text="An application with exactly-once semantics processed one input record twice: two committed transactions have"
    " outputs of this record.",
    levels="A violation; permitted if the input's partition or `__consumer_offsets` could have lost content.",
    counted="input records",
    evidence="the lowest produce of an output of the record, and the lowest one in another such transaction",
    find=find,
)
