"""Periodic work of brokers. None of it may be overdue in a cluster that is healthy and idle.

- The checkpoint files beside the logs are current: high watermarks (`replica.high.watermark.checkpoint.interval.ms`),
  recovery points and log start offsets (`log.flush.offset.checkpoint.interval.ms`).
- Each log has applied its retention (`log.retention.check.interval.ms`): the oldest segment ends above the log start
  offset. Under the policy `delete`, it is within `retention.ms` and `retention.bytes` if all its records are committed.
- No log keeps the state of a producer for longer than `producer.id.expiration.ms`
  (`producer.id.expiration.check.interval.ms`).
- The preferred leader leads if it is in the ISR and `auto.leader.rebalance.enable` is set
  (`leader.imbalance.check.interval.seconds`).

Work with a period above `PERIOD_MAX_MS` is not checked.
"""

from collections.abc import Iterator

from reference_broker.core.broker import Broker
from reference_broker.core.log.checkpoints import HIGH_WATERMARK_FILE, LOG_START_FILE, RECOVERY_POINT_FILE, read_offsets
from reference_broker.core.log.config import UNLIMITED
from reference_broker.core.log.unified_log import UnifiedLog
from reference_broker.core.node import Node
from reference_broker.core.replication.partition import Partition
from reference_broker.simulation.cluster import SimulatedCluster

PERIOD_MAX_MS = 5_000


def pending_work(cluster: SimulatedCluster) -> str | None:
    """Describe overdue work of the brokers; None if there is none."""
    return next(_reasons(cluster), None)


def _reasons(cluster: SimulatedCluster) -> Iterator[str]:
    for node_id, node in cluster.nodes.items():
        if node.broker is None:
            continue
        for name in _outdated_checkpoints(node, node.broker):
            yield f"node {node_id}: {name} is out of date"
        wall_ms = cluster.machines[node_id].now.wall_ms
        for interval, expired in (
            ("log.retention.check.interval.ms", _expired_segments),
            ("producer.id.expiration.check.interval.ms", _expired_producers),
        ):
            if _is_checked(node, interval):
                for partition in node.broker.replicas:
                    yield from (f"node {node_id}: {left}" for left in expired(partition, wall_ms))
    yield from _not_preferred(cluster)


def _is_checked(node: Node, name: str, unit_ms: int = 1) -> bool:
    """Whether the work whose period is this property is checked: the node's value is at most `PERIOD_MAX_MS`."""
    return node.runtime.configuration.integer(name) * unit_ms <= PERIOD_MAX_MS


def _outdated_checkpoints(node: Node, broker: Broker) -> Iterator[str]:
    """Yield the names of checkpoints that differ from the current offsets."""
    files: dict[str, dict[tuple[str, int], int]] = {}
    if _is_checked(node, "replica.high.watermark.checkpoint.interval.ms"):
        files[HIGH_WATERMARK_FILE] = {partition.key: partition.high_watermark for partition in broker.replicas}
    if _is_checked(node, "log.flush.offset.checkpoint.interval.ms"):
        files[RECOVERY_POINT_FILE] = {partition.key: partition.log.recovery_point for partition in broker.replicas}
        files[LOG_START_FILE] = {partition.key: partition.log_start_offset for partition in broker.replicas}
    for name, offsets in files.items():
        written = read_offsets(node.runtime.disk, name)
        if any(written.get(key, 0) != offset for key, offset in offsets.items()):
            yield name


# Retention and producers


def _expired_segments(partition: Partition, wall_ms: int) -> Iterator[str]:
    """Describe why the oldest segment should have been deleted (Kafka's topic configuration reference)."""
    log, name = partition.log, f"{partition.topic}-{partition.index}"
    oldest, *younger = log.segments
    if younger and oldest.end_offset <= log.log_start_offset:
        yield f"{name} keeps a segment that ends at {oldest.end_offset}, below its start {log.log_start_offset}"
    if log.config.deletes and oldest.size_bytes > 0 and oldest.end_offset <= partition.high_watermark:
        yield from (f"{name} keeps {left}" for left in _beyond(log, wall_ms))


def _expired_producers(partition: Partition, wall_ms: int) -> Iterator[str]:
    log, name = partition.log, f"{partition.topic}-{partition.index}"
    expired_ms = wall_ms - log.config.producer_id_expiration_ms
    for producer_id, producer in log.producers.states.items():
        last_ms = producer.batches[-1].timestamp_ms
        if last_ms < expired_ms:
            yield f"{name} keeps producer {producer_id}, which was last used at {last_ms} ms; the time is {wall_ms} ms"


def _beyond(log: UnifiedLog, wall_ms: int) -> Iterator[str]:
    """Describe how the oldest segment exceeds the retention of its log."""
    oldest, config = log.segments[0], log.config
    latest_ms = oldest.max_timestamp_ms if oldest.max_timestamp_ms >= 0 else oldest.created_ms
    if config.retention_ms != UNLIMITED and wall_ms - latest_ms > config.retention_ms:
        yield f"a segment from {latest_ms} ms; the time is {wall_ms} ms, retention.ms is {config.retention_ms}"
    younger_bytes = sum(segment.size_bytes for segment in log.segments[1:])
    if config.retention_bytes != UNLIMITED and younger_bytes >= config.retention_bytes:
        yield f"{younger_bytes} bytes after its first segment; retention.bytes is {config.retention_bytes}"


# Preferred leaders


def _not_preferred(cluster: SimulatedCluster) -> Iterator[str]:
    controller = next((node for node in cluster.nodes.values() if node.controller and node.controller.is_active), None)
    if controller is None:
        return
    configuration = controller.runtime.configuration
    is_enabled = bool(configuration.value("auto.leader.rebalance.enable"))
    if not is_enabled or not _is_checked(controller, "leader.imbalance.check.interval.seconds", unit_ms=1_000):
        return
    for topic in controller.metadata.image.topics.values():
        for index, record in topic.partitions.items():
            preferred = record.replicas[0]
            if preferred in record.isr and record.leader != preferred:
                yield f"{topic.name}-{index} is led by {record.leader}, not by its preferred leader {preferred}"
