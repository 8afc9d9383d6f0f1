"""Partition reassignments: begin, replace, complete and cancel.

Follows: org.apache.kafka.controller.PartitionReassignmentReplicas (KIP-455, KIP-860).

During a reassignment `replicas` is the target followed by the replicas to remove. `partition_change` completes the
reassignment when all replicas of the target are in sync. If no replica is added, this may be the case at once.

A new reassignment may replace an ongoing one. The replicas that the old one added are then removed, unless the new
target contains them. A cancellation removes the replicas that the reassignment added. If the ISR has no other members,
the first of the old replicas becomes the leader. This is an unclean election, which must be enabled
(`ReplicationControlManager`, `PartitionReassignmentRevert`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reference_broker.core.controller.assignments import check_assignment
from reference_broker.core.controller.elections import Elections
from reference_broker.core.controller.errors import ControllerError
from reference_broker.core.controller.partition_changes import (
    Election,
    RequestedChange,
    is_reassigning,
    partition_change,
)
from reference_broker.core.metadata.image import MetadataImage
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.metadata_records import PartitionChangeRecord, PartitionRecord


@dataclass(frozen=True, slots=True)
class Reassignment:
    """The requested reassignment of one partition.

    :param replicas: the target; null cancels the ongoing reassignment.
    :param keep_replication_factor: whether the target must have the present number of replicas (KIP-860). Replicas that
        an ongoing reassignment removes do not count.
    """

    topic: str
    index: int
    replicas: Sequence[int] | None
    keep_replication_factor: bool = False


def alter_partition_reassignment(elections: Elections, requested: Reassignment) -> PartitionChangeRecord | None:
    """Return the record that begins, replaces, completes or cancels a reassignment; null if nothing changes.

    Raises `ControllerError`.
    """
    image = elections.image
    if requested.topic not in image.topics:
        raise _unknown(f"Unable to find a topic named {requested.topic}.")
    partition = image.partition(requested.topic, requested.index)
    if partition is None:
        raise _unknown(f"Unable to find partition {requested.topic}:{requested.index}.")
    if requested.replicas is None:
        change = _cancel_partition_reassignment(
            partition,
            requested,
            is_unclean_allowed=elections.unclean_leader_election_enabled_for_topic(requested.topic),
        )
    else:
        check_assignment(image, requested.replicas)
        if requested.keep_replication_factor:
            _check_replication_factor(partition, len(requested.replicas))
        change = _change_partition_reassignment(partition, requested.replicas)
    return partition_change(partition, change, elections.candidates(partition))


def list_partition_reassignments(
    image: MetadataImage, requested: Sequence[tuple[str, Sequence[int]]] | None
) -> Iterator[tuple[str, list[PartitionRecord]]]:
    """Yield each topic that has partitions in reassignment, with these partitions. Unknown partitions are ignored.

    :param requested: topics and partition indexes; null for all.
    """
    if requested is None:
        requested = [(topic.name, list(topic.partitions)) for topic in image.topics.values()]
    for name, indexes in requested:
        partitions = [partition for index in indexes if (partition := image.partition(name, index)) is not None]
        ongoing = [partition for partition in partitions if is_reassigning(partition)]
        if ongoing:
            yield name, ongoing


def _change_partition_reassignment(partition: PartitionRecord, target: Sequence[int]) -> RequestedChange:
    removing = tuple(sorted(set(partition.replicas) - set(target)))
    adding = tuple(sorted(set(target) - set(partition.replicas)))
    return RequestedChange(replicas=(*target, *removing), removing=removing or None, adding=adding or None)


def _cancel_partition_reassignment(
    partition: PartitionRecord, requested: Reassignment, *, is_unclean_allowed: bool
) -> RequestedChange:
    if not is_reassigning(partition):
        raise ControllerError(ErrorCode.no_reassignment_in_progress)
    replicas = tuple(replica for replica in partition.replicas if replica not in partition.adding_replicas)
    isr = tuple(replica for replica in partition.isr if replica not in partition.adding_replicas)
    if not isr:
        if not is_unclean_allowed:
            message = (
                f"Unable to revert partition assignment for {requested.topic}:{requested.index} because it would "
                "require an unclean leader election."
            )
            raise ControllerError(ErrorCode.invalid_replica_assignment, message)
        isr = replicas[:1]
    election = Election.UNCLEAN if is_unclean_allowed else Election.ONLINE
    return RequestedChange(isr=isr, replicas=replicas, removing=(), adding=(), election=election)


def _check_replication_factor(partition: PartitionRecord, replication_factor: int) -> None:
    """Reject another replication factor than the present one. Replicas that are being removed do not count."""
    current = len(partition.replicas) - len(partition.removing_replicas)
    if replication_factor != current:
        message = f"The replication factor is changed from {current} to {replication_factor}"
        raise ControllerError(ErrorCode.invalid_replication_factor, message)


def _unknown(message: str) -> ControllerError:
    return ControllerError(ErrorCode.unknown_topic_or_partition, message)
