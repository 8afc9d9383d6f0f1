"""Defects of the controller: broker sessions, resignation, producer ids, replica placement, reassignment."""

from typing import Any

from chaos.defects.defect import Area
from reference_broker.core.clock import Now
from reference_broker.core.controller import partition_changes
from reference_broker.core.controller.broker_heartbeat_manager import BrokerHeartbeatManager
from reference_broker.core.controller.elections import Elections
from reference_broker.core.controller.handlers import allocate_producer_ids, broker_registration
from reference_broker.core.controller.partition_changes import _Target
from reference_broker.core.controller.placement import _RackList
from reference_broker.core.controller.registrations import register_broker
from reference_broker.core.metadata.image import MetadataImage
from reference_broker.core.node import Node
from reference_broker.protocol.metadata_records import (
    MetadataRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
)

_seeds = Area.CONTROLLER.seeds
_next_block = allocate_producer_ids.next_block
_place = _RackList.place


@_seeds(BrokerHeartbeatManager, "stale_brokers", "no-busy-loop", "not-converged", "unavailable")
def never_fence_inactive_brokers(self: BrokerHeartbeatManager, now: Now) -> list[int]:
    """A broker that sends no heartbeats is never fenced.

    If it has stopped, it stays the leader of its partitions, and no other leader is elected.
    """
    return []


@_seeds(broker_registration, "register_broker", "controller-response")
def keep_a_new_incarnation_in_its_isrs(
    registration: Any, elections: Elections, **conditions: Any
) -> tuple[list[MetadataRecord], RegisterBrokerRecord]:
    """A broker that restarts before the controller fences it stays in its ISRs, and stays the leader of its partitions.

    It may have lost records in a power cut. If it stays the leader, the other replicas lose these records, too.
    """
    _, record = register_broker(registration, elections, **conditions)
    return [record], record


@_seeds(Node, "_renounce", "exception", "one-controller-per-epoch")
def stay_active_when_deposed(self: Node, now: Now) -> None:
    """A controller that has lost its quorum keeps its image and continues to process requests.

    Its next append fails, since the node no longer leads the quorum. Pending requests never get a response.
    """
    self._epoch_start_offset = None


@_seeds(allocate_producer_ids, "next_block", "ids-unique", "duplicate", "lost-write", "controller-response")
def give_one_block_to_all_brokers(image: MetadataImage, broker_id: int) -> tuple[range, ProducerIdsRecord]:
    """Every broker gets the same block of producer ids, since the end of the block is not recorded.

    Producers that get their ids from different brokers have the same id, and no broker can distinguish their batches.
    """
    block, record = _next_block(image, broker_id)
    return block, ProducerIdsRecord(
        broker_id=record.broker_id, broker_epoch=record.broker_epoch, next_producer_id=block.start
    )


@_seeds(_RackList, "place", "leader-in-isr", "not-converged", "exception", "controller-response", source="KAFKA-1653")
def place_the_leader_twice(self: _RackList, replication_factor: int) -> tuple[int, ...]:
    """The last replica of a new partition is on the same broker as the first, if there are at least three.

    The partition has one replica fewer than requested, and its ISR is never complete.
    """
    replicas = _place(self, replication_factor)
    return (*replicas[:-1], replicas[0]) if len(replicas) > 2 else replicas


@_seeds(partition_changes, "_with_reassignment_completed", "not-converged")
def never_complete_a_reassignment(target: _Target) -> _Target:
    """A reassignment never completes, although all new replicas are in sync.

    The old replicas stay in the ISR, and may lead the partition.
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
    """A reassignment is completed when the first of the target replicas is in sync, although others are not.

    The old replicas are removed before all target replicas have caught up. If the only replica in sync fails, records
    are lost.
    """
    isr = tuple(replica for replica in target.isr if replica not in target.removing)
    replicas = tuple(replica for replica in target.replicas if replica not in target.removing)
    is_complete = (target.removing or target.adding) and isr and replicas
    return _Target(isr, replicas, (), ()) if is_complete else target


@_seeds(BrokerHeartbeatManager, "_others_caught_up", "others-caught-up", source="KIP-841")
def end_before_the_others_know(self: BrokerHeartbeatManager, broker_id: int) -> bool:
    """A controlled shutdown ends as soon as the broker leads no partition.

    Other brokers may not have applied the change of leaders yet. They still direct clients to the stopped broker, and
    still fetch from it.
    """
    return True
