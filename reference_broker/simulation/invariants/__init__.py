"""Invariants of a simulated cluster, checked after every event: the safety conditions.

    invariants = Invariants(cluster)         # from now on the scheduler's step raises `InvariantViolation`
    invariants.acknowledged("orders", 0, 17, crc=batch_crc)
    invariants.allow_loss(2)                 # node 2's disk was damaged
    ...
    reason = converged(cluster)              # liveness: must become None within the caller's time limit
    invariants.check_end()                   # once, at the end: includes checks that are too slow for every event

`watch` finds the changes that an event has made in a node. The other modules check these changes. The docstring of each
module lists its invariants.
"""

from uuid import UUID

from reference_broker.core.replication.replica_fetcher import FetchResponseProcessed
from reference_broker.core.tracer import (
    ChannelDisconnected,
    FollowerFetchRecorded,
    HighWatermarkUpdated,
    LogFullyTruncated,
    RecordsAppended,
    RequestCompleted,
    RequestDecided,
    RequestReceived,
    RequestSent,
    ResponseSent,
)
from reference_broker.simulation.cluster import SimulatedCluster
from reference_broker.simulation.invariants.applied_metadata import AppliedMetadataInvariants
from reference_broker.simulation.invariants.committed import CommittedInvariants
from reference_broker.simulation.invariants.controlled_shutdown import ControlledShutdownInvariants
from reference_broker.simulation.invariants.controller_responses import check_controller_response
from reference_broker.simulation.invariants.convergence import converged
from reference_broker.simulation.invariants.files import FilesInvariants, check_full_truncation
from reference_broker.simulation.invariants.final_checks import check_at_the_end
from reference_broker.simulation.invariants.follower_progress import FollowerProgressInvariants
from reference_broker.simulation.invariants.forwarding import ForwardingInvariants
from reference_broker.simulation.invariants.group_offsets import GroupOffsetInvariants
from reference_broker.simulation.invariants.health import HealthInvariants, check_channel_timeout, check_idle
from reference_broker.simulation.invariants.metadata import MetadataInvariants
from reference_broker.simulation.invariants.metadata_responses import check_metadata_response
from reference_broker.simulation.invariants.oracle import OracleInvariants, check_checkpoints, check_replica
from reference_broker.simulation.invariants.partitions import PartitionInvariants
from reference_broker.simulation.invariants.quorum import QuorumInvariants
from reference_broker.simulation.invariants.quorum_responses import check_quorum_response
from reference_broker.simulation.invariants.quorum_watch import QuorumWatch
from reference_broker.simulation.invariants.rejected_truncation import check_truncation_is_rejected
from reference_broker.simulation.invariants.reopening import ReopeningInvariants
from reference_broker.simulation.invariants.requests import check_request
from reference_broker.simulation.invariants.responses import check_response
from reference_broker.simulation.invariants.retention import RetentionInvariants
from reference_broker.simulation.invariants.rolling import RollingInvariants
from reference_broker.simulation.invariants.sent_requests import SentRequestInvariants
from reference_broker.simulation.invariants.stale_responses import check_stale_response
from reference_broker.simulation.invariants.timeliness import TimelinessInvariants
from reference_broker.simulation.invariants.violation import InvariantViolation
from reference_broker.simulation.invariants.waiting import WaitingInvariants
from reference_broker.simulation.invariants.watch import Watch, Watched
from reference_broker.simulation.invariants.watermark import (
    RestoredWatermarkInvariant,
    check_leader_is_followed,
    check_min_isr,
    check_watermark_follows,
)

__all__ = ["InvariantViolation", "Invariants", "converged"]


