"""Census of a history's logs, counted while rows are distributed, and the resulting plan of shards and parts."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np

from linearizability.anomalies.arrow import Place
from linearizability.anomalies.columns import Flags, Indexes
from linearizability.shards.manifest import Layout, Part, Shard
from linearizability.shards.runs import HIGHEST, Stretches, canonical, with_id

_POINTS: Final = 65_536
"""The approximate number of offsets that are sampled to split a log."""


@dataclass(frozen=True, slots=True)
class Counted:
    """The number of rows of `records` in one log, and how many of these are reads."""

    rows: int = 0
    reads: int = 0

    def with_more(self, other: "Counted") -> "Counted":
        """Return the sum of both."""
        return Counted(self.rows + other.rows, self.reads + other.reads)


Census = Mapping[Place, Counted]


def counted(places: Sequence[Place], of: Indexes, is_read: Flags) -> Census:
    """Return the census of records; `of` has each record's index in `places`."""
    rows, reads = np.bincount(of, minlength=len(places)), np.bincount(of, is_read, len(places))
    return {place: Counted(int(rows[number]), int(reads[number])) for number, place in enumerate(places)}


def merged(parts: Iterable[Census], own_id: Mapping[str, str]) -> Census:
    """Merge censuses. If a topic name has only one id, rows without an id are counted for it (`with_id`)."""
    found: dict[Place, Counted] = {}
    for part in parts:
        for place, more in part.items():
            whole = with_id(place, own_id)
            found[whole] = found.get(whole, Counted()).with_more(more)
    return found


def plan(census: Census, part_rows: int, stretches: Callable[[int], Stretches]) -> Layout:
    """Plan shards of small partitions with up to `part_rows` rows together, and a split shard for each large partition.

    A partition whose topic was created again has several logs. It is not split, however large it is.

    :param stretches: function that returns the stretches of a log, by its number in the canonical order.
    """
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
            shards.append(_cut(logs[0], own, part_rows, stretches(logs[0])))
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


def _cut(log: int, rows: int, part_rows: int, stretches: Stretches) -> Shard:
    """Split one log into ranges of offsets with about equal numbers of rows; offsets may have large gaps."""
    count = -(-rows // part_rows)
    bounds = [offset for offset in _quantiles(stretches, count) if offset > 0]
    ranges = pairwise([0, *bounds, HIGHEST])
    return Shard((log,), tuple(Part(begin, end, rows // (len(bounds) + 1)) for begin, end in ranges))


def _quantiles(stretches: Stretches, count: int) -> list[int]:
    """Return at most count - 1 offsets, ascending, with about equal numbers of rows between them."""
    if not len(stretches):
        return []
    first, last, rows = stretches.T
    each = max(2, _POINTS // len(stretches))
    points = np.linspace(np.maximum(first, 0), last, each).astype(np.int64).ravel()
    order = np.argsort(points)
    below = np.cumsum(np.tile(rows, each)[order])
    wanted = below[-1] * (np.arange(1, count) / count)
    found: list[int] = np.unique(points[order][np.searchsorted(below, wanted)]).tolist()
    return found
