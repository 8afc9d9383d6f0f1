"""Defects of replication: truncation and appends of followers, high watermarks and responses of leaders.

A replacement that copies a function of the broker differs from it only in the defect
(`tests/chaos/defects/test_copies.py`).
"""

from typing import Any

from chaos.defects.defect import Area
from reference_broker.core.clock import Now
from reference_broker.core.replication import requests
from reference_broker.core.replication.fetch_state import PartitionFetchState
from reference_broker.core.replication.follower_progress import FollowerProgress
from reference_broker.core.replication.followers import Followers
from reference_broker.core.replication.partition import Partition, ReplicaRole
from reference_broker.core.replication.partition_reader import PartitionReader
from reference_broker.core.replication.replica_fetcher import ReplicaFetcher
from reference_broker.core.tracer import LogTruncated, RecordsAppended
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.metadata_records import PartitionRecord
from reference_broker.protocol.record_batch import Bytes
from reference_broker.protocol.schemas import request_schema

_seeds = Area.REPLICATION.seeds
_apply = Partition.apply
_update_fetch_state = FollowerProgress.update_fetch_state
_check_enough_replicas_reach_offset = Partition.check_enough_replicas_reach_offset


@_seeds(
    Partition,
    "apply",
    "acknowledged-is-committed",
    "watermark-on-isr",
    "lost-write",
    "committed-stays",
    source="KIP-101, KAFKA-1211",
)
def truncate_to_high_watermark(self: Partition, record: PartitionRecord, now: Now) -> bool:
    """A replica that becomes a follower truncates its log to its high watermark, instead of by leader epochs.

    The follower's high watermark lags. If the new leader fails before the follower has fetched the removed records
    again, the follower may be elected: then acknowledged records are lost.
    """
    is_new_epoch = _apply(self, record, now)
    if is_new_epoch and self.role is ReplicaRole.FOLLOWER:
        self.truncate_to(self.high_watermark, now)
    return is_new_epoch


@_seeds(PartitionReader, "diverging_epoch", "log-matching", "not-converged", source="KIP-101")
def see_no_divergence(partition: Partition, request: Any) -> tuple[int, int] | None:
    """A leader does not compare the epoch of a follower's last record with its own log.

    A follower whose log diverges appends after its own records, and keeps them: replicas have different records at the
    same offsets.
    """
    return None


@_seeds(requests, "_fetch_partition", "log-matching", "not-converged", "request-matches-state", source="KAFKA-15510")
def fetch_with_the_leaders_epoch(state: PartitionFetchState, offset: int, max_bytes: int) -> Any:
    """A follower sends the current leader epoch as the epoch of its last record.

    Then the leader never finds a divergence. Records that no other replica has stay in the follower's log.
    """
    return request_schema(1, 18).FetchPartition(
        partition=state.partition.index,
        current_leader_epoch=state.leader_epoch,
        fetch_offset=offset,
        last_fetched_epoch=state.leader_epoch if state.partition.log.latest_epoch >= 0 else -1,
        log_start_offset=state.partition.log_start_offset,
        partition_max_bytes=max_bytes,
    )


@_seeds(Followers, "committed_offset", "watermark-on-isr", "lost-write", source="KAFKA-353")
def commit_what_the_leader_has(self: Followers, end_offset: int, maximal_isr: frozenset[int], now: Now) -> int:
    """A leader uses its own log end as the high watermark, even if its followers lag.

    A record with acks=all is acknowledged as soon as the leader has it. If the leader fails, the record is lost, and
    consumers may have read it.
    """
    return end_offset


