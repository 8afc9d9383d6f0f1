"""Common parts of the quorum's messages: the topic partition and the leader's endpoint.

kio gives its fields number types of their own, which are plain numbers at run time; its modules are `Any` here.
"""

from typing import Any

from reference_broker.core.quorum.voters import VoterSet
from reference_broker.core.topic_names import CLUSTER_METADATA_TOPIC

CONTROLLER_LISTENER = "CONTROLLER"
METADATA_PARTITION = 0


class UnknownPartitionError(ValueError):
    """The message is not about `__cluster_metadata-0`, or not about it alone."""


def named(module: Any, partition: Any) -> tuple[Any, ...]:
    """The topics of a message whose one partition this is."""
    return (module.TopicData(topic_name=CLUSTER_METADATA_TOPIC, partitions=(partition,)),)


def the_partition(topics: Any, name_field: str, name: Any, index_field: str) -> Any:
    """The one partition of a message. Raises `UnknownPartitionError`."""
    if len(topics) != 1 or getattr(topics[0], name_field) != name or len(topics[0].partitions) != 1:
        raise UnknownPartitionError(f"not one partition of {CLUSTER_METADATA_TOPIC}")
    partition = topics[0].partitions[0]
    if getattr(partition, index_field) != METADATA_PARTITION:
        raise UnknownPartitionError(f"{CLUSTER_METADATA_TOPIC} has no partition {getattr(partition, index_field)}")
    return partition


def named_partition(topics: Any) -> Any:
    """The same, where topics have names. Raises `UnknownPartitionError`."""
    return the_partition(topics, "topic_name", CLUSTER_METADATA_TOPIC, "partition_index")


def leader_endpoints(module: Any, leader_id: int, voters: VoterSet) -> tuple[Any, ...]:
    """Where the leader is, for those it writes to."""
    voter = voters.get(leader_id)
    if voter is None:
        return ()
    return (module.LeaderEndpoint(name=CONTROLLER_LISTENER, host=voter.host, port=voter.port),)


def node_endpoints(module: Any, leader_id: int, voters: VoterSet) -> tuple[Any, ...]:
    """Where the leader is, for those who asked somebody else."""
    voter = voters.get(leader_id)
    return () if voter is None else (module.NodeEndpoint(node_id=leader_id, host=voter.host, port=voter.port),)
