"""High watermark: its restoration, its advance on leaders (KIP-966, KAFKA-13217), and its adoption by followers.

| name                   | what must hold                                                                             |
|------------------------|--------------------------------------------------------------------------------------------|
| `watermark-restored`   | an opened replica has at least the high watermark of the checkpoint, or its log end offset |
|                        | if that is lower (`Partition.createLog`)                                                   |
| `watermark-on-min-isr` | the high watermark does not advance while the ISR is below `min.insync.replicas`           |
| `watermark-follows`    | unless the ISR is below `min.insync.replicas`, the high watermark is not below the         |
|                        | smallest log end offset of these replicas: the leader, the maximal ISR                     |
|                        | (`replication.isr`), and replicas outside it that are caught up and could join the ISR     |
| `leader-is-followed`   | when a follower has used a Fetch response, it has the high watermark and log start offset  |
|                        | of the response, as far as its log reaches (`ReplicaFetcherThread.processPartitionData`).  |
|                        | `watermark-within-log` reports a high watermark above the log end                          |

`watermark-follows` is checked only when a leader has appended records: when a follower outside the ISR is no longer
caught up, the high watermark advances past its log end only with the next append. See also `watermark-on-isr` in
`partitions`.
"""

from typing import Any

from reference_broker.core.log.checkpoints import HIGH_WATERMARK_FILE, read_offsets
from reference_broker.core.node import Node
from reference_broker.core.replication.fetch_state import FetchPhase, PartitionFetchState
from reference_broker.core.replication.follower_progress import FollowerProgress
from reference_broker.core.replication.partition import Partition
from reference_broker.core.replication.replica_fetcher import FetchResponseProcessed, ReplicaFetcher
from reference_broker.core.tracer import HighWatermarkUpdated, RecordsAppended
from reference_broker.protocol.errors import ErrorCode
from reference_broker.simulation.invariants.log_mirror import LogChange
from reference_broker.simulation.invariants.violation import InvariantViolation
from reference_broker.simulation.invariants.watch import Observer, Replica, Watched, led_partition


class RestoredWatermarkInvariant(Observer):
    """Check of the high watermark of each replica that is opened."""

    def opened(self, watched: Watched, replica: Replica, log: LogChange) -> None:
        """Raise `InvariantViolation` if the high watermark is below both the checkpoint and the log end."""
        assert replica.partition is not None
        checkpoint = read_offsets(watched.disk, HIGH_WATERMARK_FILE).get(replica.name, 0)
        expected = min(checkpoint, replica.partition.log.log_end_offset)
        if replica.partition.high_watermark < expected:
            detail = f"opened with high watermark {replica.partition.high_watermark}; the checkpoint has {checkpoint}"
            raise InvariantViolation("watermark-restored", f"{replica}: {detail}")


def check_min_isr(watched: Watched, event: HighWatermarkUpdated) -> None:
    """Raise `InvariantViolation` if the high watermark advances while the ISR is too small."""
    partition = led_partition(watched, event)
    if partition is not None and len(partition.isr.isr) < (required := _required_in_sync(watched, partition)):
        detail = f"high watermark {event.high_watermark} with the ISR {sorted(partition.isr.isr)}"
        place = f"{event.topic}-{event.partition} on node {watched.node_id}"
        raise InvariantViolation("watermark-on-min-isr", f"{place}: {detail}, where {required} are required")


def check_watermark_follows(watched: Watched, event: RecordsAppended) -> None:
    """Raise `InvariantViolation` if the high watermark is below the log ends of all replicas that count."""
    partition = led_partition(watched, event)
    if partition is None or len(partition.isr.isr) < _required_in_sync(watched, partition):
        return
    assert watched.node is not None
    now_ms = watched.machine.now.monotonic_ms
    end_offsets = {
        member: partition.followers[member].end_offset
        for member in partition.replicas
        if member in partition.followers and _counts(member, partition, watched.node, now_ms)
    }
    if partition.high_watermark < min((event.log_end_offset, *end_offsets.values())):
        detail = f"high watermark {partition.high_watermark}, log end {event.log_end_offset}, followers {end_offsets}"
        place = f"{event.topic}-{event.partition} on node {watched.node_id}"
        raise InvariantViolation("watermark-follows", f"{place}: {detail}")


def check_leader_is_followed(watched: Watched, event: FetchResponseProcessed) -> None:
    """Raise `InvariantViolation` if a follower has not adopted the high watermark and log start of a response."""
    by_id = {(state.partition.topic_id, state.partition.index): (state, offset) for state, offset in event.requested}
    for topic in event.response.responses:
        for data in topic.partitions:
            state, offset = by_id.get((topic.topic_id, data.partition_index), (None, -1))
            if state is None or not _was_used(event.fetcher, state, offset, data):
                continue
            partition = state.partition
            followed = partition.high_watermark, partition.log_start_offset
            reached = min(data.high_watermark, partition.log.log_end_offset)
            expected = max(reached, partition.log_start_offset), max(min(data.log_start_offset, reached), followed[1])
            if followed != expected and partition.high_watermark <= partition.log.log_end_offset:
                place = f"{partition.topic}-{partition.index} on node {watched.node_id}"
                detail = f"high watermark and log start are {followed} after a response, not {expected}"
                raise InvariantViolation("leader-is-followed", f"{place}: {detail}")


def _was_used(fetcher: ReplicaFetcher, state: PartitionFetchState, offset: int, data: Any) -> bool:
    """Whether a follower has used the data of a partition in a response.

    Data with an error or a diverging epoch was not used. Other data was used if the fetch state is still current, and
    the log end has advanced (for data with records) or is unchanged (for data without records).
    """
    if data.error_code is not ErrorCode.none or data.diverging_epoch.epoch >= 0:
        return False
    partition, moved = state.partition, state.partition.log.log_end_offset - offset
    is_current = fetcher.states.get(partition.key) is state and partition.leader_epoch == state.leader_epoch
    return is_current and state.phase is FetchPhase.FETCHING and (moved > 0 if data.records else moved == 0)


def _required_in_sync(watched: Watched, partition: Partition) -> int:
    """Return the number of in-sync replicas that a commit requires: `min.insync.replicas`, at most all replicas."""
    assert watched.node is not None
    assert watched.node.broker is not None
    required = watched.node.broker.replicas.configuration(partition.topic).integer("min.insync.replicas")
    return min(required, len(partition.replicas))


def _counts(member: int, partition: Partition, node: Node, monotonic_ms: int) -> bool:
    """Whether the high watermark has to wait for a follower."""
    if member in partition.isr.maximal:
        return True
    follower = partition.followers[member]
    lag_max_ms = node.runtime.configuration.integer("replica.lag.time.max.ms")
    return monotonic_ms - follower.last_caught_up_ms <= lag_max_ms and _could_join(member, follower, node)


def _could_join(member: int, follower: FollowerProgress, node: Node) -> bool:
    image = node.metadata.image
    return image.is_active(member) and follower.broker_epoch in {None, -1, image.brokers[member].broker_epoch}
