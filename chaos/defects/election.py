"""Defects of elections: the elected leader and its epoch."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from chaos.defects.defect import Area
from reference_broker.core.clock import Now
from reference_broker.core.controller import partition_changes
from reference_broker.core.controller.elections import Elections
from reference_broker.core.controller.partition_changes import Candidates, Election, RequestedChange
from reference_broker.core.controller.periodic_tasks import PeriodicTasks
from reference_broker.core.controller.placement import log_directory
from reference_broker.core.metadata import image
from reference_broker.protocol.metadata_records import (
    NO_LEADER,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
)

_seeds = Area.ELECTION.seeds
_changed = image.changed
_elect = partition_changes._elect


@_seeds(
    Elections, "unclean_leader_election_enabled_for_topic", "clean-election", "lost-write", source="KIP-106, KAFKA-4623"
)
def elect_uncleanly_always(self: Elections, topic: str) -> bool:
    """`unclean.leader.election.enable` is always true.

    While the replicas in sync are down, a lagging one is elected, and the records that it lacks are lost, although the
    topic does not permit it.
    """
    return True


@_seeds(PeriodicTasks, "records_written", "unclean-at-once")
def elect_uncleanly_at_the_interval_only(self: PeriodicTasks, records: Sequence[MetadataRecord], now: Now) -> None:
    """A change of `unclean.leader.election.enable` has no effect before the next periodic unclean elections.

    If an administrator permits unclean elections to make a partition available, the partition has no leader for up to
    five more minutes (`unclean.leader.election.interval.ms`).
    """


@_seeds(
    partition_changes,
    "_elect",
    "leader-in-isr",
    "clean-election",
    "acknowledged-is-committed",
    "watermark-on-isr",
    "lost-write",
)
def elect_without_looking_at_the_isr(
    partition: PartitionRecord,
    target: partition_changes._Target,
    election: Election,
    is_acceptable: Callable[[int], bool],
) -> tuple[int, bool]:
    """The leader stays if it is alive; else the first replica that is alive is elected, in sync or not.

    If a lagging replica becomes leader, the committed records that it lacks are lost.
    """
    in_order = (partition.leader, *target.replicas)
    found = (replica for replica in in_order if replica in target.replicas and is_acceptable(replica))
    return next(found, NO_LEADER), False


@_seeds(
    partition_changes,
    "_elect",
    "leader-in-isr",
    "clean-election",
    "lost-write",
    "controller-response",
    source="KIP-460",
)
def prefer_a_replica_that_lags(
    partition: PartitionRecord,
    target: partition_changes._Target,
    election: Election,
    is_acceptable: Callable[[int], bool],
) -> tuple[int, bool]:
    """A preferred election makes the first replica leader as soon as it is alive, without waiting for it to catch up.

    Balancing the leaders after a broker's restart loses records that were written while it was down.
    """
    if election is Election.PREFERRED and is_acceptable(target.replicas[0]):
        return target.replicas[0], False
    return _elect(partition, target, election, is_acceptable)


@_seeds(image, "changed", "partition-epochs-grow", "one-leader-per-epoch", "two-leaders", "exception", "record-effect")
def lead_in_the_same_epoch(partition: PartitionRecord, change: PartitionChangeRecord) -> PartitionRecord:
    """A change of leader does not begin a new leader epoch.

    The records of the old and the new leader have the same epoch: requests are not fenced, followers do not truncate,
    and two brokers acknowledge writes in one epoch.
    """
    after = _changed(partition, change)
    return replace(after, leader_epoch=partition.leader_epoch)


@_seeds(Elections, "candidates", "fenced-in-isr", "unavailable", source="KIP-841")
def elect_a_fenced_broker(
    self: Elections, partition: PartitionRecord, *, broker_to_remove: int = NO_LEADER, broker_to_add: int = NO_LEADER
) -> Candidates:
    """Any registered broker may be elected, even if it is fenced or is shutting down.

    A partition has a leader that is down. Its producers wait until that broker restarts.
    """
    return Candidates(
        lambda broker_id: broker_id != broker_to_remove and broker_id in self.image.brokers,
        lambda broker_id: log_directory(self.image, broker_id),
    )


@_seeds(Elections, "elect_leaderless", "not-converged", "unavailable")
def leave_partitions_without_a_leader(self: Elections, broker_id: int) -> list[PartitionChangeRecord]:
    """No leader is elected for leaderless partitions when a broker is unfenced.

    A partition whose in-sync replicas were all down at one time stays without a leader after their restart.
    """
    return []


@_seeds(
    Elections,
    "remove_from_isrs",
    "clean-election",
    "acknowledged-is-committed",
    "watermark-on-isr",
    "lost-write",
    source="KIP-966",
)
def let_the_last_in_sync_go(self: Elections, broker_id: int) -> list[PartitionChangeRecord]:
    """When the last in-sync replica is fenced, all other active replicas replace it in the ISR.

    They lack records that only it had. One of them is elected, apparently cleanly, and committed records are lost.
    """
    changes = []
    for partition in self.image.partitions():
        if broker_id in partition.isr:
            left = tuple(node for node in partition.isr if node != broker_id)
            isr = left or tuple(node for node in partition.replicas if node != broker_id and self.image.is_active(node))
            changes.append(self._change(partition, RequestedChange(isr=isr), broker_to_remove=broker_id))
    return [change for change in changes if change is not None]


@_seeds(Elections, "remove_from_isrs", "fenced-in-isr", "unavailable", "two-leaders")
def keep_a_leader_that_goes(self: Elections, broker_id: int) -> list[PartitionChangeRecord]:
    """A fenced broker leaves the ISR of partitions that other brokers lead, and continues to lead its own partitions.

    These partitions have no reachable leader until the broker restarts.
    """
    return [
        change
        for partition in self.image.partitions()
        if broker_id in partition.isr
        and partition.leader != broker_id
        and (isr := tuple(node for node in partition.isr if node != broker_id))
        and (change := self._change(partition, RequestedChange(isr=isr), broker_to_remove=broker_id)) is not None
    ]


@_seeds(partition_changes, "_elect", "leader-in-isr", "exception", "log-matching")
def keep_the_old_isr_after_an_unclean_election(
    partition: PartitionRecord,
    target: partition_changes._Target,
    election: Election,
    is_acceptable: Callable[[int], bool],
) -> tuple[int, bool]:
    """An unclean election does not change the ISR, which does not contain the new leader.

    Replicas with records that the new leader lacks count as in sync. If the next election makes one of them the leader,
    these records are back, at offsets at which other records were acknowledged in the meantime.
    """
    leader, _ = _elect(partition, target, election, is_acceptable)
    return leader, False
