"""Moving partitions to other replicas (KIP-455), and giving that up.

While replicas are being added and removed a partition has them all: `replicas` is the target followed by what is to go.
It is done once the target is in sync, which `partition_change` sees to: it may be so at once, where replicas only go or
change places. Kafka's code: `ReplicationControlManager.alterPartitionReassignments`, `PartitionReassignmentReplicas`,
`PartitionReassignmentRevert`.

Another reassignment may take the place of one that is under way: what that one was adding is then to be removed.
Giving one up takes out what it was adding. If only those were in sync, the first of the old replicas must lead without
being in sync, which is an unclean election and has to be allowed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reference_broker.core.controller.assignments import check_assignment
from reference_broker.core.controller.elections import Elections
from reference_broker.core.controller.errors import ControllerError
from reference_broker.core.controller.partition_changes import Election, Wanted, is_reassigning, partition_change
from reference_broker.core.metadata.image import MetadataImage
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.metadata_records import PartitionChangeRecord, PartitionRecord


@dataclass(frozen=True, slots=True)
class Reassignment:
    """What is asked for one partition.

    :param replicas: the target; null gives up the reassignment that is under way.
    :param keep_replication_factor: the target must have as many replicas as there are now (KIP-860).
    """

    topic: str
    index: int
    replicas: Sequence[int] | None
    keep_replication_factor: bool = False


def reassign(elections: Elections, asked: Reassignment) -> PartitionChangeRecord | None:
    """The record that begins, replaces, completes or ends it; null if there is nothing to do.

    Raises `ControllerError`.
    """
    image = elections.image
    if asked.topic not in image.topics:
        raise _unknown(f"Unable to find a topic named {asked.topic}.")
    partition = image.partition(asked.topic, asked.index)
    if partition is None:
        raise _unknown(f"Unable to find partition {asked.topic}:{asked.index}.")
    if asked.replicas is None:
        wanted = _reverted(partition, asked, may_be_unclean=elections.may_be_unclean(asked.topic))
    else:
        check_assignment(image, asked.replicas)
        if asked.keep_replication_factor:
            _check_replication_factor(partition, len(asked.replicas))
        wanted = _begun(partition, asked.replicas)
    return partition_change(partition, wanted, elections.candidates(partition))


def reassigning(
    image: MetadataImage, asked: Sequence[tuple[str, Sequence[int]]] | None
) -> Iterator[tuple[str, list[PartitionRecord]]]:
    """The partitions under way: all, or those that were asked for, by topic. What does not exist is passed over."""
    if asked is None:
        asked = [(topic.name, list(topic.partitions)) for topic in image.topics.values()]
    for name, indexes in asked:
        there = [partition for index in indexes if (partition := image.partition(name, index)) is not None]
        under_way = [partition for partition in there if is_reassigning(partition)]
        if under_way:
            yield name, under_way


def _begun(partition: PartitionRecord, target: Sequence[int]) -> Wanted:
    removing = tuple(sorted(set(partition.replicas) - set(target)))
    adding = tuple(sorted(set(target) - set(partition.replicas)))
    return Wanted(replicas=(*target, *removing), removing=removing or None, adding=adding or None)


def _reverted(partition: PartitionRecord, asked: Reassignment, *, may_be_unclean: bool) -> Wanted:
    if not is_reassigning(partition):
        raise ControllerError(ErrorCode.no_reassignment_in_progress)
    replicas = tuple(replica for replica in partition.replicas if replica not in partition.adding_replicas)
    isr = tuple(replica for replica in partition.isr if replica not in partition.adding_replicas)
    if not isr:
        if not may_be_unclean:
            message = (
                f"Unable to revert partition assignment for {asked.topic}:{asked.index} because it would require an "
                "unclean leader election."
            )
            raise ControllerError(ErrorCode.invalid_replica_assignment, message)
        isr = replicas[:1]
    election = Election.UNCLEAN if may_be_unclean else Election.ONLINE
    return Wanted(isr=isr, replicas=replicas, removing=(), adding=(), election=election)


def _check_replication_factor(partition: PartitionRecord, asked: int) -> None:
    """Against what there will be once the reassignment under way is done."""
    there = len(partition.replicas) - len(partition.removing_replicas)
    if asked != there:
        message = f"The replication factor is changed from {there} to {asked}"
        raise ControllerError(ErrorCode.invalid_replication_factor, message)


def _unknown(message: str) -> ControllerError:
    return ControllerError(ErrorCode.unknown_topic_or_partition, message)
