"""DeleteRecords (21), versions 0-2: the log start moves up (KIP-107).

- Offset -1 is the high watermark. Above that, or another negative number: OFFSET_OUT_OF_RANGE(1). Below the log start:
  nothing happens. The answer is the new log start.
- A topic without `delete` in its cleanup policy: POLICY_VIOLATION(44). An internal topic: INVALID_TOPIC_EXCEPTION(17).
"""

from typing import Any

from reference_broker.core.broker import Broker
from reference_broker.core.clock import Now
from reference_broker.core.handlers.lookup import find_partition, find_topic
from reference_broker.core.partition import Partition
from reference_broker.core.request import Request
from reference_broker.core.topic_names import INTERNAL_TOPICS
from reference_broker.protocol.errors import ErrorCode

_HIGH_WATERMARK = -1
_UNKNOWN_OFFSET = -1


def handle(broker: Broker, request: Request, now: Now) -> Any:
    """The log start of each partition, afterwards."""
    new = request.replies
    return new.DeleteRecordsResponse(
        topics=tuple(
            new.DeleteRecordsTopicResult(
                name=topic.name,
                partitions=tuple(_delete(broker, request, topic, asked) for asked in topic.partitions),
            )
            for topic in request.body.topics
        )
    )


def _delete(broker: Broker, request: Request, topic: Any, asked: Any) -> Any:
    partition = find_partition(broker, find_topic(broker, topic), asked.partition_index)
    low_watermark = _UNKNOWN_OFFSET
    error = partition if isinstance(partition, ErrorCode) else _move(partition, asked.offset)
    if isinstance(partition, Partition) and error is ErrorCode.none:
        low_watermark = partition.log.log_start_offset
    return request.replies.DeleteRecordsPartitionResult(
        partition_index=asked.partition_index, low_watermark=low_watermark, error_code=error
    )


def _move(partition: Partition, offset: int) -> ErrorCode:
    if partition.topic in INTERNAL_TOPICS:
        return ErrorCode.invalid_topic_exception
    if not partition.log.config.deletes:
        return ErrorCode.policy_violation
    before_offset = partition.high_watermark if offset == _HIGH_WATERMARK else offset
    if not 0 <= before_offset <= partition.high_watermark:
        return ErrorCode.offset_out_of_range
    partition.log.delete_records_before(before_offset)
    return ErrorCode.none
