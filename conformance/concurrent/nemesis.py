"""Nemesis of a trial: it makes the moves of the faulty phase on a cluster, and heals every fault at the end.

Every fault is a row of the history. The row begins before the fault, and ends when the fault is over. The kinds are
`cut`, `pause`, `kill` (until the node is up again), `shutdown` (from SIGTERM until the process has ended), `down` (from
that time until the node is up), `disk` and `wipe` (until the node is up), and `election` (an unclean election by
request). All requests of the nemesis, also those of waits, are recorded as operations.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, TypeVar

from conformance.concurrent.scripted_faults import ScriptedFaults
from conformance.concurrent.trial_context import ScriptNotRunError, TrialContext
from conformance.trial import moves
from conformance.trial.moves import Await, Begin, Move
from fixtures import faults
from fixtures.clients import administration
from fixtures.clients.administration import AdminRequest, Election
from fixtures.clients.outcomes import NOT_CONTROLLER
from fixtures.clients.recorded import RecordedClient
from fixtures.clients.steps import Idle
from fixtures.faults import Node, Role
from fixtures.faults.fault import Fault
from fixtures.faults.network import AnyNetworkFault
from fixtures.targets.controls import MembershipControl
from fixtures.targets.target import TargetError

AWAIT_TIMEOUT_S = 30.0
"""Timeout of a move that waits for the cluster: five times `broker.session.timeout.ms` with trial settings."""
RESPONSE_TIMEOUT_S = 5.0
"""Timeout of one request; a paused node does not respond."""
_REQUEST_TIMEOUT_MS = 10_000
"""Timeout in the request for an election, a reassignment or a deletion of records."""
_RETRY_BACKOFF_S = 0.1
_PARTITION = 0

Result = TypeVar("Result")


class Moves:
    """Moves of one phase. The phase does not end before `__call__` returns, when all faults are healed."""

    def __init__(self, context: TrialContext, all_moves: Sequence[Move]) -> None:
        self._context = context
        self.link_faults = list(takewhile(_begins_link_fault, all_moves))
        """Moves at the start that inject faults of links."""
        self._others = all_moves[len(self.link_faults) :]
        self._in_force = context.target.stage.event()

    def await_in_force(self) -> None:
        """Return once the faults of links at the start of the moves are in force."""
        self._in_force.wait()

    def __call__(self) -> None:
        """Make all moves, then heal all faults."""
        try:
            with Nemesis(self._context) as nemesis:
                nemesis.make(self.link_faults)
                self._in_force.set()
                nemesis.make(self._others)
        finally:
            self._in_force.set()  # also after an error
            self._context.node_failed.set()
            self._context.nemesis_done.set()


@dataclass(slots=True)
class Nemesis:
    """Maker of one script's moves. A context manager: its exit heals the faults that are still in force."""

    context: TrialContext
    _faults: ScriptedFaults = field(init=False)
    _newcomer: int | None = None
    """Id of the last broker that joined; None if no broker has joined."""
    _clients: dict[int, RecordedClient] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._faults = ScriptedFaults(self.context, self._node)

    def __enter__(self) -> "Nemesis":
        return self

    def __exit__(self, *exc_info: object) -> None:
        try:
            self._faults.end()
        finally:
            self._remove_newcomer()
            for client in self._clients.values():
                client.close()

    def make(self, sequence: Iterable[Move]) -> None:
        """Make the moves, one after the other. Raises `ScriptNotRunError` if a move fails or is not supported."""
        for move in sequence:
            try:
                self._make(move)
            except TargetError as error:
                raise ScriptNotRunError(str(error)) from error

    def _make(self, move: Move) -> None:
        match move:
            case moves.Begin(fault):
                self._begin(fault)
            case moves.Heal(node):
                self._heal(node)
            case moves.StartBroker():
                self._newcomer = self._membership.add_broker().id
            case moves.StopBroker():
                self._remove_newcomer()
            case Idle():
                self.context.target.transport.sleep(move.duration_ms / 1000)
            case _ if isinstance(move, Await):
                self._await(move)
            case _:
                self._send_request(move)

    # --- faults

    def _begin(self, fault: Fault) -> None:
        self._faults.begin(fault)
        if isinstance(fault, faults.Kill | faults.Pause):
            self.context.node_failed.set()

    def _heal(self, name: Node | None) -> None:
        if name is None:
            self._faults.heal_links()
        else:
            self._faults.heal(self._node(name))

    def _remove_newcomer(self) -> None:
        if self._newcomer is not None and self._newcomer in self._nodes:
            self._membership.remove_broker(self._newcomer)

    @property
    def _membership(self) -> MembershipControl:
        target = self.context.target
        if not isinstance(target, MembershipControl):
            raise ScriptNotRunError(f"no broker can join {target.name}")
        return target

    # --- waiting

    def _await(self, move: Await) -> None:
        """Wait until every node that is up reports the state: later moves may send requests to any of them."""
        self._await_everywhere(self._condition(move))

    def _await_everywhere(self, condition: Callable[[RecordedClient], bool]) -> None:
        self._any_client()  # without a node that is up, no node can report the state
        self._wait_until(lambda: all(condition(client) for client in self._available_clients()))

    def _wait_until(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition holds, or until the timeout."""
        self._wait_for(lambda: condition() or None)

    def _wait_for(self, request: Callable[[], Result | None]) -> Result | None:
        """Repeat a request until it has a result, or until the timeout; return the result, None if there is none."""
        deadline = self.context.target.transport.monotonic() + AWAIT_TIMEOUT_S
        while (result := request()) is None and self.context.target.transport.monotonic() < deadline:
            self.context.target.transport.sleep(_RETRY_BACKOFF_S)
        return result

    def _condition(self, move: Await) -> Callable[[RecordedClient], bool]:
        match move:
            case moves.AwaitIsr(size):
                return lambda node: any(len(state.isr_nodes) == size for state in self._partition(node))
            case moves.AwaitLeader(role):
                wanted = -1 if role is None else self._node(role)
                return lambda node: any(state.leader_id == wanted for state in self._partition(node))
            case moves.AwaitBrokers(count):
                return lambda node: len(_brokers(node)) == count
            case moves.AwaitController(other_than):
                former = self._node(other_than)
                return lambda node: any(leader not in (-1, former) for leader in _controllers(node))

    def _partition(self, node: RecordedClient) -> Iterator[Any]:
        """Yield partition 0 of the topic in a node's Metadata response."""
        response = node.metadata([self.context.topic]).response
        for topic_state in () if response is None else response.topics:
            yield from (each for each in topic_state.partitions if each.partition_index == _PARTITION)

    # --- requests

    def _send_request(self, move: Move) -> None:
        topic = self.context.topic
        match move:
            case moves.ProduceBatch():
                records = self.context.records(move.records)
                self._client(self._node(move.to)).produce(
                    topic, _PARTITION, records, acks=move.acks, timeout_ms=move.timeout_ms, bracket=move.acks == -1
                )
            case moves.FetchFromEnd():
                client = self._client(self._node(move.to))
                end = client.list_offsets(topic, _PARTITION).offset
                client.fetch(topic, _PARTITION, end or 0, max_wait_ms=0)
            case moves.ProbeLeaderEpochs():
                self._probe_epochs(self._client(self._node(move.to)))
            case moves.ElectLeader():
                self._elect(move.election)
            case moves.UnregisterNewcomer():
                self._administer(administration.unregister_broker(self._node(Role.NEWCOMER)))
            case moves.DeleteRecordsToEnd():
                self._delete_records()
            case moves.MoveReplicas():
                self._reassign([self._node(role) for role in move.replicas])

    def _probe_epochs(self, leader: RecordedClient) -> None:
        """Send the requests of `ProbeLeaderEpochs`; a new leader may return OFFSET_NOT_AVAILABLE at first (KIP-207)."""
        topic = self.context.topic
        epoch = self._wait_for(lambda: leader.list_offsets(topic, _PARTITION).leader_epoch)
        if not epoch:
            return  # the node does not lead, or leads in the first epoch
        end = leader.find_epoch_end(topic, _PARTITION, epoch - 1).log_end_offset
        if end is not None:
            leader.fetch_after_epoch(topic, _PARTITION, end + 1, epoch - 1)
        leader.read_in_epoch(topic, _PARTITION, epoch - 1, "in_old_epoch")
        leader.read_in_epoch(topic, _PARTITION, epoch + 1, "in_epoch_to_come")

    def _elect(self, election: Election) -> None:
        topic = self.context.topic
        request = administration.elect_leaders(topic, _PARTITION, election, timeout_ms=_REQUEST_TIMEOUT_MS)
        is_unclean = election is Election.UNCLEAN
        with self.context.recorder.fault("election", topic, "unclean") if is_unclean else nullcontext():
            self._administer(request)

    def _administer(self, request: AdminRequest) -> None:
        """Send a request to one node after the other, until one does not return NOT_CONTROLLER.

        Only nodes before KRaft return this error.
        """
        self._any_client()  # without a node that is up, no node can process it
        self._wait_until(lambda: any(self._is_processed(client, request) for client in self._available_clients()))

    def _is_processed(self, client: RecordedClient, request: AdminRequest) -> bool:
        return client.administer(request, timeout_ms=_REQUEST_TIMEOUT_MS).error != NOT_CONTROLLER

    def _delete_records(self) -> None:
        leader = next((int(state.leader_id) for state in self._partition(self._any_client())), -1)
        if leader in self._nodes:
            client = self._client(leader)
            end = client.list_offsets(self.context.topic, _PARTITION).offset
            client.delete_records(self.context.topic, _PARTITION, end or 0, request_timeout_ms=_REQUEST_TIMEOUT_MS)

    def _reassign(self, replicas: Sequence[int]) -> None:
        topic = self.context.topic
        request = administration.reassign(topic, _PARTITION, replicas, timeout_ms=_REQUEST_TIMEOUT_MS)
        self._administer(request)
        self._wait_until(lambda: self._any_client().is_reassigning(topic, _PARTITION) is False)
        self._await_everywhere(
            lambda node: any(set(state.isr_nodes) == set(replicas) for state in self._partition(node))
        )

    # --- nodes

    def _node(self, role: Node) -> int:
        if role is Role.NEWCOMER and self._newcomer is not None:
            return self._newcomer
        return self.context.node_of(role)

    @property
    def _nodes(self) -> Mapping[int, Any]:
        return {node.id: node for node in self.context.target.nodes}

    def _any_client(self) -> RecordedClient:
        """Return a client of a node that is up. Raises `ScriptNotRunError`."""
        client = next(self._available_clients(), None)
        if client is None:
            raise ScriptNotRunError("no node is up to receive the script's request")
        return client

    def _available_clients(self) -> Iterator[RecordedClient]:
        """Yield a client of each node that is up, except the broker that joined."""
        unavailable = {*self._faults.unavailable, self._newcomer}
        return (self._client(node) for node in self._nodes if node not in unavailable)

    def _client(self, node: int) -> RecordedClient:
        if node not in self._clients:
            self._clients[node] = self.context.raw_client(node, timeout_s=RESPONSE_TIMEOUT_S)
        return self._clients[node]


def _begins_link_fault(move: Move) -> bool:
    return isinstance(move, Begin) and isinstance(move.fault, AnyNetworkFault)


def _brokers(node: RecordedClient) -> Sequence[Any]:
    result = node.describe_cluster()
    return () if result.error is not None else result.response.brokers


def _controllers(node: RecordedClient) -> Iterator[int]:
    result = node.describe_quorum()
    for topic_state in () if result.error is not None else result.response.topics:
        yield from (int(each.leader_id) for each in topic_state.partitions)
