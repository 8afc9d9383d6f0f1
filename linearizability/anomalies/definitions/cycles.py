"""The cycle anomalies: cyclic dependencies between transactions, with the names of Adya and Elle.

Kafka orders the records of a partition and hides uncommitted records; it does not isolate transactions in any other
way. Two transactions that write to two partitions may be interleaved differently in each, and a consumer may read old
records after newer ones of another partition. So a cycle breaks a promise only if all of its edges are write-read edges
by read_committed reads. Kafka makes such a cycle impossible: a transaction reads before it commits, and it can read the
records of the previous transaction in the cycle only after that one has committed.

Write-write, write-read and read-write edges are [dependencies](#dependencies-between-transactions) between
transactions. In the definitions of the realtime anomalies, process order counts as
[real time](#real-time-order-of-transactions), and a transaction *continues in real time* on a cycle if a real-time edge
leads from it to the next transaction.

The evidence of a cycle has two operations for each edge. For a real-time edge, they are the first operations of the two
transactions that it connects. The evidence has the record of the first edge with a record.
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
        """Yield at most one anomaly per verdict; its count is the number of strongly connected components."""
        graph, components = run.once(_cycles)
        for verdict in (Verdict.VIOLATION, Verdict.UNKNOWN, Verdict.PERMITTED):
            found = [each for each in components if (each.name, each.verdict) == (name, verdict)]
            if found:
                yield Anomaly(name, verdict, len(found), _lowest_evidence(run, graph, found))

    return find


def _lowest_evidence(run: WholeRun, graph: Graph, found: Sequence[Found]) -> tuple[Evidence, ...]:
    """Return the evidence of the first few components. Only this evidence gets a text."""
    transactions = run.context.transactions
    cycles = [each.cycle for each in found if each.cycle is not None]
    evidence_by_cycle = iter(evidence_of(cycles, graph, transactions))
    pairs = [
        (
            evidence_of_unknown(each.start, graph, transactions) if each.cycle is None else next(evidence_by_cycle),
            each.cycle,
        )
        for each in found
    ]
    pairs.sort(key=lambda pair: evidence_order(pair[0]))
    return tuple(
        evidence if cycle is None else replace(evidence, text=text_of(cycle, graph, transactions))
        for evidence, cycle in pairs[:EVIDENCE_MAX]
    )


def _definition(name: str, text: str, levels: str, first: str) -> RunDefinition:
    """Return a definition.

    :param first: the transaction with which the cycle in the evidence begins.
    """
    return RunDefinition(
        name=name,
        text=text,
        levels=levels,
        counted="strongly connected components",
        evidence=f"two for each edge of a shortest cycle, which begins with the lowest {first}",
        find=_finder(name),
        facts=(EDGE_FACTS,),
    )


_PERMITTED: Final = "Permitted."
_NOT_PROMISED: Final = "Permitted: Kafka does not promise that transactions take effect in the order of real time."
_BUDGET: Final = " Unknown if the search used up its budget before it could distinguish the cycle from `{}`."
_SUCH_TRANSACTION: Final = "transaction with this property"

CYCLES: Final = (
    _definition(G0, "Write-write edges form a cycle.", _PERMITTED, "transaction on such a cycle"),
    _definition(
        G1C,
        "Write-write and write-read edges form a cycle that has a write-read edge.",
        "A violation if all edges of the cycle are write-read edges by read_committed reads; otherwise permitted.",
        "source of a write-read edge on such a cycle",
    ),
    _definition(
        G_SINGLE,
        "A cycle of write-write, write-read and read-write edges has exactly one read-write edge.",
        _PERMITTED + _BUDGET.format(G2),
        "source of the read-write edge of such a cycle",
    ),
    _definition(
        G2,
        "A cycle of write-write, write-read and read-write edges has at least two read-write edges, and no cycle of its"
        " component has exactly one.",
        _PERMITTED,
        "source of a read-write edge on such a cycle",
    ),
    _definition(
        G0 + REAL_TIME,
        "A transaction continues in real time on a cycle of write-write and real-time edges.",
        _NOT_PROMISED,
        _SUCH_TRANSACTION,
    ),
    _definition(
        G1C + REAL_TIME,
        "A transaction continues in real time on a cycle of write-write, write-read and real-time edges, but on no such"
        " cycle without write-read edges.",
        _NOT_PROMISED,
        _SUCH_TRANSACTION,
    ),
    _definition(
        G_SINGLE + REAL_TIME,
        "A transaction continues in real time on a cycle with exactly one read-write edge, but on no cycle without"
        " read-write edges.",
        _NOT_PROMISED + _BUDGET.format(G2 + REAL_TIME),
        _SUCH_TRANSACTION,
    ),
    _definition(
        G2 + REAL_TIME,
        "A transaction continues in real time on a cycle, but only on cycles with at least two read-write edges.",
        _NOT_PROMISED,
        _SUCH_TRANSACTION,
    ),
)
