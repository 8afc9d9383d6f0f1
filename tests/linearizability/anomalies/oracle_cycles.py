"""Oracle of the cycle anomalies: a search for all simple cycles of a small graph.

`name_cycles` finds the anomalies of any graph. `judge_cycles` builds the graph of a history for it.
"""

from collections import defaultdict
from itertools import pairwise

from tests.linearizability.anomalies.oracle_logs import FOREVER

WW, STABLE_WR, WR, RW, PROCESS, REAL_TIME = range(6)
"""Kinds of edges. STABLE_WR is a write-read edge by a read_committed read, WR one by any other read."""
WRITE_READS, TIMED = {STABLE_WR, WR}, {PROCESS, REAL_TIME}
LEVELS = ({WW}, {WW, *WRITE_READS}, {WW, *WRITE_READS, RW})
NAMES = ("cycle-G0", "cycle-G1c", "cycle-G2")
"""The anomaly of each of LEVELS."""


def name_cycles(nodes, edges):
    """Return [(name, verdict, cycle)] of a graph, one for each anomaly of each component.

    The cycle of a component is the shortest one through the lowest node that is on a cycle; of several shortest cycles,
    the lowest one.

    :param nodes: transactions, ordered by age.
    :param edges: {(source, target, kind)}. A cycle is a list of such edges.
    """
    all_cycles = {start: list(cycles_from(start, edges)) for start in nodes}

    def cycles(start, first, rest, read_writes=None):
        """Return the cycles through a node whose first edge has a kind in `first`, and all later edges one in `rest`.

        :param read_writes: required number of RW edges after the first edge (default: any).
        """
        return [
            cycle
            for cycle in all_cycles[start]
            if cycle[0][2] in first
            and all(kind in rest for _, _, kind in cycle[1:])
            and (read_writes is None or sum(kind == RW for _, _, kind in cycle[1:]) == read_writes)
        ]

    def lowest(component, choose):
        """Return the shortest cycle of `choose(node)` for the lowest node that has any; None if no node has a cycle."""
        start = min((node for node in component if choose(node)), default=None)
        found = [] if start is None else choose(start)
        return min(found, key=lambda cycle: (len(cycle), [edge[1:] for edge in cycle]), default=None)

    found = [
        ("cycle-G0", "permitted", lowest(component, lambda node: cycles(node, {WW}, {WW})))
        for component in components(nodes, edges, {WW})
    ]
    violated = components(nodes, edges, {STABLE_WR})
    for component in violated:
        cycle = lowest(component, lambda node: cycles(node, {STABLE_WR}, {STABLE_WR}))
        found.append(("cycle-G1c", "violation", cycle))
    for component in components(nodes, edges, LEVELS[1]):
        if not any(violation <= component for violation in violated):
            cycle = lowest(component, lambda node: cycles(node, WRITE_READS, LEVELS[1]))
            found.append(("cycle-G1c", "permitted", cycle))
    for component in components(nodes, edges, LEVELS[2]):
        single = lowest(component, lambda node: cycles(node, {RW}, LEVELS[2], 0))
        several = lowest(component, lambda node: cycles(node, {RW}, LEVELS[2]))
        found.append(("cycle-G-single" if single else "cycle-G2", "permitted", single or several))

    before = set()
    for level, kinds in enumerate(LEVELS):
        rest = kinds | TIMED
        new = {node for node in nodes if cycles(node, TIMED, rest)} - before
        for component in components(nodes, edges, rest):
            single = level == 2 and lowest(component & new, lambda node: cycles(node, TIMED, rest, 1))  # noqa: B023
            cycle = single or lowest(component & new, lambda node: cycles(node, TIMED, rest))  # noqa: B023
            name = "cycle-G-single" if single else NAMES[level]
            found.append((f"{name}-realtime", "permitted", cycle))
        before |= new
    return [row for row in found if row[2] is not None]


def cycles_from(start, edges):
    """Yield every simple cycle through a node, as a list of edges."""
    leaving = defaultdict(list)
    for edge in edges:
        leaving[edge[0]].append(edge)

    def extend(path, visited):
        for edge in leaving[path[-1][1] if path else start]:
            if edge[1] == start:
                yield [*path, edge]
            elif edge[1] not in visited:
                yield from extend([*path, edge], visited | {edge[1]})

    yield from extend([], {start})


def components(nodes, edges, kinds):
    """Return the strongly connected components of at least two nodes, with only the edges of these kinds."""
    reachable = {node: reachable_from(node, edges, kinds) for node in nodes}
    return {
        frozenset(other for other in nodes if other in reachable[node] and node in reachable[other])
        for node in nodes
        if node in reachable[node]
    }


