"""The dependency graph of a run's transactions, merged from the edges of each log.

A node is a transaction with at least one edge; nodes are numbered by their first operation, so that the lowest number
is the lowest op_id. A transaction lasts from the invocation of its first operation until it is known to be committed.
That is when its commit returned; if the outcome of the commit is unknown, it is when the first read_committed read of
one of its records returned. *Real time* orders two transactions if one ended before the other began. There may be
quadratically many such pairs, so they are not edges here: their consequences are computed from the times. *Process*
order leads from a transaction to the first transaction of the same process that began after its commit was requested,
unless real time orders the two already.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from linearizability.anomalies.arrow import numbers
from linearizability.anomalies.columns import Flags, Indexes, Int8s, Int64s
from linearizability.anomalies.cycles.edges import EDGE_FACTS, EDGES, Kind, are_nodes
from linearizability.anomalies.faults import NEVER_NS
from linearizability.anomalies.transactions import Transactions
from linearizability.anomalies.whole_run import WholeRun

_NO_ROW: Final = -1


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes, and edges sorted by (source, target, kind), at most one for each of these triples."""

    transaction: Indexes
    """Per node, its index into the run's `Transactions`."""
    begin_ns: Int64s
    end_ns: Int64s
    source: Indexes
    target: Indexes
    kind: Int8s
    row: Indexes
    """The edge's row of `facts`; -1 for process order."""
    facts: pa.Table
    """Rows of EDGES."""

    def __len__(self) -> int:
        return len(self.transaction)

    def inside(self, component: Indexes, kinds: Flags) -> Flags:
        """Whether each edge is of a kind whose flag in `kinds` is set, and has both ends in one component."""
        within: Flags = kinds[self.kind] & (component[self.source] == component[self.target])
        return within


def graph_of(run: WholeRun) -> Graph:
    """Return the graph of a run."""
    transactions = run.context.transactions
    facts = _lowest_of_each(run.facts[EDGE_FACTS.name])
    source, target = numbers(facts["source"], 0), numbers(facts["target"], 0)
    touched = np.zeros(len(transactions), np.bool_)
    touched[source] = touched[target] = True
    touched &= are_nodes(transactions)
    transaction = np.flatnonzero(touched)
    transaction = transaction[np.argsort(transactions.first_op_id[transaction])]
    number = np.full(len(transactions), -1, np.int64)
    number[transaction] = np.arange(len(transaction))

    begin_ns = transactions.begin_ns[transaction]
    end_ns = np.maximum(transactions.open_until_ns[transaction], begin_ns)
    earlier, later = _process_order(transactions, transaction, begin_ns, end_ns)
    source, target = np.append(number[source], earlier), np.append(number[target], later)
    kind = np.append(numbers(facts["kind"], 0), np.full(len(earlier), Kind.PROCESS)).astype(np.int8)
    row = np.append(np.arange(facts.num_rows), np.full(len(earlier), _NO_ROW))
    order = np.lexsort((kind, target, source))
    return Graph(
        transaction, begin_ns, end_ns, source[order], target[order], kind[order], row[order].astype(np.intp), facts
    )


def _lowest_of_each(facts: pa.Table) -> pa.Table:
    """Return the lowest edge of each source, target and kind: by place, offset (unknown last), operations, value."""
    facts = facts.unify_dictionaries().combine_chunks()
    if not facts.num_rows:
        return EDGES.empty_table()
    most = int(pc.max(pc.max_element_wise(facts["source"], facts["target"])).as_py()) + 1
    key = (numbers(facts["source"], 0) * most + numbers(facts["target"], 0)) * len(Kind) + numbers(facts["kind"], 0)
    order: Indexes = np.argsort(key, kind="stable")
    again = np.diff(key[order], prepend=-1) == 0
    if again.any():
        shared: Flags = again | np.append(again[1:], False)
        several: Indexes = order[shared]
        lowest: Indexes = np.lexsort([column[several] for column in (*_places(facts), key)])
        order[shared] = several[lowest]
    return facts.take(pa.array(order[~again]))


def _places(facts: pa.Table) -> list[Int64s]:
    """Return the sort keys that select the lowest of several edges of a kind; the last key is the most significant."""
    topics = facts["topic"].chunk(0)
    rank = np.argsort(np.argsort(topics.dictionary.to_numpy(zero_copy_only=False).astype(np.str_)))
    names = ("value", "target_op", "source_op")
    return [
        *(numbers(facts[name], NEVER_NS) for name in names),
        numbers(facts["offset"], NEVER_NS),
        numbers(facts["partition"], 0),
        rank[topics.indices.to_numpy()].astype(np.int64),
    ]


def _process_order(
    transactions: Transactions, nodes: Indexes, begin_ns: Int64s, end_ns: Int64s
) -> tuple[Indexes, Indexes]:
    """Return the edges of process order: nodes, and the successor of each.

    Edges that real time implies are left out, so each successor began no later than its node was known to be committed.
    """
    process, requested_ns = transactions.process[nodes], transactions.commit_begun_ns[nodes]
    order = np.lexsort((np.arange(len(nodes)), begin_ns, process))
    codes = np.unique(process, return_inverse=True)[1].reshape(-1)
    times, rank = np.unique(np.append(begin_ns, requested_ns), return_inverse=True)
    span = len(times) + 1
    moment: Int64s = np.tile(codes, 2) * span + rank.reshape(-1)
    place: Indexes = np.searchsorted(moment[: len(nodes)][order], moment[len(nodes) :], side="right")
    earlier: Indexes = np.flatnonzero(place < len(order))
    later: Indexes = order[place[earlier]]
    kept = (process[earlier] == process[later]) & (begin_ns[later] <= end_ns[earlier])
    return earlier[kept], later[kept]
