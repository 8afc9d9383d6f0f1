"""OffsetForLeaderEpoch (23), versions 2-4: where the records of a leader epoch end.

- The largest epoch at or below the one asked for, and the offset after its last record (KIP-101, KIP-279); for the
  current epoch that is the log's end. An epoch that is newer than any: -1, -1.
- The client's own leader epoch is checked first (KIP-320): FENCED_LEADER_EPOCH(74), UNKNOWN_LEADER_EPOCH(75). Then
  whether this broker leads the partition: NOT_LEADER_OR_FOLLOWER(6).
"""

from typing import Any

from reference_broker.core.broker import Broker
from reference_broker.core.clock import Now
from reference_broker.core.handlers.lookup import find_partition, find_topic
from reference_broker.core.replication.partition import Partition
from reference_broker.core.request import Request
from reference_broker.protocol.errors import ErrorCode


def handle(broker: Broker, request: Request, now: Now) -> Any:
    """The end of an epoch in each partition."""
    new = request.replies
    return new.OffsetForLeaderEpochResponse(
        topics=tuple(
            new.OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=tuple(_partition(broker, request, topic, asked) for asked in topic.partitions),
            )
            for topic in request.body.topics
        )
    )


def _partition(broker: Broker, request: Request, topic: Any, asked: Any) -> Any:
    partition = find_partition(broker, find_topic(broker, topic), asked.partition)
    error = _check(partition, asked)
    if isinstance(partition, ErrorCode) or error is not ErrorCode.none:
        return request.replies.EpochEndOffset(error_code=error, partition=asked.partition)
    leader_epoch, end_offset = partition.log.end_offset_for_epoch(asked.leader_epoch)
    return request.replies.EpochEndOffset(
        error_code=ErrorCode.none, partition=asked.partition, leader_epoch=leader_epoch, end_offset=end_offset
    )


def _check(partition: Partition | ErrorCode, asked: Any) -> ErrorCode:
    if isinstance(partition, ErrorCode):
        return partition
    fenced = partition.check_leader_epoch(asked.current_leader_epoch)
    if fenced is ErrorCode.none and not partition.is_leader:
        return ErrorCode.not_leader_or_follower
    return fenced
