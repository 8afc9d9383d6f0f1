"""Sieve: a fast proof that no anomaly concerns most records of a log; the anomaly definitions judge the rest.

A `Part` is a log, or one range of its offsets: its sends and its reads, sorted by offset. A record is *clean* if

- it was sent once, and it is the only record at its offset;
- at least one read covers the offset, every read that covers it returned the record, intact and in the order of
  offsets, and no read returned another record there;
- no read returned it before it was sent;
- its leader epoch is consistent with the epochs of the records below and above it;
- its offset is consistent with the real time of invocations and acknowledgements, and with the order in which its
  producer sent records;
- no request that was sent after the record was acknowledged or read returned an end offset at or below its offset.

All other records are *suspect*. No definition reports a clean record. If a definition reports a pair of records, both
are suspect. Therefore a log without its clean records has the same findings as the whole log. A suspect record that no
anomaly concerns makes the judgement slower, but does not change it.

The sieve of a range has only a few numbers about the records outside the range (`edges`). Logs for which the sieve is
not valid are judged whole (`judging`).
"""

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from linearizability.anomalies.columns import Flags, Indexes, Int32s, Int64s
from linearizability.anomalies.faults import NEVER_NS
from linearizability.shards import tables
from linearizability.shards.edges import ABOVE_EPOCHS, ALWAYS_NS, UNKNOWN, Edge, Key, Outside, fits
from linearizability.shards.suspects import RelatedRows, Suspects, all_suspects

Int16s = npt.NDArray[np.int16]
_FEW: Final = 64
"""The maximum number of times for which one pass per time is faster than a sort."""


class _Rows:
    __slots__ = ()

    def slice(self, begin: int, end: int) -> Self:
        """Return the rows [begin, end)."""
        return type(self)(*(getattr(self, column.name)[begin:end] for column in fields(self)))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Sends(_Rows):
    """Rows of `tables.SENDS` of one log, by `at`."""

    at: Int64s
    op_id: Int64s
    seq: Int32s
    offset: Int64s
    value: Int64s
    leader_epoch: Int32s
    process: Int32s
    node: Int32s
    invoke_ns: Int64s
    complete_ns: Int64s
    flags: Int16s


@dataclass(frozen=True, slots=True)
class Reads(_Rows):
    """Rows of `tables.READS` of one log, by offset."""

    offset: Int64s
    value: Int64s
    leader_epoch: Int32s
    complete_ns: Int64s
    flags: Int16s


@dataclass(frozen=True, slots=True)
class UnsplitColumns:
    """Columns about the whole log: they are not split, and each range gets all of their rows."""

    befores: Int64s
    """The start of each range of offsets that a read covers, in any order."""
    afters: Int64s
    """The ends of these ranges."""
    requested_ns: Int64s
    """When the requests for end offsets were sent."""
    ends: Int64s
    """The end offsets that these requests returned."""
    not_served_ns: Int64s
    """When operations that count towards an outage ended."""


