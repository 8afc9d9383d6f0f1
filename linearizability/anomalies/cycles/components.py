"""Strongly connected components, optionally with edges of real time, in linear time (except for sorting).

`components` is Tarjan's algorithm without recursion. An edge of real time leads from a node to each node that begins
after its end. `with_real_time` does not build these edges, of which there may be n²; it merges components by the times
of their nodes. Let M(x) be the lowest end of all nodes that are reachable from x, and B(x) the highest begin of all
nodes from which x is reachable; x is reachable from itself. If M(x) < begin(x), a node that ended before x began is
reachable from x, so the two are on a cycle. The cycle spans the time from M(x) to begin(x). Cycles whose spans overlap
are in one component, since real time leads from each to the other. So each union of overlapping spans is one component,
and there are no other components whose cycles need an edge of real time. A node x belongs to the union (lo, hi) exactly
if lo < B(x) and M(x) < hi, because then real time leads from the union to x and from x to the union.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from linearizability.anomalies.columns import Indexes, Int64s

_UNSEEN: Final = -1


@dataclass(frozen=True, slots=True)
class Components:
    """A partition of the nodes. Edges lead from components of higher numbers to lower ones, or stay inside."""

    by_node: Indexes
    """Per node, its component."""


def components(count: int, source: Indexes, target: Indexes) -> Components:
    """Return the strongly connected components of the nodes 0 … count - 1. The edges must be sorted by source."""
    if not len(source):
        return Components(np.arange(count))
    begins = np.searchsorted(source, np.arange(count + 1))
    next_edge, end, targets = begins[:-1].tolist(), begins[1:].tolist(), target.tolist()
    lowest, component = [_UNSEEN] * count, [_UNSEEN] * count
    waiting: list[int] = []  # Tarjan's stack: nodes seen whose component is not complete
    path: list[int] = []
    seen = found = 0
    for root in range(count):
        if lowest[root] != _UNSEEN:
            continue
        path.append(root)
        lowest[root] = seen
        # For each node on `path`: its number in the order of visits, and the length of `waiting` before it was added.
        entered = [(seen, len(waiting))]
        waiting.append(root)
        seen += 1
        while path:
            node = path[-1]
            edge, last, low = next_edge[node], end[node], lowest[node]
            while edge < last:
                other = targets[edge]
                edge += 1
                if component[other] == _UNSEEN:
                    number = lowest[other]
                    if number == _UNSEEN:
                        path.append(other)
                        lowest[other] = seen
                        entered.append((seen, len(waiting)))
                        waiting.append(other)
                        seen += 1
                        break
                    if number < low:  # noqa: PLR1730 - the innermost loop, where a call costs more
                        low = number
            else:
                path.pop()
                order, place = entered.pop()
                if low == order:
                    for member in waiting[place:]:
                        component[member] = found
                    del waiting[place:]
                    found += 1
                elif low < lowest[path[-1]]:
                    lowest[path[-1]] = low
            next_edge[node], lowest[node] = edge, low
    return Components(np.array(component, np.intp))


def with_real_time(explicit: Components, source: Indexes, target: Indexes, begin_ns: Int64s, end_ns: Int64s) -> Indexes:
    """Return the component of each node when edges of real time are added to the graph of the given components."""
    lowest_end, highest_begin = _reaches(explicit, source, target, begin_ns, end_ns)
    spans = np.flatnonzero(lowest_end < begin_ns)
    spans = spans[np.argsort(lowest_end[spans], kind="stable")]
    if not len(spans):
        return explicit.by_node
    low, reached = lowest_end[spans], np.maximum.accumulate(begin_ns[spans])
    first = np.flatnonzero(np.append(True, low[1:] >= reached[:-1]))
    lo, hi = low[first], reached[np.append(first[1:], len(spans)) - 1]
    union = np.searchsorted(lo, highest_begin, side="left") - 1
    belongs = (union >= 0) & (lowest_end < hi[union])
    merged = np.where(belongs, len(begin_ns) + union, explicit.by_node)
    return np.unique(merged, return_inverse=True)[1].reshape(-1)


def _reaches(
    explicit: Components, source: Indexes, target: Indexes, begin_ns: Int64s, end_ns: Int64s
) -> tuple[Int64s, Int64s]:
    """Return M and B of every node."""
    component = explicit.by_node
    count = int(component.max(initial=-1)) + 1
    ends, begins = np.full(count, np.iinfo(np.int64).max), np.full(count, np.iinfo(np.int64).min)
    np.minimum.at(ends, component, end_ns)
    np.maximum.at(begins, component, begin_ns)
    upper, lower = component[source], component[target]
    between = np.flatnonzero(upper != lower)
    upper, lower = upper[between], lower[between]
    lowest, highest = ends.tolist(), begins.tolist()
    upwards = np.argsort(upper, kind="stable")  # the components that a component leads to come before it
    for above, below in zip(upper[upwards].tolist(), lower[upwards].tolist(), strict=True):
        if lowest[below] < lowest[above]:  # noqa: PLR1730
            lowest[above] = lowest[below]
    downwards = np.argsort(-lower, kind="stable")
    for above, below in zip(upper[downwards].tolist(), lower[downwards].tolist(), strict=True):
        if highest[above] > highest[below]:  # noqa: PLR1730
            highest[below] = highest[above]
    return np.array(lowest, np.int64)[component], np.array(highest, np.int64)[component]
