"""Detection of the changes that an event makes in a node, and notification of observers.

After each event only the node of the event is checked. A check compares offsets, epochs and roles of the node's quorum,
metadata and replicas with those of the previous check. The last known state of a node is kept while the node is down.

If a node has many replicas and its metadata has not changed, only some replicas are checked, so that the cost does not
grow with their number: those whose files were changed, those whose key was checked in the node's purgatory, and a few
others in rotation.

After the first check of a node, the events of the core's tracer are passed to the subscribers as they occur.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, TypeVar
from uuid import UUID

from reference_broker.core.broker_lifecycle_manager import UNKNOWN_EPOCH
from reference_broker.core.node import Node
from reference_broker.core.quorum.raft_client import KafkaRaftClient
from reference_broker.core.replication.isr import IsrState
from reference_broker.core.replication.partition import Partition
from reference_broker.core.tracer import Event, KeyChecked, PartitionEvent
from reference_broker.simulation.cluster import SimulatedCluster
from reference_broker.simulation.disk import SimulatedDisk
from reference_broker.simulation.invariants.log_mirror import LogChange, LogMirror
from reference_broker.simulation.invariants.violation import InvariantViolation
from reference_broker.simulation.machine import Machine

_E = TypeVar("_E", bound=Event)

PartitionKey = tuple[UUID, int]
"""A topic's id and the index of one of its partitions."""

EVENTS_AT_ONCE_MAX = 5_000
"""Limit on the events of one node in one virtual ms: many clients cause fewer events, a busy loop causes more."""
ALL_AT_ONCE_MAX = 8
"""If a node has at most this number of replicas, all of them are checked after each event."""
_IN_TURN = 2
"""Number of replicas that are checked in rotation after an event."""
_AWAY_MS = 1_000
"""An interval without events that is longer than this is regarded as a pause of the node."""
_LOOK_AGAIN_MS = 1_000
"""Period after which an unchanged quorum is checked again, so that expired deadlines are detected."""


@dataclass(eq=False, slots=True)
class Replica:
    """One replica, as of its last check.

    :ivar name: topic and partition index.
    :ivar partition: the broker's object; None while the node is down, or if the node has deleted the replica.
    :ivar lives: number of times that the replica was opened.
    :ivar stamp: values that are compared to detect a change; empty before the first check after the opening.
    :ivar trusted_offset: segments that begin below this offset existed when the log was last opened.
    :ivar caught_up_ms: when each follower was last caught up, by the monotonic clock of its leader (`timeliness`).
    :ivar rejected_ms: when the leader rejected the latest fetches of a follower, by the same clock (`responses`). The
        key is the follower, its broker epoch and the leader epoch in its request.
    """

    node_id: int
    key: PartitionKey
    name: tuple[str, int]
    partition: Partition | None = None
    lives: int = 0
    stamp: tuple[object, ...] = ()
    log: LogMirror = field(default_factory=LogMirror)
    trusted_offset: int = 0
    end_offset: int = 0
    start_offset: int = 0
    high_watermark: int = 0
    recovery_point: int = 0
    leader_epoch: int = -1
    partition_epoch: int = -1
    is_leader: bool = False
    isr: IsrState | None = None
    caught_up_ms: dict[int, int] = field(default_factory=dict)
    rejected_ms: dict[tuple[int, int, int], list[int]] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.name[0]}-{self.name[1]} on node {self.node_id}"


@dataclass(frozen=True, slots=True)
class Before:
    """The state of a replica at its previous check. `log` has the changes of its log since that check."""

    end_offset: int
    start_offset: int
    high_watermark: int
    recovery_point: int
    leader_epoch: int
    partition_epoch: int
    is_leader: bool
    log: LogChange


class Observer:
    """Base class of checks. The methods are called on changes, and raise `InvariantViolation` for an invalid change."""

    def started(self, watched: "Watched") -> None:
        """Handle the start of a node. `watched.has_new_disk` is true if the machine was wiped."""

    def ended(self, watched: "Watched") -> None:
        """Handle the end of a node, which is still in `watched.node`.

        `watched.node` is None if no node was running: after a failed start, or at a power cut of a node that is down.
        """

    def quorum_changed(self, watched: "Watched") -> None:
        """Handle a change of a node's state, log end or high watermark in the quorum.

        Without a change, this is called about once a second.
        """

    def metadata_advanced(self, watched: "Watched", from_offset: int) -> None:
        """Handle the metadata records above `from_offset` that a node has applied."""

    def metadata_applied(self, watched: "Watched") -> None:
        """Handle the completed application of new metadata to all replicas of a node.

        This may be several events after `metadata_advanced`, because a broker with many replicas applies the
        metadata and deletes directories in steps.
        """

    def opened(self, watched: "Watched", replica: Replica, log: LogChange) -> None:
        """Handle the opening of a replica's log. `log` has the changes since the last check of that replica."""

    def changed(self, watched: "Watched", replica: Replica, before: Before) -> None:
        """Handle a change of a replica."""

    def gone(self, watched: "Watched", replica: Replica) -> None:
        """Handle a replica that a running node has deleted."""


