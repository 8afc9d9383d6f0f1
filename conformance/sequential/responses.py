"""Conversion of responses to plain values (`response`): dispatch by step, and the APIs of records and topics.

The conversion for group APIs, admin APIs and raw requests is in `group_responses`, `admin_responses` and
`raw_responses`.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from kio.schema.errors import ErrorCode

from conformance.sequential import admin_responses, group_responses
from conformance.sequential.admin_responses import partition_state
from conformance.sequential.raw_responses import raw_response
from conformance.sequential.real_values import Comparison
from conformance.sequential.response import (
    DESCRIBE,
    NO_OPERATIONS,
    ReadRecord,
    Response,
    Symbols,
    WrongPartitionsError,
    error_of,
    is_topic,
    malformed,
    only_partition,
    plain_fields,
    racks,
)
from conformance.sequential.steps import (
    CreateTopic,
    DeleteRecords,
    DeleteTopic,
    DeleteTopicById,
    DescribeProducers,
    Fetch,
    InitProducerId,
    ListOffsets,
    ListTransactions,
    Metadata,
    MetadataById,
    OffsetForLeaderEpoch,
    Produce,
    RawRequest,
    SessionFetch,
    Step,
)
from fixtures.clients.record_batch import MalformedBatch, RecordBatch, TimestampType, decode_batches
from fixtures.clients.topic_names import INTERNAL_TOPICS

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def normalise(step: Step, response: Any, symbols: Symbols) -> Response:
    """Return the response to a step as plain values."""
    try:
        return _NORMALISERS[type(step)](step, response, symbols)
    except WrongPartitionsError as error:
        return malformed(error)


def _produce(step: Produce, response: Any, symbols: Symbols) -> Response:
    partition = only_partition(step, response.responses, symbols, "partition_responses")
    values = {"error": error_of(partition.error_code)} | plain_fields(partition, "base_offset", "log_start_offset")
    values["log_append_time"] = "none" if partition.log_append_time is None else "set"
    if partition.log_append_time is not None:
        time_ms = (partition.log_append_time - _EPOCH) // timedelta(milliseconds=1)
        symbols.saw_append_time(step, int(partition.base_offset), time_ms)
    if hasattr(partition, "record_errors"):
        values["record_errors"] = tuple(error.batch_index for error in partition.record_errors)
    return values | _current_leader(response, partition, symbols)


def _fetch(step: Fetch, response: Any, symbols: Symbols) -> Response:
    top_level = error_of(response.error_code) if hasattr(response, "error_code") else "NONE"
    if top_level != "NONE":
        return {"error": top_level}
    partition = only_partition(step, response.responses, symbols)
    data = partition.records or b""
    try:
        batches = tuple(decode_batches(data))
    except MalformedBatch as error:
        return malformed(error)
    values: dict[str, Any] = {"error": error_of(partition.error_code), "records": _records(batches), "size": len(data)}
    values["leader_epochs"] = tuple(batch.leader_epoch for batch in batches)
    values["producers"] = tuple(
        (symbols.producer(batch.producer_id), batch.producer_epoch, batch.base_sequence) for batch in batches
    )
    values["append_times"] = _append_times(step, batches, symbols)
    values["max_timestamps"] = _max_timestamps(batches)
    if _is_whole_log(partition, batches):
        symbols.saw_log_size(step, len(data))
    values["codecs"] = tuple(batch.compression.name.lower() for batch in batches)
    values |= _current_leader(response, partition, symbols)
    return values | plain_fields(partition, "high_watermark", "last_stable_offset", "log_start_offset")


def _session_fetch(step: SessionFetch, response: Any, symbols: Symbols) -> Response:
    """Return the error, or the partitions of the response and whether it belongs to a session.

    Each response without an error advances the session's epoch by one (KIP-227).
    """
    error = error_of(getattr(response, "error_code", ErrorCode.none))
    if error != "NONE":
        return {"error": error}
    _, epoch = symbols.fetch_session
    session_id = getattr(response, "session_id", 0)
    if step.epoch == 0:
        symbols.saw_fetch_session(session_id, 1)
    elif step.epoch is None:
        symbols.saw_fetch_session(session_id, epoch + 1)
    if not all(is_topic(step, topic, symbols) for topic in response.responses):
        return {"malformed": "the response has another topic than the requested one"}
    partitions = [part for topic in response.responses for part in topic.partitions]
    try:
        returned = sorted(map(_in_session, partitions))
    except MalformedBatch as malformed_batch:
        return malformed(malformed_batch)
    return {"error": error, "has_session": session_id != 0, "partitions": tuple(returned)}


def _in_session(partition: Any) -> tuple[int, str, tuple[int | None, ...], int]:
    """Return index, error, offsets of the records and high watermark of a partition."""
    batches = decode_batches(partition.records or b"")
    offsets = tuple(record.offset for batch in batches for record in batch.records)
    return int(partition.partition_index), error_of(partition.error_code), offsets, int(partition.high_watermark)


def _is_whole_log(partition: Any, batches: tuple[RecordBatch, ...]) -> bool:
    """Whether the batches are those from offset 0 to the high watermark, and offset 0 is the log start."""
    if not batches or getattr(partition, "log_start_offset", None) != 0:
        return False
    return (batches[0].base_offset, batches[-1].next_offset) == (0, partition.high_watermark)


def _append_times(step: Fetch, batches: tuple[RecordBatch, ...], symbols: Symbols) -> Comparison:
    """Compare the timestamps of LogAppendTime batches with those in their Produce responses."""
    by_broker = (batch for batch in batches if batch.timestamp_type is TimestampType.LOG_APPEND_TIME)
    times = ((batch, symbols.append_time(step, batch.base_offset)) for batch in by_broker)
    others = [
        f"at offset {batch.base_offset}, Produce returned {returned}, Fetch {batch.max_timestamp_ms}"
        for batch, returned in times
        if returned not in {None, batch.max_timestamp_ms}
    ]
    return Comparison("others", "; ".join(others)) if others else Comparison("as returned")


def _max_timestamps(batches: tuple[RecordBatch, ...]) -> Comparison:
    """Compare the maximum timestamps of CreateTime batches with the newest timestamps of their records, if any."""
    by_client = (batch for batch in batches if batch.timestamp_type is TimestampType.CREATE_TIME and batch.records)
    newest = ((batch, max(record.timestamp_ms for record in batch.records)) for batch in by_client)
    others = [
        f"at offset {batch.base_offset}, the batch has {batch.max_timestamp_ms}, its newest record {timestamp_ms}"
        for batch, timestamp_ms in newest
        if batch.max_timestamp_ms != timestamp_ms
    ]
    return Comparison("others", "; ".join(others)) if others else Comparison("of the newest records")


def _current_leader(response: Any, partition: Any, symbols: Symbols) -> dict[str, Any]:
    """Return the leader, and the brokers with a correct address in the response (KIP-951); empty in older versions."""
    if not hasattr(partition, "current_leader") or not hasattr(response, "node_endpoints"):
        return {}
    named = partition.current_leader
    endpoints = [node for node in response.node_endpoints if symbols.is_address(node.node_id, node.host, node.port)]
    return {
        "current_leader": (symbols.place(int(named.leader_id)), int(named.leader_epoch)),
        "endpoints": tuple(symbols.place(int(node.node_id)) for node in endpoints),
    }


def _records(batches: tuple[RecordBatch, ...]) -> tuple[ReadRecord, ...]:
    return tuple(
        ReadRecord(
            offset=-1 if record.offset is None else record.offset,
            value=record.value,
            key=record.key,
            timestamp_ms=record.timestamp_ms if batch.timestamp_type is TimestampType.CREATE_TIME else None,
            headers=record.headers,
        )
        for batch in batches
        for record in batch.records
    )


def _list_offsets(step: ListOffsets, response: Any, symbols: Symbols) -> Response:
    partition = only_partition(step, response.topics, symbols)
    return {"error": error_of(partition.error_code)} | plain_fields(partition, "timestamp", "offset", "leader_epoch")


def _offset_for_leader_epoch(step: OffsetForLeaderEpoch, response: Any, symbols: Symbols) -> Response:
    partition = only_partition(step, response.topics, symbols)
    return {"error": error_of(partition.error_code)} | plain_fields(partition, "leader_epoch", "end_offset")


def _delete_records(step: DeleteRecords, response: Any, symbols: Symbols) -> Response:
    partition = only_partition(step, response.topics, symbols)
    return {"error": error_of(partition.error_code)} | plain_fields(partition, "low_watermark")


def _init_producer_id(_step: InitProducerId, response: Any, symbols: Symbols) -> Response:
    return {
        "error": error_of(response.error_code),
        "producer": symbols.saw_producer_id(response.producer_id),
        "producer_epoch": int(response.producer_epoch),
    }


def _describe_producers(step: DescribeProducers, response: Any, symbols: Symbols) -> Response:
    """Return each producer with its epoch, its last sequence number and timestamp, and its transaction."""
    partition = only_partition(step, response.topics, symbols)
    producers = (
        (
            symbols.producer(int(each.producer_id)),
            int(each.producer_epoch),
            int(each.last_sequence),
            int(each.last_timestamp),
            int(each.current_txn_start_offset),
        )
        for each in partition.active_producers
    )
    return {"error": error_of(partition.error_code), "producers": tuple(sorted(producers))}


def _list_transactions(step: ListTransactions, response: Any, symbols: Symbols) -> Response:
    """Return the number of entries of the transactional id, and its state and producer if there is one."""
    states = response.transaction_states
    found = [each for each in states if symbols.script_name(each.transactional_id) == step.transactional_id]
    values = {"error": error_of(response.error_code), "listed": len(found)}
    if len(found) != 1:
        return values
    return {**values, "state": found[0].transaction_state, "producer": symbols.producer(int(found[0].producer_id))}


def _create_topic(step: CreateTopic, response: Any, symbols: Symbols) -> Response:
    if len(response.topics) != 1:
        return {"malformed": f"{len(response.topics)} topics in the response, where one was requested"}
    topic = response.topics[0]
    values: dict[str, Any] = {"error": error_of(topic.error_code)}
    config_error = int(getattr(topic, "topic_config_error_code", 0))
    symbols.saw_created_configs(step.topic, getattr(topic, "configs", None) or (), config_error)
    if hasattr(topic, "num_partitions") and not config_error:
        values["num_partitions"] = int(topic.num_partitions)
        values["replication_factor"] = int(topic.replication_factor)
        names = {name for name, _ in step.configs}
        values["configs"] = tuple(sorted((item.name, item.value) for item in topic.configs or () if item.name in names))
    if hasattr(topic, "topic_id") and not step.validate_only:
        values["topic_id"] = symbols.saw_topic_id(step.topic, topic.topic_id)
    return values


def _delete_topic(step: DeleteTopic | DeleteTopicById, response: Any, symbols: Symbols) -> Response:
    if len(response.responses) != 1:
        return {"malformed": f"{len(response.responses)} topics in the response, where one was requested"}
    (deleted,) = response.responses
    if isinstance(step, DeleteTopic):
        is_requested = _has_name(step, deleted, symbols)
    else:
        is_requested = _has_id(step, deleted, symbols)
    if not is_requested:
        return {"malformed": "the response has another topic than the requested one"}
    return {"error": error_of(deleted.error_code)}


def _has_name(step: DeleteTopic, deleted: Any, symbols: Symbols) -> bool:
    """Whether a response has the requested name, and no id of another topic. Before KRaft, it may have no id."""
    known, returned = symbols.topic_id(step.topic), getattr(deleted, "topic_id", None)
    has_other_id = returned is not None and 0 not in {known.int, returned.int} and returned != known
    return bool(deleted.name == symbols.real(step.topic)) and not has_other_id


def _has_id(step: DeleteTopicById, deleted: Any, symbols: Symbols) -> bool:
    """Whether a response has the requested id, and no name of another topic."""
    requested = symbols.nth_topic_id(step.topic_id)
    name = symbols.name_of_topic(requested)
    has_other_name = bool(name and deleted.name) and deleted.name != symbols.real(str(name))
    return bool(deleted.topic_id == requested) and not has_other_name


def _metadata(step: Metadata, response: Any, symbols: Symbols) -> Response:
    requested = step.topics or ()
    listed = [
        (topic.name if topic.name in requested else symbols.script_name(topic.name or ""), topic)
        for topic in response.topics
    ]
    topics = [(name, topic) for name, topic in listed if name is not None]
    values: dict[str, Any] = {
        "topics": tuple(sorted((name, error_of(topic.error_code), len(topic.partitions)) for name, topic in topics)),
        "leaders": tuple(
            sorted(
                (name, part.partition_index, part.leader_id >= 0) for name, topic in topics for part in topic.partitions
            )
        ),
        "every_broker": bool(response.brokers) and {*symbols.brokers} <= {each.node_id for each in response.brokers},
        "internal": all(_is_internal_flag_correct(topic) for topic in response.topics),
    }
    values["partitions"] = tuple(
        sorted((name, *partition_state(part, symbols)) for name, topic in topics for part in topic.partitions)
    )
    values |= _operations(response, (topic for _, topic in topics if not topic.error_code))
    if step.topics is not None:
        values["unrequested"] = len(listed) - len(topics)
    if hasattr(response, "controller_id"):
        values["controller_is_broker"] = response.controller_id in {each.node_id for each in response.brokers}
    if hasattr(response, "cluster_id"):
        values["cluster_id"] = symbols.saw_cluster_id(response.cluster_id)
        values["racks"] = racks(response.brokers, symbols)
    if all(hasattr(topic, "topic_id") for _, topic in topics):
        values["topic_ids"] = tuple(
            sorted((n, seen) for n, t in topics if (seen := symbols.saw_topic_id(n, t.topic_id)) is not None)
        )
    return values


def _is_internal_flag_correct(topic: Any) -> bool:
    is_internal = topic.name in INTERNAL_TOPICS
    return bool(getattr(topic, "is_internal", is_internal) == is_internal)


def _operations(response: Any, topics: Iterable[Any]) -> Response:
    """Return whether the cluster and the topics have permitted operations; "some" if only some of them have.

    A topic that is described permits DESCRIBE. If its operations lack it, the topic counts as one without operations.
    """
    cluster = getattr(response, "cluster_authorized_operations", None)
    found = [getattr(topic, "topic_authorized_operations", None) for topic in topics]
    given = {value != NO_OPERATIONS and bool(value & DESCRIBE) for value in found if value is not None}
    given |= {cluster != NO_OPERATIONS} if cluster is not None else set()
    return {"operations": given.pop() if len(given) == 1 else "some"} if given else {}


def _metadata_by_id(_step: MetadataById, response: Any, symbols: Symbols) -> Response:
    if len(response.topics) != 1:
        return {"malformed": f"{len(response.topics)} topics in the response, where one was requested"}
    topic = response.topics[0]
    return {"error": error_of(topic.error_code), "name": symbols.script_name(topic.name) if topic.name else None}


_NORMALISERS: Final[Mapping[type[Step], Callable[[Any, Any, Symbols], Response]]] = {
    Produce: _produce,
    Fetch: _fetch,
    SessionFetch: _session_fetch,
    ListOffsets: _list_offsets,
    OffsetForLeaderEpoch: _offset_for_leader_epoch,
    DeleteRecords: _delete_records,
    DescribeProducers: _describe_producers,
    ListTransactions: _list_transactions,
    InitProducerId: _init_producer_id,
    CreateTopic: _create_topic,
    DeleteTopic: _delete_topic,
    DeleteTopicById: _delete_topic,
    Metadata: _metadata,
    MetadataById: _metadata_by_id,
    RawRequest: raw_response,
    **group_responses.NORMALISERS,
    **admin_responses.NORMALISERS,
}
