"""What each log of a history has, counted while rows are dealt, and the plan of shards and parts that follows."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from linearizability.anomalies.arrow import Place
from linearizability.anomalies.columns import Flags, Indexes, Int64s
from linearizability.shards.manifest import Layout, Part, Shard
from linearizability.shards.runs import HIGHEST, canonical


@dataclass(frozen=True, slots=True)
class Counted:
    """What there is of one log."""

    rows: int = 0
    reads: int = 0
    lowest: int = HIGHEST
    highest: int = -1

    def with_more(self, other: "Counted") -> "Counted":
        """Both together."""
        return Counted(
            self.rows + other.rows,
            self.reads + other.reads,
            min(self.lowest, other.lowest),
            max(self.highest, other.highest),
        )


Census = Mapping[Place, Counted]


def counted(places: Sequence[Place], of: Indexes, offset: Int64s, is_read: Flags) -> Census:
    """The census of some records, `of` their places; an offset below 0 is unknown."""
    rows, reads = np.bincount(of, minlength=len(places)), np.bincount(of, is_read, len(places))
    lowest, highest = np.full(len(places), HIGHEST), np.full(len(places), -1)
    known = offset >= 0
    np.minimum.at(lowest, of[known], offset[known])
    np.maximum.at(highest, of[known], offset[known])
    return {
        place: Counted(int(rows[number]), int(reads[number]), int(lowest[number]), int(highest[number]))
        for number, place in enumerate(places)
    }


def merged(parts: Iterable[Census]) -> Census:
    """Several, together."""
    found: dict[Place, Counted] = {}
    for part in parts:
        for place, more in part.items():
            found[place] = found.get(place, Counted()).with_more(more)
    return found


def plan(census: Census, part_rows: int) -> Layout:
    """Shards of about so many rows: small partitions together, a large one by itself, in ranges of offsets."""
    places = tuple(sorted(census, key=canonical))
    by_partition: dict[tuple[str, int], list[int]] = defaultdict(list)
    for number, (topic, _, partition) in enumerate(places):
        by_partition[topic, partition].append(number)
    shards: list[Shard] = []
    waiting: list[int] = []
    rows = 0
    for logs in by_partition.values():
        own = sum(census[places[log]].rows for log in logs)
        if own > part_rows and len(logs) == 1:
            shards.append(_cut(logs[0], census[places[logs[0]]], part_rows))
            continue
        if waiting and rows + own > part_rows:
            shards.append(_whole(waiting, rows))
            waiting, rows = [], 0
        waiting += logs
        rows += own
    if waiting:
        shards.append(_whole(waiting, rows))
    total, reads = sum(one.rows for one in census.values()), sum(one.reads for one in census.values())
    return Layout(Path(), "", places, tuple(shards), total, reads, 0)


def _whole(logs: Sequence[int], rows: int) -> Shard:
    return Shard(tuple(logs), (Part(0, HIGHEST, rows),))


def _cut(log: int, own: Counted, part_rows: int) -> Shard:
    """One log in ranges of the same width: offsets are dense."""
    count = -(-own.rows // part_rows)
    width = -(-(own.highest + 1 - own.lowest) // count)
    begins = [own.lowest + number * width for number in range(count)]
    ends = [*begins[1:], HIGHEST]
    begins[0] = 0
    parts = (Part(begin, end, own.rows // count) for begin, end in zip(begins, ends, strict=True))
    return Shard((log,), tuple(part for part in parts if part.begin < part.end))
