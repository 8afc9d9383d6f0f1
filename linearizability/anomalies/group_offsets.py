"""Fetches of group offsets after healing that no commit explains: the common part of commit-lost and commit-regress.

A commit *explains* the offset that a fetch returned if it wrote this offset and *may be the last one*. It may be the
last one if it may have begun before the fetch returned, may have succeeded, was not aborted, and was not superseded.
Another acknowledged commit supersedes it if that commit began after this one had ended, and ended before the fetch was
invoked. The end of a commit is unknown if its outcome is unknown, or if its transaction is not known to be committed.

Choices. A commit inside a transaction takes effect with the transaction, but Kafka responds to EndTxn before the
markers are written. So the commit counts as ended only for a fetch that waits for the markers (read_committed, which
requires stable offsets, KIP-447). A partition is not judged if its topic may have been deleted, or if its rows may
belong to several incarnations. A group is not judged if some of its offsets may have been deleted on request, if
`offsets.retention.minutes` was below Kafka's default of 7 days, or if it has a commit of unknown offset.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from linearizability.anomalies.columns import (
    FAIL,
    NO_OFFSET,
    OK,
    READ_COMMITTED,
    Flags,
    Indexes,
    Int64s,
    OffsetColumns,
)
from linearizability.anomalies.definition import Shown, finding, op, place
from linearizability.anomalies.faults import NEVER_NS
from linearizability.anomalies.log import PartitionLog
from linearizability.judgement import Anomaly, Verdict

OFFSETS_TOPIC: Final = "__consumer_offsets"
_RETENTION_MINUTES_DEFAULT: Final = 7 * 24 * 60


@dataclass(frozen=True, slots=True)
class Stale:
    """Fetches of one group that did not return the committed offset."""

    group: str
    commit: int
    """The newest acknowledged commit that had ended before the first of these fetches."""
    committed: int
    first: int
    second: int
    found: int
    """The offset that the first fetch found, or NO_OFFSET."""


@dataclass(frozen=True, slots=True)
class _Commits:
    operation: Indexes
    offset: Int64s
    begin_ns: Int64s
    end_ns: Int64s
    """The latest time at which the commit may have taken effect; NEVER_NS if unknown."""
    in_transaction: Flags

    def take(self, rows: Flags | Indexes) -> "_Commits":
        return _Commits(*(getattr(self, name)[rows] for name in _Commits.__slots__))


def judged_groups(log: PartitionLog) -> list[str]:
    """Return the groups whose offsets can be judged in a partition."""
    context = log.context
    minutes = context.settings.numbers(OFFSETS_TOPIC, "offsets.retention.minutes")
    deleted = any(deletion.topic == log.rows.topic for deletion in context.deletions)
    if log.ambiguous or deleted or any(value < _RETENTION_MINUTES_DEFAULT for value in minutes):
        return []
    return [group for group in np.unique(log.rows.offsets.group).tolist() if not context.groups.may_be_deleted(group)]


def stale_findings(log: PartitionLog, name: str, found: Callable[[Stale], str], *, lost: bool) -> Iterable[Anomaly]:
    """Return the finding, if any; it counts groups, with the offset that should have been found for each.

    :param found: describes what the first fetch found.
    """
    stale = list(stale_fetches(log, lost=lost))
    offsets = np.array([one.committed for one in stale], np.int64)
    everything = np.ones(len(stale), np.bool_)

    def show(index: int) -> Shown:
        return _show(log, stale[index], found(stale[index]))

    yield from finding(log, name, group_verdict(log), everything, offsets=offsets, show=show)


def _show(log: PartitionLog, stale: Stale, found: str) -> Shown:
    text = (
        f"operation {op(log, stale.commit)} committed offset {stale.committed} of group {stale.group} in"
        f" {place(log, NO_OFFSET)}, but operations {op(log, stale.first)} and {op(log, stale.second)}, which came"
        f" after it, did not find that offset: the first found {found}"
    )
    return Shown((stale.commit, stale.first, stale.second), None, text)


def group_verdict(log: PartitionLog) -> Verdict:
    """Return the verdict of a finding: permitted if the coordinator's log could have lost content, else a violation."""
    return Verdict.VIOLATION if log.context.keeps_content(OFFSETS_TOPIC) else Verdict.PERMITTED


