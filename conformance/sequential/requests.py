"""Requests, built from steps by the schema of one version of the API."""

import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import ModuleType
from typing import Any, Final

from crc32c import crc32c

from conformance.sequential import admin_requests, group_requests
from conformance.sequential.layout import REQUEST_TIMEOUT_MS, Names, build, milliseconds, one_topic
from conformance.sequential.steps import (
    MAX_WAIT_MS,
    Batch,
    Broker,
    CreateTopic,
    DeleteRecords,
    DeleteTopic,
    DeleteTopicById,
    DescribeProducers,
    Fetch,
    Flaw,
    InitProducerId,
    ListOffsets,
    ListTransactions,
    Metadata,
    MetadataById,
    OffsetForLeaderEpoch,
    Produce,
    Producer,
    RawRequest,
    SessionFetch,
    Step,
)
from fixtures.clients.messages import ApiKey, api_name
from fixtures.clients.record_batch import HEADER_SIZE, RecordBatch, encode_batch

CONSUMER: Final = -1
"""The replica id of a consumer."""
_MAGIC_AT: Final = 16
"""Offset of the magic byte in a batch."""
_CHECKED_FROM: Final = 21
"""Offset of the bytes that the checksum covers."""
_SESSION_BYTES_MAX: Final = 1 << 20
"""Maximum size of the records of one partition in a `SessionFetch`, in bytes."""
_DURATIONS: Final = {
    "timeout": milliseconds(REQUEST_TIMEOUT_MS),
    "max_wait": milliseconds(MAX_WAIT_MS),
    "retention_time": milliseconds(-1),
    "session_timeout": milliseconds(30_000),
    "rebalance_timeout": milliseconds(30_000),
}
"""Default durations in a `RawRequest`; a script gives other values in milliseconds."""
_TRANSACTION_TIMEOUT: Final = "transaction_timeout"


def api_key(step: Step) -> ApiKey:
    """Return the API key of a step's request."""
    return step.api if isinstance(step, RawRequest) else _REQUESTS[type(step)][0]


def request(step: Step, schema: ModuleType, names: Names) -> Any:
    """Return the step's request. `schema` is the module of its API in the version to use."""
    message = getattr(schema, f"{api_name(api_key(step))}Request")
    if isinstance(step, RawRequest):
        transaction_timeout = milliseconds(names.transaction_timeout_ms)
        defaults = {**_DURATIONS, _TRANSACTION_TIMEOUT: transaction_timeout}
        return build(message, defaults | _resolved(step.fields, names))
    _, lay_out = _REQUESTS[type(step)]
    return build(message, lay_out(step, names))


def _resolved(value: Any, names: Names, field: str = "") -> Any:
    """Replace names, brokers and topic ids of a script by those of this run, and numbers by durations or metadata."""
    match value:
        case Mapping():
            return {name: _resolved(inner, names, name) for name, inner in value.items()}
        case tuple() | list():
            return tuple(_resolved(inner, names) for inner in value)
        case Broker():
            return str(names.broker(value.place)) if field == "resource_name" else names.broker(value.place)
        case Producer():
            return names.producer_id(value.place)
        case str():
            return names.real(value)
        case int() if field == "topic_id":
            return names.nth_topic_id(value)
        case int() if field in _DURATIONS or field == _TRANSACTION_TIMEOUT:
            return milliseconds(value)
        case int() if field == "committed_metadata":
            return "m" * value
    return value


def encode(batch: Batch, names: Names) -> bytes:
    """Return the bytes of a batch, with its flaw if it has one."""
    plain = RecordBatch(batch.records, compression=batch.compression, max_timestamp_ms=batch.max_timestamp_ms)
    if batch.producer is not None:
        plain = replace(
            plain,
            producer_id=names.producer_id(batch.producer),
            producer_epoch=batch.epoch,
            base_sequence=batch.sequence,
        )
    right = encode_batch(plain)
    return right if batch.flaw is None else _broken(batch.flaw, plain, right, len(batch.records))


