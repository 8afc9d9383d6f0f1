"""Defects of the controller: sessions of brokers, what it promises before it is committed, placement, reassignment."""

from chaos.defects.defect import Area
from reference_broker.core.clock import Now
from reference_broker.core.controller import partition_changes, reassignments
from reference_broker.core.controller.broker_heartbeat_manager import BrokerHeartbeatManager
from reference_broker.core.controller.handlers import allocate_producer_ids
from reference_broker.core.controller.partition_changes import _Target
from reference_broker.core.controller.placement import _RackList
from reference_broker.core.metadata.image import MetadataImage
from reference_broker.core.node import Node
from reference_broker.protocol.metadata_records import (
    ProducerIdsRecord,
)

_seeds = Area.CONTROLLER.seeds
_next_block = allocate_producer_ids.next_block
_place = _RackList.place
_commit = Node._commit
_reverted = reassignments._cancel_partition_reassignment


@_seeds(BrokerHeartbeatManager, "stale_brokers", "no-busy-loop", "not-converged", "unavailable")
def never_fence_the_silent(self: BrokerHeartbeatManager, now: Now) -> list[int]:
    """A broker that is not heard of any more is never fenced.

    What it led has no leader that answers; nobody is elected in its place.
    """
    return []


@_seeds(Node, "_stand_by", "exception", "one-controller-per-epoch")
def stay_active_when_deposed(self: Node, now: Now) -> None:
    """A controller that has lost its quorum keeps its image and goes on deciding.

    Its next decision finds that this node leads no more, and requests that waited are never answered.
    """
    self._epoch_start_offset = None


@_seeds(allocate_producer_ids, "next_block", "ids-unique", "duplicate", "lost-write", "controller-response")
def give_one_block_to_everybody(image: MetadataImage, broker_id: int) -> tuple[range, ProducerIdsRecord]:
    """Every broker is given the same block of producer ids: how far they are given is not written down.

    Producers that got their ids from different brokers have the same, and each one's batches count as the other's.
    """
    block, record = _next_block(image, broker_id)
    return block, ProducerIdsRecord(
        broker_id=record.broker_id, broker_epoch=record.broker_epoch, next_producer_id=block.start
    )


@_seeds(_RackList, "place", "leader-in-isr", "not-converged", "exception", "controller-response", source="KAFKA-1653")
def place_the_leader_twice(self: _RackList, replication_factor: int) -> tuple[int, ...]:
    """The broker that is to lead a new partition gets its last replica, too.

    The partition has a replica fewer than it says, and an ISR that can never be full.
    """
    replicas = _place(self, replication_factor)
    return (*replicas[:-1], replicas[0]) if len(replicas) > 2 else replicas


@_seeds(partition_changes, "_with_reassignment_completed", "not-converged")
def never_complete_a_reassignment(target: _Target) -> _Target:
    """A reassignment goes on for ever, though all new replicas are in sync.

    The replicas that were to go stay, lead, and are waited for.
    """
    return target


@_seeds(
    partition_changes,
    "_with_reassignment_completed",
    "moved-in-sync",
    "acknowledged-is-committed",
    source="KAFKA-15665",
)
def complete_a_reassignment_early(target: _Target) -> _Target:
    """A reassignment is complete when one of the new replicas is in sync, not when all are.

    The old ones go with their data while the others have not caught up. If the one that has it ends, records are lost.
    """
    isr = tuple(replica for replica in target.isr if replica not in target.removing)
    replicas = tuple(replica for replica in target.replicas if replica not in target.removing)
    is_complete = (target.removing or target.adding) and isr and replicas
    return _Target(isr, replicas, (), ()) if is_complete else target