class Part:
    """A range of a log, or all of it.

    :ivar loose: sends without a known offset; `sends` are the others.
    :ivar unplaced: reads without a known offset; `reads` are the others.
    """

    def __init__(self, sends: Sends, reads: Reads, unsplit: UnsplitColumns) -> None:
        placed = int(np.searchsorted(sends.at, 0))
        known = int(np.searchsorted(reads.offset, 0))
        self.loose, self.sends = sends.slice(0, placed), sends.slice(placed, len(sends.at))
        self.unplaced, self.reads = reads.slice(0, known), reads.slice(known, len(reads.offset))
        self.unsplit = unsplit

    @cached_property
    def _acknowledged_ns(self) -> Int64s:
        ok = _has(self.sends.flags, tables.OK)
        return self.sends.complete_ns if ok.all() else np.where(ok, self.sends.complete_ns, NEVER_NS)

    @cached_property
    def _place(self) -> Indexes | None:
        """Per read, the index of the send at its offset, or of the next send. None if each send was read once."""
        at, offset = self.sends.at, self.reads.offset
        if np.array_equal(at, offset):
            return None
        if len(at) and at[-1] - at[0] + 1 == len(at):
            place: Indexes = np.clip(offset - at[0], 0, len(at) - 1)
        else:
            place = np.minimum(np.searchsorted(at, offset), max(len(at) - 1, 0))
        return place

    @cached_property
    def _has_send(self) -> Flags:
        """Per read, whether a send stands at its offset."""
        if self._place is None:
            return np.ones(len(self.reads.offset), np.bool_)
        if not len(self.sends.at):
            return np.zeros(len(self.reads.offset), np.bool_)
        has: Flags = self.sends.at[self._place] == self.reads.offset
        return has

    def suspects(self, outside: Outside) -> Suspects:
        """Return the suspects: the offsets and values of records that are not proven clean."""
        sends, reads = self.sends, self.reads
        offsets = [
            sends.at[self._doubtful_sends()],
            reads.offset[self._doubtful_reads()],
            sends.at[self._not_returned()],
            sends.at[self._out_of_order(outside)],
            sends.at[self._out_of_producers_order(outside)],
            reads.offset[self._out_of_epochs_order(outside)],
            *self._above_an_end(),
        ]
        stray = self._strays()
        loose = _has(self.loose.flags, tables.OK | tables.TOMBSTONE)
        values = [reads.value[stray], self.unplaced.value, self.loose.value[loose]]
        found = Suspects.at(np.concatenate([*offsets, reads.offset[stray]]), np.concatenate(values))
        return self._with_polls(found)

    def _with_polls(self, found: Suspects) -> Suspects:
        """Add the ranges of the reads that passed a suspect: they show the offset from which a consumer jumped."""
        if not len(found.begins):
            return found
        befores, afters = self.unsplit.befores, self.unsplit.afters
        passed = np.searchsorted(found.begins, befores) < np.searchsorted(found.begins, afters)
        return all_suspects([found, Suspects(befores[passed], afters[passed])])

    def _doubtful_sends(self) -> Indexes:
        """Return the sends that are doubtful by themselves or because of their neighbour.

        They are tombstones, failed sends, sends acknowledged at another offset or none, and sends that share an offset.
        """
        sends = self.sends
        doubtful = _has(sends.flags, tables.TOMBSTONE | tables.FAIL)
        doubtful |= (sends.offset != sends.at) & (_has(sends.flags, tables.OK) | (sends.offset != UNKNOWN))
        same = np.flatnonzero(np.diff(sends.at) == 0)
        doubtful[same] = doubtful[same + 1] = True
        return np.flatnonzero(doubtful)

    def _doubtful_reads(self) -> Flags:
        flags = self.reads.flags
        wrong = tables.TOMBSTONE | tables.CORRUPT | tables.BACK
        doubtful: Flags = (flags & (wrong | tables.COVERED)) != tables.COVERED
        return doubtful

    def _strays(self) -> Indexes:
        """Return reads whose value is not that of the send at their offset, or that returned it before it was sent."""
        sends, reads, place = self.sends, self.reads, self._place
        if not len(sends.at):
            return np.arange(len(reads.offset))
        if place is None:
            return np.flatnonzero((sends.value != reads.value) | (reads.complete_ns < sends.invoke_ns))
        return np.flatnonzero(
            ~self._has_send | (sends.value[place] != reads.value) | (reads.complete_ns < sends.invoke_ns[place])
        )

    def _not_returned(self) -> Indexes:
        """Return sends that no read returned, and sends whose numbers of reads and of covering reads differ."""
        count = len(self.sends.at)
        place, counts = self._place, _has(self.reads.flags, tables.COVERED) & self._has_send
        if place is None:
            times = counts.astype(np.int64)
        else:
            times = np.bincount(place if counts.all() else place[counts], minlength=count)
        at = self.sends.at
        begun = np.bincount(np.searchsorted(at, self.unsplit.befores), minlength=count + 1)
        ended = np.bincount(np.searchsorted(at, self.unsplit.afters), minlength=count + 1)
        depth = np.cumsum(begun - ended)[:count]
        return np.flatnonzero((depth != times) | (times == 0))

    def _out_of_order(self, outside: Outside) -> Flags | Indexes:
        """Return both sends of each pair in which the one at the higher offset precedes the other in real time.

        A send precedes another one if it was acknowledged before the other one was invoked.
        """
        invoke_ns, acknowledged_ns = self.sends.invoke_ns, self._acknowledged_ns
        highest = np.maximum.accumulate(np.append(outside.last_invoke_below_ns, invoke_ns))
        ahead = highest[:-1] > acknowledged_ns
        if not ahead.any() and outside.first_acknowledged_above_ns >= highest[-1]:
            return np.empty(0, np.intp)
        above = np.append(acknowledged_ns, outside.first_acknowledged_above_ns)[::-1]
        lowest = np.minimum.accumulate(above)[::-1][1:]
        suspect: Flags = ahead | (lowest < invoke_ns)
        return suspect

    @cached_property
    def _by_producer(self) -> tuple[Indexes | None, bool]:
        """Indexes that sort the sends by process and offset, and whether this is the order of sending in each process.

        The indexes are None if all sends are in the order of sending already.
        """
        sends = self.sends
        if np.all(_rises(sends.op_id, sends.seq)):
            return None, True
        order = np.argsort(sends.process, kind="stable")
        same = np.diff(sends.process[order]) == 0
        return order, bool(np.all(_rises(sends.op_id[order], sends.seq[order])[same]))

    def _out_of_producers_order(self, outside: Outside) -> Indexes:
        """Return sends whose offset is above that of a later send of their process, or below that of an earlier one.

        A process is one producer or several, so sends that are in order by process are in order by producer.
        """
        _, in_order = self._by_producer
        if in_order and (not (outside.last_below or outside.first_above) or fits(self.producers(), outside)):
            return np.empty(0, np.intp)
        sends = self.sends
        rank = np.empty(len(sends.at), np.int64)
        rank[np.lexsort((sends.seq, sends.op_id))] = np.arange(len(sends.at))
        suspect = np.zeros(len(sends.at), np.bool_)
        order = np.argsort(sends.process, kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(sends.process[order])) + 1) if len(order) else ():
            process, own = int(sends.process[rows[0]]), rank[rows]
            below, above = outside.last_below.get(process), outside.first_above.get(process)
            lowest = len(rank) if above is None else _count_before(sends, above) - 1
            highest = -1 if below is None else _count_before(sends, below)
            suspect[rows] = _is_passed(own, highest, lowest)
        return np.flatnonzero(suspect)

    def producers(self) -> dict[int, tuple[Key, Key]]:
        """Return, per process, its first and last send in the order of sending."""
        sends = self.sends
        order, in_order = self._by_producer
        if order is None or not in_order:
            order = np.lexsort((sends.seq, sends.op_id, sends.process))
        process = sends.process[order]
        begins = np.flatnonzero(np.diff(process, prepend=-1)).tolist()
        found = {}
        for begin, end in zip(begins, [*begins[1:], len(process)], strict=False):
            first, last = order[begin], order[end - 1]
            keys = [(int(sends.op_id[row]), int(sends.seq[row])) for row in (first, last)]
            found[int(process[begin])] = (keys[0], keys[1])
        return found

    def _out_of_epochs_order(self, outside: Outside) -> Indexes:
        """Return reads whose epoch is out of order.

        It is below the epoch of a read at a lower offset, above that of a read at a higher offset, or different from
        that of a read at the same offset.
        """
        epoch, offset = self.reads.leader_epoch, self.reads.offset
        if not len(epoch) or epoch.max() == UNKNOWN:
            return np.empty(0, np.intp)
        low, high = outside.highest_epoch_below, outside.lowest_epoch_above
        if epoch.min() == epoch.max() and low <= epoch[0] <= high:
            return np.empty(0, np.intp)
        rows = np.flatnonzero(epoch != UNKNOWN)
        own = epoch[rows]
        wrong = _is_passed(own.astype(np.int64), low, high)
        differs = np.flatnonzero((np.diff(offset[rows]) == 0) & (np.diff(own) != 0))
        wrong[differs] = wrong[differs + 1] = True
        return rows[wrong]

    def _above_an_end(self) -> list[Int64s]:
        """Return the offsets of records for which a later request returned an end offset at or below their offset.

        The request is later if it was sent after the record was acknowledged or read.
        """
        unsplit, sends, reads = self.unsplit, self.sends, self.reads
        found: list[Int64s] = []
        for times, offset in ((self._acknowledged_ns, sends.at), (reads.complete_ns, reads.offset)):
            if not len(offset) or not len(unsplit.ends):
                continue
            begin = np.searchsorted(offset, unsplit.ends)
            places = np.unique(begin[begin < len(offset)])
            if not len(places):
                continue
            lowest = np.minimum.accumulate(np.minimum.reduceat(times, places)[::-1])[::-1]
            first = np.append(lowest, NEVER_NS)[np.searchsorted(places, begin)]
            for row in np.flatnonzero(first <= unsplit.requested_ns):
                rows = begin[row] + np.flatnonzero(times[begin[row] :] <= unsplit.requested_ns[row])
                found.append(offset[rows])
        return found

    def edge(self) -> Edge:
        """Return the numbers of this range that the other ranges of the log need."""
        sends, reads = self.sends, self.reads
        known = reads.leader_epoch[reads.leader_epoch != UNKNOWN] if len(reads.leader_epoch) else reads.leader_epoch
        return Edge(
            first_acknowledged_ns=int(self._acknowledged_ns.min(initial=NEVER_NS)),
            last_invoke_ns=int(sends.invoke_ns.max(initial=ALWAYS_NS)),
            lowest_epoch=int(known.min(initial=ABOVE_EPOCHS)),
            highest_epoch=int(known.max(initial=UNKNOWN)),
            producers=self.producers(),
            leaders=self.leaders(),
            served_ns=self.served_ns(),
            newest=self.newest(),
            adopted=self._adopted(),
        )

    def leaders(self) -> dict[tuple[int, int], tuple[int, int]]:
        """Return `Edge.leaders` of this range."""
        sends = self.sends
        known = sends.leader_epoch != UNKNOWN
        if not known.any():
            return {}
        rows = np.flatnonzero(known & (sends.node != UNKNOWN) & _has(sends.flags, tables.OK))
        pairs = np.stack([sends.leader_epoch[rows], sends.node[rows]])
        distinct, group = np.unique(pairs, axis=1, return_inverse=True)
        first, last = np.full(distinct.shape[1], NEVER_NS), np.full(distinct.shape[1], ALWAYS_NS)
        np.minimum.at(first, group, sends.complete_ns[rows])
        np.maximum.at(last, group, sends.invoke_ns[rows])
        keys = zip(*distinct.tolist(), strict=True)
        return {
            (epoch, node): (int(one), int(other)) for (epoch, node), one, other in zip(keys, first, last, strict=True)
        }

    def served_ns(self) -> Int64s:
        """Return `Edge.served_ns` of this range."""
        times = self.unsplit.not_served_ns
        latest = np.full(len(times), ALWAYS_NS)
        if not len(times):
            return latest
        sent = self.sends.complete_ns[_has(self.sends.flags, tables.OK)]
        returned = self.reads.complete_ns[_has(self.reads.flags, tables.SERVED)]
        for own in (sent, returned):
            if len(times) <= _FEW:
                found = [int(own[own <= time].max(initial=ALWAYS_NS)) for time in times.tolist()]
            else:
                ascending = np.append(ALWAYS_NS, np.sort(own))
                found = ascending[np.searchsorted(ascending, times, side="right") - 1].tolist()
            latest = np.maximum(latest, np.array(found, np.int64))
        return latest

    def newest(self) -> tuple[int, int]:
        """Return `Edge.newest` of this range."""
        found = (UNKNOWN, UNKNOWN)
        for epoch, offset in ((self.sends.leader_epoch, self.sends.at), (self.reads.leader_epoch, self.reads.offset)):
            if len(epoch):
                row = int(epoch.argmax())
                found = max(found, (int(epoch[row]), int(offset[row])))
        return found

    def _adopted(self) -> frozenset[Key]:
        rows = np.flatnonzero(self.sends.offset == UNKNOWN)
        return frozenset(zip(self.sends.op_id[rows].tolist(), self.sends.seq[rows].tolist(), strict=True))

    def rows_of(self, suspects: Suspects) -> tuple[Indexes, Indexes]:
        """Return the indexes of the sends and of the reads that have a suspect offset or value.

        Tombstones whose offset is unknown, and all reads of unknown offset, are included.
        """
        shift, unplaced = len(self.loose.at), len(self.unplaced.offset)
        sends = _inside(self.sends.at, suspects) | np.isin(self.sends.value, suspects.values)
        reads = _inside(self.reads.offset, suspects) | np.isin(self.reads.value, suspects.values)
        loose = np.isin(self.loose.value, suspects.values) | _has(self.loose.flags, tables.TOMBSTONE)
        return (
            np.append(np.flatnonzero(loose), shift + np.flatnonzero(sends)),
            np.append(np.arange(unplaced), unplaced + np.flatnonzero(reads)),
        )

    def named_by(self, sends: Indexes, reads: Indexes) -> RelatedRows:
        """Return the offsets and values of rows from `rows_of`, to find the other rows with these offsets or values."""
        shift, unplaced = len(self.loose.at), len(self.unplaced.offset)
        own, other = sends[sends >= shift] - shift, reads[reads >= unplaced] - unplaced
        places = np.append(self.sends.at[own], self.reads.offset[other])
        values = np.append(self.sends.value[own], self.reads.value[other])
        loose = np.append(self.loose.value[sends[sends < shift]], self.unplaced.value)
        return RelatedRows(Suspects.at(places, np.append(values, loose)), values, places)


