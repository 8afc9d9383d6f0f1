"""`divergent-offset`: two records at one offset of a log (KIP-101 and KIP-279 make followers truncate to prevent it).

A *sighting* of a record at an offset is a read of the record there, or the acknowledgement of a committed record there.
After a read, or an acknowledgement with acks=all, Kafka promises to keep the record at this offset until the promise
ends ([promises](promises.md)). After an acknowledgement with less than acks=all, it promises nothing. Two sightings of
different records at one offset are a violation if neither is an acknowledgement with less than acks=all, and if the
promise for the sighting that completed first was still in force when the other one completed.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np

from linearizability.anomalies.columns import NO_OFFSET, Flags, Indexes, Int64s
from linearizability.anomalies.definition import Definition, Shown, finding, name_of, op, place, value_of
from linearizability.anomalies.log import PartitionLog
from linearizability.anomalies.loss import before_end
from linearizability.anomalies.promise import NOT_PROMISED
from linearizability.judgement import Anomaly, Verdict

NAME = "divergent-offset"


@dataclass(frozen=True, slots=True)
class _Sightings:
    """Sightings of records at offsets, one element each."""

    offset: Int64s
    record: Indexes
    operation: Indexes
    at_ns: Int64s
    end_ns: Int64s
    below_acks_all: Flags
    """Whether the sighting is an acknowledgement with less than acks=all, for which Kafka promises nothing."""

    def take(self, rows: Indexes | Flags) -> "_Sightings":
        """Return the sightings at the given indexes."""
        return _Sightings(
            self.offset[rows],
            self.record[rows],
            self.operation[rows],
            self.at_ns[rows],
            self.end_ns[rows],
            self.below_acks_all[rows],
        )


def find(log: PartitionLog) -> Iterable[Anomaly]:
    """Return the findings; each counts offsets."""
    if log.ambiguous:
        return
    sightings = _sightings(log)
    offsets, group = np.unique(sightings.offset, return_inverse=True)
    broken = np.zeros(len(offsets), np.bool_)
    broken[group[_breaks_promise(sightings, group)]] = True
    for verdict, found in ((Verdict.VIOLATION, broken), (Verdict.PERMITTED, ~broken)):
        yield from finding(log, NAME, verdict, found, offsets=offsets, show=partial(_show, log, sightings, verdict))


def _sightings(log: PartitionLog) -> _Sightings:
    """Return the sightings at offsets where more than one record was sighted."""
    records, reads, operations = log.records, log.rows.reads, log.rows.operations
    acknowledged = np.flatnonzero(records.acknowledged & records.committed & (records.acknowledged_offset != NO_OFFSET))
    # `stray` has the offset of every sighting of a record elsewhere than at its `records.offset`. So two records can be
    # sighted at one offset only if it is the `records.offset` of both, or is in `stray`.
    read = np.flatnonzero(reads.offset != NO_OFFSET)
    ids = log.read_ids[read]
    stray = np.concatenate(
        [
            reads.offset[read][reads.offset[read] != records.offset[ids]],
            records.acknowledged_offset[acknowledged][
                records.acknowledged_offset[acknowledged] != records.offset[acknowledged]
            ],
        ]
    )
    claimed = records.committed | records.read
    own, times = np.unique(records.offset[claimed & (records.offset != NO_OFFSET)], return_counts=True)
    suspects = np.union1d(own[times > 1], stray)
    read = read[np.isin(reads.offset[read], suspects)]
    acknowledged = acknowledged[np.isin(records.acknowledged_offset[acknowledged], suspects)]
    reader = reads.operation[read].astype(np.intp)
    complete_ns = operations.complete_ns[reader]
    acks_all = records.acks_all[acknowledged]
    both = _Sightings(
        offset=np.append(reads.offset[read], records.acknowledged_offset[acknowledged]),
        record=np.append(log.read_ids[read], acknowledged),
        operation=np.append(reader, records.send_operation[acknowledged]),
        at_ns=np.append(complete_ns, records.acknowledged_ns[acknowledged]),
        end_ns=np.append(log.promise.read.end_ns(complete_ns), records.acknowledged_end_ns[acknowledged]),
        below_acks_all=np.append(np.zeros(len(read), np.bool_), ~acks_all),
    )
    return both.take(_disputed(both))


def _disputed(sightings: _Sightings) -> Flags:
    """Whether each sighting is at an offset with more than one record."""
    _, group = np.unique(sightings.offset, return_inverse=True)
    count = int(group.max(initial=-1)) + 1
    lowest, highest = np.full(count, np.iinfo(np.intp).max), np.full(count, -1)
    np.minimum.at(lowest, group, sightings.record)
    np.maximum.at(highest, group, sightings.record)
    disputed: Flags = (lowest != highest)[group]
    return disputed


def _breaks_promise(sightings: _Sightings, group: Indexes) -> Flags:
    """Whether each sighting breaks a promise.

    Sightings of one record at one offset whose promises end at the same time make one promise, which begins with the
    first of them. A sighting of another record at this offset breaks the promise if it took place while the promise was
    in force. Acknowledgements below acks=all neither make nor break a promise.
    """
    strong = ~sightings.below_acks_all
    promised = np.flatnonzero(strong & (sightings.end_ns != NOT_PROMISED))
    order = promised[
        np.lexsort(
            (
                sightings.at_ns[promised],
                sightings.end_ns[promised],
                sightings.record[promised],
                group[promised],
            )
        )
    ]
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = (
        (np.diff(group[order]) != 0)
        | (np.diff(sightings.record[order]) != 0)
        | (sightings.end_ns[order][1:] != sightings.end_ns[order][:-1])
    )
    promises = order[fresh]
    begin = np.searchsorted(group[promises], group, side="left")
    end = np.searchsorted(group[promises], group, side="right")
    breaks = np.zeros(len(group), np.bool_)
    for nth in range(int((end - begin).max(initial=0))):
        rows = np.flatnonzero(strong & (begin + nth < end))
        promise = promises[begin[rows] + nth]
        breaks[rows] |= (
            (sightings.record[promise] != sightings.record[rows])
            & (sightings.at_ns[promise] <= sightings.at_ns[rows])
            & before_end(sightings.at_ns[rows], sightings.end_ns[promise])
        )
    return breaks


def _show(log: PartitionLog, sightings: _Sightings, verdict: Verdict, index: int) -> Shown:
    offset = int(np.unique(sightings.offset)[index])
    rows = sightings.offset == offset
    if verdict is Verdict.VIOLATION:
        rows &= ~sightings.below_acks_all
    here = sightings.take(rows)
    valued, value = log.records.valued[here.record], log.records.value[here.record]
    here = here.take(np.lexsort((value, ~valued, here.operation)))
    other = int(np.flatnonzero(here.record != here.record[0])[0])
    first, second = int(here.operation[0]), int(here.operation[other])
    text = (
        f"{place(log, offset)} is {name_of(log, int(here.record[0]))} to operation {op(log, first)},"
        f" but {name_of(log, int(here.record[other]))} to operation {op(log, second)}"
    )
    return Shown((first, second), value_of(log, int(here.record[0])), text)


DIVERGENT_OFFSET = Definition(
    name=NAME,
    text="Reads, or acknowledgements of committed records, show two different records at one offset of a partition.",
    levels="A violation if both records were read or acknowledged with acks=all, and the promise for the record that"
    " was shown first was still in force when the other one was shown; else permitted.",
    counted="offsets",
    evidence="the lowest operation that observed a record at the offset, and the lowest that observed another",
    find=find,
)
