"""OffsetForLeaderEpoch (23), versions 2-4: the end offset of a leader epoch.

Follows: kafka.server.ReplicaManager (KIP-101, KIP-279, KIP-320).

- The response has the largest epoch of the log that is not above the requested epoch, and the offset after its last
  record. For the latest epoch this is the log end offset. If the requested epoch is above all epochs of the log, epoch
  and offset are -1. If it is below all of them, the response has the requested epoch, and the start offset of the
  oldest epoch.
- The client's current leader epoch is checked first: FENCED_LEADER_EPOCH(74), UNKNOWN_LEADER_EPOCH(75). If it is valid,
  but this broker does not lead the partition, the error is NOT_LEADER_OR_FOLLOWER(6).
"""

from typing import Any

from reference_broker.core.broker import Broker
from reference_broker.core.clock import Now
from reference_broker.core.handlers.lookup import find_partition, find_topic
from reference_broker.core.replication.partition import Partition
from reference_broker.core.request import Request
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.steps import Pace, Steps


def handle(broker: Broker, request: Request, now: Now) -> Steps[Any]:
    """Return the end offset of an epoch in each partition."""
    new = request.replies
    topics = []
    pace = Pace()
    for topic in request.body.topics:
        partitions = []
        for requested in topic.partitions:
            if pace.is_due():
                yield
            partitions.append(_partition(broker, request, topic, requested))
        topics.append(new.OffsetForLeaderTopicResult(topic=topic.topic, partitions=tuple(partitions)))
    return new.OffsetForLeaderEpochResponse(topics=tuple(topics))


def _partition(broker: Broker, request: Request, topic: Any, requested: Any) -> Any:
    partition = find_partition(broker, find_topic(broker, topic), requested.partition)
    error = _check(partition, requested)
    if isinstance(partition, ErrorCode) or error is not ErrorCode.none:
        return request.replies.EpochEndOffset(error_code=error, partition=requested.partition)
    leader_epoch, end_offset = partition.log.end_offset_for_epoch(requested.leader_epoch)
    return request.replies.EpochEndOffset(
        error_code=ErrorCode.none, partition=requested.partition, leader_epoch=leader_epoch, end_offset=end_offset
    )


def _check(partition: Partition | ErrorCode, requested: Any) -> ErrorCode:
    if isinstance(partition, ErrorCode):
        return partition
    error = partition.check_leader_epoch(requested.current_leader_epoch)
    if error is ErrorCode.none and not partition.is_leader:
        return ErrorCode.not_leader_or_follower
    return error