@_seeds(Followers, "committed_offset", "watermark-on-isr", "lost-write")
def commit_by_majority(self: Followers, end_offset: int, maximal_isr: frozenset[int], now: Now) -> int:
    """A leader commits records as soon as a majority of the replicas has them, as in Raft, instead of the whole ISR.

    A replica that lacks these records is still in the ISR, so it may be the next leader: then acknowledged records are
    lost.
    """
    ends = sorted([end_offset, *(progress.end_offset for progress in self._progress.values())], reverse=True)
    return ends[len(ends) // 2]


@_seeds(FollowerProgress, "update_fetch_state", "watermark-on-isr", "read-above-watermark", "lost-write")
def count_the_fetch_offset_as_fetched(  # noqa: PLR0917 - the signature of the original
    self: FollowerProgress, offset: int, log_start_offset: int, leader_end_offset: int, broker_epoch: int, now_ms: int
) -> None:
    """A leader assumes that a follower already has the record at its fetch offset.

    So the last record below the high watermark may be on the leader alone. It is acknowledged, read, and lost at the
    next failover.
    """
    _update_fetch_state(
        self, min(offset + 1, leader_end_offset), log_start_offset, leader_end_offset, broker_epoch, now_ms
    )


@_seeds(PartitionReader, "end_offset", "read-above-watermark", "divergent-offset", source="KAFKA-725")
def serve_above_the_high_watermark(self: PartitionReader, partition: Partition) -> int:
    """Consumers read up to the log end instead of the high watermark.

    They read uncommitted records. After a failover, these records may be lost, or others may have their offsets.
    """
    return partition.log.log_end_offset


@_seeds(
    Partition,
    "check_enough_replicas_reach_offset",
    "acknowledged-is-committed",
    "watermark-on-isr",
    "lost-write",
    "stale-end-offset",
    source="KAFKA-353",
)
def acknowledge_before_replication(self: Partition, required_offset: int) -> ErrorCode | None:
    """acks=all is treated as acks=1: a request is acknowledged when the leader has the records.

    A producer that requested the strongest guarantee loses its records if the leader fails.
    """
    return ErrorCode.none if self.is_leader else ErrorCode.not_leader_or_follower


@_seeds(
    Partition,
    "check_enough_replicas_reach_offset",
    "acknowledged-is-committed",
    "watermark-on-isr",
    "lost-write",
    "stale-end-offset",
)
def acknowledge_the_last_record_early(self: Partition, required_offset: int) -> ErrorCode | None:
    """acks=all waits until the high watermark has reached the last record's offset, instead of the offset after it.

    The last record of every request is acknowledged before it is committed.
    """
    return _check_enough_replicas_reach_offset(self, required_offset - 1)


@_seeds(Partition, "replicate", "watermark-within-log", "exception", source="KAFKA-14704")
def take_the_leaders_high_watermark_whole(
    self: Partition, records: Bytes, high_watermark: int, log_start_offset: int, now: Now
) -> None:
    """A follower adopts the leader's high watermark, even if its own log ends below it.

    If it is the next leader, it returns an end offset above the end of its log.
    """
    if records:
        recovery_point = self.log.recovery_point
        self.log.append_as_follower(records, leader_epoch=self.leader_epoch, now_ms=now.wall_ms)
        if self.log.recovery_point < recovery_point:
            self._context.on_truncated(self)
    if log_start_offset > self.log_start_offset:
        self.log.maybe_increment_log_start_offset(min(log_start_offset, high_watermark))
    if high_watermark != self.high_watermark:
        self._set_high_watermark(max(high_watermark, self.log_start_offset))
        self._context.on_progress(self, now)
    if records:
        self._trace(RecordsAppended, self.log.log_end_offset)


@_seeds(Partition, "truncate_to", "watermark-within-log", "exception")
def keep_the_high_watermark_when_truncating(self: Partition, offset: int, now: Now) -> None:
    """When a log is truncated, its high watermark does not change, so that it may be above the log end.

    If this replica is the next leader, it returns an end offset that does not exist, and consumers read the next
    records before they are committed.
    """
    end_offset = self.log.log_end_offset
    self.log.truncate_to(offset, now.wall_ms)
    self._context.on_truncated(self)
    if self.log.log_end_offset < end_offset:
        self._trace(LogTruncated, self.log.log_end_offset)


@_seeds(ReplicaFetcher, "_is_current", "exception", "log-matching", "not-converged")
def use_an_old_fetch_response(self: ReplicaFetcher, state: PartitionFetchState, offset: int) -> bool:
    """A follower uses a response although the partition's log or leader epoch has changed since the request.

    Batches are appended to a log that no longer ends at their offset.
    """
    return True


@_seeds(ReplicaFetcher, "_resume", "not-converged")
def never_fetch_again_after_an_error(self: ReplicaFetcher, delayed: list[PartitionFetchState], now: Now) -> None:
    """A partition whose fetch failed once is not fetched again until its leader epoch changes.

    After the first network error the replica lags, and is removed from the ISR.
    """


@_seeds(Partition, "check_leader_epoch", "epochs/old-epoch-is-fenced", "log-matching", source="KIP-320, KAFKA-7440")
def accept_any_leader_epoch(self: Partition, current_leader_epoch: int) -> ErrorCode:
    """A broker serves every request, even if its leader epoch is older or newer than the broker's.

    A consumer may not notice an unclean election. It then continues at its offset, and skips the records that replaced
    lost records below this offset.
    """
    return ErrorCode.none
