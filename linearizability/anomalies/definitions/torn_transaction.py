"""`torn-transaction`: reads returned a part of a transaction (KIP-98: atomic writes to several partitions).

Choices. All read_committed reads of a run are judged together, so a transaction is not torn if one of its records was
only read late. A record is missing if none of these reads returned it, and a read that covers its offset shows it lost
by the rules of `lost-write`. A record of unknown offset counts as covered only if one of these reads returned it. A
record that was neither acknowledged nor read counts as not sent. If the rows of a topic may belong to several
incarnations, nothing in it counts as covered.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa

from linearizability.anomalies.columns import NO_OFFSET, READ_COMMITTED, Flags, Indexes, Int64s
from linearizability.anomalies.definition import op, value_of
from linearizability.anomalies.log import PartitionLog
from linearizability.anomalies.loss import Pairs, judge_pairs, pairs_at, unreturned
from linearizability.anomalies.promise import NOT_PROMISED
from linearizability.anomalies.whole_run import Facts, RunDefinition, WholeRun, run_finding
from linearizability.judgement import Anomaly, Evidence, Verdict

NAME = "torn-transaction"

_SCHEMA: Final = pa.schema(
    [
        pa.field("transaction", pa.int32()),
        pa.field("reader", pa.int64()),
        pa.field("covered", pa.bool_()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("sender", pa.int64()),
        pa.field("value", pa.int64()),
        pa.field("skipped_by", pa.int64()),
        pa.field("promised", pa.bool_()),
    ]
)
"""Per transaction and log: the lowest read that returned one of its records, whether all were covered, and the lowest
record that is missing (a promised one before others), with the lowest read that misses it."""


def _reduce(log: PartitionLog) -> pa.Table:
    records, reads, operations = log.records, log.rows.reads, log.rows.operations
    committed = np.flatnonzero(records.committed & ~records.aborted & (records.transaction >= 0))
    if not len(committed):
        return _SCHEMA.empty_table()
    no_reader = len(operations)
    reader = np.full(len(records), no_reader, np.int64)
    committed_read = operations.isolation[reads.operation] == READ_COMMITTED
    np.minimum.at(reader, log.read_ids[committed_read], reads.operation[committed_read])
    covered = _is_covered(log) | (reader < no_reader)

    transactions, group = np.unique(records.transaction[committed], return_inverse=True)
    lowest = np.full(len(transactions), no_reader, np.int64)
    np.minimum.at(lowest, group, reader[committed])
    all_covered = np.full(len(transactions), not log.ambiguous)
    np.logical_and.at(all_covered, group, covered[committed])
    missing = np.zeros(len(records), np.bool_)
    missing[committed] = (reader[committed] == no_reader) & (not log.ambiguous)
    found = dict(_missing(log, missing))
    rows = [found.get(int(transaction), {}) for transaction in transactions] if found else []
    op_ids = np.append(operations.op_id, -1)[lowest]
    columns = {
        "transaction": transactions,
        "reader": pa.array(op_ids, mask=lowest == no_reader),
        "covered": all_covered,
        **{
            name: pa.array([row.get(name) for row in rows] or pa.nulls(len(transactions)), _SCHEMA.field(name).type)
            for name in _SCHEMA.names[3:]
        },
    }
    return pa.table(columns, schema=_SCHEMA)


def _is_covered(log: PartitionLog) -> Flags:
    """Whether a read_committed read covers the offset of each record."""
    coverage, offset = log.coverage, log.records.offset
    stable = log.rows.operations.isolation[coverage.operation] == READ_COMMITTED
    begun = np.searchsorted(np.sort(coverage.before[stable]), offset, side="right")
    ended = np.searchsorted(np.sort(coverage.after[stable]), offset, side="right")
    covered: Flags = (begun > ended) & (offset != NO_OFFSET)
    return covered


def _missing(log: PartitionLog, candidates: Flags) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield, per transaction with missing records, the columns of _SCHEMA for the lowest one (promised ones first)."""
    records = log.records
    shown, promised = np.zeros(len(records), np.bool_), np.zeros(len(records), np.bool_)

    def done() -> Flags:
        found: Flags = promised | (shown & (records.promise_end_ns == NOT_PROMISED))
        return found

    for pairs in unreturned(log, candidates & (records.offset != NO_OFFSET), done):
        lost, kept = _judge(log, pairs)
        shown[pairs.record[lost]] = True
        promised[pairs.record[kept]] = True
    rows: Indexes = np.flatnonzero(shown)
    keys: list[Int64s] = [records.value, records.send_operation.astype(np.int64), records.offset]
    order = rows[np.lexsort([*(key[rows] for key in keys), ~promised[rows], records.transaction[rows]])]
    for record in order[np.flatnonzero(np.diff(records.transaction[order], prepend=-1))]:
        offset, is_promised = int(records.offset[record]), bool(promised[record])
        record_pairs = pairs_at(log, np.array([record]), np.array([offset]))
        skipping_reads = [
            int(pairs.reader[kept if is_promised else lost].min(initial=len(log.rows.operations)))
            for pairs in record_pairs
            for lost, kept in [_judge(log, pairs)]
        ]
        yield (
            int(records.transaction[record]),
            {
                "topic": log.rows.topic,
                "partition": log.rows.partition,
                "offset": offset,
                "sender": op(log, int(records.send_operation[record])),
                "value": value_of(log, record),
                "skipped_by": op(log, min(skipping_reads)),
                "promised": is_promised,
            },
        )


