"""The catalogue of anomalies: the definitions in the modules of `definitions`, and the judgement of a run.

The definitions in `ANOMALIES` concern one log and are judged shard by shard; here a shard is one topic partition. Those
in `RUN_ANOMALIES` span logs: each shard is reduced to facts, which are merged and judged once. An engine calls
`judge_shard` for every shard, in any process, and `judge_run` with all results.
"""

import importlib
import pkgutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from linearizability.anomalies import definitions
from linearizability.anomalies.columns import READ_COMMITTED, LogColumns
from linearizability.anomalies.context import Context
from linearizability.anomalies.definition import Definition
from linearizability.anomalies.log import PartitionLog
from linearizability.anomalies.whole_run import FactTables, RunDefinition, WholeRun, gather_facts, merge_facts
from linearizability.judgement import Anomaly


def _definitions() -> Iterator[Definition | RunDefinition]:
    """Yield the definitions by the name of their module, and within a module in the order of its source."""
    for found in pkgutil.iter_modules(definitions.__path__, f"{definitions.__name__}."):
        for value in vars(importlib.import_module(found.name)).values():
            yield from (each for each in _listed(value) if isinstance(each, Definition | RunDefinition))


def _listed(value: object) -> tuple[object, ...]:
    """Return the elements of a tuple, because a module may define several anomalies in one; else the value itself."""
    return value if isinstance(value, tuple) else (value,)


DEFINITIONS: Final = tuple(_definitions())
ANOMALIES: Final = tuple(each for each in DEFINITIONS if isinstance(each, Definition))
RUN_ANOMALIES: Final = tuple(each for each in DEFINITIONS if isinstance(each, RunDefinition))
FACTS: Final = tuple({facts.name: facts for each in RUN_ANOMALIES for facts in each.facts}.values())
"""The facts from which `RUN_ANOMALIES` are judged."""


@dataclass(frozen=True, slots=True)
class ShardJudgement:
    """The findings and facts of some shards; picklable, so that a worker can return it."""

    findings: tuple[Anomaly, ...]
    facts: FactTables


def judge_shard(logs: Sequence[LogColumns], context: Context) -> ShardJudgement:
    """Judge one topic partition: all logs of a topic name and partition, one per topic id."""
    partitions = list(_partition_logs(logs, context))
    findings = tuple(finding for log in partitions for anomaly in ANOMALIES for finding in anomaly.find(log))
    return ShardJudgement(findings, gather_facts(FACTS, partitions))


def merge_shards(parts: Iterable[ShardJudgement]) -> ShardJudgement:
    """Merge the judgements of shards, given in any order."""
    whole = list(parts)
    findings = tuple(finding for part in whole for finding in part.findings)
    return ShardJudgement(findings, merge_facts(FACTS, [part.facts for part in whole]))


def judge_run(shards: Iterable[ShardJudgement], transactional: pa.Table, context: Context) -> Iterable[Anomaly]:
    """Yield every finding of a run, given the judgements of its shards.

    `transactional` is the table of `WholeRun.transactional`.
    """
    whole = merge_shards(shards)
    run = WholeRun(context, transactional, whole.facts)
    yield from whole.findings
    for anomaly in RUN_ANOMALIES:
        yield from anomaly.find(run)


def _partition_logs(logs: Sequence[LogColumns], context: Context) -> Iterable[PartitionLog]:
    ambiguous = [log for log in logs if context.is_ambiguous(log.topic, log.topic_id)]
    for rows in logs:
        # The topic id of rows in an ambiguous log is unknown. Therefore its sends may explain reads in every other log
        # of the topic name, and the sends of every other log may explain its reads.
        others = [log for log in (logs if rows in ambiguous else ambiguous) if log is not rows]
        values = [log.sends.value[log.sends.valued] for log in others]
        yield PartitionLog(rows, context, np.unique(np.concatenate(values)) if values else None)


def first_committed_reads(log: PartitionLog) -> dict[int, int]:
    """Return the time of the first read_committed read of each undecided transaction, by transaction index."""
    records, operations = log.records, log.rows.operations
    transaction = records.transaction[log.read_ids]
    rows = np.flatnonzero((transaction >= 0) & (operations.isolation[log.rows.reads.operation] == READ_COMMITTED))
    rows = rows[log.context.transactions.undecided[transaction[rows]]]
    first: dict[int, int] = {}
    for index in np.unique(transaction[rows]):
        readers = log.rows.reads.operation[rows[transaction[rows] == index]]
        first[int(index)] = int(operations.complete_ns[readers].min())
    return first


def merge_first_reads(first: dict[int, int], other: Mapping[int, int]) -> None:
    """Merge another log's first reads into `first`, keeping the earliest."""
    for index, read_ns in other.items():
        first[index] = min(read_ns, first.get(index, read_ns))
