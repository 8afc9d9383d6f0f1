"""What the ranges of a log that is cut must know of each other: a range cannot see what stands outside it.

`Edge` is what a range tells of itself, `Outside` what it must be told of those below and above: a handful of numbers.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from linearizability.anomalies.columns import Int64s
from linearizability.anomalies.faults import NEVER_NS

UNKNOWN: Final = -1
ALWAYS_NS: Final = -(2**63)
ABOVE_EPOCHS: Final = 2**31 - 1
Key = tuple[int, int]
"""An operation's id and a position inside it: the order in which a producer sends."""
Leaders = Mapping[tuple[int, int], tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Edge:
    """What a range says of itself to the others. Of nothing, the numbers are those that say nothing."""

    first_acknowledged_ns: int
    last_invoke_ns: int
    lowest_epoch: int
    highest_epoch: int
    """Of what was read."""
    producers: Mapping[int, tuple[Key, Key]]
    """Per process, its first and last send."""
    leaders: Leaders
    """Per epoch and node that acknowledged: the first completion, and the last invocation."""
    served_ns: Int64s
    """For each operation that ended in vain, the last success by then; ALWAYS_NS where there was none."""
    newest: tuple[int, int]
    """The newest epoch that any row gives, and an offset where one does."""
    adopted: frozenset[Key] = frozenset()
    """Sends that were not told an offset, and stand here."""


@dataclass(frozen=True, slots=True)
class Outside:
    """What a range must know of those below and above it."""

    last_invoke_below_ns: int = ALWAYS_NS
    first_acknowledged_above_ns: int = NEVER_NS
    highest_epoch_below: int = UNKNOWN
    lowest_epoch_above: int = ABOVE_EPOCHS
    last_below: Mapping[int, Key] = field(default_factory=dict)
    """Per process, the last of its sends that stand below."""
    first_above: Mapping[int, Key] = field(default_factory=dict)


def fits(producers: Mapping[int, tuple[Key, Key]], outside: Outside) -> bool:
    """Whether each process has sent what stands below before, and what stands above after."""
    return all(
        outside.last_below.get(process, first) <= first and last <= outside.first_above.get(process, last)
        for process, (first, last) in producers.items()
    )


def is_harmless(edge: Edge, outside: Outside) -> bool:
    """Whether what stands outside a range makes nothing in it suspect."""
    return (
        outside.last_invoke_below_ns <= edge.first_acknowledged_ns
        and edge.last_invoke_ns <= outside.first_acknowledged_above_ns
        and outside.highest_epoch_below <= edge.lowest_epoch
        and edge.highest_epoch <= outside.lowest_epoch_above
        and fits(edge.producers, outside)
    )


def outsides(edges: Sequence[Edge]) -> list[Outside]:
    """What each of the ranges of a log, by offset, must know of the others."""
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
    """As `Edge.leaders`, of all parts."""
    found: dict[tuple[int, int], tuple[int, int]] = {}
    for part in parts:
        for key, (first, last) in part.items():
            known = found.get(key, (first, last))
            found[key] = (min(first, known[0]), max(last, known[1]))
    return found


def leaders_conflict(leaders: Leaders) -> bool:
    """Whether two nodes may have led at one time: what two-leaders and fenced-leader-write are about."""
    return any(
        (epoch == other_epoch and node != other)
        or (epoch > other_epoch and node != other and leaders[epoch, node][0] < leaders[other_epoch, other][1])
        for epoch, node in leaders
        for other_epoch, other in leaders
    )


def may_be_outage(in_vain_ns: Int64s, first_invoke_ns: int, served_ns: Int64s, allowed_ns: int) -> bool:
    """Whether anything that ended in vain ended that long after the last success, or the first try."""
    return bool(np.any(in_vain_ns - np.maximum(served_ns, first_invoke_ns) > allowed_ns))
