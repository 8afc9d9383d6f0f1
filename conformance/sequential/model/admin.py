"""Model of CreatePartitions, reassignments, elections (`ReplicationControlManager`) and descriptions of the cluster."""

from collections.abc import Sequence
from typing import Final

from conformance.sequential.expectation import Expectation, OneOf, Satisfies
from conformance.sequential.model.cluster import ModelCluster, Partition
from conformance.sequential.model.topics import (
    PARTITIONS_PER_REQUEST_MAX,
    UNKNOWN_BROKER,
    chosen_by_cluster,
    new_partition,
    states,
)
from conformance.sequential.steps import (
    AlterReassignment,
    AwaitTopic,
    CreatePartitions,
    DescribeCluster,
    DescribeLogDirs,
    DescribeQuorum,
    DescribeTopicPartitions,
    ElectionType,
    ElectLeaders,
    EndpointType,
    ListReassignments,
    Placement,
    Restart,
    UseDefaults,
    UseSettings,
)

_UNKNOWN: Final = "UNKNOWN_TOPIC_OR_PARTITION"
_INVALID_ASSIGNMENT: Final = "INVALID_REPLICA_ASSIGNMENT"
_TOO_MANY: Final = OneOf(
    ("POLICY_VIOLATION", "UNKNOWN_SERVER_ERROR"), "Apache Kafka's limit is reported as an unexpected exception"
)
_QUORUM_TOPIC: Final = "__cluster_metadata"


def create_partitions(cluster: ModelCluster, step: CreatePartitions) -> Expectation:
    """Add empty partitions: a topic only grows, and its other partitions do not change (KIP-195)."""
    topic = cluster.topics.get(step.topic)
    if topic is None:
        return {"error": _UNKNOWN}
    added = step.count - len(topic.partitions)
    if added <= 0:
        return {"error": "INVALID_PARTITIONS"}
    if added > PARTITIONS_PER_REQUEST_MAX:
        return {"error": _TOO_MANY}
    if step.assignments is not None and not _fits(step.assignments, added, topic.partitions[0]):
        return {"error": _INVALID_ASSIGNMENT}
    if not step.validate_only:
        placed = (None,) * added if step.assignments is None else step.assignments
        topic.partitions += map(new_partition, placed)
    return {"error": "NONE"}


def _fits(assignments: Sequence[tuple[int, ...]], added: int, first: Partition) -> bool:
    """Whether there is one valid assignment for each new partition, with the topic's replication factor."""
    factor = None if first.replicas is None else len(first.replicas)
    return len(assignments) == added and all(
        _is_assignment(brokers) and factor in {None, len(brokers)} for brokers in assignments
    )


def _is_assignment(brokers: tuple[int, ...]) -> bool:
    return len(brokers) == len(set(brokers)) > 0 and all(0 < broker < UNKNOWN_BROKER for broker in brokers)


def alter_reassignment(cluster: ModelCluster, step: AlterReassignment) -> Expectation:
    """Replace the replicas by those requested (KIP-455).

    The leader stays if it is one of them, otherwise the first is elected. Removing a replica begins a new epoch. The
    reassignment is ongoing while a broker that it adds is down.
    """
    partition = cluster.partition(step.topic, step.partition)
    if partition is None:
        return {"error": _UNKNOWN}
    if step.replicas is None:
        return _cancel(partition)
    if not _is_assignment(step.replicas):
        return {"error": _INVALID_ASSIGNMENT}
    if not step.allow_factor_change and len(step.replicas) != len(partition.replicas or ()):
        return {"error": "INVALID_REPLICATION_FACTOR"}
    partition.target = step.replicas
    _complete(cluster, partition)
    return {"error": "NONE"}


def _cancel(partition: Partition) -> Expectation:
    """Remove the replicas that were added. The others are in the order of the ongoing reassignment."""
    if partition.target is None:
        return {"error": "NO_REASSIGNMENT_IN_PROGRESS"}
    replicas, adding, _ = _reassigned(partition, partition.target)
    partition.replicas = tuple(replica for replica in replicas if replica not in adding)
    partition.target = None
    partition.begin_epoch(partition.leader)
    return {"error": "NONE"}


def _complete(cluster: ModelCluster, partition: Partition) -> None:
    """End a reassignment, unless it adds a replica on a broker that is down."""
    target = partition.target
    if target is None:
        return
    _, adding, removing = _reassigned(partition, target)
    if cluster.down & set(adding):
        return
    partition.replicas, partition.target = target, None
    if partition.leader in removing:
        partition.begin_epoch(target[0])
    elif removing:
        partition.begin_epoch(partition.leader)