class Invariants:
    """All invariants of a cluster. They are checked from the creation of this object on.

    :ivar watch: notifies the invariants of changes in the nodes. Other observers may subscribe, too.
    :ivar is_void: whether the quorum has violated an invariant after a disk had lost content. If so, the quorum, the
        metadata and the partitions are no longer checked.
    """

    def __init__(self, cluster: SimulatedCluster) -> None:
        self.watch = Watch(cluster)
        self.is_void = False
        self.partitions = PartitionInvariants(self.watch)
        self.metadata = MetadataInvariants(self.partitions, cluster.properties)
        fetch_timeout_ms = next(iter(cluster.nodes.values())).quorum.config.fetch_timeout_ms
        voters = [node_id for node_id, role in cluster.roles.items() if "controller" in role]
        self.quorum = QuorumWatch(QuorumInvariants(voters, 3 * fetch_timeout_ms), self._give_up)
        self.groups = GroupOffsetInvariants(self.watch, self.partitions)
        committed, timeliness, waiting = CommittedInvariants(), TimelinessInvariants(cluster), WaitingInvariants()
        self.quorum.subscribe(self.watch)
        forwarding = ForwardingInvariants()
        for check in (check_response, check_metadata_response, check_quorum_response, forwarding.on_response):
            self.watch.subscribe(ResponseSent, check)
        for observer in (committed, timeliness, waiting):
            self.watch.subscribe(ResponseSent, observer.on_response)
        self.watch.subscribe(RequestReceived, waiting.on_request)
        sent = SentRequestInvariants()
        self.watch.subscribe(RequestSent, check_request)
        self.watch.subscribe(RequestSent, sent.on_request)
        self.watch.subscribe(RequestCompleted, sent.on_completion)
        self.watch.subscribe(FetchResponseProcessed, sent.on_records)
        self.watch.subscribe(RequestDecided, check_controller_response)
        for decided in (committed, timeliness, ControlledShutdownInvariants()):
            self.watch.subscribe(RequestDecided, decided.on_decision)
        self.watch.subscribe(ChannelDisconnected, check_channel_timeout)
        self.watch.subscribe(FetchResponseProcessed, check_stale_response)
        self.watch.subscribe(FetchResponseProcessed, check_leader_is_followed)
        self.watch.subscribe(FollowerFetchRecorded, FollowerProgressInvariants().on_fetch)
        self.watch.subscribe(LogFullyTruncated, check_full_truncation)
        self.watch.subscribe(RecordsAppended, check_watermark_follows)
        self.watch.subscribe(HighWatermarkUpdated, check_min_isr)
        self.watch.observers += [
            self.quorum,
            self.metadata,
            self.partitions,
            HealthInvariants(),
            committed,
            AppliedMetadataInvariants(),
            FilesInvariants(),
            OracleInvariants(),
            RestoredWatermarkInvariant(),
            RollingInvariants(),
            RetentionInvariants(),
            ReopeningInvariants(),
            timeliness,
            waiting,
            sent,
        ]

    def acknowledged(
        self, topic: str, partition: int, offset: int, *, epoch: int | None = None, crc: int | None = None
    ) -> None:
        """Record that a producer with acks=all received the acknowledgement of the record at an offset.

        :param epoch: the leader epoch; None if unknown.
        :param crc: the checksum of the batch; None if unknown.
        """
        if not self.is_void:
            self.partitions.acknowledged((topic, partition), offset, epoch=epoch, crc=crc)

    def committed_group_offset(self, group: str, topic: str, partition: int, offset: int) -> None:
        """Record that a client received a response without error to an OffsetCommit."""
        if not self.is_void:
            self.groups.acknowledged(group, topic, partition, offset)

    def may_differ(self, topic_id: UUID, partition: int, offset: int) -> bool:
        """Whether replicas of a partition may have different batches at an offset (`Ledger.may_differ`)."""
        ledger = self.partitions.ledgers.get((topic_id, partition))
        return ledger is not None and ledger.may_differ(offset)

    def allow_loss(self, node_id: int) -> None:
        """Permit the loss of a node's records. Power cuts and wiped disks are detected without this call."""
        self.partitions.allow_loss(node_id)

    def allow_unclean_election(self, topic: str, partition: int) -> None:
        """Permit the next unclean election of a partition. Elections that the configuration permits need no call."""
        self.metadata.permitted_unclean.add(f"{topic}-{partition}")

    def check_everything(self) -> None:
        """Run all checks, including those that do not run after every event."""
        self.watch.look_at_everything()
        if self.is_void:
            return
        for watched in self.watch.nodes.values():
            if watched.node is not None:
                self.quorum.check_everything(watched)
                self.metadata.compare_all(watched)
                self._check_logs(watched)
        self.groups.check_everything()

    def check_idle(self) -> None:
        """Check everything, and that each node is idle. No client may be connected, and the cluster must be healthy."""
        self.check_everything()
        for watched in self.watch.nodes.values():
            if watched.node is not None:
                check_idle(watched)

    def check_end(self) -> None:
        """Check everything, and test each node with rare inputs (`final_checks`). Do not use the cluster afterwards."""
        self.check_everything()
        for watched in self.watch.nodes.values():
            if watched.node is not None:
                check_truncation_is_rejected(watched)
                check_at_the_end(watched)

    def _check_logs(self, watched: Watched) -> None:
        for replica in watched.open:
            check_replica(watched, replica)
        check_checkpoints(f"node {watched.node_id}", watched.machine.disk)

    def _give_up(self) -> None:
        """Stop the checks of the quorum, the metadata and the partitions, because a disk has lost content."""
        self.is_void = True
        self.watch.observers = [
            observer
            for observer in self.watch.observers
            if observer not in (self.quorum, self.metadata, self.partitions)
        ]
