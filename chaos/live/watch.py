"""What a cluster says of itself while it is broken: every node is asked again and again, and the newest answer counts.

The answers are rows of the history like anybody's: who led when, with which ISR, and who the voters are is what the
checkers know of availability, of recovery and of how long a promise holds. Here they also tell who plays a role at the
moment of an injection.

Of two answers the one of the higher leader epoch is newer. Within an epoch the leader's own word counts for a while
above what others have heard, since ISRs change without it.
"""

import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final

from chaos.faults import Node, Role
from conformance.concurrent.surroundings import Surroundings
from fixtures.clients.recorded_admin import RecordedAdminClient
from fixtures.clients.recorded_group import RecordedGroupClient
from fixtures.clients.stage import Event, Task

PERIOD_S: Final = 0.2
"""Between two questions to a node."""
_ANSWER_TIMEOUT_S: Final = 2.0
"""A node that is paused or cut off is waited for no longer."""
_LEADERS_WORD_NS: Final = 1_000_000_000
"""How long what a leader has said of its ISR counts above what others say."""


@dataclass(frozen=True, slots=True)
class PartitionSeen:
    """A partition, by the newest answer. `leader` is -1 where there is none."""

    leader: int
    epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    by_leader: bool
    at_ns: int

    @property
    def is_whole(self) -> bool:
        """Whether it has a leader, and all its replicas are in sync."""
        return self.leader >= 0 and set(self.isr) == set(self.replicas)


@dataclass(frozen=True, slots=True)
class QuorumSeen:
    """The controller quorum, by the newest answer."""

    leader: int
    epoch: int
    voters: tuple[int, ...]


class View:
    """The newest answers about one topic, from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._partitions: dict[int, PartitionSeen] = {}
        self._quorum: QuorumSeen | None = None
        self._coordinator: int | None = None
        self._heard_ns: dict[int, int] = {}
        self.changed: Callable[[PartitionSeen], None] = lambda _: None
        """Told of every newer answer about a partition."""

    @property
    def partitions(self) -> Mapping[int, PartitionSeen]:
        """By number, those that anybody has told of."""
        with self._lock:
            return dict(self._partitions)

    def heard(self, node: int, asked_ns: int) -> None:
        """A node has answered what it was asked then."""
        self._heard_ns[node] = asked_ns

    def tell(self, partition: int, seen: PartitionSeen) -> None:
        """Somebody has answered."""
        with self._lock:
            known = self._partitions.get(partition)
            if known is not None and not _is_newer(seen, known):
                return
            self._partitions[partition] = seen
        self.changed(seen)

    def tell_quorum(self, seen: QuorumSeen) -> None:
        """Somebody has answered."""
        with self._lock:
            if self._quorum is None or (seen.epoch, seen.leader) >= (self._quorum.epoch, self._quorum.leader):
                self._quorum = seen

    def tell_coordinator(self, node: int) -> None:
        """Somebody has answered who coordinates the group of the round."""
        self._coordinator = node

    def node(self, name: Node) -> int | None:
        """Who plays a role by now; null where nobody does. An id is itself."""
        if isinstance(name, int):
            return name
        with self._lock:
            first, quorum = self._partitions.get(0), self._quorum
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
                return None

    def is_whole(self, partitions: int, nodes: Iterable[int], since_ns: int) -> bool:
        """Whether all nodes have responded to requests sent since, and at least `partitions` are whole by one.

        A cluster that has forgotten the topic answers, too.
        """
        seen = self.partitions.values()
        heard = all(self._heard_ns.get(node, since_ns) > since_ns for node in nodes)
        return heard and len(seen) >= partitions and all(each.is_whole and each.at_ns > since_ns for each in seen)


def _is_newer(seen: PartitionSeen, known: PartitionSeen) -> bool:
    if seen.epoch != known.epoch:
        return seen.epoch > known.epoch
    return seen.by_leader or not known.by_leader or seen.at_ns > known.at_ns + _LEADERS_WORD_NS


class Watch:
    """Asks every node, each from a task of its own, until it is over.

    :param group: whose coordinator to ask for; where null none is looked for, so that none comes to be.
    """

    def __init__(self, surroundings: Surroundings, group: str | None = None) -> None:
        self.view = View()
        self._surroundings = surroundings
        self._group = group
        self._over: Event = surroundings.target.stage.event()
        self._tasks: list[Task] = []

    def start(self) -> None:
        """Begin."""
        for node in self._surroundings.target.nodes:
            self._tasks.append(self._surroundings.target.stage.start(lambda node=node.id: self._ask(node)))  # type: ignore[misc]

    def stop(self) -> None:
        """End, and raise what a task has raised."""
        self._over.set()
        for task in self._tasks:
            task.result()

    def _ask(self, node: int) -> None:
        client = self._surroundings.raw_client(node, timeout_s=_ANSWER_TIMEOUT_S)
        of_groups = RecordedGroupClient(
            client.client, client.recorder, client.process, topic_ids=client.topic_ids, node=node
        )
        with closing(client.client):
            while not self._over.is_set():
                self._ask_about_topic(node, client)
                self._ask_about_quorum(client)
                self._ask_about_group(of_groups)
                self._over.wait(PERIOD_S)

    def _ask_about_topic(self, node: int, client: RecordedAdminClient) -> None:
        asked_ns = self._surroundings.recorder.now_ns()
        response: Any = client.metadata([self._surroundings.topic]).response
        if response is not None:
            self.view.heard(node, asked_ns)
        for of_topic in () if response is None else response.topics:
            for each in of_topic.partitions:
                leader = int(each.leader_id)
                seen = PartitionSeen(
                    leader=leader,
                    epoch=int(getattr(each, "leader_epoch", 0)),
                    isr=tuple(map(int, each.isr_nodes)),
                    replicas=tuple(map(int, each.replica_nodes)),
                    by_leader=leader == node,
                    at_ns=asked_ns,
                )
                self.view.tell(int(each.partition_index), seen)

    def _ask_about_quorum(self, client: RecordedAdminClient) -> None:
        answer = client.describe_quorum()
        for of_topic in answer.response.topics if answer.error is None else ():
            for each in of_topic.partitions:
                if not each.error_code:
                    voters = tuple(int(voter.replica_id) for voter in each.current_voters)
                    self.view.tell_quorum(QuorumSeen(int(each.leader_id), int(each.leader_epoch), voters))

    def _ask_about_group(self, client: RecordedGroupClient) -> None:
        coordinator = None if self._group is None else client.find_coordinator(self._group)
        if coordinator is not None:
            self.view.tell_coordinator(coordinator)
