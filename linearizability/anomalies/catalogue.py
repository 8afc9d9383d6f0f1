"""The catalogue of anomalies, in the order of the documentation, and the judgement of a run.

The definitions in `ANOMALIES` concern one log and are judged shard by shard. Those in `RUN_ANOMALIES` span logs: each
shard is reduced to facts, which are merged and judged once. An engine calls `judge_shard` for every shard, in any
process, and `judge_run` with all results.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from linearizability.anomalies.aborted_read import ABORTED_READ
from linearizability.anomalies.columns import READ_COMMITTED, LogColumns
from linearizability.anomalies.commit_lost import COMMIT_LOST
from linearizability.anomalies.commit_regress import COMMIT_REGRESS
from linearizability.anomalies.context import Context
from linearizability.anomalies.corrupt_record import CORRUPT_RECORD
from linearizability.anomalies.cycles.definitions import CYCLES
from linearizability.anomalies.cycles.edges import EDGE_FACTS
from linearizability.anomalies.definition import Definition
from linearizability.anomalies.divergent_offset import DIVERGENT_OFFSET
from linearizability.anomalies.double_ownership import DOUBLE_OWNERSHIP
from linearizability.anomalies.duplicate import DUPLICATE
from linearizability.anomalies.epoch_regress import EPOCH_REGRESS
from linearizability.anomalies.fenced_leader_write import FENCED_LEADER_WRITE
from linearizability.anomalies.log import PartitionLog
from linearizability.anomalies.lost_write import LOST_WRITE
from linearizability.anomalies.not_converged import NOT_CONVERGED
from linearizability.anomalies.offset_mismatch import OFFSET_MISMATCH
from linearizability.anomalies.phantom_read import PHANTOM_READ
from linearizability.anomalies.poll_regress import POLL_REGRESS
from linearizability.anomalies.poll_skip import POLL_SKIP
from linearizability.anomalies.precommitted_read import PRECOMMITTED_READ
from linearizability.anomalies.producer_order import PRODUCER_ORDER
from linearizability.anomalies.read_above_watermark import READ_ABOVE_WATERMARK
from linearizability.anomalies.realtime_order import REALTIME_ORDER
from linearizability.anomalies.reprocessed_input import REPROCESSED_INPUT
from linearizability.anomalies.stale_end_offset import STALE_END_OFFSET
from linearizability.anomalies.torn_transaction import FACTS as TORN_TRANSACTION_FACTS
from linearizability.anomalies.torn_transaction import TORN_TRANSACTION
from linearizability.anomalies.two_leaders import TWO_LEADERS
from linearizability.anomalies.unavailable import OUTAGE_FACTS, UNAVAILABLE, VOTER_FACTS
from linearizability.anomalies.unseen import UNSEEN
from linearizability.anomalies.watermark_regress import WATERMARK_REGRESS
from linearizability.anomalies.whole_run import Facts, FactTables, RunDefinition, WholeRun, gather_facts, merge_facts
from linearizability.anomalies.zombie_producer import ZOMBIE_PRODUCER
from linearizability.judgement import Anomaly

ANOMALIES: Final[tuple[Definition, ...]] = (
    LOST_WRITE,
    DIVERGENT_OFFSET,
    DUPLICATE,
    PHANTOM_READ,
    ABORTED_READ,
    PRECOMMITTED_READ,
    OFFSET_MISMATCH,
    CORRUPT_RECORD,
    PRODUCER_ORDER,
    REALTIME_ORDER,
    POLL_SKIP,
    POLL_REGRESS,
    STALE_END_OFFSET,
    WATERMARK_REGRESS,
    READ_ABOVE_WATERMARK,
    EPOCH_REGRESS,
    TWO_LEADERS,
    FENCED_LEADER_WRITE,
    COMMIT_LOST,
    COMMIT_REGRESS,
    DOUBLE_OWNERSHIP,
    REPROCESSED_INPUT,
    NOT_CONVERGED,
    UNSEEN,
)


RUN_ANOMALIES: Final[tuple[RunDefinition, ...]] = (TORN_TRANSACTION, ZOMBIE_PRODUCER, UNAVAILABLE, *CYCLES)
FACTS: Final[tuple[Facts, ...]] = (TORN_TRANSACTION_FACTS, OUTAGE_FACTS, VOTER_FACTS, EDGE_FACTS)
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
    """Return every finding of a run, given the judgements of its shards; `transactional`: `WholeRun.transactional`."""
    whole = merge_shards(shards)
    run = WholeRun(context, transactional, whole.facts)
    yield from whole.findings
    for anomaly in RUN_ANOMALIES:
        yield from anomaly.find(run)


def _partition_logs(logs: Sequence[LogColumns], context: Context) -> Iterable[PartitionLog]:
    ambiguous = [log for log in logs if context.is_ambiguous(log.topic, log.topic_id)]
    for rows in logs:
        # Sends to an ambiguous log may have been to this one; sends to any may have been to an ambiguous one.
        others = [log for log in (logs if rows in ambiguous else ambiguous) if log is not rows]
        values = [log.sends.value[log.sends.valued] for log in others]
        yield PartitionLog(rows, context, np.unique(np.concatenate(values)) if values else None)


def first_committed_reads(log: PartitionLog) -> dict[int, int]:
    """Return, by index of undecided transaction, when a read_committed read first returned one of its records."""
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
