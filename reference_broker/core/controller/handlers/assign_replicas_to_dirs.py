"""AssignReplicasToDirs (73), version 0: a broker reports the log directories of replicas.

Follows: org.apache.kafka.controller.ReplicationControlManager (KIP-858).

A broker sends this request when the metadata has another directory for a replica, for example after the broker's disk
was replaced. Until the metadata is corrected, such a replica cannot lead.

- A broker that is not registered, or is registered with another epoch, gets STALE_BROKER_EPOCH(77) for the whole
  request.
- Errors of single partitions: UNKNOWN_TOPIC_ID(100), UNKNOWN_TOPIC_OR_PARTITION(3), and NOT_LEADER_OR_FOLLOWER(6) if
  the broker has no replica.

Gaps: a directory that the broker has not registered is accepted too, but replicas in it cannot lead.
"""

from typing import Any
from uuid import UUID

from reference_broker.core.clock import Now
from reference_broker.core.controller.controller import Controller, require_active
from reference_broker.core.controller.partition_changes import RequestedChange, partition_change
from reference_broker.core.controller.registrations import check_broker_epoch
from reference_broker.core.request import Request
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.metadata_records import PartitionChangeRecord


@require_active
def handle(controller: Controller, request: Request, now: Now) -> Any:
    """Store the directory of each replica, and return its error or success."""
    body, new = request.body, request.replies
    check_broker_epoch(controller.image, body.broker_id, body.broker_epoch)
    records: list[PartitionChangeRecord] = []

    def assign(directory: UUID, topic_id: UUID, index: int) -> Any:
        code, change = _assign(controller, body.broker_id, directory, topic_id, index)
        if change is not None:
            records.append(change)
        return new.PartitionData(partition_index=index, error_code=code)

    directories = tuple(
        new.DirectoryData(
            id_=directory.id_,
            topics=tuple(
                new.TopicData(
                    topic_id=topic.topic_id,
                    partitions=tuple(
                        assign(directory.id_, topic.topic_id, partition.partition_index)
                        for partition in topic.partitions
                    ),
                )
                for topic in directory.topics
            ),
        )
        for directory in body.directories
    )
    response = new.AssignReplicasToDirsResponse(error_code=ErrorCode.none, directories=directories)
    return controller.respond_when_committed(request, records, response, now)


def _assign(
    controller: Controller, broker_id: int, directory: UUID, topic_id: UUID, index: int
) -> tuple[ErrorCode, PartitionChangeRecord | None]:
    topic = controller.image.topics_by_id.get(topic_id)
    if topic is None:
        return ErrorCode.unknown_topic_id, None
    partition = topic.partitions.get(index)
    if partition is None:
        return ErrorCode.unknown_topic_or_partition, None
    if broker_id not in partition.replicas:
        return ErrorCode.not_leader_or_follower, None
    requested = RequestedChange(directories={broker_id: directory})
    return ErrorCode.none, partition_change(partition, requested, controller.elections.candidates(partition))
