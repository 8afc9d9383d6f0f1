"""Model of Produce, InitProducerId and DescribeProducers: what is appended, at which offsets, and errors.

The rules are in the order in which Kafka applies them: the request (`KafkaApis`) first, then the batch and its records
(`LogValidator`), and the producer's sequence (`ProducerAppendInfo`). A rejected batch changes nothing.
"""

from dataclasses import replace
from typing import Any, Final

from conformance.sequential.expectation import Expectation, OneOf
from conformance.sequential.model.cluster import (
    BATCHES_REMEMBERED,
    AppendedSequence,
    ModelCluster,
    Partition,
    ProducerState,
    StoredBatch,
    Topic,
)
from conformance.sequential.model.unknown import unknown_partition
from conformance.sequential.response import ReadRecord
from conformance.sequential.steps import Batch, DescribeProducers, Flaw, InitProducerId, ListTransactions, Produce
from fixtures.clients.record_batch import Compression, RecordBatch, encode_batch

_VALID_ACKS: Final = (-1, 0, 1)
_MAX_MESSAGE_BYTES: Final = 1_048_588
"""Kafka's default of `max.message.bytes`: 1 MiB plus the 12 bytes that a batch's length does not count."""

_EMPTY: Final = "Empty"
"""State of a transactional id whose producer has not begun a transaction."""
_NO_OFFSET: Final = -1
_WITHOUT_LOG_START: Final = ("CORRUPT_MESSAGE", "INVALID_REQUIRED_ACKS", "MESSAGE_TOO_LARGE")
"""Errors that Kafka returns without the log start offset; with others it depends on where a batch was rejected."""

_FLAW_ERRORS: Final = {
    Flaw.WRONG_CRC: "CORRUPT_MESSAGE",
    Flaw.MAGIC_1: "INVALID_RECORD",
    Flaw.TRUNCATED: "INVALID_RECORD",
    Flaw.COUNT_TOO_HIGH: "INVALID_RECORD",
    Flaw.MAGIC_3: "CORRUPT_MESSAGE",
    Flaw.CONTROL: "INVALID_RECORD",
    Flaw.OFFSETS_TOO_MANY: "INVALID_RECORD",
    Flaw.COUNT_AND_OFFSETS: "INVALID_RECORD",
    Flaw.NO_SEQUENCE: "INVALID_RECORD",
    Flaw.DOUBLED: "INVALID_RECORD",
    Flaw.TRANSACTIONAL: "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
    Flaw.GARBLED: OneOf(("INVALID_RECORD", "UNKNOWN_SERVER_ERROR"), "Apache Kafka's error depends on the codec"),
}

FAR_FUTURE_MS: Final = 32_503_680_000_000
"""The year 3000: rejected under every `message.timestamp.after.max.ms` that a script sets."""
LONG_AGO_MS: Final = 1_000_000_000
"""January 1970: rejected under every `message.timestamp.before.max.ms` that a script sets."""
_UNLIMITED_MS: Final = str(2**63 - 1)
"""Kafka's default of `message.timestamp.before.max.ms`."""
_ZSTD_SINCE: Final = 7
"""The version of Produce since which batches may be compressed with zstd (KIP-110)."""


def init_producer_id(cluster: ModelCluster, step: InitProducerId) -> Expectation:
    """Return a new producer id, at epoch 0; for a known transactional id, its producer at the next epoch (KIP-98)."""
    known = cluster.transactional_ids.get(step.transactional_id) if step.transactional_id else None
    if known is None:
        known = (cluster.producers, -1)
        cluster.producers += 1
    producer, epoch = known
    if step.transactional_id:
        cluster.transactional_ids[step.transactional_id] = (producer, epoch + 1)
    return {"error": "NONE", "producer": producer, "producer_epoch": epoch + 1}


def list_transactions(cluster: ModelCluster, step: ListTransactions) -> Expectation:
    """List the transactional id, unless its state or its producer is none of those to list."""
    known = cluster.transactional_ids.get(step.transactional_id)
    if known is None or _EMPTY not in (step.states or {_EMPTY}) or known[0] not in (step.producers or {known[0]}):
        return {"error": "NONE", "listed": 0}
    return {"error": "NONE", "listed": 1, "state": _EMPTY, "producer": known[0]}


def describe_producers(cluster: ModelCluster, step: DescribeProducers) -> Expectation:
    """Return the last batch of each producer in the partition; none of them has a transaction (KIP-664)."""
    partition = cluster.partition(step.topic, step.partition)
    if partition is None:
        return {"error": unknown_partition(cluster, step)}
    producers = (
        (producer, state.epoch, state.recent[-1].last_sequence, _last_timestamp(partition, producer), _NO_OFFSET)
        for producer, state in partition.producers.items()
    )
    return {"error": "NONE", "producers": tuple(sorted(producers))}


def _last_timestamp(partition: Partition, producer: int) -> int:
    """Return the maximum timestamp of the producer's last batch. The timestamps are those of the client."""
    last = next(batch for batch in reversed(partition.batches) if batch.producer[0] == producer)
    return max(record.timestamp_ms or 0 for record in last.records)


def produce(cluster: ModelCluster, step: Produce) -> Expectation:
    """Return the base offset, or the error and -1; no response for acks=0."""
    expectation = _response(cluster, step)
    return {"has_response": False} if step.acks == 0 else expectation


