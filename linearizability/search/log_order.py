"""Exact order check of one partition's log. It works on columns; its running time is that of sorting them.

The offsets of records show the order in which they were appended. So no order has to be searched for: the check is
whether the times of the sends and fetches are consistent with this order.

The model:

- A record is appended at an offset that the log selects, above all offsets in use. There may be gaps (transaction
  markers, compacted records).
- A fetch from `before` to `after` returns every record in this range, at its offset, and no other record. When the
  fetch takes effect, all offsets below its watermark, below its `after`, and up to its last record are in use: no
  record can be appended there later.
- The records of one produce are appended one by one, because a client may send them in several batches.

With `linearizable`, a fetch must show the end of the log: when it takes effect, no offset at or above its watermark is
in use. This is an option, because Kafka promises it only for one leader, not across a change of leaders.

Records of a transaction are marked `may_abort` unless its commit is known. A `committed_only` fetch may pass such
records without returning them. Whether it returned aborted records is not checked.

The history is linearizable unless

- an offset has two records, or a record has two offsets;
- a fetch returned a record that was not sent, or whose send failed;
- a fetch contradicts itself, or the records that are known to be in its range; or
- the send of a record began after a higher offset than the record's was known to be in use. An offset is known to be in
  use when the send of a record at that offset, or a fetch that shows it in use, has completed.

A record whose send has an unknown outcome counts only if it was read. An acknowledged record of unknown offset that was
not read is ignored, and so is a fetch that is not ok.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from linearizability.history.errors import HistoryError
from linearizability.search.zones import Ending

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

UNKNOWN_OFFSET = -1
NEVER = np.iinfo(np.int64).max
_ALWAYS = np.iinfo(np.int64).min


@dataclass(frozen=True, slots=True)
class SendColumns:
    """A row per record that was sent, in any order. No value occurs twice; `offset` is UNKNOWN_OFFSET if unknown.

    `invoke_ns`, `complete_ns` and `ending` (an `Ending`) are those of the record's send; `complete_ns` is ignored where
    `ending` is not OK. If `may_abort` is None, no record may have been aborted.
    """

    value: Ints
    offset: Ints
    invoke_ns: Ints
    complete_ns: Ints
    ending: npt.NDArray[np.int8]
    may_abort: Bools | None = None


@dataclass(frozen=True, slots=True)
class FetchColumns:
    """A row per fetch that is ok.

    `before` and `after` are the consumer's positions before and after the fetch, `watermark` is the high watermark in
    its response; UNKNOWN_OFFSET if unknown. If `committed_only` is None, it is false for all fetches.
    """

    invoke_ns: Ints
    complete_ns: Ints
    before: Ints
    after: Ints
    watermark: Ints
    committed_only: Bools | None = None


@dataclass(frozen=True, slots=True)
class ReadColumns:
    """A row per record that a fetch returned, ascending by `fetch`, the row of the fetch in `FetchColumns`."""

    fetch: npt.NDArray[np.int64]
    offset: Ints
    value: Ints


@dataclass(frozen=True, slots=True)
class LogConflict:
    """Reason why no order exists: up to three sends and fetches that exclude each other, the offset, and a sentence.

    `sends` and `fetches` are rows. The sentence has placeholders for them (`{sends[0]}`), so that op_ids can be shown
    instead.
    """

    sends: tuple[int, ...]
    fetches: tuple[int, ...]
    offset: int
    sentence: str

    @property
    def text(self) -> str:
        """The sentence with the numbers of `sends` and `fetches`."""
        return self.sentence.format(sends=self.sends, fetches=self.fetches)


def find_log_conflict(
    sends: SendColumns, fetches: FetchColumns, reads: ReadColumns, *, linearizable: bool = False
) -> LogConflict | None:
    """Return a conflict of a partition's history; None if the history is linearizable.

    Raises HistoryError for a value that is sent twice, a completion before its invocation, or an invalid offset. The
    message names the rows.
    """
    _check_offsets("send", sends.offset, UNKNOWN_OFFSET)
    for bounds in (fetches.before, fetches.after, fetches.watermark):
        _check_offsets("fetch", bounds, UNKNOWN_OFFSET)
    _check_offsets("read", reads.offset, 0)
    _check_times("send", sends.invoke_ns, sends.complete_ns, sends.ending == Ending.OK)
    _check_times("fetch", fetches.invoke_ns, fetches.complete_ns, np.ones(len(fetches.invoke_ns), np.bool_))
    sender = _senders(sends, reads)
    return (
        _unsent(sends, reads, sender)
        or _misplaced(sends, fetches, reads, sender)
        or _out_of_order(_Log(sends, fetches, reads, sender), linearizable=linearizable)
    )


class _Log:
    """The known records of the log, by offset, given that no two reads contradict each other."""

    def __init__(self, sends: SendColumns, fetches: FetchColumns, reads: ReadColumns, sender: Ints) -> None:
        self.sends, self.fetches, self.reads, self.sender = sends, fetches, reads, sender
        offsets = np.where(sends.ending == Ending.OK, sends.offset, UNKNOWN_OFFSET)
        offsets[sender] = reads.offset
        known = np.flatnonzero(offsets != UNKNOWN_OFFSET)
        self.row = known[_order(offsets[known])]
        """The row in `sends` of each known record."""
        self.offset = offsets[self.row]
        self.invoke_ns = sends.invoke_ns[self.row]
        self.complete_ns = np.where(sends.ending[self.row] == Ending.OK, sends.complete_ns[self.row], NEVER)
        self.taken = np.maximum(fetches.after, fetches.watermark)
        """For each fetch, the offset below which all offsets are in use when the fetch takes effect."""
        last = np.flatnonzero(np.diff(reads.fetch, append=-1))  # offsets ascend within a fetch
        self.taken[reads.fetch[last]] = np.maximum(self.taken[reads.fetch[last]], reads.offset[last] + 1)


def _order(numbers: Ints) -> npt.NDArray[np.intp]:
    """Return a stable argsort, without sorting if the numbers ascend already."""
    if np.all(numbers[1:] >= numbers[:-1]):
        return np.arange(len(numbers))
    return np.argsort(numbers, kind="stable")


def _senders(sends: SendColumns, reads: ReadColumns) -> Ints:
    """Return the row of the send of each read's value; -1 if there is none."""
    order = _order(sends.value)
    values = sends.value[order]
    same = np.flatnonzero(values[1:] == values[:-1])
    if len(same):
        first, second = sorted((int(order[same[0]]), int(order[same[0] + 1])))
        raise HistoryError(f"sends {first} and {second} both have value {values[same[0]]}")
    if not len(values):
        return np.full(len(reads.value), -1)
    index = np.minimum(np.searchsorted(values, reads.value), len(values) - 1)
    return np.where(values[index] == reads.value, order[index], -1)


