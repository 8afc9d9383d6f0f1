"""Valid traffic of any size, generated column by column: the history of the producers and consumers of one topic.

A *step* is a batch that an idempotent producer sends with acks=all to a partition, and the read_committed poll that
returns it. Produces take some milliseconds and overlap; one in a thousand times out, and half of these batches are in
the log. Steps are generated in chunks, so that memory does not grow with the history: `Topic` is the state between two
chunks, and a chunk consists of tables of the public format. All random numbers come from the caller's generator.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from linearizability.history.schema import SCHEMAS

Int64s = npt.NDArray[np.int64]
Tables = Mapping[str, pa.Table]

TOPIC: Final = "orders"
TOPIC_ID: Final = "AAECAwQFBgcICQoLDA0ODw"
BATCH_RECORDS: Final = 10
"""Records that one produce sends and one poll returns."""
STEP_NS: Final = 1_000_000
PRODUCERS: Final = 8
FIRST_CONSUMER: Final = 1_000
"""Process id of the consumer of partition 0. The consumer of partition n has this id plus n."""
NODES: Final = 3
_MARGIN_NS: Final = 50_000
_LATENCY_NS: Final = (1_000_000, 12_000_000)
_TIMED_OUT: Final = 0.001
"""The share of produces that time out."""
_FIRST_TIMESTAMP_MS: Final = 1_760_000_000_000

CODED: Final = frozenset({"topic", "topic_id", "direction", "f", "outcome", "isolation", "cause", "source", "error"})
"""String columns with few distinct values: they are Arrow dictionaries, which Parquet writes unchanged."""


@dataclass(slots=True)
class Topic:
    """The state of a topic and its clients between two chunks."""

    end: Int64s
    """Per partition, the next offset of its log."""
    epoch: Int64s
    """Per partition, its leader epoch."""
    weights: npt.NDArray[np.float64]
    """Per partition, its share of the steps."""
    now_ns: int = 0
    next_op_id: int = 0
    next_value: int = 0
    next_timestamp_ms: int = field(default=_FIRST_TIMESTAMP_MS)

    @classmethod
    def of(cls, partitions: int, skew: float) -> "Topic":
        """Return an empty topic. Partition 0 gets the share `skew` of all records, but at least an even share."""
        rest = (1 - max(skew, 1 / partitions)) / max(1, partitions - 1)
        weights = np.full(partitions, rest)
        weights[0] = 1 - rest * (partitions - 1)
        return cls(np.zeros(partitions, np.int64), np.zeros(partitions, np.int64), weights)

    def node(self, partition: int) -> int:
        """Return the leader of a partition."""
        return partition % NODES + 1


@dataclass(frozen=True, slots=True)
class _Steps:
    """A chunk of batches, one element each, in the order of time."""

    partition: Int64s
    base: Int64s
    """The base offset."""
    acknowledged: npt.NDArray[np.bool_]
    stored: npt.NDArray[np.bool_]
    """Whether the batch is in the log."""
    op_id: Int64s
    """The id of the produce operation that sends the batch."""
    poll_id: Int64s
    """The id of the poll that returns the batch; valid only if the batch is stored."""
    invoke_ns: Int64s


def chunk(topic: Topic, steps: int, rng: np.random.Generator) -> Tables:
    """Return the next steps as tables, and advance `topic`."""
    made = _generate(topic, steps, rng)
    tables = {
        "operations": _operations(topic, made, rng),
        "records": _records(topic, made),
        "positions": _positions(topic, made),
    }
    stored = np.bincount(made.partition[made.stored], minlength=len(topic.end))
    topic.end += stored * BATCH_RECORDS
    topic.next_op_id += steps + int(made.stored.sum())
    topic.next_value += steps * BATCH_RECORDS
    topic.now_ns += steps * STEP_NS + _LATENCY_NS[1]
    topic.next_timestamp_ms += steps
    return {**tables, "states": _ends(topic)}


def _generate(topic: Topic, steps: int, rng: np.random.Generator) -> _Steps:
    partition = rng.choice(len(topic.weights), steps, p=topic.weights)
    acknowledged = rng.random(steps) >= _TIMED_OUT
    stored = acknowledged | (rng.random(steps) < 0.5)
    order = np.argsort(partition, kind="stable")
    counts = np.bincount(partition, minlength=len(topic.end))
    before: Int64s = np.cumsum(stored[order]) - stored[order]
    first = np.append(before, 0)[np.cumsum(counts) - counts]
    rank = np.empty(steps, np.int64)
    rank[order] = before - np.repeat(first, counts)
    polls: Int64s = np.cumsum(stored) - stored
    op_id = topic.next_op_id + np.arange(steps) + polls
    return _Steps(
        partition=partition,
        base=topic.end[partition] + rank * BATCH_RECORDS,
        acknowledged=acknowledged,
        stored=stored,
        op_id=op_id,
        poll_id=op_id + 1,
        invoke_ns=topic.now_ns + np.arange(steps) * STEP_NS,
    )


def _operations(topic: Topic, made: _Steps, rng: np.random.Generator) -> pa.Table:
    """Return a produce operation for each step, followed by a poll if the batch is stored."""
    steps, stored = len(made.op_id), np.flatnonzero(made.stored)
    at = made.op_id - topic.next_op_id
    polls = made.poll_id[stored] - topic.next_op_id
    count = steps + len(stored)
    is_poll = np.zeros(count, np.bool_)
    is_poll[polls] = True
    step = np.repeat(np.arange(steps), 1 + made.stored)
    invoke_ns = made.invoke_ns[step] + np.where(is_poll, STEP_NS // 2, rng.integers(0, _MARGIN_NS, count))
    took_ns = rng.integers(*_LATENCY_NS, count)
    took_ns[polls] = rng.integers(_MARGIN_NS, STEP_NS // 2 - _MARGIN_NS, len(polls))
    timed_out = np.zeros(count, np.bool_)
    timed_out[at[~made.acknowledged]] = True
    partition = made.partition[step]
    produces = ~is_poll
    return table_of(
        "operations",
        op_id=topic.next_op_id + np.arange(count),
        process=np.where(is_poll, FIRST_CONSUMER + partition, step % PRODUCERS),
        f=coded(is_poll, "produce", "poll"),
        invoke_ns=invoke_ns,
        complete_ns=invoke_ns + took_ns,
        outcome=coded(timed_out, "ok", "info"),
        error=coded(np.where(timed_out, 0, -1), "REQUEST_TIMED_OUT"),
        node=pa.array(partition % NODES + 1, mask=timed_out),
        producer_id=pa.array(step % PRODUCERS, mask=is_poll),
        producer_epoch=pa.array(np.zeros(count, np.int64), mask=is_poll),
        isolation=coded(np.where(is_poll, 0, -1), "read_committed"),
        acks=pa.array(np.full(count, -1), mask=is_poll),
        topic=coded(np.zeros(count), TOPIC),
        topic_id=coded(np.zeros(count), TOPIC_ID),
        partition=pa.array(partition, mask=~produces),
    )


def _records(topic: Topic, made: _Steps) -> pa.Table:
    """Return the records of each batch in the order of operations: as sent and, if the batch is stored, as read."""
    times = 1 + made.stored.astype(np.int64)
    step = np.repeat(np.arange(len(times)), times)
    is_read = np.zeros(len(step), np.bool_)
    is_read[made.poll_id[made.stored] - topic.next_op_id] = True
    seq = np.tile(np.arange(BATCH_RECORDS), len(step))
    row = np.repeat(step, BATCH_RECORDS)
    read = np.repeat(is_read, BATCH_RECORDS)
    return table_of(
        "records",
        op_id=np.repeat(np.where(is_read, made.poll_id[step], made.op_id[step]), BATCH_RECORDS),
        seq=seq,
        direction=coded(read, "send", "read"),
        topic=coded(np.zeros(len(row)), TOPIC),
        topic_id=coded(np.zeros(len(row)), TOPIC_ID),
        partition=made.partition[row],
        offset=pa.array(made.base[row] + seq, mask=~read & ~made.acknowledged[row]),
        value=topic.next_value + row * BATCH_RECORDS + seq,
        leader_epoch=pa.array(topic.epoch[made.partition[row]], mask=~read),
        timestamp_ms=topic.next_timestamp_ms + row,
        intact=np.ones(len(row), np.bool_),
    )


def _positions(topic: Topic, made: _Steps) -> pa.Table:
    """Return the positions of each poll, which passes over exactly its batch."""
    stored = made.stored
    after = made.base[stored] + BATCH_RECORDS
    count = len(after)
    return table_of(
        "positions",
        op_id=made.poll_id[stored],
        topic=coded(np.zeros(count), TOPIC),
        topic_id=coded(np.zeros(count), TOPIC_ID),
        partition=made.partition[stored],
        before=made.base[stored],
        after=after,
        cause=coded(np.zeros(count), "read"),
        high_watermark=after,
        last_stable_offset=after,
        log_start_offset=np.zeros(count, np.int64),
    )


def _ends(topic: Topic) -> pa.Table:
    """Return the end offset that the leader of each partition reports between two chunks."""
    count = len(topic.end)
    partition = np.arange(count)
    return table_of(
        "states",
        asked_ns=np.full(count, topic.now_ns - 2 * _MARGIN_NS),
        answered_ns=np.full(count, topic.now_ns - _MARGIN_NS),
        source=coded(np.zeros(count), "list_offsets"),
        isolation=coded(np.zeros(count), "read_uncommitted"),
        node=partition % NODES + 1,
        topic=coded(np.zeros(count), TOPIC),
        topic_id=coded(np.zeros(count), TOPIC_ID),
        partition=partition,
        leader=partition % NODES + 1,
        leader_epoch=topic.epoch.copy(),  # a copy, because Arrow does not copy arrays and the topic is updated
        high_watermark=topic.end.copy(),
    )


def coded(codes: npt.NDArray[np.generic], *values: str) -> pa.DictionaryArray:
    """Return a dictionary array with the value of each code, or null for a negative code."""
    own = codes.astype(np.int8)
    return pa.DictionaryArray.from_arrays(pa.array(own, mask=own < 0), pa.array(values))


def schema_of(name: str) -> pa.Schema:
    """Return the public schema of a table, except that `CODED` columns are dictionaries."""
    kind = pa.dictionary(pa.int8(), pa.string())
    return pa.schema([pa.field(f.name, kind) if f.name in CODED else f for f in SCHEMAS[name]])


def table_of(name: str, **columns: pa.Array | npt.NDArray[np.generic]) -> pa.Table:
    """Return a table with the schema of `schema_of`; columns without an argument are null."""
    count = len(next(iter(columns.values())))
    arrays = []
    for own in schema_of(name):
        column = columns.get(own.name)
        if column is None:
            arrays.append(pa.nulls(count, own.type))
        else:
            array = column if isinstance(column, pa.Array) else pa.array(column)
            arrays.append(array if array.type == own.type else array.cast(own.type))
    return pa.table(arrays, schema=schema_of(name))
