"""Summary of a run: the data about the whole run that the judgement of a shard needs, reduced batch by batch.

`summarise` reduces a batch of a table, `merge_summaries` merges any number of summaries in any order, and `context_of`
builds the `Context` from the summary of the whole run. Engines differ only in where they call these functions.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from linearizability.anomalies.columns import Int64s
from linearizability.anomalies.context import Context, Deletion, LogStartRequest
from linearizability.anomalies.faults import NEVER_NS, faults_from_rows
from linearizability.anomalies.groups import GROUP_FIELDS, Groups, groups_of, last_seen_ns, merge_groups
from linearizability.anomalies.merging import merge_anomalies
from linearizability.anomalies.producers import TRANSACTIONAL_FIELDS, TRANSACTIONAL_ROWS, transactional_rows
from linearizability.anomalies.settings import Settings
from linearizability.anomalies.transactions import FENCING_ROWS, TRANSACTION_ROWS, transactions_from_rows
from linearizability.anomalies.whole_run import concatenate
from linearizability.history.positions import MOVES
from linearizability.history.run import RunInfo
from linearizability.judgement import Anomaly, Judgement

_TOPIC: Final = ("topic", "topic_id")
_MOVES_REPLICAS: Final = ".*(reassign|unregister|decommission|remove_broker).*"
SUMMARY_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "operations": tuple(dict.fromkeys((*TRANSACTIONAL_FIELDS, *GROUP_FIELDS, "topic_id", "offset"))),
    "records": (*_TOPIC, "direction"),
    "positions": _TOPIC,
    "states": _TOPIC,
    "offsets": _TOPIC,
    "inputs": _TOPIC,
    "assignments": (*_TOPIC, "process", "at_ns"),
}  # fmt: skip
"""The columns that a summary reads of each table."""


_NO_TRANSACTION: Final = TRANSACTION_ROWS.empty_table()
_NO_FENCING: Final = FENCING_ROWS.empty_table()
_NONE_TRANSACTIONAL: Final = TRANSACTIONAL_ROWS.empty_table()


@dataclass(frozen=True, slots=True)
class Summary:
    """Summary of a part of a run, or of all of it."""

    operations: int = 0
    records: int = 0
    reads: int = 0
    """Number of rows of `records` with the direction `read`."""
    positions: int = 0
    topic_ids: frozenset[tuple[str, str]] = frozenset()
    transaction_rows: pa.Table = field(default_factory=lambda: _NO_TRANSACTION)
    fencing: pa.Table = field(default_factory=lambda: _NO_FENCING)
    transactional: pa.Table = field(default_factory=lambda: _NONE_TRANSACTIONAL)
    groups: Groups = field(default_factory=Groups)
    deletions: tuple[Deletion, ...] = ()
    log_start_requests: tuple[LogStartRequest, ...] = ()
    moved_topics: frozenset[str | None] = frozenset()
    """See `Context.moved_topics`."""
    moves: tuple[tuple[int, int], ...] = ()
    """(process, time) of each operation in MOVES and each assignment event: after it a consumer may read elsewhere."""
    producers_opened: tuple[tuple[int, int], ...] = ()
    """(process, op_id) of every init_producer_id."""


def summarise(name: str, table: pa.Table) -> Summary:
    """Return the summary of rows of a table, with the columns that `SUMMARY_FIELDS` names for it."""
    if name == "operations":
        return _operations_summary(table)
    topic_ids = _topic_ids(table)
    if name == "records":
        reads = int(pc.sum(pc.equal(table["direction"], "read")).as_py() or 0)
        return Summary(records=table.num_rows, reads=reads, topic_ids=topic_ids)
    if name == "assignments":
        distinct = table.group_by(["process", "at_ns"], use_threads=False).aggregate([])
        moves = tuple(zip(distinct["process"].to_pylist(), distinct["at_ns"].to_pylist(), strict=True))
        return Summary(topic_ids=topic_ids, moves=moves, groups=Groups(last_seen_ns=last_seen_ns(table, "at_ns")))
    return Summary(positions=table.num_rows if name == "positions" else 0, topic_ids=topic_ids)


def merge_summaries(summaries: Iterable[Summary]) -> Summary:
    """Merge the summaries of the parts of a run."""
    parts = list(summaries)
    return Summary(
        operations=sum(part.operations for part in parts),
        records=sum(part.records for part in parts),
        reads=sum(part.reads for part in parts),
        positions=sum(part.positions for part in parts),
        topic_ids=frozenset().union(*(part.topic_ids for part in parts)),
        transaction_rows=_grouped_transactions([part.transaction_rows for part in parts]),
        fencing=_grouped_fencing([part.fencing for part in parts]),
        transactional=concatenate(TRANSACTIONAL_ROWS, [part.transactional for part in parts]),
        groups=merge_groups(part.groups for part in parts),
        deletions=tuple(deletion for part in parts for deletion in part.deletions),
        log_start_requests=tuple(request for part in parts for request in part.log_start_requests),
        moved_topics=frozenset().union(*(part.moved_topics for part in parts)),
        moves=tuple(move for part in parts for move in part.moves),
        producers_opened=tuple(opened for part in parts for opened in part.producers_opened),
    )


def settings_of(run: RunInfo, faults: pa.Table) -> Settings:
    """Return a run's settings, as its faults change them."""
    return Settings(run.topics, run.cluster, faults_from_rows(faults.to_pylist()))


