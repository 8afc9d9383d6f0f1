"""Model of CreateTopics, DeleteTopics and Metadata (`ReplicationControlManager`, `KafkaApis`)."""

from collections.abc import Sequence
from typing import Any, Final

from conformance.sequential.expectation import Expectation
from conformance.sequential.model.cluster import ModelCluster, Partition, Topic
from conformance.sequential.model.configs import BAD_SETTINGS
from conformance.sequential.steps import CreateTopic, DeleteTopic, DeleteTopicById, Metadata, MetadataById
from fixtures.clients.topic_names import is_legal_name

UNKNOWN_BROKER: Final = 1_000_000
"""No cluster has a broker with this id or a higher one."""
PARTITIONS_PER_REQUEST_MAX: Final = 10_000
"""Maximum number of partitions that one request may create: Apache Kafka's `MAX_PARTITIONS_PER_BATCH`."""
REPLICAS_TOO_MANY: Final = 1_000
"""More replicas than any cluster has brokers."""

_INVALID_TOPIC: Final = "INVALID_TOPIC_EXCEPTION"


def create_topic(cluster: ModelCluster, step: CreateTopic) -> Expectation:
    """Create a topic and return its description; or return the first error and create nothing."""
    if error := _creation_error(cluster, step):
        return {"error": error}
    partitions = len(step.assignments) or step.partitions
    described: dict[str, Any] = {"error": "NONE", "num_partitions": partitions, "configs": tuple(sorted(step.configs))}
    replicas = len(step.assignments[0][1]) if step.assignments else step.replication_factor
    if replicas > 0:
        described["replication_factor"] = replicas
    if step.validate_only:
        return described
    placed = dict(step.assignments)
    topic = Topic(cluster.topic_ids, [new_partition(placed.get(i)) for i in range(partitions)], dict(step.configs))
    topic.replication_factor = described.get("replication_factor")
    cluster.topics[step.topic] = topic
    cluster.topic_ids += 1
    return described | {"topic_id": topic.id}


def new_partition(replicas: tuple[int, ...] | None) -> Partition:
    """Return an empty partition, led by the first of its replicas if they are known."""
    return Partition(replicas=replicas, leader=replicas[0] if replicas else None)


def _creation_error(cluster: ModelCluster, step: CreateTopic) -> str | None:
    if not is_legal_name(step.topic):
        return _INVALID_TOPIC
    if step.topic in cluster.topics:
        return "TOPIC_ALREADY_EXISTS"
    if _in_metrics(step.topic) in map(_in_metrics, cluster.topics):
        return _INVALID_TOPIC
    if step.assignments:
        return _assignment_error(step)
    if step.partitions == 0 or step.partitions < -1:
        return "INVALID_PARTITIONS"
    if step.replication_factor == 0 or step.replication_factor < -1 or step.replication_factor >= REPLICAS_TOO_MANY:
        return "INVALID_REPLICATION_FACTOR"
    if BAD_SETTINGS & set(step.configs):
        return "INVALID_CONFIG"
    return None


def _in_metrics(topic: str) -> str:
    """Return the name of a topic in metrics, in which a period becomes an underscore (`Topic.unifyCollisionChars`)."""
    return topic.replace(".", "_")


def _assignment_error(step: CreateTopic) -> str | None:
    if step.partitions != -1 or step.replication_factor != -1:
        return "INVALID_REQUEST"
    indexes = sorted(index for index, _ in step.assignments)
    brokers = [broker for _, replicas in step.assignments for broker in replicas]
    if indexes != list(range(len(indexes))) or any(broker >= UNKNOWN_BROKER for broker in brokers):
        return "INVALID_REPLICA_ASSIGNMENT"
    return None


def delete_topic(cluster: ModelCluster, step: DeleteTopic) -> Expectation:
    """Delete a topic by name. No topic has its id afterwards."""
    if cluster.topics.pop(step.topic, None) is None:
        return {"error": "UNKNOWN_TOPIC_OR_PARTITION"}
    return {"error": "NONE"}


def delete_topic_by_id(cluster: ModelCluster, step: DeleteTopicById) -> Expectation:
    """Delete a topic by id; an id that no topic has is UNKNOWN_TOPIC_ID (KIP-516)."""
    name = _name_of(cluster, step.topic_id)
    if name is None:
        return {"error": "UNKNOWN_TOPIC_ID"}
    del cluster.topics[name]
    return {"error": "NONE"}


def _name_of(cluster: ModelCluster, topic_id: int) -> str | None:
    return next((name for name, topic in cluster.topics.items() if topic.id == topic_id), None)


def metadata(cluster: ModelCluster, step: Metadata) -> Expectation:
    """Describe the requested topics: all topics if `step.topics` is None, no topic if it is empty (since v1)."""
    names = tuple(cluster.topics) if step.topics is None else step.topics
    topics = sorted((name, _metadata_error(cluster, name), _partition_count(cluster, name)) for name in names)
    known = [name for name in names if name in cluster.topics]
    return {
        **_placed_partitions(cluster, known),
        "topics": tuple(topics),
        "leaders": tuple(sorted((name, i, True) for name in known for i in range(_partition_count(cluster, name)))),
        "topic_ids": tuple(sorted((name, cluster.topics[name].id) for name in known)),
        "every_broker": True,
        "cluster_id": 0,
        "racks": 0,
        "controller_is_broker": True,
        "unrequested": 0,
        "internal": True,
        "operations": step.with_operations,
    }


def _placed_partitions(cluster: ModelCluster, names: Sequence[str]) -> Expectation:
    """Return name, index, leader, replicas and ISR of the topics' partitions; nothing if the cluster placed some."""
    topics = {name: cluster.topics[name].partitions for name in names}
    if any(chosen_by_cluster(each) or any(one.target is not None for one in each) for each in topics.values()):
        return {}
    return {"partitions": tuple(sorted((name, *state) for name, each in topics.items() for state in states(each)))}


def chosen_by_cluster(partitions: Sequence[Partition]) -> bool:
    """Whether the cluster has selected the replicas of one of these partitions, so that they are not known."""
    return any(partition.replicas is None for partition in partitions)


def states(partitions: Sequence[Partition]) -> tuple[tuple[Any, ...], ...]:
    """Return the index, the leader, the replicas and the sorted ISR of each partition of a topic."""
    return tuple(
        (index, one.leader, one.replicas, tuple(sorted(one.replicas or ()))) for index, one in enumerate(partitions)
    )


def _metadata_error(cluster: ModelCluster, name: str) -> str:
    if not is_legal_name(name):
        return _INVALID_TOPIC
    return "NONE" if name in cluster.topics else "UNKNOWN_TOPIC_OR_PARTITION"


def _partition_count(cluster: ModelCluster, name: str) -> int:
    return len(cluster.topics[name].partitions) if name in cluster.topics else 0


def metadata_by_id(cluster: ModelCluster, step: MetadataById) -> Expectation:
    """Return the topic's name; an id that no topic has is UNKNOWN_TOPIC_ID (KIP-516)."""
    name = _name_of(cluster, step.topic_id)
    return {"error": "UNKNOWN_TOPIC_ID", "name": None} if name is None else {"error": "NONE", "name": name}
