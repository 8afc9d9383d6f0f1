"""Watch of a cluster's metadata: periodic Metadata, DescribeQuorum and FindCoordinator requests to every node.

The newest response counts. The responses are rows of the history, as those of any client; the checkers use these rows
to find the leaders, the ISRs and the voters at each time. This module also uses the responses to resolve roles at the
moment of an injection, and to determine whether the cluster has recovered.

Of two responses, the one with the higher leader epoch is newer. Within an epoch, a response of the leader itself takes
precedence for a while over those of other nodes, because ISRs change without a new epoch.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

from conformance.concurrent.trial_context import TrialContext
from fixtures.clients.recorded import RecordedClient
from fixtures.clients.stage import Event, Task
from fixtures.faults import Node, Role
from fixtures.faults.places import FindNode

PERIOD_S: Final = 0.2
"""Time between two requests of a kind to a node."""
_RESPONSE_TIMEOUT_S: Final = 2.0
"""Timeout of a request, because a node may be paused or cut off."""
_START_TIMEOUT_S: Final = 4 * _RESPONSE_TIMEOUT_S
_LEADER_PRECEDENCE_NS: Final = 1_000_000_000
"""Time for which a leader's own response takes precedence over those of other nodes."""


class TopicPartition(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class PartitionSeen:
    """State of a partition by the newest response.

    :ivar leader: -1 if there is none.
    :ivar by_leader: whether the node that responded is the leader.
    :ivar at_ns: time at which the request was sent.
    """

    leader: int
    epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    by_leader: bool
    at_ns: int

    @property
    def is_whole(self) -> bool:
        """Whether the partition has a leader and all its replicas are in sync."""
        return self.leader >= 0 and set(self.isr) == set(self.replicas)


@dataclass(frozen=True, slots=True)
class QuorumSeen:
    """State of the controller quorum by the newest response."""

    leader: int
    epoch: int
    voters: tuple[int, ...]


class View:
    """The newest responses about some topics, for use from any thread.

    :param topics: minimum number of partitions of each; 0 for a topic that may not exist. Roles of replicas refer to
        partition 0 of the first topic.
    :param find_initial: returns the node of a role that is resolved at the start of the trial (`InitialRoles`).
    :ivar on_change: called with every newer state of a partition.
    """

    def __init__(self, topics: Mapping[str, int], find_initial: FindNode = lambda _: None) -> None:
        self._find_initial = find_initial
        self._lock = threading.Lock()
        self._partitions_min = dict(topics)
        self._partitions: dict[TopicPartition, PartitionSeen] = {}
        self._quorum: QuorumSeen | None = None
        self._coordinator: int | None = None
        self._responded_ns: dict[int, int] = {}
        self.on_change: Callable[[TopicPartition, PartitionSeen], None] = lambda *_: None

    @property
    def topics(self) -> tuple[str, ...]:
        """Names of the watched topics."""
        return tuple(self._partitions_min)

    @property
    def partitions(self) -> Mapping[TopicPartition, PartitionSeen]:
        """All partitions that a response has named."""
        with self._lock:
            return dict(self._partitions)

    def partitions_of(self, topic: str) -> Mapping[int, PartitionSeen]:
        """Return the partitions of one topic, by number."""
        return {place.partition: seen for place, seen in self.partitions.items() if place.topic == topic}

    def update_node(self, node: int, sent_ns: int) -> None:
        """Note that a node has responded to a request that was sent at that time."""
        self._responded_ns[node] = sent_ns

    def update(self, place: TopicPartition, seen: PartitionSeen) -> None:
        """Replace the state of a partition by that of a response, if that is newer."""
        with self._lock:
            known = self._partitions.get(place)
            if known is not None and not _is_newer(seen, known):
                return
            self._partitions[place] = seen
        self.on_change(place, seen)

    def update_quorum(self, seen: QuorumSeen) -> None:
        """Replace the state of the quorum by that of a response, if that is newer."""
        with self._lock:
            if self._quorum is None or (seen.epoch, seen.leader) >= (self._quorum.epoch, self._quorum.leader):
                self._quorum = seen

    def update_coordinator(self, node: int) -> None:
        """Set the coordinator of the trial's group."""
        self._coordinator = node

    def node(self, name: Node) -> int | None:
        """Return the node that has a role now, or None; a node id is returned unchanged."""
        if isinstance(name, int):
            return name
        with self._lock:
            first = next((self._partitions.get(TopicPartition(topic, 0)) for topic in self._partitions_min), None)
            quorum = self._quorum
        leader = None if first is None or first.leader < 0 else first.leader
        controller = None if quorum is None or quorum.leader < 0 else quorum.leader
        match name:
            case Role.LEADER:
                return leader
            case Role.FOLLOWER:
                return next((node for node in sorted(first.isr if first else ()) if node != leader), None)
            case Role.LAST_FOLLOWER:
                return next((node for node in reversed(first.replicas if first else ()) if node != leader), None)
            case Role.CONTROLLER:
                return controller
            case Role.STANDBY:
                return next((node for node in (quorum.voters if quorum else ()) if node != controller), None)
            case Role.COORDINATOR:
                return self._coordinator
            case _:
                return self._find_initial(name)

    def is_whole(self, nodes: Iterable[int], since_ns: int) -> bool:
        """Whether the cluster has recovered, by responses to requests that were sent after a time.

        Every node has responded, and each partition, also an added one, has a leader and a full ISR. The number of
        partitions is checked, too, because a cluster that has lost a topic responds without its partitions.
        """
        found = self.partitions
        counts = Counter(place.topic for place in found)
        return (
            all(self._responded_ns.get(node, since_ns) > since_ns for node in nodes)
            and all(counts[topic] >= least for topic, least in self._partitions_min.items())
            and all(each.is_whole and each.at_ns > since_ns for each in found.values())
        )


def _is_newer(seen: PartitionSeen, known: PartitionSeen) -> bool:
    if seen.epoch != known.epoch:
        return seen.epoch > known.epoch
    return seen.by_leader or not known.by_leader or seen.at_ns > known.at_ns + _LEADER_PRECEDENCE_NS


class Watch:
    """Sender of the requests, with one task for each node, from `start` to `stop`.

    :param topics: see `View`.
    :param group: group whose coordinator is looked up. None: no lookup, so that no coordinator loads a group.
    """

    def __init__(self, context: TrialContext, topics: Mapping[str, int], group: str | None = None) -> None:
        self.view = View(topics, context.find_initial)
        self._context = context
        self._group = group
        self._over: Event = context.target.stage.event()
        self._tasks: list[Task] = []

    def start(self) -> None:
        """Start the tasks, and wait at most `_START_TIMEOUT_S` for their first requests, so that roles are known."""
        stage = self._context.target.stage
        ready = []
        for node in self._context.target.nodes:
            ready.append(stage.event())
            self._tasks.append(stage.start(partial(self._watch, node.id, ready[-1])))
        for is_ready in ready:
            is_ready.wait(_START_TIMEOUT_S)

    def stop(self) -> None:
        """Stop the tasks, and raise the error of a task, if there is one."""
        self._over.set()
        for task in self._tasks:
            task.result()

    def _watch(self, node: int, is_ready: Event) -> None:
        with self._context.raw_client(node, timeout_s=_RESPONSE_TIMEOUT_S) as client:
            while not self._over.is_set():
                self._request_metadata(node, client)
                self._describe_quorum(client)
                self._find_coordinator(client)
                is_ready.set()
                self._over.wait(PERIOD_S)

    def _request_metadata(self, node: int, client: RecordedClient) -> None:
        sent_ns = self._context.recorder.now_ns()
        response: Any = client.metadata(self.view.topics).response
        if response is None:
            return
        for topic in response.topics:
            for each in topic.partitions:
                leader = int(each.leader_id)
                seen = PartitionSeen(
                    leader=leader,
                    epoch=int(getattr(each, "leader_epoch", 0)),
                    isr=tuple(map(int, each.isr_nodes)),
                    replicas=tuple(map(int, each.replica_nodes)),
                    by_leader=leader == node,
                    at_ns=sent_ns,
                )
                self.view.update(TopicPartition(topic.name, int(each.partition_index)), seen)
        self.view.update_node(node, sent_ns)

    def _describe_quorum(self, client: RecordedClient) -> None:
        result = client.describe_quorum()
        for topic in result.response.topics if result.error is None else ():
            for each in topic.partitions:
                if not each.error_code:
                    voters = tuple(int(voter.replica_id) for voter in each.current_voters)
                    self.view.update_quorum(QuorumSeen(int(each.leader_id), int(each.leader_epoch), voters))

    def _find_coordinator(self, client: RecordedClient) -> None:
        coordinator = None if self._group is None else client.request_coordinator(self._group)
        if coordinator is not None:
            self.view.update_coordinator(coordinator)
