"""Common parts of the quorum's messages: the topic partition and the leader's endpoint.

kio's modules have type `Any` here. kio declares number types that do not accept `int`, but its values are plain numbers
at run time.
"""

from typing import Any

from reference_broker.core.quorum.voters import VoterSet
from reference_broker.core.topic_names import CLUSTER_METADATA_TOPIC

METADATA_PARTITION = 0


class UnknownPartitionError(ValueError):
    """A message whose only topic partition is not `__cluster_metadata-0`, or that has several or none."""


def named(module: Any, partition: Any) -> tuple[Any, ...]:
    """Return the `topics` field of a message: the metadata topic, by name, with this partition entry."""
    return (module.TopicData(topic_name=CLUSTER_METADATA_TOPIC, partitions=(partition,)),)


def single_partition(topics: Any, name_field: str, name: Any, index_field: str) -> Any:
    """Return the only partition of a message. Raises `UnknownPartitionError`.

    :param name_field: field of a topic that has its name or topic id.
    :param name: name or topic id of the metadata topic.
    :param index_field: field of a partition that has its index.
    """
    if len(topics) != 1 or getattr(topics[0], name_field) != name or len(topics[0].partitions) != 1:
        raise UnknownPartitionError(f"the message is not for exactly one partition of {CLUSTER_METADATA_TOPIC}")
    partition = topics[0].partitions[0]
    if getattr(partition, index_field) != METADATA_PARTITION:
        raise UnknownPartitionError(f"{CLUSTER_METADATA_TOPIC} has no partition {getattr(partition, index_field)}")
    return partition


def named_partition(topics: Any) -> Any:
    """Return the only partition of a message with topic names. Raises `UnknownPartitionError`."""
    return single_partition(topics, "topic_name", CLUSTER_METADATA_TOPIC, "partition_index")


def leader_endpoints(module: Any, leader_id: int, voters: VoterSet) -> tuple[Any, ...]:
    """Return the leader's endpoint for a request that the leader sends; empty if the leader is not a voter."""
    voter = voters.get(leader_id)
    if voter is None:
        return ()
    return (module.LeaderEndpoint(name=voter.listener, host=voter.host, port=voter.port),)


def node_endpoints(module: Any, leader_id: int, voters: VoterSet) -> tuple[Any, ...]:
    """Return the leader's endpoint for a response that any node sends; empty if the leader is unknown."""
    voter = voters.get(leader_id)
    return () if voter is None else (module.NodeEndpoint(node_id=leader_id, host=voter.host, port=voter.port),)
