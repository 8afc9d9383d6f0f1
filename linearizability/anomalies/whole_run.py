"""Anomalies that span topic partitions: their definition, and the facts from which they are judged.

No engine holds a whole run at once. Each log is reduced to *facts*, an Arrow table with few rows, often none. The
definition is then applied once, to the context and the tables of all shards, concatenated in any order. Facts
name operations by op_id, because a shard's indexes have no meaning outside it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pyarrow as pa

from linearizability.anomalies.context import Context
from linearizability.anomalies.log import PartitionLog
from linearizability.anomalies.merging import lowest_evidence
from linearizability.history.schema import empty_table
from linearizability.judgement import Anomaly, Evidence, Verdict

FactTables = Mapping[str, pa.Table]
"""Facts by the name of their kind."""


@dataclass(frozen=True, slots=True)
class Facts:
    """One kind of facts: the reduction of a log to rows of a schema."""

    name: str
    schema: pa.Schema
    reduce: Callable[[PartitionLog], pa.Table]


Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class WholeRun:
    """The facts and context of a run, after every shard was reduced."""

    context: Context
    transactional: pa.Table
    """Operations with a transactional id: rows of `producers.TRANSACTIONAL_ROWS`, in no particular order."""
    facts: FactTables
    _results: dict[Callable[..., Any], Any] = field(default_factory=dict)

    def once(self, function: Callable[["WholeRun"], Result]) -> Result:
        """Return a function's result for the run, computed on first use."""
        if function not in self._results:
            self._results[function] = function(self)
        result: Result = self._results[function]
        return result


@dataclass(frozen=True, slots=True)
class RunDefinition:
    """One anomaly of the whole run; its texts are those of `definition.Definition`."""

    name: str
    text: str
    levels: str
    counted: str
    evidence: str
    find: Callable[[WholeRun], Iterable[Anomaly]]
    facts: tuple[Facts, ...] = ()
    """The facts that `find` needs."""


def gather_facts(kinds: Iterable[Facts], logs: Sequence[PartitionLog]) -> FactTables:
    """Return the facts of some logs."""
    return merge_facts(kinds, [{kind.name: kind.reduce(log) for kind in kinds} for log in logs])


def merge_facts(kinds: Iterable[Facts], parts: Sequence[FactTables]) -> FactTables:
    """Merge the facts of the parts of a run."""
    return {kind.name: concatenate(kind.schema, [part[kind.name] for part in parts]) for kind in kinds}


def concatenate(schema: pa.Schema, tables: Iterable[pa.Table]) -> pa.Table:
    """Return the rows of tables with one schema; most of the tables are empty."""
    filled = [table for table in tables if table.num_rows]
    if len(filled) == 1:
        return filled[0]
    return pa.concat_tables(filled) if filled else empty_table(schema)


def run_finding(name: str, verdict: Verdict, evidence: Sequence[Evidence]) -> Iterable[Anomaly]:
    """Yield the finding of one verdict, if there is any, given one piece of evidence for each counted item."""
    if evidence:
        yield Anomaly(name, verdict, len(evidence), lowest_evidence(evidence))