def _response(cluster: ModelCluster, step: Produce) -> Expectation:
    if any(batch.flaw is Flaw.TRANSACTIONAL for batch in step.batches[:1]):
        return _rejected(_FLAW_ERRORS[Flaw.TRANSACTIONAL])
    partition = cluster.partition(step.topic, step.partition, step.topic_id)
    if partition is None:
        return _rejected(unknown_partition(cluster, step))
    if error := _malformed(step.batches):
        return _rejected(error, log_start_offset=-1)
    if step.acks not in _VALID_ACKS:
        return _rejected("INVALID_REQUIRED_ACKS")
    (batch,) = step.batches
    if batch.compression is Compression.ZSTD and step.version is not None and step.version < _ZSTD_SINCE:
        return _rejected("UNSUPPORTED_COMPRESSION_TYPE")
    if batch.flaw is not None:
        return _rejected(_FLAW_ERRORS[batch.flaw])
    topic = cluster.topics[step.topic]
    size = batch_size_bytes(batch)
    if size > int(topic.properties.get("max.message.bytes", _MAX_MESSAGE_BYTES)):
        return _rejected("MESSAGE_TOO_LARGE")
    if rejection := _rejected_records(topic, batch):
        return rejection
    return _appended_in_sequence(topic, partition, batch, size)


def _rejected(error: Any, **more: Any) -> Expectation:
    start = {"log_start_offset": -1} if error in _WITHOUT_LOG_START else {}
    return {"error": error, "base_offset": -1, "log_append_time": "none"} | start | more


def _malformed(batches: tuple[Batch, ...]) -> str | None:
    """Return the error unless there is exactly one whole batch, not of an older magic. This is checked before acks."""
    if len(batches) != 1 or batches[0].flaw in {Flaw.MAGIC_1, Flaw.TRUNCATED}:
        return "INVALID_RECORD"
    return None


def batch_size_bytes(batch: Batch) -> int:
    """Return the size of the batch in bytes. It does not depend on the producer, whose fields have a fixed width."""
    return len(encode_batch(RecordBatch(records=batch.records, compression=batch.compression)))


def _rejected_records(topic: Topic, batch: Batch) -> Expectation | None:
    """Return the rejection of a batch with invalid records, and their indexes (KIP-467); None if all are valid."""
    if "compact" in topic.properties.get("cleanup.policy", ""):
        keyless = tuple(place for place, record in enumerate(batch.records) if record.key is None)
        if keyless:
            return _rejected("INVALID_RECORD", record_errors=keyless)
    if _is_limited(topic, "message.timestamp.after.max.ms"):
        late = tuple(place for place, record in enumerate(batch.records) if record.timestamp_ms >= FAR_FUTURE_MS)
        if late:
            return _rejected("INVALID_TIMESTAMP", record_errors=late)
    if _is_limited(topic, "message.timestamp.before.max.ms"):
        early = tuple(place for place, record in enumerate(batch.records) if record.timestamp_ms <= LONG_AGO_MS)
        if early:
            return _rejected("INVALID_TIMESTAMP", record_errors=early)
    return None


def _appended_in_sequence(topic: Topic, partition: Partition, batch: Batch, size: int) -> Expectation:
    """Check epoch and sequence (KIP-98, KIP-360): a duplicate, a gap, an old epoch, or the next in order.

    A producer that the partition does not know may begin with any sequence number.
    """
    if batch.producer is None:
        return _appended(topic, partition, batch, size)
    state = partition.producers.get(batch.producer)
    if state is not None and batch.epoch < state.epoch:
        return _rejected("INVALID_PRODUCER_EPOCH")
    is_unknown = state is None
    if state is None or batch.epoch > state.epoch:
        state = ProducerState(batch.epoch)
    for seen in state.recent:
        if (seen.first_sequence, seen.last_sequence) == (batch.sequence, batch.last_sequence):
            again = _acknowledged(topic, partition, seen.base_offset)
            # Apache Kafka returns a time here even with CreateTime: the newest timestamp of the retained batch.
            return {field: value for field, value in again.items() if field != "log_append_time"}
    if batch.sequence != state.next_sequence and not is_unknown:
        return _rejected("OUT_OF_ORDER_SEQUENCE_NUMBER")
    remembered = AppendedSequence(batch.sequence, batch.last_sequence, partition.log_end_offset)
    state.recent = [*state.recent, remembered][-BATCHES_REMEMBERED:]
    partition.producers[batch.producer] = state
    return _appended(topic, partition, batch, size)


def _appended(topic: Topic, partition: Partition, batch: Batch, size: int) -> Expectation:
    base_offset = partition.log_end_offset
    records = tuple(
        ReadRecord(base_offset + place, record.value, record.key, record.timestamp_ms, record.headers)
        for place, record in enumerate(batch.records)
    )
    if _sets_append_time(topic):
        records = tuple(replace(record, timestamp_ms=None) for record in records)
    stored = StoredBatch(records, size, partition.leader_epoch, _codec(topic, batch))
    if batch.producer is not None:
        stored = replace(stored, producer=(batch.producer, batch.epoch, batch.sequence))
    partition.batches.append(stored)
    return _acknowledged(topic, partition, base_offset)


def _acknowledged(topic: Topic, partition: Partition, base_offset: int) -> Expectation:
    return {
        "error": "NONE",
        "base_offset": base_offset,
        "log_start_offset": partition.log_start_offset,
        "log_append_time": "set" if _sets_append_time(topic) else "none",
        "record_errors": (),
    }


def _codec(topic: Topic, batch: Batch) -> str:
    """Return the codec of the topic's `compression.type`, or the producer's."""
    match topic.properties.get("compression.type", "producer"):
        case "producer":
            return batch.compression.name.lower()
        case "uncompressed":
            return "none"
        case codec:
            return codec


def _is_limited(topic: Topic, name: str) -> bool:
    return topic.properties.get(name, _UNLIMITED_MS) != _UNLIMITED_MS


def _sets_append_time(topic: Topic) -> bool:
    return topic.properties.get("message.timestamp.type") == "LogAppendTime"
