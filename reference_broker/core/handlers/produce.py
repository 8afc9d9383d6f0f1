"""Produce (0), versions 3-13: append record batches.

Follows: kafka.server.ReplicaManager (KIP-32, KIP-98, KIP-110, KIP-135, KIP-467, KIP-516, KIP-951).

- A request with `acks=0` has no response; an error closes the connection, so that the producer refreshes its metadata.
  With `acks=1` the response is sent after the append by the leader, with -1 (all) after the records are committed. Any
  other value: INVALID_REQUIRED_ACKS(21).
- With acks=all, the batch is not appended if the ISR is below `min.insync.replicas`: NOT_ENOUGH_REPLICAS(19). Errors
  after the append are listed in `replication.delayed_produce`. As in Kafka, a response with such an error has the
  offsets too.
- A partition's data must be one batch of magic 2, whose records are valid (`log.append_validation`; KIP-98, KIP-32,
  KIP-135). From version 8 the response lists the invalid records (KIP-467).
- zstd is supported from version 7; before: UNSUPPORTED_COMPRESSION_TYPE(76) (KIP-110).
- Unknown topic name or partition: UNKNOWN_TOPIC_OR_PARTITION(3). From version 13 topics have ids; unknown id:
  UNKNOWN_TOPIC_ID(100) (KIP-516). Another broker leads: NOT_LEADER_OR_FOLLOWER(6), from version 10 with the leader and
  its endpoint (KIP-951).
- Only a client with the client id of Kafka's admin client may write to internal topics. Any other client id:
  INVALID_TOPIC_EXCEPTION(17).
- A transactional batch in a request without a transactional id: TRANSACTIONAL_ID_AUTHORIZATION_FAILED(53) for all
  partitions of the request.

Gaps: transactions. A transactional batch in a request with a transactional id: INVALID_TXN_STATE(48).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reference_broker.core.broker import Broker
from reference_broker.core.clock import Now
from reference_broker.core.handlers.current_leaders import CurrentLeaders
from reference_broker.core.handlers.lookup import as_datetime, find_partition, find_topic
from reference_broker.core.log.append_validation import ValidatedBatch, validate
from reference_broker.core.log.errors import AppendError, RecordError
from reference_broker.core.replication.delayed_produce import DelayedProduce, Key
from reference_broker.core.replication.partition import ACKS_ALL, Partition
from reference_broker.core.request import Request, RequestOutcome
from reference_broker.core.topic_names import INTERNAL_TOPICS
from reference_broker.protocol.durations import milliseconds
from reference_broker.protocol.errors import ErrorCode, error_code
from reference_broker.protocol.record_batch import HEADER_SIZE_BYTES, MAGIC, BatchHeader, Codec
from reference_broker.protocol.steps import BYTES_PER_STEP, Pace, Steps

_ACKS = frozenset({ACKS_ALL, 0, 1})
_ADMIN_CLIENT_ID = "__admin_client"
_CURRENT_LEADER_MIN_VERSION = 10
_ZSTD_VERSION = 7
_UNKNOWN_OFFSET = -1
_WITHOUT_LOG_START = frozenset(
    {
        ErrorCode.corrupt_message,
        ErrorCode.message_too_large,
        ErrorCode.not_leader_or_follower,
        ErrorCode.record_list_too_large,
    }
)
"""Errors of an append for which the log start offset in the response is -1."""


@dataclass(slots=True)
class _Result:
    """Result of one partition's batch so far."""

    topic: Any
    index: int
    key: Key | None = None
    batch: ValidatedBatch | None = None
    error: ErrorCode = ErrorCode.none
    base_offset: int = _UNKNOWN_OFFSET
    end_offset: int = _UNKNOWN_OFFSET
    log_append_time_ms: int = -1
    log_start_offset: int = _UNKNOWN_OFFSET
    record_errors: tuple[RecordError, ...] = ()
    message: str | None = None


def handle(broker: Broker, request: Request, now: Now) -> Any:
    """Validate every batch in steps, then append the valid ones together."""

    def on_validated(results: list[_Result], later: Now) -> None:
        for result in results:
            if result.batch is not None:
                _append(broker, request, result, later)
        broker.runtime.complete(request, _complete(broker, request, results, later))

    broker.runtime.work.run(request, _validate_all(broker, request, now), on_validated, now)
    return RequestOutcome.DEFERRED


def _complete(broker: Broker, request: Request, results: list[_Result], now: Now) -> Any:
    """Return the response, or `DEFERRED` if it is sent when the records are committed. acks=0 has no response."""
    acks = request.body.acks
    if acks == 0:
        failed = any(result.error is not ErrorCode.none for result in results)
        return RequestOutcome.CLOSE_CONNECTION if failed else RequestOutcome.NO_RESPONSE
    required = {result.key: result.end_offset for result in results if result.key and result.error is ErrorCode.none}
    if acks != ACKS_ALL or not required:
        return _response(broker, request, results, {})
    waiting = DelayedProduce(
        required,
        broker.replicas.find,
        lambda errors, _: broker.runtime.respond(request, _response(broker, request, results, errors)),
        request.connection,
    )
    if broker.replicas.wait(waiting, milliseconds(request.body.timeout), now):
        return RequestOutcome.DEFERRED
    return _response(broker, request, results, waiting.errors)