@dataclass(eq=False, slots=True)
class Watched:
    """One machine, and the last known state of its node."""

    machine: Machine
    node_id: int
    disk: SimulatedDisk
    has_new_disk: bool = False
    node: Node | None = None
    replicas: dict[PartitionKey, Replica] = field(default_factory=dict)
    """Replicas, including those of previous nodes on the machine."""
    open: list[Replica] = field(default_factory=list)
    by_name: dict[Hashable, Replica] = field(default_factory=dict)
    """Open replicas, by topic and partition index."""
    checked: dict[Hashable, None] = field(default_factory=dict)
    """Keys that were checked in the node's purgatory since the last check."""
    turn: int = 0
    """Index in `open` of the replica that was last checked in rotation."""
    quorum_state: object = None
    quorum_end_offset: int = -1
    quorum_high_watermark: int = -1
    quorum_looked_ms: int = 0
    metadata_offset: int = -1
    is_applying: bool = False
    """Whether the broker was still applying the metadata or deleting directories at the last check."""
    wall_max_ms: int = 0
    """The latest wall-clock time of an event. The clock may have jumped back since."""
    event_ms: int = -1
    """The time of the last event, by the scheduler."""
    resumed_ms: int = -1
    """The time of the event that ended the last long interval without events, such as a pause or a slow flush."""
    events_at_once: int = 0
    """Number of events in the current millisecond."""
    stopped_epoch: int | None = UNKNOWN_EPOCH
    """The broker epoch in the clean-shutdown file of the last run; -1 if there is no file. None if a power cut may
    restore the file."""

    @property
    def quorum(self) -> KafkaRaftClient:
        """The quorum client of the running node."""
        assert self.node is not None
        return self.node.quorum


def led_partition(watched: Watched, event: PartitionEvent) -> Partition | None:
    """Return the replica to which an event refers, if it still exists and is the leader; otherwise None."""
    assert watched.node is not None
    assert watched.node.broker is not None
    partition = watched.node.broker.replicas.get(event.topic, event.partition)
    is_led = partition is not None and partition.is_leader and partition.topic_id == event.topic_id
    return partition if is_led else None