def _unsent(sends: SendColumns, reads: ReadColumns, sender: Ints) -> LogConflict | None:
    unsent = np.flatnonzero(sender < 0)
    if len(unsent):
        return _bad_read(reads, int(unsent[0]), (), "no operation sent it")
    failed = np.flatnonzero(sends.ending[sender] == Ending.FAIL)
    if len(failed):
        row = int(failed[0])
        return _bad_read(reads, row, (int(sender[row]),), "its send failed")
    return None


def _misplaced(sends: SendColumns, fetches: FetchColumns, reads: ReadColumns, sender: Ints) -> LogConflict | None:
    """Return a conflict: a record with two offsets, or a fetch whose range, watermark and records do not agree."""
    acknowledged = np.where(sends.ending == Ending.OK, sends.offset, UNKNOWN_OFFSET)[sender]
    moved = np.flatnonzero((acknowledged != UNKNOWN_OFFSET) & (acknowledged != reads.offset))
    if len(moved):
        row = int(moved[0])
        return _bad_read(reads, row, (int(sender[row]),), f"it was acknowledged at offset {acknowledged[row]}")
    seen = np.full(len(sends.value), UNKNOWN_OFFSET)
    seen[sender] = reads.offset
    moved = np.flatnonzero(seen[sender] != reads.offset)
    if len(moved):
        row = int(moved[0])
        other = int(np.flatnonzero((sender == sender[row]) & (reads.offset == seen[sender[row]]))[0])
        text = f"fetch {{fetches[1]}} read it at offset {reads.offset[other]}"
        return _bad_read(reads, row, (int(sender[row]),), text, int(reads.fetch[other]))
    before, after, watermark = (column[reads.fetch] for column in (fetches.before, fetches.after, fetches.watermark))
    outside = (reads.offset < before) | ((after != UNKNOWN_OFFSET) & (reads.offset >= after))
    outside |= (watermark != UNKNOWN_OFFSET) & (reads.offset >= watermark)
    wrong = np.flatnonzero(outside)
    if len(wrong):
        return _bad_read(reads, int(wrong[0]), (), "the fetch did not cover that offset, or its watermark is lower")
    past = np.flatnonzero((fetches.watermark != UNKNOWN_OFFSET) & (fetches.after > fetches.watermark))
    if len(past):
        fetch = int(past[0])
        own = f"above its own watermark {fetches.watermark[fetch]}"
        text = f"fetch {{fetches[0]}} read up to {fetches.after[fetch]}, {own}"
        return LogConflict((), (fetch,), int(fetches.watermark[fetch]), text)
    wrong = np.flatnonzero((np.diff(reads.fetch) == 0) & (np.diff(reads.offset) <= 0))
    if len(wrong):
        return _bad_read(reads, int(wrong[0]) + 1, (), "the same fetch had returned that offset or a higher one before")
    return None


