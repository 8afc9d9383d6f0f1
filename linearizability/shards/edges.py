"""Edges of the ranges of a split log: a few numbers about each range, for the tasks that judge the other ranges.

`Edge` has the numbers that a range reports. `Outside` has the numbers that a range needs about the ranges below and
above it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from linearizability.anomalies.columns import Int64s
from linearizability.anomalies.faults import NEVER_NS

UNKNOWN: Final = -1
ALWAYS_NS: Final = -(2**63)
"""A time before every time of a history."""
ABOVE_EPOCHS: Final = 2**31 - 1
"""A number that no leader epoch exceeds."""
Key = tuple[int, int]
"""The op_id and `seq` of a send. Keys ascend in the order in which a producer sends."""
Leaders = Mapping[tuple[int, int], tuple[int, int]]
"""The type of `Edge.leaders`."""


@dataclass(frozen=True, slots=True)
class Edge:
    """Numbers of a range for the other ranges. An empty range makes no record of another range suspect."""

    first_acknowledged_ns: int
    """The earliest acknowledgement of a send."""
    last_invoke_ns: int
    """The latest invocation of a send."""
    lowest_epoch: int
    """The lowest leader epoch of a read."""
    highest_epoch: int
    """The highest leader epoch of a read."""
    producers: Mapping[int, tuple[Key, Key]]
    """Per process, its first and last send."""
    leaders: Leaders
    """Per epoch and node, the first completion and last invocation of the sends that the node acknowledged in it."""
    served_ns: Int64s
    """Per operation of the log that was not served: the last success in this range before its end, else ALWAYS_NS."""
    newest: tuple[int, int]
    """The newest epoch of any send or read, and the offset of a record with this epoch."""
    adopted: frozenset[Key] = frozenset()
    """Sends without an acknowledged offset whose value was read in this range."""


@dataclass(frozen=True, slots=True)
class Outside:
    """Data that a range needs about the ranges below and above it."""

    last_invoke_below_ns: int = ALWAYS_NS
    first_acknowledged_above_ns: int = NEVER_NS
    highest_epoch_below: int = UNKNOWN
    lowest_epoch_above: int = ABOVE_EPOCHS
    last_below: Mapping[int, Key] = field(default_factory=dict)
    """Per process, its last send below the range."""
    first_above: Mapping[int, Key] = field(default_factory=dict)


def fits(producers: Mapping[int, tuple[Key, Key]], outside: Outside) -> bool:
    """Whether each process sent its records below the range first, then those inside it, then those above it."""
    return all(
        outside.last_below.get(process, first) <= first and last <= outside.first_above.get(process, last)
        for process, (first, last) in producers.items()
    )


def is_harmless(edge: Edge, outside: Outside) -> bool:
    """Whether no record in a range is suspect because of the records outside it."""
    return (
        outside.last_invoke_below_ns <= edge.first_acknowledged_ns
        and edge.last_invoke_ns <= outside.first_acknowledged_above_ns
        and outside.highest_epoch_below <= edge.lowest_epoch
        and edge.highest_epoch <= outside.lowest_epoch_above
        and fits(edge.producers, outside)
    )


def outsides(edges: Sequence[Edge]) -> list[Outside]:
    """Return for each range of a log, by offset, the numbers that it needs from the other ranges."""
    found = []
    for number in range(len(edges)):
        below, above = edges[:number], edges[number + 1 :]
        found.append(
            Outside(
                last_invoke_below_ns=max((edge.last_invoke_ns for edge in below), default=ALWAYS_NS),
                first_acknowledged_above_ns=min((edge.first_acknowledged_ns for edge in above), default=NEVER_NS),
                highest_epoch_below=max((edge.highest_epoch for edge in below), default=UNKNOWN),
                lowest_epoch_above=min((edge.lowest_epoch for edge in above), default=ABOVE_EPOCHS),
                last_below=_best(
                    max, ((process, last) for edge in below for process, (_, last) in edge.producers.items())
                ),
                first_above=_best(
                    min, ((process, first) for edge in above for process, (first, _) in edge.producers.items())
                ),
            )
        )
    return found


def _best(choose: Callable[[Key, Key], Key], keys: Iterable[tuple[int, Key]]) -> dict[int, Key]:
    found: dict[int, Key] = {}
    for process, key in keys:
        found[process] = choose(found.get(process, key), key)
    return found


def merge_leaders(parts: Iterable[Leaders]) -> Leaders:
    """Merge `Edge.leaders` of all parts."""
    found: dict[tuple[int, int], tuple[int, int]] = {}
    for part in parts:
        for key, (first, last) in part.items():
            known = found.get(key, (first, last))
            found[key] = (min(first, known[0]), max(last, known[1]))
    return found


def leaders_conflict(leaders: Leaders) -> bool:
    """Whether two nodes may have led at the same time: the condition of two-leaders and of fenced-leader-write."""
    return any(
        (epoch == other_epoch and node != other)
        or (epoch > other_epoch and node != other and leaders[epoch, node][0] < leaders[other_epoch, other][1])
        for epoch, node in leaders
        for other_epoch, other in leaders
    )


def may_be_outage(not_served_ns: Int64s, first_invoke_ns: int, served_ns: Int64s, allowed_ns: int) -> bool:
    """Whether an operation that was not served may belong to an outage longer than `allowed_ns`.

    This is possible if it ended more than `allowed_ns` after both the last success and the first invocation of the
    operations that were not served.
    """
    since_ns = np.maximum(served_ns, first_invoke_ns)
    # Two times of the format may differ by 2^63, which only an unsigned integer can hold.
    return bool(np.any((not_served_ns > since_ns) & ((not_served_ns - since_ns).astype(np.uint64) > allowed_ns)))