def stale_fetches(log: PartitionLog, *, lost: bool) -> Iterator[Stale]:
    """Yield, per group with at least two fetches that found no offset (`lost`) or a superseded one, the first two."""
    for group in judged_groups(log):
        rows = log.rows.offsets.take(log.rows.offsets.group == group)
        if (rows.is_commit & (rows.offset == NO_OFFSET)).any():
            continue
        commits, fetches = _commits(log, rows.take(rows.is_commit)), _fetches(log, rows.take(~rows.is_commit))
        stable = log.rows.operations.isolation[fetches.operation] == READ_COMMITTED
        stale = np.zeros(len(fetches), np.bool_)
        for waits in (True, False):
            rows_of_kind = np.flatnonzero(stable == waits)
            stale[rows_of_kind] = _is_stale(log, commits, fetches.take(rows_of_kind), waits=waits, lost=lost)
        operations = np.unique(fetches.operation[stale])
        if len(operations) > 1:
            first = np.flatnonzero(stale & (fetches.operation == operations[0]))
            first = first[np.argmin(fetches.offset[first])]
            newest = _newest(log, commits, int(operations[0]))
            yield Stale(
                group,
                int(commits.operation[newest]),
                int(commits.offset[newest]),
                int(operations[0]),
                int(operations[1]),
                int(fetches.offset[first]),
            )


def _commits(log: PartitionLog, rows: OffsetColumns) -> _Commits:
    """Return the commits that may have succeeded."""
    operations, transactions = log.rows.operations, log.context.transactions
    operation = rows.operation.astype(np.intp)
    transaction = operations.transaction[operation]
    inside = transaction >= 0
    transaction_ids = transaction[inside]
    aborted = np.zeros(len(rows), np.bool_)
    aborted[inside] = transactions.aborted[transaction_ids]
    end_ns = np.where(operations.outcome[operation] == OK, operations.complete_ns[operation], NEVER_NS)
    effect_ns = np.where(transactions.committed[transaction_ids], transactions.open_until_ns[transaction_ids], NEVER_NS)
    end_ns[inside] = np.maximum(end_ns[inside], effect_ns)
    commits = _Commits(operation, rows.offset, operations.invoke_ns[operation], end_ns, inside)
    return commits.take(~aborted & (operations.outcome[operation] != FAIL))


def _fetches(log: PartitionLog, rows: OffsetColumns) -> OffsetColumns:
    operations, healed = log.rows.operations, log.context.healed_after_ns
    after_healing = healed is None or operations.invoke_ns[rows.operation] > healed
    return rows.take(after_healing & (operations.outcome[rows.operation] == OK))


def _acknowledged(commits: _Commits, *, waits: bool) -> _Commits:
    return commits.take((commits.end_ns != NEVER_NS) & (waits | ~commits.in_transaction))


def _is_stale(log: PartitionLog, commits: _Commits, fetches: OffsetColumns, *, waits: bool, lost: bool) -> Flags:
    """Whether each fetch found no offset (`lost`) or a superseded one, although a commit had ended before it.

    :param waits: whether the fetches wait for open transactions (read_committed); it is the same for all of them.
    """
    operations = log.rows.operations
    known = _acknowledged(commits, waits=waits)
    known = known.take(np.argsort(known.end_ns))
    newest_ns = np.append(np.iinfo(np.int64).min, np.maximum.accumulate(known.begin_ns))
    ended = np.searchsorted(known.end_ns, operations.invoke_ns[fetches.operation], side="left")
    stale: Flags = (ended > 0) & ((fetches.offset == NO_OFFSET) == lost)
    if not lost:
        latest_ns = _latest_end(commits, fetches.offset, operations.complete_ns[fetches.operation])
        stale &= latest_ns < newest_ns[ended]
    return stale


def _latest_end(commits: _Commits, offset: Int64s, by_ns: Int64s) -> Int64s:
    """Return, per fetch, the latest end of the commits of its offset that began by `by_ns`; the lowest int64 if none.

    Commits and fetches are sorted together by offset and time, commits first. The result is a running maximum of the
    ranks of the ends.
    """
    offsets = np.unique(np.concatenate([commits.offset, offset]), return_inverse=True)[1].reshape(-1)
    ends, ranks = np.unique(commits.end_ns, return_inverse=True)
    is_fetch = np.repeat([False, True], [len(commits.offset), len(offset)])
    order = np.lexsort((is_fetch, np.concatenate([commits.begin_ns, by_ns]), offsets))
    height = np.concatenate([ranks.reshape(-1) + 1, np.zeros(len(offset), np.int64)])
    highest = np.maximum.accumulate(offsets[order] * (len(ends) + 1) + height[order]) % (len(ends) + 1)
    latest = np.empty(len(offset), np.int64)
    fetches = is_fetch[order]
    latest[order[fetches] - len(commits.offset)] = np.append(np.iinfo(np.int64).min, ends)[highest[fetches]]
    return latest


def _newest(log: PartitionLog, commits: _Commits, fetch: int) -> int:
    """Return the commit that a fetch should have found: of those that had ended, the one that began last."""
    operations = log.rows.operations
    waits = bool(operations.isolation[fetch] == READ_COMMITTED)
    ended = (commits.end_ns < operations.invoke_ns[fetch]) & (waits | ~commits.in_transaction)
    rows = np.flatnonzero(ended & (commits.end_ns != NEVER_NS))
    order = np.lexsort((commits.offset[rows], commits.operation[rows], -commits.begin_ns[rows]))
    return int(rows[order[0]])
