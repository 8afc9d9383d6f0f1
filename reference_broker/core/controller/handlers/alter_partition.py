"""AlterPartition (56), versions 2-3: a leader changes its in-sync replicas (KIP-497). What is checked: `isr`.

A broker, or an epoch of it, that is not registered: STALE_BROKER_EPOCH(77) for the whole request. Version 3 gives the
broker epoch of each member (KIP-903), so that a replica which was restarted since does not come in by its id.
"""

from typing import Any

from reference_broker.core.clock import Now
from reference_broker.core.controller.controller import Controller, only_active
from reference_broker.core.controller.isr import Verdict, judge, proposals
from reference_broker.core.controller.registrations import check_broker_epoch
from reference_broker.core.request import Request
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.metadata_records import MetadataRecord


@only_active
def handle(controller: Controller, request: Request, now: Now) -> Any:
    """Each partition as it is now, or its error."""
    body = request.body
    check_broker_epoch(controller.image, body.broker_id, body.broker_epoch)
    records: list[MetadataRecord] = []
    topics = []
    for asked in body.topics:
        verdicts = [
            (index, _judge(controller, asked.topic_id, index, proposal))
            for index, proposal in proposals(body.broker_id, asked.partitions)
        ]
        records += [verdict.change for _, verdict in verdicts if verdict.change is not None]
        answered = tuple(_answer(request, index, verdict) for index, verdict in verdicts)
        topics.append(request.replies.TopicData(topic_id=asked.topic_id, partitions=answered))
    response = request.replies.AlterPartitionResponse(error_code=ErrorCode.none, topics=tuple(topics))
    return controller.respond_when_committed(request, records, response, now)


def _judge(controller: Controller, topic_id: Any, index: int, proposal: Any) -> Verdict:
    topic = controller.image.topics_by_id.get(topic_id)
    return Verdict(ErrorCode.unknown_topic_id) if topic is None else judge(topic, index, proposal, controller.elections)


def _answer(request: Request, index: int, verdict: Verdict) -> Any:
    partition = verdict.partition
    if partition is None:
        return request.replies.PartitionData(
            partition_index=index, error_code=verdict.code, leader_id=0, leader_epoch=0, partition_epoch=0
        )
    return request.replies.PartitionData(
        partition_index=index,
        error_code=verdict.code,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        isr=partition.isr,
        leader_recovery_state=partition.leader_recovery_state,
        partition_epoch=partition.partition_epoch,
    )
