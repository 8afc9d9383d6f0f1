"""High watermark of a leader, beside `watermark-on-isr` (KIP-966, KAFKA-13217).

| name                   | what must hold                                                                             |
|------------------------|--------------------------------------------------------------------------------------------|
| `watermark-follows`    | records that the whole maximal ISR has are committed, unless the ISR is below              |
|                        | `min.insync.replicas`; only caught-up replicas that could join the ISR hold it back        |
| `watermark-on-min-isr` | it does not advance while the ISR is below `min.insync.replicas`                           |

`watermark-follows` is checked when a leader has appended: a follower outside the ISR may cease to count as time passes,
and the high watermark then advances only with the next append.
"""

from reference_broker.core.node import Node
from reference_broker.core.replication.follower_progress import FollowerProgress
from reference_broker.core.replication.partition import Partition
from reference_broker.core.tracer import HighWatermarkUpdated, RecordsAppended
from reference_broker.simulation.invariants.violation import InvariantViolation
from reference_broker.simulation.invariants.watch import Watched, led_partition


def check_min_isr(watched: Watched, event: HighWatermarkUpdated) -> None:
    """Raise `InvariantViolation` if the high watermark advances while the ISR is too small."""
    partition = led_partition(watched, event)
    if partition is not None and len(partition.isr.isr) < (required := _required_in_sync(watched, partition)):
        detail = f"high watermark {event.high_watermark} with the ISR {sorted(partition.isr.isr)}"
        place = f"{event.topic}-{event.partition} on node {watched.node_id}"
        raise InvariantViolation("watermark-on-min-isr", f"{place}: {detail}, where {required} are required")


def check_watermark_follows(watched: Watched, event: RecordsAppended) -> None:
    """Raise `InvariantViolation` if the high watermark is lower than required."""
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
        detail = f"high watermark {partition.high_watermark}, log end {event.log_end_offset}, in sync {end_offsets}"
        place = f"{event.topic}-{event.partition} on node {watched.node_id}"
        raise InvariantViolation("watermark-follows", f"{place}: {detail}")


def _required_in_sync(watched: Watched, partition: Partition) -> int:
    """Return the number of replicas in sync that a commit requires (`min.insync.replicas`), at most all."""
    assert watched.node is not None
    assert watched.node.broker is not None
    required = watched.node.broker.replicas.configuration(partition.topic).integer("min.insync.replicas")
    return min(required, len(partition.replicas))


def _counts(member: int, partition: Partition, node: Node, monotonic_ms: int) -> bool:
    """Whether a leader has to wait for a follower."""
    if member in partition.isr.maximal:
        return True
    follower = partition.followers[member]
    lag_max_ms = node.runtime.configuration.integer("replica.lag.time.max.ms")
    return monotonic_ms - follower.last_caught_up_ms <= lag_max_ms and _could_join(member, follower, node)


def _could_join(member: int, follower: FollowerProgress, node: Node) -> bool:
    image = node.metadata.image
    return image.is_active(member) and follower.broker_epoch in {None, -1, image.brokers[member].broker_epoch}
