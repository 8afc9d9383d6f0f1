"""The shortest cycle through a transaction, by breadth-first search backwards inside its component.

Of several shortest cycles the lowest is returned. Cycles are compared step by step: first by the target transaction of
the step, then by the kind of its edge. The edges of real time are not stored: if a transaction ended before at least
one transaction of a layer began, it is added to the next layer. To find each of these transactions once, a pointer
advances through the component's nodes, sorted by end.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from linearizability.anomalies.columns import Flags, Indexes, Int8s, Int64s
from linearizability.anomalies.cycles.edges import Kind
from linearizability.anomalies.cycles.graph import Graph

_NO_ROW: Final = -1


@dataclass(frozen=True, slots=True)
class Step:
    """An edge of a cycle: its nodes, and its row of `Graph.facts`, -1 where it has none."""

    source: int
    target: int
    kind: Kind
    row: int


Cycle = tuple[Step, ...]


@dataclass(slots=True)
class StepBudget:
    """The number of edges that a search may still visit; negative when the budget is used up."""

    left: int


@dataclass(frozen=True, slots=True)
class Sought:
    """The conditions for a cycle."""

    first: frozenset[Kind]
    """The kinds of its first edge."""
    read_writes: int | None = None
    """The number of read-write edges after the first edge, 0 or 1; None if any number is permitted."""


class Inside:
    """The edges of some kinds inside components, ready to be walked in both directions."""

    def __init__(self, graph: Graph, component: Indexes, kinds: Flags, real_time: bool) -> None:
        self._graph, self._component = graph, component
        self._edges = np.flatnonzero(graph.inside(component, kinds))
        self._source, self._target = graph.source[self._edges], graph.target[self._edges]
        self._kind: Int8s = graph.kind[self._edges]
        self._out = np.searchsorted(self._source, np.arange(len(graph) + 1))
        self._by_target = np.lexsort((self._source, self._target))
        self._in = np.searchsorted(self._target[self._by_target], np.arange(len(graph) + 1))
        self._real_time = real_time
        if real_time:
            self._by_end = np.lexsort((graph.end_ns, component))
            self._members = component[self._by_end]

    def shortest(self, start: int, sought: Sought, budget: StepBudget | None = None) -> Cycle | None:
        """Return the shortest cycle from `start` that meets the conditions; None if none does or the budget ran out."""
        search = _Search(self, self._graph, start, sought, budget or StepBudget(2**62))
        return search.run()

    def leaving(self, node: int) -> list[tuple[int, int, int]]:
        """Return targets, kinds and rows of the edges that leave a node, in order."""
        edges = slice(self._out[node], self._out[node + 1])
        rows = self._graph.row[self._edges[edges]]
        return list(zip(self._target[edges].tolist(), self._kind[edges].tolist(), rows.tolist(), strict=True))

    def entering(self, node: int) -> list[tuple[int, int]]:
        """Return sources and kinds of the edges that enter a node."""
        edges = self._by_target[self._in[node] : self._in[node + 1]]
        return list(zip(self._source[edges].tolist(), self._kind[edges].tolist(), strict=True))

    def by_end(self, node: int) -> Indexes:
        """Return the nodes of a node's component, sorted by their ends; empty where real time does not count."""
        if not self._real_time:
            return np.empty(0, np.intp)
        own = self._component[node]
        first, last = np.searchsorted(self._members, [own, own + 1])
        return self._by_end[first:last]


State = tuple[int, int]
"""A node, and the number of read-write edges from it to the start; 0 if these are not counted."""


