"""What must hold for a leader that appends: the other side of `watermark-on-isr` (KIP-966, KAFKA-13217).

| name                | what must hold                                                                                |
|---------------------|-----------------------------------------------------------------------------------------------|
| `watermark-follows` | all that the maximal ISR has is committed, unless fewer are in sync than `min.insync.replicas`|
|                     | asks; it waits for nobody else but for replicas that are caught up and could join the ISR     |

Looked at when a leader has appended: a follower that is out of the ISR may cease to count by the mere passing of time,
and the watermark then stands until there is something new.
"""

from reference_broker.core.broker import Broker
from reference_broker.core.node import Node
from reference_broker.core.replication.follower_progress import FollowerProgress
from reference_broker.core.replication.partition import Partition
from reference_broker.simulation.invariants.violation import InvariantViolation
from reference_broker.simulation.invariants.watch import Before, Observer, Replica, Watched


def required_in_sync(broker: Broker, partition: Partition) -> int:
    """How many replicas have to be in sync for anything to be committed (`min.insync.replicas`), of those there are."""
    asked = broker.replicas.configuration(partition.topic).integer("min.insync.replicas")
    return min(asked, len(partition.replicas))


class WatermarkInvariants(Observer):
    """An observer of a watch."""

    def changed(self, watched: Watched, replica: Replica, before: Before) -> None:
        """See the table."""
        node, partition = watched.node, replica.partition
        if not replica.is_leader or replica.end_offset <= before.end_offset:
            return
        assert node is not None
        assert node.broker is not None
        assert partition is not None
        if len(partition.isr.isr) < required_in_sync(node.broker, partition):
            return
        waited_for = {
            member: partition.followers[member].end_offset
            for member in partition.replicas
            if member in partition.followers and _counts(member, partition, node, watched.machine.now.monotonic_ms)
        }
        committed = min((replica.end_offset, *waited_for.values()))
        if replica.high_watermark < committed:
            detail = f"{replica} counts up to {replica.high_watermark} as committed, and ends at {replica.end_offset}"
            raise InvariantViolation("watermark-follows", f"{detail}; those in sync have so much: {waited_for}")


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