class Watch:
    """Detection of changes in the nodes of a cluster.

    :ivar observers: the checks, in the order in which they are called.
    :ivar nodes: the last known state of each machine and its node.
    """

    def __init__(self, cluster: SimulatedCluster) -> None:
        self.cluster = cluster
        self._scheduler = cluster.scheduler
        self.observers: list[Observer] = []
        self._subscribers: defaultdict[type[Event], list[Callable[[Watched, Any], None]]] = defaultdict(list)
        self.nodes: dict[int, Watched] = {}
        for machine in cluster.machines.values():
            self._add(machine)
        cluster.added.append(self._add)

    def _add(self, machine: Machine) -> None:
        watched = self.nodes[machine.node_id] = Watched(machine, machine.node_id, machine.disk)
        machine.settled.append(lambda _: self.look(watched))
        machine.tracers.append(lambda event: self._traced(watched, event))

    def subscribe(self, kind: type[_E], subscriber: Callable[[Watched, _E], None], *, first: bool = False) -> None:
        """Pass each event of a kind to a subscriber, after the present subscribers or, with `first`, before them."""
        subscribers = self._subscribers[kind]
        subscribers.insert(0 if first else len(subscribers), subscriber)

    def _traced(self, watched: Watched, event: Event) -> None:
        if watched.node is None:
            return  # the node is starting, and was not checked yet
        if type(event) is KeyChecked:
            watched.checked[event.key] = None
        for subscriber in self._subscribers.get(type(event), ()):
            subscriber(watched, event)

    def replica(self, node_id: int, key: PartitionKey) -> Replica | None:
        """Return the last known state of a replica."""
        return self.nodes[node_id].replicas.get(key)

    def look(self, watched: Watched) -> None:
        """Check a node after an event."""
        node = watched.machine.node
        if node is None:
            self._end(watched)
            return
        now_ms = self._scheduler.now_ms
        watched.wall_max_ms = max(watched.wall_max_ms, watched.machine.now.wall_ms)
        if now_ms != watched.event_ms:
            if now_ms > watched.event_ms + _AWAY_MS:
                watched.resumed_ms = now_ms
            watched.event_ms, watched.events_at_once = now_ms, 0
        watched.events_at_once += 1
        if watched.events_at_once > EVENTS_AT_ONCE_MAX:
            raise InvariantViolation(
                "no-busy-loop", f"node {watched.node_id}: {watched.events_at_once} events at {now_ms}"
            )
        if node is not watched.node:
            watched.node = node
            watched.has_new_disk, watched.disk = watched.disk is not watched.machine.disk, watched.machine.disk
            for observer in self.observers:
                observer.started(watched)
        self._look_at_quorum(watched, node.quorum)
        if self._look_at_metadata(watched, node):
            self._find_replicas(watched, node)
            self._look_at_all(watched)
        elif len(watched.open) <= ALL_AT_ONCE_MAX:
            self._look_at_all(watched)
        else:
            self._look_at_some(watched)
        watched.disk.changed.clear()
        watched.checked.clear()

    # Nodes

    def _end(self, watched: Watched) -> None:
        for observer in self.observers:
            observer.ended(watched)
        for replica in watched.open:
            replica.partition, replica.is_leader = None, False
        watched.node, watched.open, watched.by_name = None, [], {}
        watched.quorum_state, watched.metadata_offset, watched.is_applying = None, -1, False

    def _look_at_quorum(self, watched: Watched, quorum: KafkaRaftClient) -> None:
        end_offset = quorum.log.partition_log.segments[-1].end_offset
        if (
            quorum.state is not watched.quorum_state
            or end_offset != watched.quorum_end_offset
            or quorum.high_watermark != watched.quorum_high_watermark
            or self._scheduler.now_ms - watched.quorum_looked_ms >= _LOOK_AGAIN_MS
        ):
            for observer in self.observers:
                observer.quorum_changed(watched)
            watched.quorum_state, watched.quorum_end_offset = quorum.state, end_offset
            watched.quorum_high_watermark = quorum.high_watermark
            watched.quorum_looked_ms = self._scheduler.now_ms

    def _look_at_metadata(self, watched: Watched, node: Node) -> bool:
        """Notify observers of applied metadata. Return whether the node's replicas may have changed."""
        before, watched.metadata_offset = watched.metadata_offset, node.metadata.offset
        if watched.metadata_offset != before:
            for observer in self.observers:
                observer.metadata_advanced(watched, before)
        elif not watched.is_applying:
            return False
        replicas = None if node.broker is None else node.broker.replicas
        watched.is_applying = replicas is not None and (replicas.has_unapplied_metadata or replicas.is_deleting)
        if not watched.is_applying:
            for observer in self.observers:
                observer.metadata_applied(watched)
        return True

    # Replicas

    def _find_replicas(self, watched: Watched, node: Node) -> None:
        if node.broker is None:
            return
        current = tuple(node.broker.replicas)
        if len(current) == len(watched.open) and all(
            replica.partition is partition for replica, partition in zip(watched.open, current, strict=True)
        ):
            return
        here = set(map(id, current))
        for replica in watched.open:
            if id(replica.partition) not in here:
                replica.partition, replica.is_leader = None, False
                del watched.replicas[replica.key]
                for observer in self.observers:
                    observer.gone(watched, replica)
        watched.open = [self._replica(watched, partition) for partition in current]
        watched.by_name = {replica.name: replica for replica in watched.open}

    def _replica(self, watched: Watched, partition: Partition) -> Replica:
        key = partition.topic_id, partition.index
        replica = watched.replicas.get(key)
        if replica is None:
            replica = watched.replicas[key] = Replica(watched.node_id, key, partition.key)
        if replica.partition is not partition:
            replica.partition, replica.lives = partition, replica.lives + 1
            replica.stamp, replica.trusted_offset = (), partition.log.log_end_offset
            change = replica.log.follow(partition.log)
            replica.end_offset, replica.start_offset = partition.log.log_end_offset, partition.log.log_start_offset
            replica.high_watermark, replica.recovery_point = partition.high_watermark, 0
            replica.leader_epoch = replica.partition_epoch = -1
            for observer in self.observers:
                observer.opened(watched, replica, change)
        return replica

    def _look_at_all(self, watched: Watched) -> None:
        for replica in watched.open:
            self._look_at(watched, replica)

    def _look_at_some(self, watched: Watched) -> None:
        names = watched.checked
        for path in watched.disk.changed:
            topic, _, index = path.partition("/")[0].rpartition("-")
            if index.isdecimal():
                names[topic, int(index)] = None
        for name in tuple(names):
            if (found := watched.by_name.get(name)) is not None:
                self._look_at(watched, found)
        for _ in range(_IN_TURN):
            watched.turn = (watched.turn + 1) % len(watched.open)
            self._look_at(watched, watched.open[watched.turn])

    def _look_at(self, watched: Watched, replica: Replica) -> None:
        partition = replica.partition
        assert partition is not None
        log = partition.log
        stamp = (
            log.segments[-1].end_offset,
            partition.high_watermark,
            partition.leader_epoch,
            partition.partition_epoch,
            log.log_start_offset,
            partition.role,
            partition.isr,
            log.epochs.entries,
            log.recovery_point,
        )
        if stamp == replica.stamp:
            return
        replica.stamp = stamp
        before = Before(
            replica.end_offset,
            replica.start_offset,
            replica.high_watermark,
            replica.recovery_point,
            replica.leader_epoch,
            replica.partition_epoch,
            replica.is_leader,
            replica.log.follow(log),
        )
        replica.end_offset, replica.high_watermark, replica.leader_epoch = stamp[0], stamp[1], stamp[2]
        replica.partition_epoch, replica.start_offset = stamp[3], stamp[4]
        replica.recovery_point = log.recovery_point
        replica.is_leader, replica.isr = partition.is_leader, partition.isr
        for observer in self.observers:
            observer.changed(watched, replica, before)

    def look_at_everything(self) -> None:
        """Check all open replicas of all nodes."""
        for watched in self.nodes.values():
            self._look_at_all(watched)
