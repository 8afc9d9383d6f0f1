"""Classes of the cycles of a run: every component of each class, with one of its cycles.

| class | edges | a component has it if |
|---|---|---|
| G0 | write-write | always |
| G1c | write-write, write-read | it contains a write-read edge |
| G-single | write-write, write-read, read-write | one of its cycles has exactly one read-write edge |
| G2 | write-write, write-read, read-write | it contains a read-write edge, and is not G-single |

Each class has a realtime variant, whose cycles may also have process and real-time edges. A transaction *continues in
real time* in a component if a process or real-time edge leads from it to another transaction of the component.

The variant of a class must not report what the variant of a smaller class already reports. So each class is compared
with the one *above* it: G1c with G0, and both G-single and G2 with G1c; G0 has none above it. Here the components of
both classes are computed with process and real-time edges. A component has the realtime variant if some transaction
continues in real time in this component, but not in its component of the class above. Then every cycle through the
process or real-time edge also has an edge of a kind that the class above does not have. The variants of G-single and G2
have the same edges: it is the variant of G-single if one of these cycles has exactly one read-write edge, else that of
G2.

All of this takes linear time except the search for G-single, which looks for a path back from many edges. The search
has a budget of steps in each component. If the budget is used up before a cycle is found, G-single is unknown, unless
some transaction is certainly on such a cycle.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from linearizability.anomalies.columns import Flags, Indexes, Int64s
from linearizability.anomalies.cycles.components import Components, components, with_real_time
from linearizability.anomalies.cycles.edges import Kind
from linearizability.anomalies.cycles.graph import Graph
from linearizability.anomalies.cycles.search import Cycle, Inside, Sought, StepBudget
from linearizability.judgement import Verdict

G0, G1C, G_SINGLE, G2 = "cycle-G0", "cycle-G1c", "cycle-G-single", "cycle-G2"
REAL_TIME: Final = "-realtime"

_STEPS_MIN: Final = 100_000
_STEPS_PER_EDGE: Final = 8
"""The search for G-single may visit `_STEPS_MIN` edges plus `_STEPS_PER_EDGE` for each edge of the component."""

_WRITE_READS: Final = frozenset((Kind.COMMITTED_WRITE_READ, Kind.WRITE_READ))
_DEPENDENCIES: Final = (
    frozenset((Kind.WRITE_WRITE,)),
    frozenset((Kind.WRITE_WRITE, *_WRITE_READS)),
    frozenset((Kind.WRITE_WRITE, *_WRITE_READS, Kind.READ_WRITE)),
)
"""The edges of G0, of G1c, and of G-single and G2."""
_OWN: Final = (_DEPENDENCIES[0], _WRITE_READS, frozenset((Kind.READ_WRITE,)))
"""For each element of `_DEPENDENCIES`, the kinds of edges that the element before it does not have."""
_TIMED: Final = frozenset((Kind.PROCESS, Kind.REAL_TIME))


@dataclass(frozen=True, slots=True)
class Found:
    """A component of a class, with one cycle, and the first transaction `start` of that cycle.

    If the budget was used up, `cycle` is None, and `start` is the lowest of the nodes `_Starts.both` in the component.
    """

    name: str
    verdict: Verdict
    start: int
    cycle: Cycle | None


@dataclass(frozen=True, slots=True)
class _Level:
    """Components by the edges of G0 (0), of G1c (1), or of G-single and G2 (2)."""

    number: int
    plain: Components
    timed: Indexes
    """Per node, its component if process and real-time edges are added."""


def classify(graph: Graph) -> tuple[Graph, list[Found]]:
    """Return the part of the graph that has cycles, and its components by class."""
    whole = _components(graph, Kind)
    timed = _with_real_time(graph, whole, Kind)
    kept = np.bincount(timed)[timed] > 1
    graph, whole, timed = _part(graph, kept, timed), Components(whole.by_node[kept]), timed[kept]
    if not len(graph):
        return graph, []
    in_process = bool((graph.kind == Kind.PROCESS).any())
    levels = [_level(graph, 0), _level(graph, 1)]
    levels.append(_Level(2, _components(graph, _DEPENDENCIES[2]) if in_process else whole, timed))
    found = [*_own_cycles(graph, G0, levels[0]), *_write_reads(graph, levels[1]), *_read_writes(graph, levels)]
    return graph, [*found, *_in_real_time(graph, levels)]


def _part(graph: Graph, kept: Flags, component: Indexes) -> Graph:
    """Return the graph of some nodes, which are whole components, with the edges inside components."""
    edges = np.flatnonzero(graph.inside(component, _flags(Kind)))
    number = np.cumsum(kept) - 1
    return replace(
        graph,
        transaction=graph.transaction[kept],
        begin_ns=graph.begin_ns[kept],
        end_ns=graph.end_ns[kept],
        source=number[graph.source[edges]],
        target=number[graph.target[edges]],
        kind=graph.kind[edges],
        row=graph.row[edges],
    )


def _level(graph: Graph, number: int) -> _Level:
    plain = _components(graph, _DEPENDENCIES[number])
    kinds = (*_DEPENDENCIES[number], Kind.PROCESS)
    explicit = _components(graph, kinds) if (graph.kind == Kind.PROCESS).any() else plain
    return _Level(number, plain, _with_real_time(graph, explicit, kinds))


def _flags(kinds: Iterable[Kind]) -> Flags:
    flags = np.zeros(len(Kind), np.bool_)
    flags[list(kinds)] = True
    return flags


def _components(graph: Graph, kinds: Iterable[Kind]) -> Components:
    edges = np.flatnonzero(_flags(kinds)[graph.kind])
    return components(len(graph), graph.source[edges], graph.target[edges])


def _with_real_time(graph: Graph, explicit: Components, kinds: Iterable[Kind]) -> Indexes:
    edges = np.flatnonzero(_flags(kinds)[graph.kind])
    return with_real_time(explicit, graph.source[edges], graph.target[edges], graph.begin_ns, graph.end_ns)


def _lowest(component: Indexes, nodes: Indexes) -> Indexes:
    """Return, per component that has any of the given nodes, the lowest of them."""
    nodes = np.sort(nodes)
    return nodes[np.unique(component[nodes], return_index=True)[1]]


def _own_cycles(graph: Graph, name: str, level: _Level) -> Iterator[Found]:
    """Yield each component that has edges of the class's own kinds, with the shortest cycle that starts with one.

    The cycle starts at the lowest node that has such an edge.
    """
    component_of, own = level.plain.by_node, _OWN[level.number]
    starts = graph.source[np.flatnonzero(graph.inside(component_of, _flags(own)))]
    inside = Inside(graph, component_of, _flags(_DEPENDENCIES[level.number]), real_time=False)
    for start in _lowest(component_of, starts).tolist():
        yield Found(name, Verdict.PERMITTED, start, inside.shortest(start, Sought(own)))


def _write_reads(graph: Graph, level: _Level) -> Iterator[Found]:
    """Yield the components of G1c.

    Each component of the graph whose only edges are read_committed reads is a violation if it has a cycle. The
    components of the class are permitted; those that contain a violation are left out.
    """
    component_of, flags = level.plain.by_node, _flags((Kind.COMMITTED_WRITE_READ,))
    edges = np.flatnonzero(graph.inside(component_of, flags))
    promised = components(len(graph), graph.source[edges], graph.target[edges]).by_node
    broken = graph.source[np.flatnonzero(graph.inside(promised, flags))]
    inside = Inside(graph, promised, flags, real_time=False)
    for start in _lowest(promised, broken).tolist():
        cycle = inside.shortest(start, Sought(frozenset((Kind.COMMITTED_WRITE_READ,))))
        yield Found(G1C, Verdict.VIOLATION, start, cycle)
    reported = np.isin(component_of, component_of[broken])
    for found in _own_cycles(graph, G1C, level):
        if not reported[found.start]:
            yield found


def _read_writes(graph: Graph, levels: Sequence[_Level]) -> Iterator[Found]:
    """Yield G-single and G2."""
    component_of, before = levels[2].plain.by_node, levels[1].plain.by_node
    own = np.flatnonzero(graph.inside(component_of, _flags(_OWN[2])))
    source, target = graph.source[own], graph.target[own]
    inside = Inside(graph, component_of, _flags(_DEPENDENCIES[2]), real_time=False)
    # The path back from target to source has no read-write edges, so it never leads to a component of G1c with a higher
    # number: the target's component is the source's, or has a higher number.
    candidates = np.unique(source[before[target] >= before[source]])
    sure = _lowest(component_of, source[before[target] == before[source]])
    sought = Sought(_OWN[2], read_writes=0)
    yield from _singles(graph, component_of, inside, _Starts(np.unique(source), candidates, sure), sought)


@dataclass(frozen=True, slots=True)
class _Starts:
    """Nodes where cycles with read-write edges start."""

    both: Indexes
    """Nodes on cycles of G-single or G2."""
    single: Indexes
    """Nodes that may be on a cycle of G-single."""
    sure: Indexes
    """Nodes that are certainly on a cycle of G-single, at most one in each component."""


def _singles(graph: Graph, component_of: Indexes, inside: Inside, starts: _Starts, sought: Sought) -> Iterator[Found]:
    """Yield each component as G-single, as unknown if the budget ran out, or as G2.

    The cycle of G-single starts at the lowest node that the search finds on such a cycle. If the budget ran out before,
    the cycle starts at the component's node in `starts.sure`, if there is one.
    """
    suffix = REAL_TIME if Kind.REAL_TIME in sought.first else ""
    edges = np.bincount(component_of[graph.source], minlength=int(component_of.max()) + 1)
    certain = dict(zip(component_of[starts.sure].tolist(), starts.sure.tolist(), strict=True))
    by_component: dict[int, list[int]] = {}
    for start in np.sort(starts.single).tolist():
        by_component.setdefault(int(component_of[start]), []).append(start)
    for lowest in _lowest(component_of, starts.both).tolist():
        component = int(component_of[lowest])
        budget = StepBudget(_STEPS_MIN + _STEPS_PER_EDGE * int(edges[component]))
        cycle = None
        for start in by_component.get(component, []):
            cycle = inside.shortest(start, sought, budget)
            if cycle is not None or budget.left < 0:
                break
        if cycle is None and component in certain:
            cycle = inside.shortest(certain[component], sought)
        if cycle is not None:
            yield Found(G_SINGLE + suffix, Verdict.PERMITTED, cycle[0].source, cycle)
        elif budget.left < 0:
            yield Found(G_SINGLE + suffix, Verdict.UNKNOWN, lowest, None)
        else:
            cycle = inside.shortest(lowest, replace(sought, read_writes=None))
            yield Found(G2 + suffix, Verdict.PERMITTED, lowest, cycle)


def _in_real_time(graph: Graph, levels: Sequence[_Level]) -> Iterator[Found]:
    """Yield the realtime classes."""
    before = np.zeros(len(graph), np.bool_)
    for level in levels:
        component_of = level.timed
        by_time = _continues_in_real_time(graph, component_of)
        fresh = np.flatnonzero(by_time & ~before)
        inside = Inside(graph, component_of, _flags((*_DEPENDENCIES[level.number], Kind.PROCESS)), real_time=True)
        if level.number < 2:
            for start in _lowest(component_of, fresh).tolist():
                cycle = inside.shortest(start, Sought(_TIMED))
                yield Found((G0, G1C)[level.number] + REAL_TIME, Verdict.PERMITTED, start, cycle)
        else:
            sure = _lowest(component_of, _unread_writers(graph, component_of, by_time & ~before))
            yield from _singles(graph, component_of, inside, _Starts(fresh, fresh, sure), Sought(_TIMED, read_writes=1))
        before = by_time


def _continues_in_real_time(graph: Graph, component_of: Indexes) -> Flags:
    """Whether, per node, a real-time or process edge leads to another node of its component."""
    latest: Int64s = np.full(int(component_of.max(initial=-1)) + 1, np.iinfo(np.int64).min)
    np.maximum.at(latest, component_of, graph.begin_ns)
    continues: Flags = graph.end_ns < latest[component_of]
    continues[graph.source[np.flatnonzero(graph.inside(component_of, _flags((Kind.PROCESS,))))]] = True
    return continues


def _unread_writers(graph: Graph, component_of: Indexes, fresh: Flags) -> Indexes:
    """Return the `fresh` writers that a later transaction missed; they are certainly on a cycle of G-single.

    A transaction that began after the writer's end did not read its record, so a read-write edge leads to the writer.
    """
    edges = np.flatnonzero(graph.inside(component_of, _flags(_OWN[2])))
    reader, writer = graph.source[edges], graph.target[edges]
    return writer[fresh[writer] & (graph.end_ns[writer] < graph.begin_ns[reader])]
