"""Produce (0), versions 3-13: record batches are appended.

- `acks` 0 has no response, and an error then closes the connection, so that the producer looks at its metadata again; 1
  and -1 are the same on one node, where the leader is the whole ISR; any other is INVALID_REQUIRED_ACKS(21).
- A partition takes one batch of magic 2; what a batch must be is the log's to say (KIP-98, KIP-32, KIP-135), and which
  of its records were wrong is told from version 8 (KIP-467).
- Unknown partitions: UNKNOWN_TOPIC_OR_PARTITION(3), from version 13 by topic id UNKNOWN_TOPIC_ID(100) (KIP-516).
- The append wakes those who wait for data.

Gaps: transactional batches (INVALID_TXN_STATE(48)). The current leader of version 10 (KIP-951) is never told, since one
node is the leader of everything that it knows.
"""

from typing import Any

from reference_broker.core.broker import Broker
from reference_broker.core.clock import Now
from reference_broker.core.handlers.lookup import as_datetime, find_partition, find_topic
from reference_broker.core.log.errors import AppendError
from reference_broker.core.partition import Partition
from reference_broker.core.request import Outcome, Request
from reference_broker.protocol.errors import ErrorCode, error_code

_ACKS = frozenset({-1, 0, 1})
_UNKNOWN_OFFSET = -1
_WITHOUT_LOG_START = frozenset(
    {ErrorCode.corrupt_message, ErrorCode.message_too_large, ErrorCode.record_list_too_large}
)


def handle(broker: Broker, request: Request, now: Now) -> Any:
    """The offsets that the records were given."""
    new, body = request.replies, request.body
    responses = []
    for topic in body.topic_data:
        found = find_topic(broker, topic)
        responses.append(
            new.TopicProduceResponse(
                name=getattr(topic, "name", None),
                topic_id=getattr(topic, "topic_id", None),
                partition_responses=tuple(
                    _produce(broker, request, find_partition(broker, found, data.index), data, now)
                    for data in topic.partition_data
                ),
            )
        )
    if body.acks != 0:
        return new.ProduceResponse(responses=tuple(responses))
    failed = any(part.error_code for topic in responses for part in topic.partition_responses)
    return Outcome.CLOSE_CONNECTION if failed else Outcome.NO_RESPONSE


def _produce(broker: Broker, request: Request, partition: Partition | ErrorCode, data: Any, now: Now) -> Any:
    if isinstance(partition, ErrorCode):
        return _error(request, data.index, partition)
    if request.body.acks not in _ACKS:
        return _error(request, data.index, ErrorCode.invalid_required_acks)
    try:
        appended = partition.log.append(data.records or b"", leader_epoch=partition.leader_epoch, now_ms=now.wall_ms)
    except AppendError as error:
        return _rejected(request, partition, error)
    broker.purgatory.happened(partition.key, now)
    return request.replies.PartitionProduceResponse(
        index=data.index,
        error_code=ErrorCode.none,
        base_offset=appended.base_offset,
        log_append_time=as_datetime(appended.log_append_time_ms),
        log_start_offset=appended.log_start_offset,
        record_errors=(),
    )


def _error(request: Request, index: int, error: ErrorCode) -> Any:
    return request.replies.PartitionProduceResponse(
        index=index, error_code=error, base_offset=_UNKNOWN_OFFSET, record_errors=()
    )


def _rejected(request: Request, partition: Partition, error: AppendError) -> Any:
    """A refused batch: the message goes with the records that it is about, and Kafka tells the log start for most."""
    new, code = request.replies, error_code(error.error)
    no_log_start = code in _WITHOUT_LOG_START or (code is ErrorCode.invalid_record and not error.record_errors)
    return new.PartitionProduceResponse(
        index=partition.index,
        error_code=code,
        base_offset=_UNKNOWN_OFFSET,
        log_start_offset=_UNKNOWN_OFFSET if no_log_start else partition.log.log_start_offset,
        record_errors=tuple(
            new.BatchIndexAndErrorMessage(batch_index=record.batch_index, batch_index_error_message=record.message)
            for record in error.record_errors
        ),
        error_message=error.message if error.record_errors else None,
    )