def _judge(log: PartitionLog, pairs: Pairs) -> tuple[Flags, Flags]:
    """Judge pairs as `loss.judge_pairs` does, for read_committed reads that cover the offset."""
    shown, promised = judge_pairs(log, pairs)
    counts = pairs.covering & (log.rows.operations.isolation[pairs.reader] == READ_COMMITTED)
    return shown & counts, promised & counts


def find(run: WholeRun) -> Iterable[Anomaly]:
    """Return the findings; each counts transactions."""
    rows = run.facts[NAME]
    transaction, missing = rows["transaction"].to_numpy(), rows["skipped_by"].is_valid().to_numpy()
    torn = np.zeros(len(run.context.transactions), np.bool_)
    torn[transaction[missing]] = True
    torn[transaction[~rows["covered"].to_numpy()]] = False
    evidence: dict[Verdict, list[Evidence]] = {Verdict.VIOLATION: [], Verdict.PERMITTED: []}
    for parts in _by_transaction(rows.filter(pa.array(torn[transaction]))):
        readers = [row["reader"] for row in parts if row["reader"] is not None]
        if readers:
            lost = min((row for row in parts if row["skipped_by"] is not None), key=_order)
            verdict = Verdict.VIOLATION if lost["promised"] else Verdict.PERMITTED
            evidence[verdict].append(_evidence(lost, min(readers)))
    for verdict, shown in evidence.items():
        yield from run_finding(NAME, verdict, shown)


def _by_transaction(rows: pa.Table) -> Iterable[list[dict[str, Any]]]:
    parts: dict[int, list[dict[str, Any]]] = {}
    for row in rows.to_pylist():
        parts.setdefault(row["transaction"], []).append(row)
    return parts.values()


def _order(row: dict[str, Any]) -> tuple[Any, ...]:
    return not row["promised"], row["topic"], row["partition"], row["offset"], row["sender"], row["value"] or 0


def _evidence(lost: dict[str, Any], reader: int) -> Evidence:
    what = "a tombstone" if lost["value"] is None else f"value {lost['value']}"
    text = (
        f"operation {reader} returned a record of a committed transaction, but {what} of it ({lost['topic']}-"
        f"{lost['partition']} at offset {lost['offset']}), sent by operation {lost['sender']}, was not returned by"
        f" operation {lost['skipped_by']}, which read past it, nor by any other read_committed read"
    )
    op_ids = (lost["sender"], lost["skipped_by"], reader)
    return Evidence(op_ids, lost["topic"], lost["partition"], lost["offset"], lost["value"], text)


TORN_TRANSACTION = RunDefinition(
    name=NAME,
    text="Read_committed reads covered every offset of a committed transaction. They returned some of its records, but"
    " not others that must be present.",
    levels="A violation if a missing record was promised when a read missed it, else permitted.",
    counted="transactions",
    evidence="the produce of the lowest missing record, the lowest read that misses it, and the lowest read that"
    " returned another record of the transaction",
    find=find,
    facts=(Facts(NAME, _SCHEMA, _reduce),),
)
