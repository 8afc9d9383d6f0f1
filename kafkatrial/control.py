"""Control of a running cluster for `kafkatrial broker`: it injects and ends faults of nodes and links.

`Control` holds the state and does not depend on HTTP (`control_server.py` serves it). Every method may be called from
any thread. An action claims its node or link while it runs. A second action on the same node or link is a conflict.
Methods that only read the state do not wait for actions, but they wait for an election if a node is given by its role.
"""

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from enum import StrEnum
from functools import partial
from typing import TypeAlias

from fixtures.clients.topic_names import is_legal_name
from fixtures.targets.controls import ExitStatuses, LinkedTarget, NodeAccess, ProcessControl, ProcessTarget
from fixtures.targets.target import Node, NodeEndedError, Target, TargetError

CLIENT = "client"
CONTROLLER = "controller"
READY_TIMEOUT_S = 90.0
ROLE_TIMEOUT_S = 30.0
"""Timeout for an election: Kafka fences a killed leader only when its session times out (`broker.session.timeout.ms`).
"""
TOPIC_TIMEOUT_S = 5.0
"""Timeout for brokers to apply the metadata of a new topic."""
_POLL_S = 0.05
_SHOWN_MAX = 60
_NODE_ID_MAX = 2**31 - 1
_NODE_ID = re.compile(r"[0-9]{1,10}")
_ROLE = re.compile(r"(?P<role>leader|follower):(?P<topic>[^:]+):(?P<partition>[^:]+)")

Source: TypeAlias = int | str
Link: TypeAlias = tuple[Source, int]


class NodeState(StrEnum):
    """State of a node after the last action on it, unless its process has ended since."""

    RUNNING = "running"
    PAUSED = "paused"
    KILLED = "killed"
    SHUT_DOWN = "shut down"
    ENDED = "ended"
    """Its process ended without a request to the control interface."""


_DOWN = frozenset({NodeState.KILLED, NodeState.SHUT_DOWN, NodeState.ENDED})
_ALLOWED: Mapping[str, frozenset[NodeState]] = {
    "kill": frozenset({NodeState.RUNNING, NodeState.PAUSED}),
    "shutdown": frozenset({NodeState.RUNNING}),
    "restart": _DOWN,
    "pause": frozenset({NodeState.RUNNING}),
    "resume": frozenset({NodeState.PAUSED}),
}
"""The states from which each action is possible."""
ACTIONS = tuple(_ALLOWED)


class ControlError(Exception):
    """Error of a request that was rejected or failed. The message is one line."""


class InvalidRequestError(ControlError):
    """Error of a request with an invalid value: a node id beyond 32 bits, an invalid topic name."""


class NotFoundError(ControlError):
    """Error of a request for an unknown node, link, topic or partition."""


class ConflictError(ControlError):
    """Error of an action that the state of its node or link does not allow.

    Also raised while another action on the node or link is in progress, or if no node has a requested role in time.
    """


class UnsupportedError(ControlError):
    """Error of an action for which the target has no control."""


class StoppingError(ControlError):
    """Error of a request while the cluster is being stopped."""


def await_whole(target: Target, raise_if_ended: Callable[[], None]) -> None:
    """Return once every node takes part in a write with `acks=all`, and every partition has a full ISR.

    Raises:
        TargetError: it takes longer than `READY_TIMEOUT_S`.
        Exception: whatever `raise_if_ended` raises.
    """
    from fixtures.targets.readiness import await_full_isr, await_ready

    deadline = time.monotonic() + READY_TIMEOUT_S
    await_ready(target.bootstrap_servers, len(target.nodes), READY_TIMEOUT_S, raise_if_ended)
    await_full_isr(target.bootstrap_servers, deadline - time.monotonic(), raise_if_ended)