def _out_of_order(log: _Log, *, linearizable: bool) -> LogConflict | None:
    same = np.flatnonzero(log.offset[1:] == log.offset[:-1])
    if len(same):
        rows = (int(log.row[same[0]]), int(log.row[same[0] + 1]))
        offset = int(log.offset[same[0]])
        return LogConflict(rows, (), offset, f"sends {{sends[0]}} and {{sends[1]}} both have offset {offset}")
    return _passed_over(log) or _too_early(log) or (_stale(log) if linearizable else None)


def _passed_over(log: _Log) -> LogConflict | None:
    """Return a conflict: a fetch that passed a record without returning it."""
    fetches = log.fetches
    short = _lacking(log, np.ones(len(log.sends.value), np.bool_))
    if fetches.committed_only is not None and log.sends.may_abort is not None:
        short = np.where(fetches.committed_only, _lacking(log, ~log.sends.may_abort), short)
    if not np.any(short):
        return None
    fetch = int(np.flatnonzero(short)[0])
    begin, end = np.searchsorted(log.offset, (fetches.before[fetch], fetches.after[fetch]))
    rows = log.row[begin:end]
    if fetches.committed_only is not None and log.sends.may_abort is not None and fetches.committed_only[fetch]:
        rows = rows[~log.sends.may_abort[rows]]
    send = int(rows[~np.isin(rows, log.sender[log.reads.fetch == fetch])][0])
    offset = int(log.offset[begin + int(np.flatnonzero(log.row[begin:end] == send)[0])])
    text = f"fetch {{fetches[0]}} passed offset {offset} without returning the record of send {{sends[0]}}"
    return LogConflict((send,), (fetch,), offset, text)


def _lacking(log: _Log, wanted: Bools) -> Bools:
    """Return, for each fetch, whether it returned fewer wanted records than its range contains.

    :param wanted: for each row of the sends, whether its record is wanted.
    """
    fetches = log.fetches
    ranged = (fetches.before != UNKNOWN_OFFSET) & (fetches.after != UNKNOWN_OFFSET)
    below = np.append(0, np.cumsum(wanted[log.row]))
    begin, end = (np.searchsorted(log.offset, column) for column in (fetches.before, fetches.after))
    returned = np.bincount(log.reads.fetch[wanted[log.sender]], minlength=len(fetches.before))
    short: Bools = ranged & (below[end] - below[begin] > returned)
    return short


