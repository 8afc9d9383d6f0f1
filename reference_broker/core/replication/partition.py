"""A partition replica on this broker: its log, and its state as leader or follower.

Follows: kafka.cluster.Partition (KIP-101, KIP-279, KIP-320, KIP-497, KIP-966).

The metadata determines the role. Metadata with an older partition epoch is ignored. A new leader epoch begins a new
leadership, even if the leader stays the same.

A leader
- appends with its leader epoch, and learns the progress of its followers from their fetches (`Followers`).
- advances the high watermark to the smallest log end offset of the maximal ISR, and of the replicas that are caught up
  and eligible for the ISR. Without the latter, the high watermark of a fast leader could stay ahead of such a replica
  indefinitely, and keep it out of the ISR.
- never decreases the high watermark, and does not advance it while the ISR is below `min.insync.replicas` (KIP-966).
- proposes to remove a replica from the ISR that has not been caught up for longer than `replica.lag.time.max.ms`.
- proposes to add a replica to the ISR that has all records below the high watermark and below the start of this leader
  epoch. A replica that ends earlier may lack committed records.

A follower replicates batches, high watermark and log start offset of its leader. It truncates by leader epochs, not to
its high watermark: committed records may lie above that (KIP-101, KIP-279).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from types import MappingProxyType
from uuid import UUID

from reference_broker.core.clock import Now
from reference_broker.core.log.append_validation import ValidatedBatch
from reference_broker.core.log.errors import AppendError
from reference_broker.core.log.leader_epoch_file_cache import UNDEFINED_EPOCH
from reference_broker.core.log.unified_log import Appended, UnifiedLog
from reference_broker.core.replication.brokers import BrokerRun
from reference_broker.core.replication.followers import Followers, ReplicaContext
from reference_broker.core.replication.isr import REACTIONS, IsrState, Reaction
from reference_broker.core.tracer import (
    DuplicateFound,
    FollowerFetchRecorded,
    HighWatermarkUpdated,
    IsrChanged,
    LeaderEpochStarted,
    LogFullyTruncated,
    LogTruncated,
    PartitionEvent,
    RecordsAppended,
    Tracer,
    no_tracer,
)
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.metadata_records import PartitionRecord
from reference_broker.protocol.record_batch import Bytes

NO_EPOCH = -1
"""Leader epoch in a request that has none, and of a partition before its first metadata."""
NO_LEADER = -1
ACKS_ALL = -1


class ReplicaRole(Enum):
    """Role of a replica."""

    OFFLINE = auto()
    """The partition has no leader, or the replica has not received metadata with one."""
    LEADER = auto()
    FOLLOWER = auto()


ROLES: Mapping[ReplicaRole, frozenset[ReplicaRole]] = MappingProxyType(
    {
        ReplicaRole.OFFLINE: frozenset({ReplicaRole.OFFLINE, ReplicaRole.LEADER, ReplicaRole.FOLLOWER}),
        ReplicaRole.LEADER: frozenset({ReplicaRole.LEADER, ReplicaRole.FOLLOWER, ReplicaRole.OFFLINE}),
        ReplicaRole.FOLLOWER: frozenset({ReplicaRole.FOLLOWER, ReplicaRole.LEADER, ReplicaRole.OFFLINE}),
    }
)
"""The possible next roles by role. Metadata can cause any of these transitions."""


@dataclass(frozen=True, slots=True)
class PartitionContext(ReplicaContext):
    """Context that all partitions of a broker share.

    :param propose: proposes an ISR to the controller.
    :param on_progress: called after a change of the leader, the log or a watermark. Delayed operations may be complete.
    :param on_truncated: called after records may have been removed, because the recovery point may be lower.
    """

    propose: "Callable[[Partition, IsrState, Now], None]"
    on_progress: "Callable[[Partition, Now], None]"
    on_truncated: "Callable[[Partition], None]"
    trace: Tracer = no_tracer


class Partition:
    """One replica.

    :ivar flushed_at_ms: monotonic time of the last flush because of `flush.ms`.
    """

    __slots__ = (
        "_context",
        "epoch_start_offset",
        "flushed_at_ms",
        "followers",
        "high_watermark",
        "index",
        "isr",
        "key",
        "leader",
        "leader_epoch",
        "log",
        "min_insync_replicas",
        "partition_epoch",
        "replicas",
        "role",
        "topic",
        "topic_id",
    )

    def __init__(
        self,
        topic: str,
        topic_id: UUID,
        index: int,
        log: UnifiedLog,
        context: PartitionContext,
        *,
        high_watermark: int = 0,
        min_insync_replicas: int = 1,
        flushed_at_ms: int = 0,
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.key = (topic, index)
        self.log = log
        self.flushed_at_ms = flushed_at_ms
        self.min_insync_replicas = min_insync_replicas
        self.role = ReplicaRole.OFFLINE
        self.leader = NO_LEADER
        self.leader_epoch = NO_EPOCH
        self.partition_epoch = -1
        self.replicas: tuple[int, ...] = ()
        self.isr = IsrState.committed(())
        self.epoch_start_offset = 0
        """On a leader: the log end offset when its leader epoch began."""
        self.high_watermark = max(min(high_watermark, log.log_end_offset), log.log_start_offset)
        """Records below this offset are committed: on every replica of the ISR, and visible to consumers."""
        self.followers = Followers(context)
        self._context = context

    # State

    @property
    def is_leader(self) -> bool:
        """Whether this broker is the leader."""
        return self.role is ReplicaRole.LEADER

    @property
    def last_stable_offset(self) -> int:
        """The offset up to which read_committed consumers read: the high watermark, as there are no transactions."""
        return self.high_watermark

    @property
    def log_start_offset(self) -> int:
        """The first offset that can be read."""
        return self.log.log_start_offset

    def check_leader_epoch(self, current_leader_epoch: int) -> ErrorCode:
        """Return the error if a request has an older or newer leader epoch than this replica (KIP-320)."""
        if current_leader_epoch < 0 or current_leader_epoch == self.leader_epoch:
            return ErrorCode.none
        older = current_leader_epoch < self.leader_epoch
        return ErrorCode.fenced_leader_epoch if older else ErrorCode.unknown_leader_epoch

    # Roles

    def apply(self, record: PartitionRecord, now: Now) -> bool:
        """Apply the metadata, and return whether a new leader epoch begins.

        Metadata with the same partition epoch is applied, too: an AlterPartition response may have set only the ISR.
        """
        if record.partition_epoch < self.partition_epoch:
            return False
        is_new_epoch = record.leader_epoch > self.leader_epoch
        was_leader = self.is_leader
        self.role = self._role_in(record)
        self.leader, self.leader_epoch = record.leader, record.leader_epoch
        self.partition_epoch, self.replicas = record.partition_epoch, tuple(record.replicas)
        if self.is_leader:
            self._set_isr(IsrState.committed(record.isr))
            self._lead(is_new_epoch=is_new_epoch, is_new_leader=not was_leader, now=now)
        else:
            self.isr = IsrState.committed(())
            self.followers.clear()
            if is_new_epoch:
                self._context.on_progress(self, now)
        if is_new_epoch:
            self._trace(LeaderEpochStarted, self.leader_epoch, self.leader)
        return is_new_epoch

    def _trace(self, kind: Callable[..., PartitionEvent], *values: object) -> None:
        self._context.trace(kind(self.topic_id, self.topic, self.index, *values))

    def _set_isr(self, isr: IsrState) -> None:
        self.isr = isr
        self._trace(IsrChanged, isr.isr, isr.phase)

    def _set_high_watermark(self, offset: int) -> None:
        self.high_watermark = offset
        self._trace(HighWatermarkUpdated, offset)

    def _role_in(self, record: PartitionRecord) -> ReplicaRole:
        if record.leader == NO_LEADER:
            return ReplicaRole.OFFLINE
        return ReplicaRole.LEADER if record.leader == self._context.node_id else ReplicaRole.FOLLOWER

    def _lead(self, *, is_new_epoch: bool, is_new_leader: bool, now: Now) -> None:
        self.followers.assign(self.replicas)
        if is_new_epoch:
            self.epoch_start_offset = self.log.log_end_offset
            self.log.assign_epoch_start_offset(self.leader_epoch)
            self.followers.reset_replica_states(
                self.isr.isr, self.epoch_start_offset, is_new_leader=is_new_leader, now=now
            )
        if self._maybe_advance_high_watermark(now) or is_new_epoch:
            self._context.on_progress(self, now)

    # Leading

    @property
    def is_under_min_isr(self) -> bool:
        """Whether the ISR is too small to accept acks=all and to commit records."""
        return len(self.isr.isr) < self._effective_min_isr

    @property
    def _effective_min_isr(self) -> int:
        """`min.insync.replicas`, at most the number of replicas."""
        return min(self.min_insync_replicas, len(self.followers) + 1)

    def check_append(self, acks: int) -> None:
        """Raise `AppendError` if this broker is not the leader, or if the ISR is too small for acks=all."""
        if not self.is_leader:
            raise AppendError("NOT_LEADER_OR_FOLLOWER", f"broker {self._context.node_id} does not lead {self.key}")
        if acks == ACKS_ALL and self.is_under_min_isr:
            raise AppendError(
                "NOT_ENOUGH_REPLICAS",
                f"the ISR {sorted(self.isr.isr)} is smaller than min.insync.replicas={self.min_insync_replicas}",
            )

    def append(self, batch: ValidatedBatch, *, acks: int, now: Now) -> Appended:
        """Append a batch as the leader.

        :raises AppendError: as `check_append`; also if the batch contradicts the producer state.
        """
        self.check_append(acks)
        end_offset = self.log.log_end_offset
        appended = self.log.append_validated(batch, leader_epoch=self.leader_epoch, now_ms=now.wall_ms)
        self._maybe_advance_high_watermark(now)
        if self.log.log_end_offset == end_offset:
            self._trace(DuplicateFound, appended.base_offset)
        else:
            self._trace(RecordsAppended, self.log.log_end_offset)
        self._context.on_progress(self, now)
        return appended

    def check_enough_replicas_reach_offset(self, required_offset: int) -> ErrorCode | None:
        """Return the result of acks=all for the records below an offset; null if they are not committed yet.

        The result is NOT_ENOUGH_REPLICAS_AFTER_APPEND (20) if the records are committed, but the maximal ISR is below
        `min.insync.replicas`.
        """
        if not self.is_leader:
            return ErrorCode.not_leader_or_follower
        if self.high_watermark < required_offset:
            return None
        enough = self._effective_min_isr <= len(self.isr.maximal)
        return ErrorCode.none if enough else ErrorCode.not_enough_replicas_after_append

    def update_follower_fetch_state(
        self, run: BrokerRun, offset: int, log_start_offset: int, leader_end_offset: int, now: Now
    ) -> None:
        """Update a follower's progress for a fetch from `offset`, when this log ended at `leader_end_offset`."""
        node_id, follower = run.node_id, self.followers[run.node_id]
        end_before, start_before = follower.end_offset, follower.log_start_offset
        follower.update_fetch_state(offset, log_start_offset, leader_end_offset, run.broker_epoch, now.monotonic_ms)
        self._trace(FollowerFetchRecorded, node_id, now.monotonic_ms)
        if node_id not in self.isr.isr and self._may_join(node_id):
            self._set_isr(self.isr.expanded(node_id))
            self._context.propose(self, self.isr, now)
        advanced = end_before != offset and self._maybe_advance_high_watermark(now)
        if advanced or log_start_offset > start_before:
            self._context.on_progress(self, now)

    def _may_join(self, node_id: int) -> bool:
        from_offset = max(self.high_watermark, self.epoch_start_offset)
        return not self.isr.is_pending and self.followers.may_join(node_id, from_offset)

    def _maybe_advance_high_watermark(self, now: Now) -> bool:
        if self.is_under_min_isr:
            return False
        committed = self.followers.committed_offset(self.log.log_end_offset, self.isr.maximal, now)
        if committed <= self.high_watermark:
            return False
        self._set_high_watermark(committed)
        return True

    def maybe_shrink_isr(self, now: Now) -> None:
        """Propose to remove lagging replicas from the ISR. Called twice in each `replica.lag.time.max.ms`."""
        if not self.is_leader or self.isr.is_pending:
            return
        lagging = self.followers.lagging(self.isr.isr, self.log.log_end_offset, now)
        if lagging:
            self._set_isr(self.isr.shrunk(lagging))
            self._context.propose(self, self.isr, now)

    def handle_alter_partition_update(
        self, proposal: IsrState, *, isr: tuple[int, ...], leader_epoch: int, partition_epoch: int, now: Now
    ) -> None:
        """Apply an accepted proposal, unless newer metadata has arrived before the AlterPartition response."""
        if self.isr is not proposal or leader_epoch != self.leader_epoch or partition_epoch < self.partition_epoch:
            return
        self._set_isr(IsrState.committed(isr))
        self.partition_epoch = partition_epoch
        if self._maybe_advance_high_watermark(now):
            self._context.on_progress(self, now)

    def handle_alter_partition_error(self, proposal: IsrState, error: ErrorCode, now: Now) -> None:
        """Revert, keep or retry a rejected proposal (`REACTIONS`)."""
        if self.isr is not proposal:
            return
        match REACTIONS.get(error, Reaction.RETRY):
            case Reaction.REVERT:
                self._set_isr(proposal.reverted())
            case Reaction.RETRY:
                self._context.propose(self, proposal, now)
            case Reaction.AWAIT_METADATA:
                pass

    def delete_records_on_leader(self, offset: int, now: Now) -> None:
        """Advance the log start offset (DeleteRecords). Followers do the same at their next fetch."""
        self.log.maybe_increment_log_start_offset(offset)
        self._context.on_progress(self, now)

    @property
    def low_watermark(self) -> int:
        """Smallest log start offset of the leader and of all unfenced followers. DeleteRecords waits for it."""
        return self.followers.low_watermark(self.log_start_offset)

    # Following

    def replicate(self, records: Bytes, high_watermark: int, log_start_offset: int, now: Now) -> None:
        """Append the records of a fetch response, and update high watermark and log start offset.

        :raises AppendError: the batches are corrupt, or do not continue this log.
        """
        if records:
            recovery_point = self.log.recovery_point
            self.log.append_as_follower(records, leader_epoch=self.leader_epoch, now_ms=now.wall_ms)
            if self.log.recovery_point < recovery_point:  # the log was empty, and was restarted at a lower offset
                self._context.on_truncated(self)
        new_high_watermark = max(min(high_watermark, self.log.log_end_offset), self.log_start_offset)
        if log_start_offset > self.log_start_offset:
            self.log.maybe_increment_log_start_offset(min(log_start_offset, new_high_watermark))
        if new_high_watermark != self.high_watermark:
            self._set_high_watermark(new_high_watermark)
            self._context.on_progress(self, now)
        if records:
            self._trace(RecordsAppended, self.log.log_end_offset)

    def truncation_offset(self, leader_epoch: int, end_offset: int) -> int:
        """Return the truncation offset for a diverging epoch of the leader and the end offset of that epoch (KIP-279).

        If this log lacks that epoch, all records after the next smaller epoch are removed, and the next fetch compares
        the logs again.
        """
        own_epoch, own_end_offset = self.log.end_offset_for_epoch(leader_epoch)
        if own_epoch == UNDEFINED_EPOCH:
            return min(end_offset, self.log.log_end_offset)
        if own_epoch != leader_epoch:
            return min(own_end_offset, self.log.log_end_offset)
        return min(end_offset, own_end_offset, self.log.log_end_offset)

    def truncate_to(self, offset: int, now: Now) -> None:
        """Remove the batch that contains an offset, and all later ones."""
        end_offset = self.log.log_end_offset
        self.log.truncate_to(offset, now.wall_ms)
        self._context.on_truncated(self)
        if self.log.log_end_offset < self.high_watermark:
            self._set_high_watermark(self.log.log_end_offset)
        if self.log.log_end_offset < end_offset:
            self._trace(LogTruncated, self.log.log_end_offset)

    def truncate_fully_and_start_at(self, offset: int, now: Now) -> None:
        """Remove all records, because the leader's log start offset, `offset`, is above this log's end."""
        self.log.truncate_fully_and_start_at(offset, now.wall_ms)
        self._context.on_truncated(self)
        self._set_high_watermark(offset)
        self._trace(LogFullyTruncated, offset)
