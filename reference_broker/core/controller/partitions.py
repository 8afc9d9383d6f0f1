"""Additional partitions of a topic: `createPartitions`.

Follows: org.apache.kafka.controller.ReplicationControlManager (KIP-195).
"""

from collections.abc import Sequence

from reference_broker.core.controller.assignments import check_assignment, new_partition
from reference_broker.core.controller.errors import ControllerError
from reference_broker.core.controller.placement import RandomBelow, place_replicas, usable_brokers
from reference_broker.core.metadata.image import MetadataImage, TopicImage
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.metadata_records import MetadataRecord


def add_partitions(
    image: MetadataImage, name: str, count: int, assignments: Sequence[Sequence[int]] | None, random_below: RandomBelow
) -> list[MetadataRecord]:
    """Return the records that increase a topic's partitions to `count`. Raises `ControllerError`.

    :param name: name of the topic.
    :param assignments: the replicas of each new partition; null if the controller places the replicas.
    """
    topic = image.topics.get(name)
    if topic is None:
        raise ControllerError(ErrorCode.unknown_topic_or_partition)
    first = len(topic.partitions)
    _check_count(topic, count, assignments)
    replication_factor = len(topic.partitions[0].replicas)
    if assignments is None:
        replicas = place_replicas(usable_brokers(image), count - first, replication_factor, random_below)
    else:
        for index, assignment in enumerate(assignments, first):
            check_assignment(image, assignment, replication_factor)
            if not any(map(image.is_active, assignment)):
                message = (
                    f"All brokers specified in the manual partition assignment for partition {index} are fenced or in "
                    "controlled shutdown."
                )
                raise ControllerError(ErrorCode.invalid_replica_assignment, message)
        replicas = [tuple(assignment) for assignment in assignments]
    return [new_partition(image, topic.topic_id, index, on_nodes) for index, on_nodes in enumerate(replicas, first)]


def _check_count(topic: TopicImage, count: int, assignments: Sequence[Sequence[int]] | None) -> None:
    current = len(topic.partitions)
    if count == current:
        raise ControllerError(ErrorCode.invalid_partitions, f"Topic already has {current} partition(s).")
    if count < current:
        message = f"The topic {topic.name} currently has {current} partition(s); {count} would not be an increase."
        raise ControllerError(ErrorCode.invalid_partitions, message)
    if assignments is not None and len(assignments) != count - current:
        message = (
            f"Attempted to add {count - current} additional partition(s), but only {len(assignments)} assignment(s) "
            "were specified."
        )
        raise ControllerError(ErrorCode.invalid_replica_assignment, message)