class _Fault:
    """A fault in force. If its end fails, it is still in force, and `end` can be called again.

    A context manager can be left only once. So if its end has failed, `end` begins the same fault again and leaves the
    new context. To begin a fault that is still in force has no effect.
    """

    def __init__(self, begin: Callable[[], AbstractContextManager[None]]) -> None:
        """Begin the fault."""
        self._begin = begin
        self._context: AbstractContextManager[None] | None = begin()
        self._context.__enter__()
        self._is_over = False
        self._lock = threading.Lock()

    def end(self) -> None:
        """End the fault; return once it has ended. Idempotent."""
        with self._lock:
            if self._is_over:
                return
            context, self._context = self._context, None
            if context is None:
                context = self._begin()
                context.__enter__()
            context.__exit__(None, None, None)
            self._is_over = True


class Control:
    """A started target, and the faults in force."""

    def __init__(self, target: Target, await_whole: Callable[[Target, Callable[[], None]], None] = await_whole) -> None:
        """Take control of a target.

        Args:
            target: started already.
            await_whole: waits until the target serves with every node, once all faults are over.
        """
        self._target = target
        self._await_whole = await_whole
        self._states = {node.id: NodeState.RUNNING for node in target.nodes}
        self._paused: dict[int, _Fault] = {}
        self._cuts: dict[Link, _Fault] = {}
        self._claims: dict[int | Link, str] = {}
        self._changed = threading.Condition()
        """Guards the state of this object. It is not held while a fault of the target begins or ends."""
        self._restoring = False
        self._has_been_disturbed = False
        self._is_closing = False
        self.stop_requested = threading.Event()

    # --- description of the cluster

    def cluster(self) -> dict[str, object]:
        """Describe the target, its nodes and the links that are cut."""
        with self._changed:
            ended = self._note_ended()
            return {
                "target": self._target.name,
                "bootstrap_servers": self._target.bootstrap_servers,
                "capabilities": sorted(map(str, self._target.capabilities)),
                "nodes": [self._describe(node, ended) for node in self._target.nodes],
                "cuts": [{"source": source, "destination": destination} for source, destination in self._cuts],
            }

    def node(self, reference: int | str) -> dict[str, object]:
        """Describe one node, by its id or role."""
        node_id = self.resolve(reference)
        with self._changed:
            ended = self._note_ended()
            return next(self._describe(node, ended) for node in self._target.nodes if node.id == node_id)

    def partition(self, topic: str, partition: int | str) -> dict[str, object]:
        """Describe a partition by the metadata with the highest leader epoch.

        `leader` is None if the metadata contains no leader, or one whose process has ended.
        """
        from kafkatrial.roles import find_partition

        found = find_partition(self._reachable(), *_topic_partition(topic, str(partition)))
        if found is None:
            raise NotFoundError(f"no broker knows partition {partition} of topic {topic}")
        return {
            "topic": topic,
            "partition": int(partition),
            "leader": self._running_leader(found.leader),
            "leader_epoch": found.leader_epoch,
            "replicas": [*found.replicas],
            "isr": [*found.isr],
        }

    def resolve(self, reference: int | str) -> int:
        """Return the node id that a reference stands for.

        Args:
            reference: a node id, `controller` (the active one), `leader:TOPIC:PARTITION`, or
                `follower:TOPIC:PARTITION` (of the followers in the ISR, the one with the lowest id). If no node has the
                role, the call waits for an election.
        """
        text = str(reference)
        if _NODE_ID.fullmatch(text) and int(text) <= _NODE_ID_MAX:
            return self._require_known(int(text))
        if text == CONTROLLER:
            return self._await_role(self._find_controller, "the cluster has no active controller")
        role = _ROLE.fullmatch(text)
        if role is None:
            raise InvalidRequestError(
                f"{_shown(text)} is no node: a node is an id from 0 to {_NODE_ID_MAX}, controller,"
                " leader:TOPIC:PARTITION or follower:TOPIC:PARTITION"
            )
        topic, partition = _topic_partition(role["topic"], role["partition"])
        find = self._find_leader if role["role"] == "leader" else self._find_follower
        missing = "leader" if role["role"] == "leader" else "follower in its ISR"
        return self._await_role(lambda: find(topic, partition), f"partition {topic}-{partition} has no {missing}")

    # --- actions

    def act_on_node(self, reference: int | str, action: str) -> dict[str, object]:
        """Kill, shut down, restart, pause or resume a node; return its new state."""
        processes = self._processes()
        node = self.resolve(reference)
        with self._claim_node(node, action):
            state = self._act(processes, node, action)
            with self._changed:
                self._states[node] = state
        return {"node": node, "state": state}

    def cut(self, source: int | str, destination: int | str) -> dict[str, object]:
        """Cut one directed link until it is healed."""
        link = self._link(source, destination)
        if not isinstance(self._target, LinkedTarget):
            raise UnsupportedError(f"{self._target.name} cannot cut links")
        with self._claim(link, "cut"):
            if link in self._cuts:
                raise ConflictError(f"{_name(link)} is already cut")
            cut = _Fault(partial(self._target.links.cut, *link))
            with self._changed:
                self._cuts[link] = cut
        return {"source": link[0], "destination": link[1], "cut": True}

    def heal(self, source: int | str, destination: int | str) -> dict[str, object]:
        """End the cut of a link."""
        link = self._link(source, destination)
        with self._claim(link, "heal"):
            with self._changed:
                cut = self._cuts.get(link)
            if cut is None:
                raise ConflictError(f"{_name(link)} is not cut")
            self._heal(link, cut)
        return {"source": link[0], "destination": link[1], "cut": False}

    def restore(self) -> dict[str, object]:
        """End every fault, restart every node that is down, and wait until every partition has a full ISR.

        First waits for actions in progress. Then returns at once if no node is down and no action was attempted since
        the last successful call.
        """
        with self._claim_all():
            with self._changed:
                paused, cuts = sorted(self._paused), [*self._cuts]
                down = [node for node, state in self._states.items() if state in _DOWN]
            if not (self._has_been_disturbed or down):
                return {"resumed": [], "healed": [], "restarted": []}
            self.heal_all()
            for node in down:
                self._restart(self._processes(), node)
                with self._changed:
                    self._states[node] = NodeState.RUNNING
            self._await_whole(self._target, self._raise_if_ended)
            self._has_been_disturbed = False
        return {
            "resumed": paused,
            "healed": [{"source": source, "destination": destination} for source, destination in cuts],
            "restarted": down,
        }

    def heal_all(self) -> None:
        """Resume every paused node and heal every cut link. An error is raised after all others have been tried."""
        with ExitStack() as healing, self._changed:
            for node, pause in self._paused.items():
                healing.callback(self._resume, node, pause)
            for link, cut in self._cuts.items():
                healing.callback(self._heal, link, cut)

    def stop(self) -> None:
        """Request that the command `kafkatrial broker` ends."""
        self.stop_requested.set()

    def close(self) -> None:
        """Accept no further actions, and end every fault, so that a node can shut down."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        self.heal_all()

    # --- claims

    @contextmanager
    def _claim(self, key: int | Link, action: str) -> Iterator[None]:
        """Claim a node or link for an action. If the action fails while the cluster is being stopped, report the stop.

        Raises:
            ConflictError: another action on it, or a restore, is in progress.
            StoppingError: the cluster is being stopped.
        """
        with self._changed:
            self._raise_if_closing()
            if self._restoring or key in self._claims:
                other = "restore" if self._restoring else self._claims[key]
                raise ConflictError(f"{_name(key)}: {other} is in progress")
            self._claims[key] = action
            self._has_been_disturbed = True
        try:
            yield
        except ControlError:
            raise
        except Exception:
            self._raise_if_closing()
            raise
        finally:
            with self._changed:
                del self._claims[key]
                self._changed.notify_all()

    @contextmanager
    def _claim_node(self, node: int, action: str) -> Iterator[None]:
        with self._claim(node, action):
            with self._changed:
                self._note_ended(including=node)
                state = self._states[node]
            if state not in _ALLOWED[action]:
                raise ConflictError(f"node {node} is {state}: {action} is not possible")
            yield

    @contextmanager
    def _claim_all(self) -> Iterator[None]:
        """Wait until no action is in progress, and claim all nodes and links. Raises `StoppingError`."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closing or not (self._restoring or self._claims))
            self._raise_if_closing()
            self._note_ended()
            self._restoring = True
        try:
            yield
        except Exception:
            self._raise_if_closing()
            raise
        finally:
            with self._changed:
                self._restoring = False
                self._changed.notify_all()

    def _raise_if_closing(self) -> None:
        if self._is_closing:
            raise StoppingError("the cluster is being stopped")

    # --- nodes

    def _act(self, processes: ProcessControl, node: int, action: str) -> NodeState:
        match action:
            case "kill":
                processes.kill(node)
                with self._changed:
                    self._paused.pop(node, None)
                return NodeState.KILLED
            case "shutdown":
                processes.shut_down(node)
                return NodeState.SHUT_DOWN
            case "restart":
                self._restart(processes, node)
            case "pause":
                pause = _Fault(partial(processes.pause, node))
                with self._changed:
                    self._paused[node] = pause
                return NodeState.PAUSED
            case _:
                with self._changed:
                    paused = self._paused.get(node)
                if paused is not None:
                    self._resume(node, paused)
        return NodeState.RUNNING

    def _restart(self, processes: ProcessControl, node: int) -> None:
        """Restart a node. If its new process ends by itself, the node is `ENDED`, whatever it was before."""
        try:
            processes.restart(node)
        except NodeEndedError:
            with self._changed:
                self._states[node] = NodeState.ENDED
            raise

    def _resume(self, node: int, pause: _Fault) -> None:
        """Resume a node. If this fails, the node is still paused."""
        pause.end()
        with self._changed:
            if self._paused.get(node) is pause:  # else it was killed, or has ended by itself
                del self._paused[node]
                self._states[node] = NodeState.RUNNING

    def _heal(self, link: Link, cut: _Fault) -> None:
        """Heal a link. If this fails, the link is still cut."""
        cut.end()
        with self._changed:
            if self._cuts.get(link) is cut:
                del self._cuts[link]

    def _note_ended(self, including: int | None = None) -> Mapping[int, str]:
        """Record which nodes ended by themselves. Return, for each ended process, the line of its log with the cause.

        A claimed node is not recorded, because the action that claimed it sets its state; a restore claims every node.
        The node `including` is recorded even if it is claimed.
        """
        ended = self._ended()
        for node in ended:
            is_busy = self._restoring or node in self._claims
            if self._states[node] not in _DOWN and (node == including or not is_busy):
                self._states[node] = NodeState.ENDED
                self._paused.pop(node, None)
        return ended

    def _describe(self, node: Node, ended: Mapping[int, str]) -> dict[str, object]:
        state = self._states[node.id]
        statuses = self._exit_statuses()
        is_ended = state is NodeState.ENDED
        return {
            "id": node.id,
            "host": node.host,
            "port": node.port,
            "state": state,
            "action": self._claims.get(node.id) or ("restore" if self._restoring else None),
            "exit_status": statuses.get(node.id) if state in _DOWN else None,
            "reason": ended.get(node.id) if is_ended else None,
        }

    def _raise_if_ended(self) -> None:
        with self._changed:
            self._raise_if_closing()
            ended = self._ended()
        for node, reason in ended.items():
            raise TargetError(f"node {node} ended by itself: {reason}")

    def _require_known(self, node: int) -> int:
        if node not in self._states:
            raise NotFoundError(f"no node {node}; there are {', '.join(map(str, self._states))}")
        return node

    def _processes(self) -> ProcessControl:
        if not isinstance(self._target, ProcessTarget):
            raise UnsupportedError(f"{self._target.name} cannot control its processes")
        return self._target.processes

    def _exit_statuses(self) -> Mapping[int, int | None]:
        if not isinstance(self._target, ProcessTarget):
            return {}
        processes: object = self._target.processes
        return processes.exit_statuses() if isinstance(processes, ExitStatuses) else {}

    def _ended(self) -> Mapping[int, str]:
        return self._target.processes.ended() if isinstance(self._target, ProcessTarget) else {}

    def _link(self, source: int | str, destination: int | str) -> Link:
        link = (CLIENT if source == CLIENT else self.resolve(source), self.resolve(destination))
        if link[0] == link[1]:
            raise NotFoundError(f"node {link[0]} has no link to itself")
        return link

    # --- roles

    def _reachable(self) -> Sequence[Node]:
        """Return the running nodes, with addresses that bypass the links that can be cut.

        If the target has no such addresses, nodes whose link from clients is cut are left out.
        """
        with self._changed:
            self._note_ended()
            running = [node for node in self._target.nodes if self._states[node.id] is NodeState.RUNNING]
            if isinstance(self._target, NodeAccess):
                return [Node(node.id, *self._target.address(node.id, None)) for node in running]
            return [node for node in running if (CLIENT, node.id) not in self._cuts]

    def _running_leader(self, leader: int | None) -> int | None:
        """Return the leader unless its process has ended. Metadata names such a leader until its session times out."""
        with self._changed:
            self._note_ended()
            return leader if leader is not None and self._states.get(leader) not in _DOWN else None

    def _find_leader(self, topic: str, partition: int) -> int | None:
        leader = self.partition(topic, partition)["leader"]
        assert leader is None or isinstance(leader, int)
        return leader

    def _find_follower(self, topic: str, partition: int) -> int | None:
        from kafkatrial.roles import find_partition

        found = find_partition(self._reachable(), topic, partition)
        if found is None:
            raise NotFoundError(f"no broker knows partition {partition} of topic {topic}")
        if self._running_leader(found.leader) is None:
            return None
        with self._changed:
            followers = {*found.isr} - {found.leader}
            return min((node for node in followers if self._states.get(node) not in _DOWN), default=None)

    def _find_controller(self) -> int | None:
        from kafkatrial.roles import find_controller

        return self._running_leader(find_controller(self._reachable()))

    def _await_role(self, find: Callable[[], int | None], missing: str) -> int:
        """Wait until a function returns a node, at most for `ROLE_TIMEOUT_S`, then raise `ConflictError`.

        An unknown topic is only awaited for `TOPIC_TIMEOUT_S`: the brokers may not have applied its metadata yet.
        """
        began = time.monotonic()
        while True:
            try:
                node = find()
            except NotFoundError:
                node = None
                if time.monotonic() - began > TOPIC_TIMEOUT_S:
                    raise
            if node is not None:
                return self._require_known(node)
            if time.monotonic() - began > ROLE_TIMEOUT_S:
                raise ConflictError(missing)
            self._raise_if_closing()
            time.sleep(_POLL_S)


def _topic_partition(topic: str, partition: str) -> tuple[str, int]:
    if not is_legal_name(topic):
        raise InvalidRequestError(f"{_shown(topic)} is not a topic name")
    if not _NODE_ID.fullmatch(partition) or int(partition) > _NODE_ID_MAX:
        raise InvalidRequestError(f"{_shown(partition)} is not a partition, 0 to {_NODE_ID_MAX}")
    return topic, int(partition)


def _name(key: int | Link) -> str:
    return f"node {key}" if isinstance(key, int) else f"the link {key[0]}->{key[1]}"


def _shown(text: str) -> str:
    """Return a value for an error message: escaped and shortened to one line."""
    return repr(text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}…")
