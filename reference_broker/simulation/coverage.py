"""Coverage of a run: a count of each state and transition that a campaign should reach.

| name                                             | counted when                                                     |
|--------------------------------------------------|------------------------------------------------------------------|
| `node-started`, `node-ended:HOW`                 | HOW: kill, power, stop, failed                                   |
| `quorum:ROLE`, `quorum:truncation`               | a node becomes leader, candidate, …; its log is truncated        |
| `snapshot:taken`, `snapshot:installed`           | a node has taken a snapshot of the metadata, or has fetched one  |
| `controller:active`, `controller:failover`       | a controller becomes active; another node was active before      |
| `election:clean`, `:unclean`, `:preferred`       | another replica has become leader: from the ISR, from outside    |
|                                                  | the ISR, or as preferred leader while the old one is in sync     |
| `partition:offline`, `isr:shrink`, `isr:expand`, | a partition has changed in the committed metadata                |
| `reassignment:begun`, `:completed`               |                                                                  |
| `broker:registered`, `:fenced`, `:unfenced`,     | a broker has changed in the committed metadata                   |
| `:shutting-down`                                 |                                                                  |
| `epoch:leader`, `:follower`, `:offline`          | a replica starts a leader epoch as leader, as follower, or while |
|                                                  | the partition has no leader                                      |
| `isr:pending-expand`, `:pending-shrink`          | a leader proposes an ISR, which may be rejected                  |
| `log:truncated`, `:truncated-fully`, `:rolled`,  | a log was truncated at its end, was fully truncated, has a new   |
| `:start-offset-advanced`                         | segment, or has a higher log start offset                        |
| `log:recovered`, `:opened-clean`,                | a log was opened again after a crash, or after a clean shutdown; |
| `:content-lost`                                  | it has lost batches at its end                                   |
| `purgatory:expired`                              | a delayed request completes at its timeout                       |
| `duplicate-batch`                                | an idempotent producer sends a batch again                       |
| `diverging-epoch`                                | a leader returns a diverging epoch to a follower                 |
| `error:API:NAME`                                 | a response, or a partition in it, has the error, such as         |
|                                                  | `error:fetch:FENCED_LEADER_EPOCH`                                |

A change of the metadata is counted once, when the first node applies it. If that node applies several changes at once,
the states in between are not counted.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

from kio.schema.index import api_key_map

from reference_broker.core.metadata.image import MetadataImage
from reference_broker.core.quorum.quorum_state import QuorumRole
from reference_broker.core.replication.isr import IsrPhase
from reference_broker.core.tracer import (
    ControllerActivated,
    DuplicateFound,
    Event,
    IsrChanged,
    LeaderEpochStarted,
    LogFullyTruncated,
    LogTruncated,
    OperationExpired,
    QuorumLogTruncated,
    QuorumStateChanged,
    ResponseSent,
    SnapshotFetched,
    SnapshotGenerated,
)
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.metadata_records import NO_LEADER, PartitionRecord, RegisterBrokerRecord
from reference_broker.simulation.cluster import SimulatedCluster
from reference_broker.simulation.invariants.log_mirror import LogChange
from reference_broker.simulation.invariants.watch import Before, Observer, PartitionKey, Replica, Watch, Watched

STATES = (
    *("node-started", "node-ended:kill", "node-ended:power", "node-ended:stop", "node-ended:failed"),
    *(f"quorum:{role.value.lower()}" for role in QuorumRole),
    *("quorum:truncation", "snapshot:taken", "snapshot:installed", "controller:active", "controller:failover"),
    *("election:clean", "election:unclean", "election:preferred", "partition:offline", "isr:shrink", "isr:expand"),
    *("reassignment:begun", "reassignment:completed"),
    *("broker:registered", "broker:fenced", "broker:unfenced", "broker:shutting-down"),
    *("epoch:leader", "epoch:follower", "epoch:offline", "isr:pending-expand", "isr:pending-shrink"),
    *(
        "log:truncated",
        "log:truncated-fully",
        "log:rolled",
        "log:start-offset-advanced",
        "log:recovered",
        "log:opened-clean",
    ),
    *("log:content-lost", "purgatory:expired", "duplicate-batch", "diverging-epoch"),
    *("error:fetch:FENCED_LEADER_EPOCH", "error:fetch:UNKNOWN_LEADER_EPOCH", "error:fetch:OFFSET_OUT_OF_RANGE"),
    *("error:produce:NOT_LEADER_OR_FOLLOWER", "error:produce:NOT_ENOUGH_REPLICAS", "error:produce:REQUEST_TIMED_OUT"),
    *("error:produce:NOT_ENOUGH_REPLICAS_AFTER_APPEND", "error:produce:OUT_OF_ORDER_SEQUENCE_NUMBER"),
    *("error:alter_partition:INELIGIBLE_REPLICA", "error:alter_partition:INVALID_UPDATE_VERSION"),
    *("error:broker_heartbeat:NOT_CONTROLLER", "error:broker_heartbeat:STALE_BROKER_EPOCH"),
)
"""States that a campaign should reach, among them the error codes that reject outdated and early requests."""

_COUNTED: dict[type[Event], str] = {
    OperationExpired: "purgatory:expired",
    DuplicateFound: "duplicate-batch",
    QuorumLogTruncated: "quorum:truncation",
    SnapshotGenerated: "snapshot:taken",
    SnapshotFetched: "snapshot:installed",
    LogTruncated: "log:truncated",
    LogFullyTruncated: "log:truncated-fully",
}
"""Events of the core that are counted as they occur."""

_ROLES: dict[Enum, str] = {role: f"quorum:{role.value.lower()}" for role in QuorumRole}
_PROPOSALS: dict[Enum, str] = {
    IsrPhase.PENDING_EXPAND: "isr:pending-expand",
    IsrPhase.PENDING_SHRINK: "isr:pending-shrink",
}


class Coverage(Observer):
    """Counts of the states and transitions of a cluster since this object was created.

    :param watch: the `Watch` of the invariants of this cluster; None to create one, which checks nodes a second time.
    """

    def __init__(self, cluster: SimulatedCluster, watch: Watch | None = None) -> None:
        self.counts: Counter[str] = Counter()
        self._metadata = _MetadataCoverage(self.counts)
        self._roles: dict[int, Enum] = {}
        self._controller: int | None = None
        self._segments: dict[Replica, int] = {}
        watch = watch or Watch(cluster)
        watch.observers.insert(0, self)  # before observers that end the run
        watch.subscribe(ResponseSent, self._count_errors, first=True)
        watch.subscribe(QuorumStateChanged, self._state_changed, first=True)
        watch.subscribe(ControllerActivated, self._activated, first=True)
        watch.subscribe(LeaderEpochStarted, self._epoch_started, first=True)
        watch.subscribe(IsrChanged, self._isr_changed, first=True)
        for kind, name in _COUNTED.items():
            watch.subscribe(kind, self._count(name), first=True)

    def started(self, watched: Watched) -> None:
        """Count the start of a node."""
        self.counts["node-started"] += 1
        self._roles.pop(watched.node_id, None)
        self._note_role(watched, watched.quorum.state.role)
        controller = None if watched.node is None else watched.node.controller
        if controller is not None and controller.is_active:
            self._note_active(watched)  # a single voter is active before its events are observed

    def _count(self, name: str) -> Callable[[Watched, object], None]:
        def count(_watched: Watched, _event: object) -> None:
            self.counts[name] += 1

        return count

    def _count_errors(self, _watched: Watched, event: ResponseSent) -> None:
        for error in _errors(event.body, self.counts):
            self.counts[f"error:{api_key_map[event.request.api_key]}:{error.name.upper()}"] += 1

    def ended(self, watched: Watched) -> None:
        """Count the end of a node."""
        self.counts[f"node-ended:{watched.machine.ended_by}"] += 1

    def _state_changed(self, watched: Watched, event: QuorumStateChanged) -> None:
        self._note_role(watched, event.role)

    def _note_role(self, watched: Watched, role: Enum) -> None:
        if self._roles.get(watched.node_id) is not role:
            self._roles[watched.node_id] = role
            self.counts[_ROLES[role]] += 1

    def _activated(self, watched: Watched, _event: ControllerActivated) -> None:
        self._note_active(watched)

    def _epoch_started(self, watched: Watched, event: LeaderEpochStarted) -> None:
        is_leader = event.leader == watched.node_id
        role = "offline" if event.leader == NO_LEADER else "leader" if is_leader else "follower"
        self.counts[f"epoch:{role}"] += 1

    def _isr_changed(self, _watched: Watched, event: IsrChanged) -> None:
        if event.phase in _PROPOSALS:
            self.counts[_PROPOSALS[event.phase]] += 1

    def _note_active(self, watched: Watched) -> None:
        self.counts["controller:active"] += 1
        self.counts["controller:failover"] += self._controller not in {None, watched.node_id}
        self._controller = watched.node_id

    def metadata_advanced(self, watched: Watched, from_offset: int) -> None:
        """Count changes of the metadata, at the first node that applies them."""
        assert watched.node is not None
        self._metadata.advanced(watched.metadata_offset, watched.node.metadata.image)

    def opened(self, watched: Watched, replica: Replica, log: LogChange) -> None:
        """Count the opening of a log that was open before: after a clean shutdown or a crash, and with lost batches."""
        assert watched.node is not None
        assert replica.partition is not None
        self._segments[replica] = len(replica.partition.log.segments)
        if replica.lives > 1:
            is_clean = watched.node.runtime.previous_epoch is not None
            self.counts["log:opened-clean" if is_clean else "log:recovered"] += 1
            self.counts["log:content-lost"] += bool(log.removed)

    def changed(self, watched: Watched, replica: Replica, before: Before) -> None:
        """Count an advance of the log start offset within the log, and a new segment."""
        assert replica.partition is not None
        self.counts["log:start-offset-advanced"] += before.start_offset < replica.start_offset <= before.end_offset
        segments = len(replica.partition.log.segments)
        if segments > self._segments[replica]:
            self.counts["log:rolled"] += 1
        self._segments[replica] = segments

    def gone(self, watched: Watched, replica: Replica) -> None:
        """Remove a deleted replica."""
        self._segments.pop(replica, None)


class _MetadataCoverage:
    """Counts of changes of the committed metadata."""

    def __init__(self, counts: Counter[str]) -> None:
        self._counts = counts
        self._offset = -1
        self._partitions: dict[PartitionKey, PartitionRecord] = {}
        self._brokers: dict[int, RegisterBrokerRecord] = {}

    def advanced(self, offset: int, image: MetadataImage) -> None:
        """Count the changes up to an offset."""
        if offset <= self._offset:
            return
        self._offset = offset
        for partition in image.partitions():
            key = partition.topic_id, partition.partition_id
            before = self._partitions.get(key)
            if before is not partition:
                self._partitions[key] = partition
                if before is not None:
                    self._partition_changed(before, partition)
        for broker_id, broker in image.brokers.items():
            known = self._brokers.get(broker_id)
            if known is not broker:
                self._brokers[broker_id] = broker
                self._broker_changed(known, broker)

    def _partition_changed(self, before: PartitionRecord, now: PartitionRecord) -> None:
        if now.leader != before.leader:
            self._counts[_election(before, now)] += 1
        self._counts["isr:shrink"] += not set(before.isr) <= set(now.isr)
        self._counts["isr:expand"] += not set(now.isr) <= set(before.isr)
        was_moving = bool(before.adding_replicas or before.removing_replicas)
        is_moving = bool(now.adding_replicas or now.removing_replicas)
        self._counts["reassignment:begun"] += is_moving and not was_moving
        self._counts["reassignment:completed"] += was_moving and not is_moving

    def _broker_changed(self, before: RegisterBrokerRecord | None, now: RegisterBrokerRecord) -> None:
        if before is None or before.broker_epoch != now.broker_epoch:
            self._counts["broker:registered"] += 1
            return
        self._counts["broker:fenced"] += now.fenced and not before.fenced
        self._counts["broker:unfenced"] += before.fenced and not now.fenced
        self._counts["broker:shutting-down"] += now.in_controlled_shutdown and not before.in_controlled_shutdown


def _election(before: PartitionRecord, now: PartitionRecord) -> str:
    if now.leader == NO_LEADER:
        return "partition:offline"
    if now.leader not in before.isr:
        return "election:unclean"
    is_preferred = before.leader in now.isr and now.leader == now.replicas[0]
    return "election:preferred" if is_preferred else "election:clean"


def _errors(response: Any, counts: Counter[str]) -> Iterator[ErrorCode]:
    """Yield the top-level error of a response, and the error of each partition. Count diverging epochs."""
    top: ErrorCode = getattr(response, "error_code", ErrorCode.none)
    if top is not ErrorCode.none:
        yield top
    for topic in getattr(response, "topics", None) or getattr(response, "responses", None) or ():
        for partition in getattr(topic, "partitions", None) or getattr(topic, "partition_responses", None) or ():
            error: ErrorCode = getattr(partition, "error_code", ErrorCode.none)
            if error is not ErrorCode.none:
                yield error
            diverging = getattr(partition, "diverging_epoch", None)
            if diverging is not None and diverging.epoch >= 0:
                counts["diverging-epoch"] += 1
