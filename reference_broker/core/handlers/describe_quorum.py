"""DescribeQuorum (55), versions 0-2: leader, voters and observers of the metadata quorum.

Follows: org.apache.kafka.raft.KafkaRaftClient (KIP-595, KIP-836, KIP-853).

- A partition other than `__cluster_metadata-0`: UNKNOWN_TOPIC_OR_PARTITION(3). A request with more than one partition:
  the same error for each of them (`KafkaRaftClient.hasValidTopicPartition`).
- A node that is not the leader: NOT_LEADER_OR_FOLLOWER(6), with the leader and the epoch that it knows.
- Version 1 adds the time of each replica's last fetch. Version 2 adds directory ids and the voters' endpoints.
"""

from typing import Any

from reference_broker.core.api import ServingNode
from reference_broker.core.clock import Now
from reference_broker.core.quorum.messages import QuorumDescription, ReplicaDescription
from reference_broker.core.quorum.wire_parts import METADATA_PARTITION
from reference_broker.core.request import Request
from reference_broker.core.topic_names import CLUSTER_METADATA_TOPIC
from reference_broker.protocol.errors import ErrorCode

_NO_REPLICAS = {"current_voters": (), "observers": (), "error_message": None}


def handle(node: ServingNode, request: Request, now: Now) -> Any:
    """Describe the quorum if this node leads it."""
    new, topics = request.replies, request.body.topics
    is_single = len(topics) == 1 and len(topics[0].partitions) == 1
    return new.DescribeQuorumResponse(
        error_code=ErrorCode.none,
        error_message=None,
        topics=tuple(
            new.TopicData(
                topic_name=topic.topic_name,
                partitions=tuple(
                    _partition(node, request, topic.topic_name, partition.partition_index, now)
                    if is_single
                    else _unknown_partition(request, partition.partition_index)
                    for partition in topic.partitions
                ),
            )
            for topic in topics
        ),
        nodes=_nodes(node, request),
    )


def _partition(node: ServingNode, request: Request, topic: str, index: int, now: Now) -> Any:
    if (topic, index) != (CLUSTER_METADATA_TOPIC, METADATA_PARTITION):
        return _unknown_partition(request, index)
    state = node.quorum.state
    description = node.quorum.describe(now)
    if description is None:
        return request.replies.PartitionData(
            partition_index=index,
            error_code=ErrorCode.not_leader_or_follower,
            leader_id=state.leader_id,
            leader_epoch=state.epoch,
            high_watermark=-1,
            **_NO_REPLICAS,
        )
    return _described(request, description)


def _unknown_partition(request: Request, index: int) -> Any:
    return request.replies.PartitionData(
        partition_index=index,
        error_code=ErrorCode.unknown_topic_or_partition,
        leader_id=0,
        leader_epoch=0,
        high_watermark=0,
        **_NO_REPLICAS,
    )


def _described(request: Request, description: QuorumDescription) -> Any:
    return request.replies.PartitionData(
        partition_index=METADATA_PARTITION,
        error_code=ErrorCode.none,
        error_message=None,
        leader_id=description.leader_id,
        leader_epoch=description.leader_epoch,
        high_watermark=description.high_watermark,
        current_voters=tuple(_replica(request, replica) for replica in description.voters),
        observers=tuple(_replica(request, replica) for replica in description.observers),
    )


def _replica(request: Request, replica: ReplicaDescription) -> Any:
    return request.replies.ReplicaState(
        replica_id=replica.key.id,
        replica_directory_id=replica.key.directory_id,
        log_end_offset=replica.log_end_offset,
        last_fetch_timestamp=replica.last_fetch_timestamp_ms,
        last_caught_up_timestamp=replica.last_caught_up_timestamp_ms,
    )


def _nodes(node: ServingNode, request: Request) -> tuple[Any, ...]:
    new, voters = request.replies, node.quorum.voters
    known = (voter for voter in map(voters.get, voters.ids) if voter is not None)
    return tuple(
        new.Node(
            node_id=voter.key.id,
            listeners=(new.Listener(name=voter.listener, host=voter.host, port=voter.port),),
        )
        for voter in known
    )