def _broken(flaw: Flaw, plain: RecordBatch, right: bytes, count: int) -> bytes:
    match flaw:
        case Flaw.TRUNCATED | Flaw.DOUBLED:
            return right[:-1] if flaw is Flaw.TRUNCATED else right * 2
        case Flaw.WRONG_CRC:
            return encode_batch(plain, crc=int.from_bytes(right[17:21], "big") ^ 1)
        case Flaw.MAGIC_1 | Flaw.MAGIC_3:
            return right[:_MAGIC_AT] + (b"\1" if flaw is Flaw.MAGIC_1 else b"\3") + right[_MAGIC_AT + 1 :]
        case Flaw.CONTROL:
            return encode_batch(replace(plain, control=True))
        case Flaw.TRANSACTIONAL:
            return encode_batch(replace(plain, transactional=True))
        case Flaw.COUNT_TOO_HIGH:
            return encode_batch(plain, record_count=count + 1)
        case Flaw.OFFSETS_TOO_MANY:
            return encode_batch(replace(plain, last_offset_delta=count))
        case Flaw.COUNT_AND_OFFSETS:
            return encode_batch(replace(plain, last_offset_delta=count), record_count=count + 1)
        case Flaw.NO_SEQUENCE:
            return encode_batch(replace(plain, producer_id=2**40, producer_epoch=0, base_sequence=-1))
        case Flaw.GARBLED:
            checked = right[_CHECKED_FROM:HEADER_SIZE] + bytes(len(right) - HEADER_SIZE)
            return right[: _MAGIC_AT + 1] + crc32c(checked).to_bytes(4, "big") + checked


def _produce(step: Produce, names: Names) -> dict[str, Any]:
    records = b"".join(encode(batch, names) for batch in step.batches)
    return {
        "transactional_id": None,
        "acks": step.acks,
        "timeout": milliseconds(REQUEST_TIMEOUT_MS),
        "topic_data": [one_topic(step, names, {"records": records}, partitions="partition_data")],
    }


def _fetch(step: Fetch, names: Names) -> dict[str, Any]:
    partition = {
        "current_leader_epoch": step.leader_epoch,
        "fetch_offset": step.offset,
        "partition_max_bytes": step.partition_max_bytes,
    }
    return {
        "replica_id": CONSUMER,
        "max_wait": milliseconds(step.max_wait_ms),
        "min_bytes": step.min_bytes,
        "max_bytes": step.max_bytes,
        "isolation_level": int(step.read_committed),
        "topics": [one_topic(step, names, partition)],
        "forgotten_topics_data": (),
    }


def _session_fetch(step: SessionFetch, names: Names) -> dict[str, Any]:
    """Return a Fetch of a session. A new session has no id; the broker assigns it."""
    session_id, next_epoch = names.fetch_session
    name = names.real(step.topic)
    topic = {"topic": name, "topic_id": names.topic_id(step.topic)}
    added = [
        {"partition": index, "fetch_offset": offset, "partition_max_bytes": _SESSION_BYTES_MAX}
        for index, offset in step.partitions
    ]
    return {
        "replica_id": CONSUMER,
        "max_wait": milliseconds(MAX_WAIT_MS),
        "min_bytes": 0,
        "isolation_level": 0,
        "session_id": 0 if step.epoch == 0 else session_id,
        "session_epoch": next_epoch if step.epoch is None else step.epoch,
        "topics": [topic | {"partitions": added}] if added else [],
        "forgotten_topics_data": [topic | {"partitions": step.forgotten}] if step.forgotten else (),
    }


def _list_offsets(step: ListOffsets, names: Names) -> dict[str, Any]:
    partition = {"current_leader_epoch": step.leader_epoch, "timestamp": step.timestamp}
    return {
        "replica_id": CONSUMER,
        "isolation_level": int(step.read_committed),
        "topics": [one_topic(step, names, partition)],
        "timeout": milliseconds(REQUEST_TIMEOUT_MS),
    }


def _offset_for_leader_epoch(step: OffsetForLeaderEpoch, names: Names) -> dict[str, Any]:
    partition = {"current_leader_epoch": step.leader_epoch, "leader_epoch": step.epoch}
    return {"replica_id": CONSUMER, "topics": [one_topic(step, names, partition)]}


