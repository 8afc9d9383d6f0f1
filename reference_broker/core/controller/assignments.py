"""Manual replica assignments, and new partitions on given replicas.

Follows: org.apache.kafka.controller.ReplicationControlManager.
"""

from collections.abc import Sequence
from uuid import UUID

from reference_broker.core.controller.errors import ControllerError
from reference_broker.core.controller.placement import log_directory
from reference_broker.core.metadata.image import MetadataImage
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.metadata_records import PartitionRecord


def check_assignment(image: MetadataImage, replicas: Sequence[int], replication_factor: int | None = None) -> None:
    """Raise `ControllerError` with INVALID_REPLICA_ASSIGNMENT unless the replicas are distinct, registered brokers.

    :param replication_factor: required number of replicas; if it is null, any number except 0 is valid.
    """
    if not replicas:
        raise _invalid("The manual partition assignment includes an empty replica list.")
    previous = None
    for node_id in sorted(replicas):
        if node_id not in image.brokers:
            raise _invalid(
                f"The manual partition assignment includes broker {node_id}, but no such broker is registered."
            )
        if node_id == previous:
            raise _invalid(f"The manual partition assignment includes the broker {node_id} more than once.")
        previous = node_id
    if replication_factor is not None and len(replicas) != replication_factor:
        raise _invalid(
            f"The manual partition assignment includes a partition with {len(replicas)} replica(s), but this is not "
            f"consistent with previous partitions, which have {replication_factor} replica(s)."
        )


def new_partition(image: MetadataImage, topic_id: UUID, index: int, replicas: Sequence[int]) -> PartitionRecord:
    """Return a new partition: its active replicas are in sync, and the first of them leads.

    At least one replica must be active.
    """
    isr = tuple(filter(image.is_active, replicas))
    return PartitionRecord(
        partition_id=index,
        topic_id=topic_id,
        replicas=tuple(replicas),
        isr=isr,
        leader=isr[0],
        leader_epoch=0,
        partition_epoch=0,
        directories=tuple(log_directory(image, node_id) for node_id in replicas),
    )


def _invalid(message: str) -> ControllerError:
    return ControllerError(ErrorCode.invalid_replica_assignment, message)
