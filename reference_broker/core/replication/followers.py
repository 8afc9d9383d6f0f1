"""Followers of a partition, as its leader knows them: progress, lag, and eligibility for the ISR.

Follows: kafka.cluster.Partition (KIP-841, KIP-903).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from reference_broker.core.clock import Now
from reference_broker.core.replication.brokers import UNKNOWN_BROKER_EPOCH, Brokers
from reference_broker.core.replication.follower_progress import FollowerProgress


@dataclass(frozen=True, slots=True)
class ReplicaContext:
    """Context that all replicas of a broker share.

    :param lag_max_ms: `replica.lag.time.max.ms`.
    :param broker_epoch: returns this broker's epoch.
    """

    node_id: int
    brokers: Brokers
    lag_max_ms: int
    broker_epoch: Callable[[], int]


class Followers:
    """The other replicas of a partition that this broker leads; empty while it does not lead the partition.

    `end_offset` is always the leader's log end offset.
    """

    __slots__ = ("_context", "_progress")

    def __init__(self, context: ReplicaContext) -> None:
        self._context = context
        self._progress: dict[int, FollowerProgress] = {}

    def __len__(self) -> int:
        return len(self._progress)

    def __contains__(self, node_id: int) -> bool:
        return node_id in self._progress

    def __getitem__(self, node_id: int) -> FollowerProgress:
        return self._progress[node_id]

    def assign(self, replicas: Iterable[int]) -> None:
        """Set the replicas of the partition, and keep the progress of followers that remain."""
        others = (node for node in replicas if node != self._context.node_id)
        self._progress = {node: self._progress.get(node) or FollowerProgress() for node in others}

    def clear(self) -> None:
        """Remove all followers, because this broker no longer leads the partition."""
        self._progress.clear()

    def reset_replica_states(self, isr: frozenset[int], end_offset: int, *, is_new_leader: bool, now: Now) -> None:
        """Start a new epoch of this leader, or the first one (`Replica.resetReplicaState`)."""
        for node, follower in self._progress.items():
            is_in_sync = node in isr
            if is_new_leader:
                self._progress[node] = FollowerProgress.at_leadership(is_in_sync=is_in_sync, now_ms=now.monotonic_ms)
            else:
                follower.reset_replica_state(end_offset, is_in_sync=is_in_sync, now_ms=now.monotonic_ms)

    def committed_offset(self, end_offset: int, maximal_isr: frozenset[int], now: Now) -> int:
        """Return the offset to which the high watermark may advance.

        It is the smallest log end offset of the leader, of the maximal ISR, and of the replicas that are caught up and
        eligible for the ISR.
        """
        committed = end_offset
        for node, follower in self._progress.items():
            if follower.end_offset < committed and (
                node in maximal_isr or (self._is_caught_up(follower, end_offset, now) and self._is_eligible(node))
            ):
                committed = follower.end_offset
        return committed

    def lagging(self, isr: frozenset[int], end_offset: int, now: Now) -> frozenset[int]:
        """Return the ISR members that have not been caught up for longer than `replica.lag.time.max.ms`."""
        return frozenset(node for node in isr if self._lags(node, end_offset, now))

    def _lags(self, node: int, end_offset: int, now: Now) -> bool:
        follower = self._progress.get(node)
        if follower is None:
            return node != self._context.node_id
        return not self._is_caught_up(follower, end_offset, now)

    def may_join(self, node: int, from_offset: int) -> bool:
        """Whether a replica has all records below `from_offset`, and is eligible for the ISR (`canAddReplicaToIsr`)."""
        return self._progress[node].end_offset >= from_offset and self._is_eligible(node)

    def _is_caught_up(self, follower: FollowerProgress, end_offset: int, now: Now) -> bool:
        return follower.is_caught_up(end_offset, now.monotonic_ms, self._context.lag_max_ms)

    def _is_eligible(self, node: int) -> bool:
        return self._context.brokers.may_join_isr(node, self._progress[node].broker_epoch)

    def with_broker_epochs(self, isr: frozenset[int]) -> list[tuple[int, int]]:
        """Return each member of an ISR with its broker epoch (KIP-903); -1 if it has not fetched from this leader."""
        return [(node, self._broker_epoch(node)) for node in sorted(isr)]

    def _broker_epoch(self, node: int) -> int:
        if node == self._context.node_id:
            return self._context.broker_epoch()
        follower = self._progress.get(node)
        known = None if follower is None else follower.broker_epoch
        return UNKNOWN_BROKER_EPOCH if known is None else known

    def low_watermark(self, log_start_offset: int) -> int:
        """Return the smallest log start offset of the leader and of all followers that are not fenced."""
        live = (
            follower.log_start_offset
            for node, follower in self._progress.items()
            if self._context.brokers.live_epoch(node) is not None
        )
        return min((log_start_offset, *live))
