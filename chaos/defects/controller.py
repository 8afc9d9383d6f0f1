"""Defects of the controller: sessions of brokers, what it promises before it is committed, placement, reassignment."""

from collections.abc import Iterable, Sequence
from typing import Any

from chaos.defects.defect import Area
from reference_broker.core.clock import Now
from reference_broker.core.controller import partition_changes, producer_ids, reassignments
from reference_broker.core.controller.controller import Controller
from reference_broker.core.controller.handlers import allocate_producer_ids
from reference_broker.core.controller.heartbeats import Heartbeats
from reference_broker.core.controller.partition_changes import Wanted, _Target
from reference_broker.core.controller.placement import _Racks
from reference_broker.core.controller.reassignments import Reassignment
from reference_broker.core.metadata.image import MetadataImage
from reference_broker.core.node import Node
from reference_broker.core.request import Request
from reference_broker.protocol.metadata_records import (
    MetadataRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
)

_seeds = Area.CONTROLLER.seeds
_next_block = producer_ids.next_block
_place = _Racks.place
_commit = Node._commit
_reverted = reassignments._reverted


@_seeds(Heartbeats, "expired", "no-busy-loop", "not-converged", "unavailable")
def never_fence_the_silent(self: Heartbeats, now: Now) -> list[int]:
    """A broker that is not heard of any more is never fenced.

    What it led has no leader that answers; nobody is elected in its place.
    """
    return []


@_seeds(Heartbeats, "begin", "not-converged", "unavailable")
def forget_sessions_at_a_failover(self: Heartbeats, brokers: Iterable[RegisterBrokerRecord], now: Now) -> None:
    """A new controller watches only the brokers whose heartbeat it has had.

    A broker that ended together with the last controller is never fenced: its partitions stay with a dead leader.
    """
    self._sessions = {}


@_seeds(Controller, "respond_when_committed", "quorum-committed-equal", "lost-write")
def answer_before_it_is_committed(
    self: Controller, request: Request, records: Sequence[MetadataRecord], response: Any, now: Now
) -> Any:
    """The controller answers as soon as it has decided.

    If it is deposed before a majority has the records, what it promised never happens: a topic that was created does
    not exist, an ISR that a leader counts with was never agreed.
    """
    if records:
        self.write(records, lambda _: None, now)
    return response


@_seeds(Node, "_commit", "quorum-committed-equal", "exception", source="KAFKA-12619")
def decide_before_the_epoch_has_begun(self: Node, now: Now) -> None:
    """A controller is active before the first record of its own epoch is committed.

    It may lack what its predecessor had committed, and decides on an image of yesterday.
    """
    if self._epoch_start_offset is not None:
        self._epoch_start_offset = -1
    _commit(self, now)


@_seeds(Node, "_stand_by", "exception", "one-controller-per-epoch")
def stay_active_when_deposed(self: Node, now: Now) -> None:
    """A controller that has lost its quorum keeps its image and goes on deciding.

    Its next decision finds that this node leads no more, and requests that waited are never answered.
    """
    self._epoch_start_offset = None


@_seeds(allocate_producer_ids, "next_block", "ids-unique", "duplicate", "lost-write")
def give_the_last_producer_id_twice(image: MetadataImage, broker_id: int) -> tuple[range, ProducerIdsRecord]:
    """The next block of producer ids begins with the last one of the block before.

    Two producers have one id. The batches of one are taken for repetitions of the other's, acknowledged and not
    written.
    """
    block, record = _next_block(image, broker_id)
    return block, ProducerIdsRecord(
        broker_id=record.broker_id, broker_epoch=record.broker_epoch, next_producer_id=block.stop - 1
    )


@_seeds(allocate_producer_ids, "next_block", "ids-unique", "duplicate", "lost-write")
def give_one_block_to_everybody(image: MetadataImage, broker_id: int) -> tuple[range, ProducerIdsRecord]:
    """Every broker is given the same block of producer ids: how far they are given is not written down.

    Producers that got their ids from different brokers have the same, and each one's batches count as the other's.
    """
    block, record = _next_block(image, broker_id)
    return block, ProducerIdsRecord(
        broker_id=record.broker_id, broker_epoch=record.broker_epoch, next_producer_id=block.start
    )


@_seeds(_Racks, "place", "leader-in-isr", "not-converged", "exception", source="KAFKA-1653")
def place_the_leader_twice(self: _Racks, replication_factor: int) -> tuple[int, ...]:
    """The broker that is to lead a new partition gets its last replica, too.

    The partition has a replica fewer than it says, and an ISR that can never be full.
    """
    replicas = _place(self, replication_factor)
    return (*replicas[:-1], replicas[0]) if len(replicas) > 2 else replicas


@_seeds(
    partition_changes,
    "_with_reassignment_completed",
    "acknowledged-is-committed",
    "watermark-on-isr",
    "lost-write",
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


@_seeds(partition_changes, "_with_reassignment_completed", "not-converged")
def never_complete_a_reassignment(target: _Target) -> _Target:
    """A reassignment goes on for ever, though all new replicas are in sync.

    The replicas that were to go stay, lead, and are waited for.
    """
    return target


@_seeds(reassignments, "_reverted", "not-converged")
def keep_added_replicas_when_giving_up(
    partition: PartitionRecord, asked: Reassignment, *, may_be_unclean: bool
) -> Wanted:
    """A reassignment that is given up leaves the replicas there that it had added.

    The partition has more replicas than its topic, and its ISR waits for them.
    """
    wanted = _reverted(partition, asked, may_be_unclean=may_be_unclean)
    return Wanted(isr=partition.isr, replicas=partition.replicas, removing=(), adding=(), election=wanted.election)
