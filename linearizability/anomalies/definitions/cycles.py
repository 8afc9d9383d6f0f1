"""The cycle anomalies: cyclic dependencies between transactions, by Adya's names as Elle uses them.

Kafka orders the records of a partition and hides uncommitted records; it does not isolate transactions in any other
way. Two transactions that write to two partitions may be interleaved differently in each, and a consumer may read old
records after newer ones of another partition. So a cycle breaks a promise only if all of its edges are read_committed
reads. Such a cycle is impossible: each transaction must have committed before the next one reads its records, and each
transaction reads before it commits.

The evidence of a cycle has two operations for each edge. An edge of process order or of real time has no operations of
its own, so the first operations of its two transactions are given. The record in the evidence is that of the first edge
with a record.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

from linearizability.anomalies.cycles.classes import G0, G1C, G2, G_SINGLE, REAL_TIME, Found, classify
from linearizability.anomalies.cycles.edges import EDGE_FACTS
from linearizability.anomalies.cycles.explain import evidence_of, evidence_of_unknown, text_of
from linearizability.anomalies.cycles.graph import Graph, graph_of
from linearizability.anomalies.merging import evidence_order
from linearizability.anomalies.whole_run import RunDefinition, WholeRun
from linearizability.judgement import EVIDENCE_MAX, Anomaly, Evidence, Verdict


def _cycles(run: WholeRun) -> tuple[Graph, list[Found]]:
    return classify(graph_of(run))


def _finder(name: str) -> Callable[[WholeRun], Iterable[Anomaly]]:
    def find(run: WholeRun) -> Iterable[Anomaly]:
        """Return at most one finding per verdict; each counts strongly connected components."""
        graph, everything = run.once(_cycles)
        for verdict in (Verdict.VIOLATION, Verdict.UNKNOWN, Verdict.PERMITTED):
            found = [own for own in everything if (own.name, own.verdict) == (name, verdict)]
            if found:
                yield Anomaly(name, verdict, len(found), _lowest_explained(run, graph, found))

    return find


def _lowest_explained(run: WholeRun, graph: Graph, found: Sequence[Found]) -> tuple[Evidence, ...]:
    transactions = run.context.transactions
    with_cycle = [own.cycle for own in found if own.cycle is not None]
    explained = iter(evidence_of(with_cycle, graph, transactions))
    pairs = [
        (evidence_of_unknown(own.start, graph, transactions) if own.cycle is None else next(explained), own.cycle)
        for own in found
    ]
    pairs.sort(key=lambda pair: evidence_order(pair[0]))
    return tuple(
        evidence if cycle is None else replace(evidence, text=text_of(cycle, graph, transactions))
        for evidence, cycle in pairs[:EVIDENCE_MAX]
    )


def _definition(name: str, text: str, levels: str, begins: str) -> RunDefinition:
    return RunDefinition(
        name=name,
        text=text,
        levels=levels,
        counted="strongly connected components",
        evidence=f"two for each edge of a shortest cycle, which begins with the lowest transaction that {begins}",
        find=_finder(name),
        facts=(EDGE_FACTS,),
    )


_PERMITTED: Final = "Permitted."
_NOT_PROMISED: Final = "Permitted: Kafka does not promise that transactions take effect in the order of real time."
_BUDGET: Final = " Unknown where the budget of the search ran out before it could distinguish this from `{}`."

CYCLES: Final = (
    _definition(G0, "Write-write edges form a cycle.", _PERMITTED, "lies on a cycle"),
    _definition(
        G1C,
        "Write-write and write-read edges form a cycle that has a write-read edge.",
        "A violation for each component of the graph that has only read_committed reads as edges; else permitted.",
        "is the source of a write-read edge",
    ),
    _definition(
        G_SINGLE,
        "A cycle of write-write and write-read edges with exactly one read-write edge.",
        _PERMITTED + _BUDGET.format(G2),
        "is the source of the read-write edge of such a cycle",
    ),
    _definition(
        G2,
        "Cycles of write-write, write-read and read-write edges, all of them with at least two read-write edges.",
        _PERMITTED,
        "is the source of a read-write edge",
    ),
    _definition(
        G0 + REAL_TIME,
        "Write-write and real-time edges form a cycle.",
        _NOT_PROMISED,
        "continues in real time",
    ),
    _definition(
        G1C + REAL_TIME,
        f"Real-time edges form a cycle with write-read edges, but no cycle without them (`{G0}{REAL_TIME}`).",
        _NOT_PROMISED,
        "continues in real time, but not on a cycle without write-read edges",
    ),
    _definition(
        G_SINGLE + REAL_TIME,
        "Real-time edges form a cycle with exactly one read-write edge, but no cycle without read-write edges.",
        _NOT_PROMISED + _BUDGET.format(G2 + REAL_TIME),
        "continues in real time on such a cycle",
    ),
    _definition(
        G2 + REAL_TIME,
        "Real-time edges form cycles with at least two read-write edges, but none with fewer.",
        _NOT_PROMISED,
        "continues in real time, but not on a cycle without read-write edges",
    ),
)
