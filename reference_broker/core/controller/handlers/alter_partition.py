"""AlterPartition (56), versions 2-3: a leader changes its in-sync replicas.

Follows: org.apache.kafka.controller.ReplicationControlManager (KIP-497, KIP-903).

The module `controller.isr` implements the checks. A broker that is not registered, or is registered with another epoch,
gets STALE_BROKER_EPOCH(77) for the whole request. Version 3 has the broker epoch of each proposed ISR member. If a
broker has restarted since the leader added it, its epoch differs, and the change is rejected (KIP-903).
"""

from typing import Any

from reference_broker.core.clock import Now
from reference_broker.core.controller.controller import Controller, require_active
from reference_broker.core.controller.isr import AlterPartitionResult, alter_partition, parse_proposals
from reference_broker.core.controller.registrations import check_broker_epoch
from reference_broker.core.request import Request
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.metadata_records import MetadataRecord


@require_active
def handle(controller: Controller, request: Request, now: Now) -> Any:
    """Return each partition after the change, or its error."""
    body = request.body
    check_broker_epoch(controller.image, body.broker_id, body.broker_epoch)
    records: list[MetadataRecord] = []
    topics = []
    for topic in body.topics:
        results = [
            (index, _alter_partition(controller, topic.topic_id, index, proposal))
            for index, proposal in parse_proposals(body.broker_id, topic.partitions)
        ]
        records += [result.change for _, result in results if result.change is not None]
        partitions = tuple(_partition(request, index, result) for index, result in results)
        topics.append(request.replies.TopicData(topic_id=topic.topic_id, partitions=partitions))
    response = request.replies.AlterPartitionResponse(error_code=ErrorCode.none, topics=tuple(topics))
    return controller.respond_when_committed(request, records, response, now)


def _alter_partition(controller: Controller, topic_id: Any, index: int, proposal: Any) -> AlterPartitionResult:
    topic = controller.image.topics_by_id.get(topic_id)
    return (
        AlterPartitionResult(ErrorCode.unknown_topic_id)
        if topic is None
        else alter_partition(topic, index, proposal, controller.elections)
    )


def _partition(request: Request, index: int, result: AlterPartitionResult) -> Any:
    partition = result.partition
    if partition is None:
        return request.replies.PartitionData(
            partition_index=index, error_code=result.code, leader_id=0, leader_epoch=0, partition_epoch=0
        )
    return request.replies.PartitionData(
        partition_index=index,
        error_code=result.code,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        isr=partition.isr,
        leader_recovery_state=partition.leader_recovery_state,
        partition_epoch=partition.partition_epoch,
    )