def _validate_all(broker: Broker, request: Request, now: Now) -> Steps[list[_Result]]:
    results: list[_Result] = []
    unpaused_bytes = 0
    pace = Pace()
    is_authorized = request.body.transactional_id is not None or not _has_transactional_records(request)
    for topic in request.body.topic_data:
        found = find_topic(broker, topic)
        for data in topic.partition_data:
            unpaused_bytes += len(data.records or b"")
            if pace.is_due() or (unpaused_bytes > BYTES_PER_STEP and results):
                unpaused_bytes = 0
                yield
            result = _Result(topic, data.index, None if isinstance(found, ErrorCode) else (found.name, data.index))
            partition = _check(request, find_partition(broker, found, data.index))
            if not is_authorized:
                result.error = ErrorCode.transactional_id_authorization_failed
            elif isinstance(partition, ErrorCode):
                result.error = partition
            elif _is_unsupported(request, data.records):
                result.error = ErrorCode.unsupported_compression_type
            else:
                yield from _validate(partition, request, data.records or b"", result, now)
            results.append(result)
    return results


def _has_transactional_records(request: Request) -> bool:
    """Whether the first batch of any partition is transactional (`RequestUtils.hasTransactionalRecords`)."""
    headers = (
        BatchHeader.parse(data.records)
        for topic in request.body.topic_data
        for data in topic.partition_data
        if data.records is not None and len(data.records) >= HEADER_SIZE_BYTES
    )
    return any(header.magic == MAGIC and header.is_transactional for header in headers)


def _check(request: Request, partition: Partition | ErrorCode) -> Partition | ErrorCode:
    """Return the partition, or the error if the request may not append to it."""
    exists = not isinstance(partition, ErrorCode) or partition is ErrorCode.not_leader_or_follower
    if exists and request.body.acks not in _ACKS:
        return ErrorCode.invalid_required_acks
    is_internal = not isinstance(partition, ErrorCode) and partition.topic in INTERNAL_TOPICS
    return ErrorCode.invalid_topic_exception if is_internal and request.client_id != _ADMIN_CLIENT_ID else partition


def _is_unsupported(request: Request, records: bytes | None) -> bool:
    """Whether the batch has a codec that this version of the API does not support."""
    if request.api_version >= _ZSTD_VERSION or records is None or len(records) < HEADER_SIZE_BYTES:
        return False
    return BatchHeader.parse(records).codec == Codec.ZSTD


def _validate(partition: Partition, request: Request, records: bytes, result: _Result, now: Now) -> Steps[None]:
    try:
        partition.check_append(request.body.acks)
        result.batch = yield from validate(records, partition.log.config, now.wall_ms)
    except AppendError as error:
        _reject(partition, result, error)


def _reject(partition: Partition, result: _Result, error: AppendError) -> None:
    result.error, result.record_errors = error_code(error.error), error.record_errors
    result.message = error.message if error.record_errors else None
    is_batch_error = result.error is ErrorCode.invalid_record and not error.record_errors
    if result.error not in _WITHOUT_LOG_START and not is_batch_error:  # as in Kafka
        result.log_start_offset = partition.log_start_offset


def _append(broker: Broker, request: Request, result: _Result, now: Now) -> None:
    """Append a valid batch. Since the validation, the leader may have changed or the replica may have been removed."""
    assert result.key is not None
    assert result.batch is not None
    partition = broker.replicas.find(result.key)
    if isinstance(partition, ErrorCode):
        result.error = partition
        return
    try:
        appended = partition.append(result.batch, acks=request.body.acks, now=now)
    except AppendError as error:
        _reject(partition, result, error)
    else:
        result.base_offset, result.end_offset = appended.base_offset, appended.last_offset + 1
        result.log_append_time_ms, result.log_start_offset = appended.log_append_time_ms, appended.log_start_offset


def _response(broker: Broker, request: Request, results: list[_Result], errors: Mapping[Key, ErrorCode]) -> Any:
    """Return the response.

    :param errors: errors of the partitions that waited for the commit of their records.
    """
    new, leaders = request.replies, CurrentLeaders(broker, request)
    by_topic: dict[int, list[Any]] = {id(topic): [] for topic in request.body.topic_data}
    for result in results:
        error = errors.get(result.key, result.error) if result.key else result.error
        by_topic[id(result.topic)].append(_partition_response(request, result, error, leaders))
    return new.ProduceResponse(
        responses=tuple(
            new.TopicProduceResponse(
                name=getattr(topic, "name", None),
                topic_id=getattr(topic, "topic_id", None),
                partition_responses=tuple(by_topic[id(topic)]),
            )
            for topic in request.body.topic_data
        ),
        node_endpoints=leaders.endpoints(),
    )


def _partition_response(request: Request, result: _Result, error: ErrorCode, leaders: CurrentLeaders) -> Any:
    new = request.replies
    fields = {}
    if error is ErrorCode.not_leader_or_follower and request.api_version >= _CURRENT_LEADER_MIN_VERSION and result.key:
        fields["current_leader"] = leaders.current_leader(*result.key)
    return new.PartitionProduceResponse(
        index=result.index,
        error_code=error,
        base_offset=result.base_offset,
        log_append_time=as_datetime(result.log_append_time_ms),
        log_start_offset=result.log_start_offset,
        record_errors=tuple(
            new.BatchIndexAndErrorMessage(batch_index=record.batch_index, batch_index_error_message=record.message)
            for record in result.record_errors
        ),
        error_message=result.message,
        **fields,
    )
