"""Evidence and explanation of a cycle of transactions: the transactions, and the reason for each edge."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from linearizability.anomalies.cycles.edges import Kind
from linearizability.anomalies.cycles.graph import Graph
from linearizability.anomalies.cycles.search import Cycle, Step
from linearizability.anomalies.transactions import Transactions
from linearizability.judgement import Evidence

_STEPS_SHOWN: Final = 6
"""The maximum number of edges that the text of a cycle describes."""


def evidence_of(cycles: Sequence[Cycle], graph: Graph, transactions: Transactions) -> list[Evidence]:
    """Return the evidence of each cycle, without its text.

    It has two operations per edge, and the record of the first edge that has one.
    """
    rows_used = [step.row for cycle in cycles for step in cycle if step.row >= 0]
    facts = dict(zip(rows_used, graph.facts.take(pa.array(rows_used, pa.int64())).to_pylist(), strict=True))
    first = transactions.first_op_id[graph.transaction].tolist()
    found = []
    for cycle in cycles:
        rows = [facts.get(step.row, _first_operations(step, first)) for step in cycle]
        record = next(row for row in rows if "topic" in row)
        op_ids = tuple(row[end] for row in rows for end in ("source_op", "target_op"))
        found.append(Evidence(op_ids, record["topic"], record["partition"], record["offset"], record["value"], ""))
    return found


def _first_operations(step: Step, first: Sequence[int]) -> dict[str, Any]:
    return {"source_op": first[step.source], "target_op": first[step.target]}


def text_of(cycle: Cycle, graph: Graph, transactions: Transactions) -> str:
    """Return the explanation of a cycle: its transactions, then one clause per edge."""
    names = {step.source: f"T{number}" for number, step in enumerate(cycle, 1)}
    shown = cycle[:_STEPS_SHOWN]
    nodes = ", ".join(f"{names[step.source]} ({_described(step.source, graph, transactions)})" for step in shown)
    clauses = "; ".join(_CLAUSES[step.kind](names, step, _fact(graph, step.row)) for step in shown)
    if len(cycle) == len(shown):
        return f"{nodes}: {clauses}"
    return f"a cycle of {len(cycle)} transactions, {nodes} and so on: {clauses}; and so on, back to T1"


def evidence_of_unknown(start: int, graph: Graph, transactions: Transactions) -> Evidence:
    """Return the evidence for a component in which the budget ran out."""
    text = (
        f"{_described(start, graph, transactions)} is on a cycle with read-write edges; the search reached its"
        " limit before it determined whether one of those cycles has exactly one read-write edge"
    )
    return Evidence((int(transactions.first_op_id[graph.transaction[start]]),), None, None, None, None, text)


def _described(node: int, graph: Graph, transactions: Transactions) -> str:
    index = graph.transaction[node]
    return (
        f"transaction {int(transactions.txn_seq[index])} of process {int(transactions.process[index])}, starting with"
        f" operation {int(transactions.first_op_id[index])}"
    )


def _fact(graph: Graph, row: int) -> dict[str, Any]:
    """Return the row of EDGES for an edge; empty for an edge without one."""
    found: dict[str, Any] = graph.facts.slice(row, 1).to_pylist()[0] if row >= 0 else {}
    return found


def _record(row: Mapping[str, Any]) -> str:
    what = "a tombstone" if row["value"] is None else f"value {row['value']}"
    where = f"{row['topic']}-{row['partition']}"
    return f"{what} ({where})" if row["offset"] is None else f"{what} ({where} at offset {row['offset']})"


def _write_write(names: Mapping[int, str], step: Step, row: Mapping[str, Any]) -> str:
    return (
        f"{names[step.target]} wrote {_record(row)}, in operation {row['target_op']}, directly after what"
        f" {names[step.source]} wrote in operation {row['source_op']}"
    )


def _write_read(names: Mapping[int, str], step: Step, row: Mapping[str, Any]) -> str:
    return (
        f"{names[step.target]} read {_record(row)}, in operation {row['target_op']}, which {names[step.source]} wrote"
        f" in operation {row['source_op']}"
    )


def _read_write(names: Mapping[int, str], step: Step, row: Mapping[str, Any]) -> str:
    return (
        f"{names[step.source]}, in operation {row['source_op']}, read all records before {_record(row)}, which"
        f" {names[step.target]} wrote in operation {row['target_op']}"
    )


def _process(names: Mapping[int, str], step: Step, _: Mapping[str, Any]) -> str:
    return f"{names[step.target]} is the next transaction of its process after {names[step.source]}"


def _real_time(names: Mapping[int, str], step: Step, _: Mapping[str, Any]) -> str:
    return f"{names[step.source]} had ended before {names[step.target]} began"


_CLAUSES: Final[Mapping[Kind, Callable[[Mapping[int, str], Step, Mapping[str, Any]], str]]] = {
    Kind.WRITE_WRITE: _write_write,
    Kind.COMMITTED_WRITE_READ: _write_read,
    Kind.WRITE_READ: _write_read,
    Kind.READ_WRITE: _read_write,
    Kind.PROCESS: _process,
    Kind.REAL_TIME: _real_time,
}