class _Search:
    def __init__(self, inside: Inside, graph: Graph, start: int, sought: Sought, budget: StepBudget) -> None:
        self._inside, self._graph, self._start, self._sought, self._budget = inside, graph, start, sought, budget
        self._counted = sought.read_writes or 0
        self._by_end = inside.by_end(start)
        self._ends: Int64s = graph.end_ns[self._by_end]
        self._passed = [0, 0]
        self._layers: list[list[State]] = [[(start, 0)]]
        self._depth: dict[State, int] = {(start, 0): 0}
        self._first: dict[int, tuple[int, int]] = {}
        for target, kind, row in inside.leaving(start):
            if kind in sought.first:
                self._first.setdefault(target, (kind, row))

    def run(self) -> Cycle | None:
        while self._layers[-1] and self._budget.left >= 0:
            found = self._closing_step()
            if found is not None:
                return tuple(self._walk(found))
            self._layers.append(self._next_layer())
        return None

    def _closing_step(self) -> Step | None:
        """Return the lowest permitted step from the start to a state of the last layer; None if there is none."""
        after_ns = int(self._graph.end_ns[self._start])
        by_time = Kind.REAL_TIME in self._sought.first
        nodes = [node for node, used in self._layers[-1] if used == self._counted]
        if by_time and nodes:
            begins = self._graph.begin_ns[np.array(nodes)] > after_ns
            nodes = [node for node, late in zip(nodes, begins.tolist(), strict=True) if late or node in self._first]
        else:
            nodes = [node for node in nodes if node in self._first]
        if not nodes:
            return None
        node = min(nodes)
        kind, row = self._first.get(node, (Kind.REAL_TIME, _NO_ROW))
        return Step(self._start, node, Kind(kind), row)

    def _next_layer(self) -> list[State]:
        layer: list[State] = []
        depth, limit = len(self._layers), self._sought.read_writes
        for node, used in self._layers[-1]:
            entering = self._inside.entering(node)
            self._budget.left -= len(entering) + 1
            for source, kind in entering:
                state = (source, used)
                if kind == Kind.READ_WRITE and limit is not None:
                    if used == limit:
                        continue
                    state = (source, used + 1)
                if state not in self._depth:
                    self._depth[state] = depth
                    layer.append(state)
        for used in range(self._counted + 1):
            for state in self._earlier(used):
                if state not in self._depth:
                    self._depth[state] = depth
                    layer.append(state)
        return layer

    def _earlier(self, used: int) -> list[State]:
        """Return the states that precede a state of the last layer in real time, except those returned before.

        :param used: number of read-write edges from each of these states to the start.
        """
        nodes = [node for node, own in self._layers[-1] if own == used]
        if not len(self._by_end) or not nodes:
            return []
        latest = int(self._graph.begin_ns[np.array(nodes)].max())
        first, last = self._passed[used], int(np.searchsorted(self._ends, latest, side="left"))
        if last <= first:
            return []
        self._passed[used] = last
        self._budget.left -= last - first
        return [(node, used) for node in self._by_end[first:last].tolist()]

    def _walk(self, step: Step) -> list[Step]:
        """Return the steps of the cycle: the given first step, then the lowest path back to the start."""
        steps, used = [step], self._counted
        for depth in range(self._depth[step.target, used] - 1, -1, -1):
            step, used = self._forward(steps[-1].target, used, depth)
            steps.append(step)
        return steps

    def _forward(self, node: int, used: int, depth: int) -> tuple[Step, int]:
        """Return the lowest step from a state to layer `depth`, and the number of read-write edges after it.

        :param used: number of read-write edges from the given state to the start.
        """
        options: list[tuple[int, int, int, int]] = []
        for target, kind, row in self._inside.leaving(node):
            left = used - 1 if kind == Kind.READ_WRITE and self._sought.read_writes is not None else used
            if self._depth.get((target, left)) == depth:
                options.append((target, kind, row, left))
                break
        if len(self._by_end):
            layer = [other for other, own in self._layers[depth] if own == used]
            late = self._graph.begin_ns[np.array(layer, np.intp)] > self._graph.end_ns[node]
            options += [(min(np.array(layer)[late].tolist()), Kind.REAL_TIME, _NO_ROW, used)] if late.any() else []
        target, kind, row, left = min(options)
        return Step(node, target, Kind(kind), row), left
