"""Reader of a partition (a consumer or follower): the offsets that it may read, and the errors of its reads.

Follows: kafka.cluster.Partition, org.apache.kafka.server.storage.log.FetchParams (KIP-320, KIP-595, KIP-903).

`request` is one partition of a Fetch request of any version. Errors are checked in Kafka's order.
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
    """The offset below which a reader may read (`FetchIsolation`)."""

    LOG_END = auto()
    """Followers: all records."""
    HIGH_WATERMARK = auto()
    """Consumers: records below the high watermark."""
    COMMITTED = auto()
    """Consumers with read_committed: records below the last stable offset."""


@dataclass(frozen=True, slots=True)
class PartitionReader:
    """A consumer or follower that reads from a partition on this broker.

    :param follower: the follower that reads; null for a consumer.
    :param leader_only: whether this reader may read only from the leader.
    :param updates_fetch_state: whether the fetch updates the follower's progress; false for retries.
    """

    isolation: Isolation
    brokers: Brokers
    follower: BrokerRun | None = None
    leader_only: bool = True
    updates_fetch_state: bool = True

    def for_retry(self) -> "PartitionReader":
        """Return the reader for retries of a delayed fetch. They do not update the follower's progress."""
        return replace(self, updates_fetch_state=False)

    def check(self, partition: Partition, request: Any) -> ErrorCode:
        """Return the error of a read, or `none`."""
        current_leader_epoch = getattr(request, "current_leader_epoch", NO_EPOCH)
        error = partition.check_leader_epoch(current_leader_epoch)
        if error is not ErrorCode.none:
            return error
        if self.leader_only and not partition.is_leader:
            return ErrorCode.not_leader_or_follower
        if self.follower is not None and self.follower.node_id not in partition.followers:
            known = current_leader_epoch != NO_EPOCH
            return ErrorCode.unknown_leader_epoch if known else ErrorCode.not_leader_or_follower
        log = partition.log
        last_fetched_epoch = getattr(request, "last_fetched_epoch", NO_EPOCH)
        if last_fetched_epoch > log.latest_epoch or not log.log_start_offset <= request.fetch_offset:
            return ErrorCode.offset_out_of_range
        if request.fetch_offset > log.log_end_offset and self.diverging_epoch(partition, request) is None:
            return ErrorCode.offset_out_of_range
        if self.follower is not None and self.updates_fetch_state and self.brokers.is_past(self.follower):
            return ErrorCode.not_leader_or_follower
        return ErrorCode.none

    @staticmethod
    def diverging_epoch(partition: Partition, request: Any) -> tuple[int, int] | None:
        """Return the diverging epoch and its end offset; null if the reader's log does not diverge from this log.

        The diverging epoch is the largest epoch of this log that is not above the request's last fetched epoch. Without
        a last fetched epoch, the result is null.
        """
        last_fetched_epoch: int = getattr(request, "last_fetched_epoch", NO_EPOCH)
        if last_fetched_epoch == NO_EPOCH:
            return None
        epoch, end_offset = partition.log.end_offset_for_epoch(last_fetched_epoch)
        if epoch == UNDEFINED_EPOCH or (epoch == last_fetched_epoch and end_offset >= request.fetch_offset):
            return None
        return epoch, end_offset

    def end_offset(self, partition: Partition) -> int:
        """Return the offset below which this reader may read now."""
        match self.isolation:
            case Isolation.LOG_END:
                return partition.log.log_end_offset
            case Isolation.HIGH_WATERMARK:
                return partition.high_watermark
            case Isolation.COMMITTED:
                return partition.last_stable_offset

    def update_follower_fetch_state(self, partition: Partition, request: Any, now: Now) -> None:
        """Update the follower's progress at the leader (`Partition.updateFollowerFetchState`)."""
        if self.follower is not None and self.updates_fetch_state:
            partition.update_follower_fetch_state(
                self.follower, request.fetch_offset, request.log_start_offset, partition.log.log_end_offset, now
            )