def _reassigned(partition: Partition, target: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Return all replicas, those being added and those being removed (`PartitionReassignmentReplicas`)."""
    before = set(partition.replicas or ())
    adding, removing = tuple(sorted(set(target) - before)), tuple(sorted(before - set(target)))
    return (*target, *removing), adding, removing


def list_reassignments(cluster: ModelCluster, step: ListReassignments) -> Expectation:
    """Return the reassignment of the partition, if it is ongoing."""
    partition = cluster.partition(step.topic, step.partition)
    if partition is None or partition.target is None:
        return {"error": "NONE", "ongoing": ()}
    return {"error": "NONE", "ongoing": ((step.partition, *_reassigned(partition, partition.target)),)}


def restart(cluster: ModelCluster, step: Restart) -> Expectation:
    """Expect that the broker serves again, without loss of an acknowledged change, and ends reassignments to it."""
    cluster.down.discard(step.broker)
    for topic in cluster.topics.values():
        for partition in topic.partitions:
            _complete(cluster, partition)
    return {"serves": True}


def elect_leaders(cluster: ModelCluster, step: ElectLeaders) -> Expectation:
    """Elect the first replica, the preferred one; an election that would change nothing is not needed (KIP-460)."""
    partition = cluster.partition(step.topic, step.partition)
    if partition is None:
        return {"error": _UNKNOWN}
    preferred = partition.replicas[0] if partition.replicas else partition.leader
    if step.election is ElectionType.UNCLEAN or partition.leader == preferred:
        return {"error": "ELECTION_NOT_NEEDED"}
    partition.begin_epoch(preferred)
    return {"error": "NONE"}


def await_topic(cluster: ModelCluster, step: AwaitTopic) -> Expectation:
    """Return the state that every broker describes, with all replicas in sync."""
    partitions = cluster.topics[step.topic].partitions if step.topic in cluster.topics else []
    epochs = tuple(one.leader_epoch for one in partitions)
    described = {"all_agree": True, "offline_replicas": 0, "leader_epochs": epochs}
    return described if chosen_by_cluster(partitions) else described | {"partitions": states(partitions)}


def placement(cluster: ModelCluster, step: Placement) -> Expectation:
    """Return an even placement: distinct replicas in a partition, and numbers per broker that differ by at most 1."""
    factor = cluster.topics[step.topic].replication_factor
    even = Satisfies("at most one more than on another broker", lambda unevenness: unevenness <= 1)
    spread = {"replicas_are_distinct": True, "leaders_unevenness": even, "replicas_unevenness": even}
    return spread if factor is None else {**spread, "replication_factors": (factor,)}


def use_defaults(_cluster: ModelCluster, _step: UseDefaults) -> Expectation:
    """Return that every described default is applied."""
    return {"error": "NONE", "not_applied": (), "other_numbers": ()}


def use_settings(_cluster: ModelCluster, _step: UseSettings) -> Expectation:
    """Return that every described setting is that of its broker."""
    return {"error": "NONE", "differences": (), "not_applied": ()}


def describe_topic_partitions(cluster: ModelCluster, step: DescribeTopicPartitions) -> Expectation:
    """Return topics by name and partitions by index from the cursor on; a new cursor at the limit (KIP-966)."""
    limit = max(step.limit, 1)
    from_topic, from_partition = step.cursor or ("", 0)
    topics: list[tuple[str, str]] = []
    listed: list[tuple[str, int]] = []
    following: tuple[str, int] | None = None
    for name in sorted(set(step.topics)):
        if name < from_topic:
            continue
        if len(listed) == limit:
            following = (name, 0)
            break
        topics.append((name, "NONE" if name in cluster.topics else _UNKNOWN))
        count = len(cluster.topics[name].partitions) if name in cluster.topics else 0
        found = [(name, index) for index in range(from_partition if name == from_topic else 0, count)]
        room = limit - len(listed)
        listed += found[:room]
        if len(found) > room:
            following = found[room]
            break
    partitions = [cluster.topics[name].partitions[index] for name, index in listed]
    described: Expectation = {
        "topics": tuple(topics),
        "topic_ids": tuple(cluster.topics[name].id if name in cluster.topics else None for name, _ in topics),
        "internal": False,
        "listed": tuple(listed),
        "leader_epochs": tuple(partition.leader_epoch for partition in partitions),
        "next": following,
    }
    return described if chosen_by_cluster(partitions) else {**described, "partitions": _listed_states(cluster, listed)}


def _listed_states(cluster: ModelCluster, listed: Sequence[tuple[str, int]]) -> tuple[object, ...]:
    return tuple(states(cluster.topics[name].partitions)[index] for name, index in listed)


def describe_log_dirs(cluster: ModelCluster, step: DescribeLogDirs, broker: int) -> Expectation:
    """Return the replica that is assigned to the broker, eventually without lag (KIP-113)."""
    partition = cluster.partition(step.topic, step.partition)
    if partition is None or broker not in (partition.replicas or ()):
        return {"error": "NONE", "replicas": 0}
    has_bytes = partition.log_end_offset > 0
    replica = {"has_bytes": has_bytes, "size": "as fetched", "offset_lag": 0, "is_future": False}
    return {"error": "NONE", "replicas": 1, **replica}


def describe_quorum(_cluster: ModelCluster, step: DescribeQuorum) -> Expectation:
    """Return the quorum of the metadata partition, led by a voter; other partitions have none (KIP-595)."""
    if (step.topic, step.partition) != (_QUORUM_TOPIC, 0):
        return {"error": _UNKNOWN}
    return {
        "error": "NONE",
        "leader_is_voter": True,
        "has_epoch": True,
        "high_watermark_is_reached": True,
        "leader_log_is_longest": True,
        "listed_twice": (),
        "every_broker": True,
        "nodes_vote": True,
    }


def describe_cluster(_cluster: ModelCluster, step: DescribeCluster) -> Expectation:
    """Return the brokers; only a controller describes controllers (KIP-919)."""
    match step.endpoint_type:
        case EndpointType.CONTROLLERS:
            return {"error": "MISMATCHED_ENDPOINT_TYPE"}
        case EndpointType.UNKNOWN:
            return {"error": "UNSUPPORTED_ENDPOINT_TYPE"}
    return {
        "error": "NONE",
        "cluster_id": 0,
        "racks": 0,
        "every_broker": True,
        "addresses": True,
        "controller_is_broker": True,
        "operations": step.with_operations,
    }