def context_of(run: RunInfo, settings: Settings, summary: Summary) -> Context:
    """Return the context of a run's shards. Transactions whose outcome depends on reads are still undecided."""
    ids: dict[str, list[str]] = defaultdict(list)
    for topic, topic_id in sorted(summary.topic_ids):
        ids[topic].append(topic_id)
    return Context(
        complete=run.complete,
        settings=settings,
        transactions=transactions_from_rows(summary.transaction_rows, summary.fencing),
        topic_ids={topic: tuple(own) for topic, own in ids.items()},
        deletions=summary.deletions,
        log_start_requests=summary.log_start_requests,
        moves_ns=_by_process(summary.moves),
        producers_opened=_by_process(summary.producers_opened),
        derives_positions=not summary.positions,
        clients=run.clients,
        groups=summary.groups,
        moved_topics=summary.moved_topics,
    )


def _by_process(pairs: Iterable[tuple[int, int]]) -> dict[int, Int64s]:
    """Return the numbers of each process, sorted, given pairs (process, number)."""
    numbers: dict[int, list[int]] = defaultdict(list)
    for process, number in pairs:
        numbers[process].append(number)
    return {process: np.array(sorted(own), np.int64) for process, own in numbers.items()}


def judgement_of(run: RunInfo, summary: Summary, findings: Iterable[Anomaly]) -> Judgement:
    """Return the judgement on a run: at best unknown if the run is unfinished, or has no operations or no reads."""
    reasons = list(run.unfinished_reasons)
    if not summary.operations and not summary.records:
        reasons.append("the history has no operations")
    elif not summary.reads:
        reasons.append("nothing was read")
    return Judgement(summary.operations, summary.records, merge_anomalies(findings), tuple(reasons))


def _operations_summary(table: pa.Table) -> Summary:
    moves = table.filter(pc.is_in(table["f"], value_set=pa.array(MOVES)))
    opened = table.filter(pc.equal(table["f"], "init_producer_id"))
    return Summary(
        operations=table.num_rows,
        topic_ids=_topic_ids(table),
        transaction_rows=_transaction_rows(table),
        fencing=_fencing(table),
        transactional=transactional_rows(table),
        groups=groups_of(table),
        deletions=tuple(
            Deletion(row["topic"], row["topic_id"], row["invoke_ns"], _ended_ns(row["outcome"], row["complete_ns"]))
            for row in _may_have_happened(table, "delete_topic")
            if row["topic"] is not None
        ),
        log_start_requests=tuple(
            LogStartRequest(row["topic"], row["topic_id"], row["partition"], row["offset"], row["invoke_ns"])
            for row in _may_have_happened(table, "delete_records")
            if None not in (row["topic"], row["partition"], row["offset"])
        ),
        moved_topics=frozenset(row["topic"] for row in _may_have_happened(table, _MOVES_REPLICAS)),
        moves=tuple(zip(moves["process"].to_pylist(), moves["invoke_ns"].to_pylist(), strict=True)),
        producers_opened=tuple(zip(opened["process"].to_pylist(), opened["op_id"].to_pylist(), strict=True)),
    )


def _topic_ids(table: pa.Table) -> frozenset[tuple[str, str]]:
    known = table.select(["topic", "topic_id"]).filter(
        pc.and_(pc.is_valid(table["topic"]), pc.is_valid(table["topic_id"]))
    )
    distinct = known.group_by(["topic", "topic_id"], use_threads=False).aggregate([])
    return frozenset(zip(distinct["topic"].to_pylist(), distinct["topic_id"].to_pylist(), strict=True))


def _may_have_happened(table: pa.Table, f: str) -> list[dict[str, Any]]:
    """Return the rows of `operations` that may have succeeded; `f`: a regular expression for the whole name."""
    mask = pc.and_(pc.match_substring_regex(table["f"], f"^({f})$"), pc.not_equal(table["outcome"], "fail"))
    rows: list[dict[str, Any]] = table.filter(mask).to_pylist()
    return rows


def _ended_ns(outcome: object, complete_ns: object) -> int:
    """Return the latest time at which an operation may have taken effect; NEVER_NS if its outcome is unknown."""
    return complete_ns if outcome == "ok" and isinstance(complete_ns, int) else NEVER_NS


def _transaction_rows(table: pa.Table) -> pa.Table:
    rows = table.filter(pc.is_valid(table["txn_seq"]))
    return _grouped_transactions(
        [
            pa.table(
                [
                    rows["process"].cast(pa.int64()),
                    rows["txn_seq"],
                    rows["f"],
                    rows["outcome"],
                    rows["txn_id"],
                    rows["op_id"],
                    rows["invoke_ns"],
                    pc.fill_null(rows["complete_ns"], NEVER_NS),
                ],
                schema=TRANSACTION_ROWS,
            )
        ]
    )


def _grouped_transactions(tables: Sequence[pa.Table]) -> pa.Table:
    rows = concatenate(TRANSACTION_ROWS, tables)
    if not rows.num_rows:
        return rows
    grouped = rows.group_by(["process", "txn_seq", "f", "outcome"], use_threads=False).aggregate(
        [("txn_id", "min"), ("first_op_id", "min"), ("invoke_ns", "min"), ("complete_ns", "min")]
    )
    return grouped.rename_columns(TRANSACTION_ROWS.names).cast(TRANSACTION_ROWS)


def _fencing(table: pa.Table) -> pa.Table:
    rows = table.filter(pc.and_(pc.equal(table["f"], "init_producer_id"), pc.is_valid(table["txn_id"])))
    return _grouped_fencing([pa.table([rows["txn_id"], rows["op_id"]], schema=FENCING_ROWS)])


def _grouped_fencing(tables: Sequence[pa.Table]) -> pa.Table:
    rows = concatenate(FENCING_ROWS, tables)
    if not rows.num_rows:
        return rows
    grouped = rows.group_by("txn_id", use_threads=False).aggregate([("last_op_id", "max")])
    return grouped.rename_columns(FENCING_ROWS.names)