def _too_early(log: _Log) -> LogConflict | None:
    """Return a conflict: a send or fetch that completed before the send of a record at a lower offset was invoked."""
    latest = np.append(_ALWAYS, np.maximum.accumulate(log.invoke_ns))
    early = np.flatnonzero(log.complete_ns < latest[:-1])
    if len(early):
        at = int(early[0])
        below = int(np.argmax(log.invoke_ns[:at]))
        rows = (int(log.row[below]), int(log.row[at]))
        text = (
            f"send {{sends[1]}} was acknowledged before send {{sends[0]}} was invoked, but has the higher offset: "
            f"{log.offset[at]}, above {log.offset[below]}"
        )
        return LogConflict(rows, (), int(log.offset[at]), text)
    fetches, taken = log.fetches, log.taken
    below_it = np.searchsorted(log.offset, taken)
    early = np.flatnonzero(fetches.complete_ns < latest[below_it])
    if not len(early):
        return None
    fetch = int(early[0])
    at = int(np.argmax(log.invoke_ns[: below_it[fetch]]))
    send = int(log.row[at])
    before = f"before send {{sends[0]}}, of offset {log.offset[at]}, was invoked"
    text = f"fetch {{fetches[0]}} showed the offsets below {taken[fetch]} in use {before}"
    return LogConflict((send,), (fetch,), int(log.offset[at]), text)


def _stale(log: _Log) -> LogConflict | None:
    """Return a conflict: a fetch that was invoked after an offset at or above its watermark was in use."""
    fetches = log.fetches
    known = np.flatnonzero(fetches.watermark != UNKNOWN_OFFSET)
    # The order of the log: a fetch comes before the record at its watermark, and after the record below.
    offsets = np.concatenate([log.offset, fetches.watermark[known]])
    order = _order(offsets)
    invoke_ns = np.concatenate([log.invoke_ns, fetches.invoke_ns[known]])
    begun = np.append(_ALWAYS, np.maximum.accumulate(invoke_ns[order]))

    early = np.flatnonzero(log.complete_ns < begun[np.searchsorted(offsets[order], log.offset, side="right")])
    if len(early):
        row, offset = int(log.row[early[0]]), int(log.offset[early[0]])
        stale = _last_begun_below(fetches, offset)
        return LogConflict((row,), (stale,), offset, _behind(fetches, stale, f"send {{sends[0]}}, of offset {offset},"))
    early = np.flatnonzero(fetches.complete_ns < begun[np.searchsorted(offsets[order], log.taken)])
    if len(early):
        row, offset = int(early[0]), int(log.taken[early[0]]) - 1
        stale = _last_begun_below(fetches, offset)
        what = f"fetch {{fetches[1]}}, which showed offset {offset} in use,"
        return LogConflict((), (stale, row), offset, _behind(fetches, stale, what))
    return None


def _last_begun_below(fetches: FetchColumns, offset: int) -> int:
    """Return the fetch that was invoked last among those whose watermark is not above an offset."""
    below = np.flatnonzero((fetches.watermark != UNKNOWN_OFFSET) & (fetches.watermark <= offset))
    return int(below[np.argmax(fetches.invoke_ns[below])])


def _behind(fetches: FetchColumns, stale: int, what: str) -> str:
    watermark = fetches.watermark[stale]
    return f"fetch {{fetches[0]}} showed a watermark of {watermark}, but was invoked after {what} had completed"


def _bad_read(reads: ReadColumns, row: int, sends: tuple[int, ...], why: str, *others: int) -> LogConflict:
    fetch = int(reads.fetch[row])
    text = f"fetch {{fetches[0]}} returned value {reads.value[row]} at offset {reads.offset[row]}, but {why}"
    return LogConflict(sends, (fetch, *others), int(reads.offset[row]), text)


def _check_offsets(what: str, offsets: Ints, lowest: int) -> None:
    wrong = np.flatnonzero((offsets < lowest) | (offsets == NEVER))
    if len(wrong):
        raise HistoryError(f"{what} {wrong[0]} has the invalid offset {offsets[wrong[0]]}")


def _check_times(what: str, invoke_ns: Ints, complete_ns: Ints, completed: Bools) -> None:
    wrong = np.flatnonzero(completed & (complete_ns < invoke_ns))
    if len(wrong):
        row = int(wrong[0])
        raise HistoryError(f"{what} {row} completes at {complete_ns[row]}, before it was invoked at {invoke_ns[row]}")
