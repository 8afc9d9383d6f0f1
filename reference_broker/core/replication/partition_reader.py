"""What one reader, a consumer or a follower, may see of a partition, in Kafka's order of checks.

`asked` is a partition's element of a Fetch request, in any version of it.
"""

from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Any

from reference_broker.core.clock import Now
from reference_broker.core.log.leader_epoch_file_cache import UNDEFINED_EPOCH
from reference_broker.core.replication.brokers import BrokerRun, Brokers
from reference_broker.core.replication.partition import NO_EPOCH, Partition
from reference_broker.protocol.errors import ErrorCode


class Isolation(Enum):
    """Up to where a reader may read."""

    LOG_END = auto()
    """A follower: everything."""
    HIGH_WATERMARK = auto()
    """A consumer: what is committed."""
    COMMITTED = auto()
    """A consumer with read_committed: what is decided, too."""


@dataclass(frozen=True, slots=True)
class PartitionReader:
    """Who reads.

    :param follower: null for a consumer.
    :param leader_only: a follower's replica does not serve this reader.
    :param notes_progress: what a follower asks for tells how far it is; not when it is looked at again.
    """

    isolation: Isolation
    brokers: Brokers
    follower: BrokerRun | None = None
    leader_only: bool = True
    notes_progress: bool = True

    def again(self) -> "PartitionReader":
        """The same reader, when its request is looked at again."""
        return replace(self, notes_progress=False)

    def check(self, partition: Partition, asked: Any) -> ErrorCode:
        """The error that this reader gets, or none."""
        current_leader_epoch = getattr(asked, "current_leader_epoch", NO_EPOCH)
        error = partition.check_leader_epoch(current_leader_epoch)
        if error is not ErrorCode.none:
            return error
        if self.leader_only and not partition.is_leader:
            return ErrorCode.not_leader_or_follower
        if self.follower is not None and self.follower.node_id not in partition.followers:
            known = current_leader_epoch != NO_EPOCH
            return ErrorCode.unknown_leader_epoch if known else ErrorCode.not_leader_or_follower
        log = partition.log
        last_fetched_epoch = getattr(asked, "last_fetched_epoch", NO_EPOCH)
        if last_fetched_epoch > log.latest_epoch or not log.log_start_offset <= asked.fetch_offset:
            return ErrorCode.offset_out_of_range
        if asked.fetch_offset > log.log_end_offset and self.diverging_epoch(partition, asked) is None:
            return ErrorCode.offset_out_of_range
        if self.follower is not None and self.notes_progress and self.brokers.is_past(self.follower):
            return ErrorCode.not_leader_or_follower
        return ErrorCode.none

    @staticmethod
    def diverging_epoch(partition: Partition, asked: Any) -> tuple[int, int] | None:
        """The largest epoch here that is not above the reader's last one, and its end, if that lies before its offset.

        Null where the two logs agree as far as the reader has come, or where the reader says no epoch.
        """
        last_fetched_epoch: int = getattr(asked, "last_fetched_epoch", NO_EPOCH)
        if last_fetched_epoch == NO_EPOCH:
            return None
        epoch, end_offset = partition.log.end_offset_for_epoch(last_fetched_epoch)
        if epoch == UNDEFINED_EPOCH or (epoch == last_fetched_epoch and end_offset >= asked.fetch_offset):
            return None
        return epoch, end_offset

    def end_offset(self, partition: Partition) -> int:
        """Up to where it may read now."""
        match self.isolation:
            case Isolation.LOG_END:
                return partition.log.log_end_offset
            case Isolation.HIGH_WATERMARK:
                return partition.high_watermark
            case Isolation.COMMITTED:
                return partition.last_stable_offset

    def note_progress(self, partition: Partition, asked: Any, now: Now) -> None:
        """Let the leader know how far a follower is."""
        if self.follower is not None and self.notes_progress:
            partition.note_fetch(
                self.follower, asked.fetch_offset, asked.log_start_offset, partition.log.log_end_offset, now
            )