def _has(flags: Int16s, bits: int) -> Flags:
    has: Flags = (flags & bits) != 0
    return has


def _rises(op_id: Int64s, seq: Int32s) -> Flags:
    """Whether each send but the first was sent after the one before it."""
    step = np.diff(op_id)
    rises: Flags = (step > 0) | ((step == 0) & (np.diff(seq) > 0))
    return rises


def _is_passed(own: Int64s, below: int, above: int) -> Flags:
    """Whether each number comes after a higher one or before a lower one, including the two bounds."""
    highest = np.maximum.accumulate(np.append(below, own))[:-1]
    lowest = np.minimum.accumulate(np.append(own, above)[::-1])[::-1][1:]
    passed: Flags = (highest > own) | (lowest < own)
    return passed


def _inside(ascending: Int64s, suspects: Suspects) -> Flags:
    """Whether each of some ascending offsets is in a suspect range."""
    if not len(suspects.begins):
        return np.zeros(len(ascending), np.bool_)
    begun = np.bincount(np.searchsorted(ascending, suspects.begins), minlength=len(ascending) + 1)
    ended = np.bincount(np.searchsorted(ascending, suspects.ends), minlength=len(ascending) + 1)
    inside: Flags = np.cumsum(begun - ended)[: len(ascending)] > 0
    return inside


def _count_before(sends: Sends, key: Key) -> int:
    """Return the number of sends that were sent before the one with this key."""
    return int(((sends.op_id < key[0]) | ((sends.op_id == key[0]) & (sends.seq < key[1]))).sum())