def _delete_records(step: DeleteRecords, names: Names) -> dict[str, Any]:
    topics = [one_topic(step, names, {"offset": step.offset})]
    return {"topics": topics, "timeout": milliseconds(REQUEST_TIMEOUT_MS)}


def _describe_producers(step: DescribeProducers, names: Names) -> dict[str, Any]:
    return {"topics": [{"name": names.real(step.topic), "partition_indexes": (step.partition,)}]}


def _init_producer_id(step: InitProducerId, names: Names) -> dict[str, Any]:
    transactional_id = None if step.transactional_id is None else names.real(step.transactional_id)
    return {"transactional_id": transactional_id, _TRANSACTION_TIMEOUT: milliseconds(names.transaction_timeout_ms)}


def _list_transactions(step: ListTransactions, names: Names) -> dict[str, Any]:
    return {"state_filters": step.states, "producer_id_filters": tuple(map(names.producer_id, step.producers))}


def _create_topic(step: CreateTopic, names: Names) -> dict[str, Any]:
    topic = {
        "name": names.real(step.topic),
        "num_partitions": step.partitions,
        "replication_factor": step.replication_factor,
        "assignments": [
            {"partition_index": index, "broker_ids": tuple(map(names.broker, brokers))}
            for index, brokers in step.assignments
        ],
        "configs": [{"name": name, "value": value} for name, value in step.configs],
    }
    return {"topics": [topic], "timeout": milliseconds(REQUEST_TIMEOUT_MS), "validate_only": step.validate_only}


def _delete_topic(step: DeleteTopic, names: Names) -> dict[str, Any]:
    name = names.real(step.topic)
    return {
        "topics": [{"name": name, "topic_id": uuid.UUID(int=0)}],
        "topic_names": (name,),
        "timeout": milliseconds(REQUEST_TIMEOUT_MS),
    }


def _delete_topic_by_id(step: DeleteTopicById, names: Names) -> dict[str, Any]:
    topic = {"name": None, "topic_id": names.nth_topic_id(step.topic_id)}
    return {"topics": [topic], "timeout": milliseconds(REQUEST_TIMEOUT_MS)}


def _metadata(step: Metadata, names: Names) -> dict[str, Any]:
    topics = step.topics
    return {
        "topics": None if topics is None else [{"topic_id": None, "name": names.real(name)} for name in topics],
        "allow_auto_topic_creation": False,
        "include_cluster_authorized_operations": step.with_operations,
        "include_topic_authorized_operations": step.with_operations,
    }


def _metadata_by_id(step: MetadataById, names: Names) -> dict[str, Any]:
    return {
        "topics": [{"topic_id": names.nth_topic_id(step.topic_id), "name": None}],
        "allow_auto_topic_creation": False,
        "include_cluster_authorized_operations": False,
        "include_topic_authorized_operations": False,
    }


_REQUESTS: Final[Mapping[type[Step], tuple[ApiKey, Callable[[Any, Names], dict[str, Any]]]]] = {
    Produce: (ApiKey.PRODUCE, _produce),
    Fetch: (ApiKey.FETCH, _fetch),
    SessionFetch: (ApiKey.FETCH, _session_fetch),
    ListOffsets: (ApiKey.LIST_OFFSETS, _list_offsets),
    OffsetForLeaderEpoch: (ApiKey.OFFSET_FOR_LEADER_EPOCH, _offset_for_leader_epoch),
    DeleteRecords: (ApiKey.DELETE_RECORDS, _delete_records),
    DescribeProducers: (ApiKey.DESCRIBE_PRODUCERS, _describe_producers),
    ListTransactions: (ApiKey.LIST_TRANSACTIONS, _list_transactions),
    InitProducerId: (ApiKey.INIT_PRODUCER_ID, _init_producer_id),
    CreateTopic: (ApiKey.CREATE_TOPICS, _create_topic),
    DeleteTopic: (ApiKey.DELETE_TOPICS, _delete_topic),
    DeleteTopicById: (ApiKey.DELETE_TOPICS, _delete_topic_by_id),
    Metadata: (ApiKey.METADATA, _metadata),
    MetadataById: (ApiKey.METADATA, _metadata_by_id),
    **group_requests.REQUESTS,
    **admin_requests.REQUESTS,
}