def reachable_from(start, edges, kinds):
    found, waiting = set(), [start]
    while waiting:
        node = waiting.pop()
        for source, target, kind in edges:
            if source == node and kind in kinds and target not in found:
                found.add(target)
                waiting.append(target)
    return found


def real_time(nodes, times):
    """Return the real-time edges between nodes. `times` is {node: (begin, end)}."""
    return {
        (one, other, REAL_TIME) for one in nodes for other in nodes if max(times[one]) < times[other][0] if one != other
    }


def judge_cycles(o, logs):
    ops = defaultdict(list)
    for op_id in sorted(o.op):
        ops[o.txn_key(op_id)].append(o.op[op_id])
    ops = {
        key: own for key, own in ops.items() if key in o.txn and o.txn[key]["committed"] and not o.txn[key]["aborted"]
    }
    rows = {}
    for log in logs:
        if not log.ambiguous:
            dependencies(o, log, ops, rows)
    age = {key: own[0]["op_id"] for key, own in ops.items()}
    touched = {key for source, target, _ in rows for key in (source, target)}
    edges = {(age[source], age[target], kind) for source, target, kind in rows}
    times = {age[key]: (min(x["invoke_ns"] for x in ops[key]), o.txn[key]["open_until"]) for key in touched}
    timed = real_time(times, times)
    process = {
        (age[one], age[next_one]) for one in touched for next_one in [following(o, one, touched, ops)] if next_one
    }
    edges |= timed | {(one, other, PROCESS) for one, other in process if (one, other, REAL_TIME) not in timed}
    evidence_rows = {(age[source], age[target], kind): min(own) for (source, target, kind), own in rows.items()}
    for name, verdict, cycle in name_cycles(sorted(times), edges):
        topic, partition, offset, _, _, value = next(evidence_rows[edge] for edge in cycle if edge in evidence_rows)
        op_ids = [
            op_id for edge in cycle for op_id in (evidence_rows[edge][3:5] if edge in evidence_rows else edge[:2])
        ]
        evidence = (
            tuple(op_ids),
            topic,
            partition,
            *(None if n == FOREVER else n for n in (offset, value)),
        )
        o.found[name, verdict].append(evidence)


def following(o, key, touched, ops):
    """Return the first transaction that the same process began after the commit request of a transaction, or None."""
    begun = {other: min(x["invoke_ns"] for x in ops[other]) for other in touched if other[0] == key[0]}
    later = [other for other, at in begun.items() if at > o.txn[key]["begun"]]
    return min(later, key=lambda other: (begun[other], ops[other][0]["op_id"]), default=None)


def dependencies(o, log, ops, rows):  # noqa: C901 - one loop for each kind of edge
    """Add the edges of a log to {(source, target, kind): [(topic, partition, offset, source op, target op, value)]}."""

    def reader_of(op_id):
        """Return the transaction of a read; None if it did not commit, or its commit was requested before the read."""
        key = o.txn_key(op_id)
        return key if key in ops and o.invoke(op_id) <= o.txn[key]["begun"] else None

    def add_edge(source, target, kind, r, source_op, target_op):
        if source != target:
            offset, value = (FOREVER if n is None else n for n in (r["offset"], r["value"]))
            row = (log.topic, log.partition, offset, source_op, target_op, value)
            rows.setdefault((source, target, kind), []).append(row)

    written = [r for r in log.all.values() if r["send"] and r["committed"] and o.txn_key(r["op"]) in ops]
    at = {}
    for r in sorted(written, key=lambda r: (o.txn_key(r["op"]), r["op"], r["value"] or 0)):
        if r["offset"] is not None:
            at.setdefault(r["offset"], r)
    stored = [at[offset] for offset in sorted(at)]
    for one, other in pairwise(stored):
        add_edge(o.txn_key(one["op"]), o.txn_key(other["op"]), WW, other, one["op"], other["op"])
    for r in written:
        for row in r["reads"]:
            reader = reader_of(row["op_id"])
            if reader is not None:
                kind = STABLE_WR if o.isolation(row["op_id"]) == "read_committed" else WR
                add_edge(o.txn_key(r["op"]), reader, kind, r, r["op"], row["op_id"])
    highest = defaultdict(list)
    for op_id, _, after, _ in log.ranges:
        if reader_of(op_id) is not None:
            highest[reader_of(op_id)].append((-after, op_id))
    for reader, ends in highest.items():
        after, op_id = min(ends)
        above = [r for r in stored if r["offset"] >= -after]
        if above:
            add_edge(reader, o.txn_key(above[0]["op"]), RW, above[0], op_id, above[0]["op"])
