"""Anomalies that cross topic partitions: what such a definition is, and what it is given.

No engine holds a whole run at once. Each shard is reduced to *facts*, an Arrow table with few rows for each transaction
or none; the tables of all shards, one below the other in any order, and the context are what the definition then judges
once. Facts name operations by op_id, since a shard's indexes mean nothing outside it.
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
    """One kind of facts: how a log is reduced to rows of a schema."""

    name: str
    schema: pa.Schema
    reduce: Callable[[PartitionLog], pa.Table]


Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class WholeRun:
    """All that is known of a run once every shard has been looked at."""

    context: Context
    transactional: pa.Table
    """Operations with a transactional id: rows of `producers.TRANSACTIONAL_ROWS`, in no particular order."""
    facts: FactTables
    _results: dict[Callable[..., Any], Any] = field(default_factory=dict)

    def once(self, of: Callable[["WholeRun"], Result]) -> Result:
        """What a function makes of the run, computed for the first check that asks."""
        if of not in self._results:
            self._results[of] = of(self)
        result: Result = self._results[of]
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


def gather_facts(kinds: Iterable[Facts], logs: Sequence[PartitionLog]) -> FactTables:
    """The facts of some logs."""
    return merge_facts(kinds, [{kind.name: kind.reduce(log) for kind in kinds} for log in logs])


def merge_facts(kinds: Iterable[Facts], parts: Sequence[FactTables]) -> FactTables:
    """The facts of the whole of which these are of the parts."""
    return {kind.name: below_each_other(kind.schema, [part[kind.name] for part in parts]) for kind in kinds}


def below_each_other(schema: pa.Schema, tables: Iterable[pa.Table]) -> pa.Table:
    """The rows of tables of a schema, most of which have none."""
    filled = [table for table in tables if table.num_rows]
    if len(filled) == 1:
        return filled[0]
    return pa.concat_tables(filled) if filled else empty_table(schema)


def run_finding(name: str, verdict: Verdict, evidence: Sequence[Evidence]) -> Iterable[Anomaly]:
    """The finding of one verdict, if there is any: one piece of evidence for each item counted."""
    if evidence:
        yield Anomaly(name, verdict, len(evidence), lowest_evidence(evidence))
