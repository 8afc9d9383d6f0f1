"""A cluster without processes: one pure node per member, a network and a clock that the test moves.

    cluster = Cluster(3)
    cluster.run_until(lambda: cluster.active_controller)
    cluster.ask(2, "CreateTopics", 7, topics=[{"name": "orders", "num_partitions": 3, "replication_factor": 3}])

Every message takes a millisecond, or as long as is said; nothing else takes time. Equal scripts give equal runs.
"""

import heapq
import itertools
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from kio.index import load_response_schema

from fixtures.clients.raw import decode_response, encode_request
from reference_broker.core.clock import Now
from reference_broker.core.connection import (
    DEFAULT_LISTENER,
    Channel,
    Close,
    Connection,
    Disconnect,
    Note,
    Respond,
    Send,
)
from reference_broker.core.disk import MemoryDisk
from reference_broker.core.identity import Identity
from reference_broker.core.layout import Layout
from reference_broker.core.node import Node
from tests.reference_broker.requests import START_MS, request

CLIENT, REPLICATION, CONTROLLER = DEFAULT_LISTENER, "REPLICATION", "CONTROLLER"
PORTS = {CLIENT: 9092, REPLICATION: 9093, CONTROLLER: 9094}
CLOSED = "closed"


def host(node_id: int) -> str:
    return f"b{node_id}.kafka.test"


@dataclass(eq=False)
class Pipe:
    """One connection, from a node's channel or from the test's client to a node.

    `answer` takes the frames that come back, and `closed` is called when the other side ends it.
    """

    to: int
    connection: Connection
    answer: Callable[[bytes], None]
    closed: Callable[[], None]
    incarnation: int
    waiting: deque[bytes] = field(default_factory=deque)


class Cluster:
    """Nodes 1 to `size`, each broker and controller unless `roles` says otherwise; all voters are controllers."""

    def __init__(
        self, size: int, *, roles: dict[int, str] | None = None, seed: int = 0, latency_ms: int = 1, **properties: str
    ) -> None:
        ids = range(1, size + 1)
        self.roles = dict.fromkeys(ids, "broker,controller") | (roles or {})
        self.properties = {name.replace("_", "."): value for name, value in properties.items()}
        self.disks = {node_id: MemoryDisk() for node_id in ids}
        self._directory_ids = {node_id: UUID(int=1000 + node_id) for node_id in ids}
        self.nodes: dict[int, Node] = {}
        self.now = Now(START_MS, 1_000)
        self.notes: list[tuple[int, str]] = []
        self.cuts: set[frozenset[int]] = set()
        self._held: list[Callable[[], None]] = []
        self._latency_ms = latency_ms
        self._random = random.Random(seed)
        self._uuids = itertools.count(1)
        self._correlation_ids = itertools.count(1)
        self._incarnations = itertools.count(1)
        self._running: dict[int, int] = {}
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._sequence = itertools.count()
        self._channels: dict[tuple[int, Channel], Pipe] = {}
        self._pipes: dict[Connection, Pipe] = {}
        self._schemas: dict[tuple[Connection, bytes], Any] = {}
        for node_id in ids:
            self.start(node_id)

    # Life of the nodes

    def start(self, node_id: int) -> None:
        """Open a node on its disk."""
        listeners = ",".join(f"{name}://{host(node_id)}:{port}" for name, port in PORTS.items())
        properties = {
            "node.id": str(node_id),
            "process.roles": self.roles[node_id],
            "listeners": listeners,
            "inter.broker.listener.name": REPLICATION,
            "controller.listener.names": CONTROLLER,
            "controller.quorum.voters": ",".join(
                f"{voter}@{host(voter)}:{PORTS[CONTROLLER]}"
                for voter, role in self.roles.items()
                if "controller" in role
            ),
            "log.dirs": "/data",
            **self.properties,
        }
        layout = Layout.of(properties, node_id)
        incarnation = next(self._incarnations)
        identity = Identity(
            node_id, "cluster", layout.advertised, self._directory_ids[node_id], UUID(int=2000 + incarnation)
        )
        self._running[node_id] = incarnation
        self.nodes[node_id] = Node(
            identity,
            layout,
            properties,
            self.disks[node_id],
            new_uuid=lambda: UUID(int=next(self._uuids)),
            random_below=self._random.randrange,
            now=self.now,
        )
        self._carry_out(node_id)

    def kill(self, node_id: int) -> None:
        """End a node without a word; its disk stays."""
        del self.nodes[node_id], self._running[node_id]
        for pipe in [pipe for pipe in self._pipes.values() if pipe.to == node_id]:
            self._later(lambda pipe=pipe: self._close(pipe))
        for key in [key for key in self._channels if key[0] == node_id]:
            self._hang_up(self._channels.pop(key))

    def stop(self, node_id: int) -> None:
        """End a node in good order, as SIGTERM does."""
        node = self.nodes[node_id]
        node.shut_down(self.now)
        self._carry_out(node_id)
        self.run_until(lambda: node.is_stopped)
        node.close()
        self.kill(node_id)

    def wipe(self, node_id: int) -> None:
        """A node that does not run gets a new disk."""
        self.disks[node_id] = MemoryDisk()
        self._directory_ids[node_id] = UUID(int=self._directory_ids[node_id].int + 500)

    def cut(self, *nodes: int) -> None:
        """Nothing passes between these any more. What is under way by TCP arrives after `heal`; nobody connects."""
        self.cuts |= {frozenset(pair) for pair in itertools.combinations(nodes, 2)}

    def heal(self) -> None:
        self.cuts.clear()
        held, self._held = self._held, []
        for action in held:
            self._later(action)

    @property
    def active_controller(self) -> int | None:
        """The id of the node whose controller is active."""
        active = (node_id for node_id, node in self.nodes.items() if node.controller and node.controller.is_active)
        return next(active, None)

    # Time

    def run(self, for_ms: int) -> None:
        """Let time pass."""
        self.run_until(lambda: False, within_ms=for_ms, is_sure=False)

    def run_until(self, condition: Callable[[], Any], *, within_ms: int = 30_000, is_sure: bool = True) -> Any:
        """Let time pass until this is so; what it is. An assertion fails if it is not in time."""
        end_ms = self.now.monotonic_ms + within_ms
        while not (found := condition()):
            at_ms = self._next_ms()
            if at_ms is None or at_ms > end_ms:
                assert not is_sure, f"not within {within_ms} ms"
                self._set_clock(end_ms)
                return found
            self._set_clock(at_ms)
            self._step()
        return found

    def _next_ms(self) -> int | None:
        moments = [node.next_ms for node in self.nodes.values()]
        moments += [self._events[0][0]] if self._events else []
        return min((moment for moment in moments if moment is not None), default=None)

    def _set_clock(self, at_ms: int) -> None:
        passed_ms = max(at_ms - self.now.monotonic_ms, 0)
        self.now = Now(self.now.wall_ms + passed_ms, self.now.monotonic_ms + passed_ms)

    def _step(self) -> None:
        while self._events and self._events[0][0] <= self.now.monotonic_ms:
            heapq.heappop(self._events)[2]()
        for node_id, node in list(self.nodes.items()):
            if node.next_ms is not None and node.next_ms <= self.now.monotonic_ms:
                node.fire(self.now)
                self._carry_out(node_id)

    def _later(self, action: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self.now.monotonic_ms + self._latency_ms, next(self._sequence), action))

    def jump(self, by_ms: int) -> None:
        """Let time pass all at once: what was due meanwhile is done late."""
        self._set_clock(self.now.monotonic_ms + by_ms)

    # The network

    def _carry_out(self, node_id: int) -> None:
        node = self.nodes[node_id]
        while node.has_to_write:
            node.write(self.now)
        for effect in node.take_effects():
            match effect:
                case Respond(connection, data):
                    self._respond(node_id, connection, data[4:])
                case Close(connection):
                    if pipe := self._pipes.get(connection):
                        self._close(pipe)
                case Send(channel, data):
                    self._send(node_id, channel, data[4:])
                case Disconnect(channel):
                    if pipe := self._channels.pop((node_id, channel), None):
                        self._hang_up(pipe)
                case Note(text):
                    self.notes.append((node_id, text))

    def _send(self, node_id: int, channel: Channel, frame: bytes) -> None:
        pipe = self._channels.get((node_id, channel))
        if pipe is None:
            pipe = self._open(node_id, channel)
        if pipe is None:
            incarnation = self._running[node_id]
            self._later(lambda: self._lose(node_id, incarnation, channel))
        else:
            self._pass_on(node_id, pipe.to, lambda: self._deliver(pipe, frame))

    def _open(self, node_id: int, channel: Channel) -> Pipe | None:
        to = next(other for other in self.disks if host(other) == channel.host)
        if to not in self.nodes or self._is_cut(node_id, to):
            return None
        incarnation = self._running[node_id]

        def answer(frame: bytes) -> None:
            if self._running.get(node_id) == incarnation and self._channels.get((node_id, channel)) is pipe:
                self.nodes[node_id].answered(channel, frame, self.now)
                self._carry_out(node_id)

        def closed() -> None:
            if self._channels.get((node_id, channel)) is pipe:
                del self._channels[node_id, channel]
                self._lose(node_id, incarnation, channel)

        listener = next(name for name, port in PORTS.items() if port == channel.port)
        pipe = self._connect(to, _connection(listener), answer, closed)
        self._channels[node_id, channel] = pipe
        return pipe

    def _connect(
        self, to: int, connection: Connection, answer: Callable[[bytes], None], closed: Callable[[], None]
    ) -> Pipe:
        pipe = Pipe(to, connection, answer, closed, self._running[to])
        self._pipes[connection] = pipe
        return pipe

    def _pass_on(self, one: int, other: int, action: Callable[[], None]) -> None:
        if self._is_cut(one, other):
            self._held.append(action)
        else:
            self._later(action)

    def _is_cut(self, one: int, other: int) -> bool:
        return frozenset((one, other)) in self.cuts

    def _lose(self, node_id: int, incarnation: int, channel: Channel) -> None:
        if self._running.get(node_id) == incarnation:
            self.nodes[node_id].lost(channel, self.now)
            self._carry_out(node_id)

    def _deliver(self, pipe: Pipe, frame: bytes) -> None:
        if pipe.connection in self._pipes and self._running.get(pipe.to) == pipe.incarnation:
            pipe.waiting.append(frame)
            self._proceed(pipe)

    def _proceed(self, pipe: Pipe) -> None:
        while pipe.waiting and not pipe.connection.busy and pipe.connection in self._pipes:
            self.nodes[pipe.to].handle(pipe.connection, pipe.waiting.popleft(), self.now)
            self._carry_out(pipe.to)

    def _respond(self, node_id: int, connection: Connection, frame: bytes) -> None:
        pipe = self._pipes.get(connection)
        if pipe is None:
            return
        asking = next((key[0] for key, value in self._channels.items() if value is pipe), node_id)
        self._pass_on(node_id, asking, lambda: pipe.answer(frame))
        self._later(lambda: self._proceed_if_running(pipe))

    def _proceed_if_running(self, pipe: Pipe) -> None:
        if self._running.get(pipe.to) == pipe.incarnation:
            self._proceed(pipe)

    def _close(self, pipe: Pipe) -> None:
        """The node that was asked ends it."""
        if self._pipes.pop(pipe.connection, None):
            pipe.closed()

    def _hang_up(self, pipe: Pipe) -> None:
        """The one that asked ends it."""
        if self._pipes.pop(pipe.connection, None) and self._running.get(pipe.to) == pipe.incarnation:
            self.nodes[pipe.to].disconnected(pipe.connection)

    # Clients

    def ask(
        self, node_id: int, api: str, version: int, *, listener: str = CLIENT, within_ms: int = 30_000, **fields: Any
    ) -> Any:
        """The answer to a request of a client with a connection of its own; `CLOSED` if it is closed instead."""
        return self.ask_entity(node_id, request(api, version, **fields), listener=listener, within_ms=within_ms)

    def ask_entity(self, node_id: int, entity: Any, *, listener: str = CLIENT, within_ms: int = 30_000) -> Any:
        """The same for a request that is there already."""
        answers = self.asking_entity(node_id, entity, listener=listener)
        return self.run_until(lambda: answers, within_ms=within_ms)[0]

    def asking(self, node_id: int, api: str, version: int, *, listener: str = CLIENT, **fields: Any) -> list[Any]:
        """A list to which the answer comes as time passes."""
        return self.asking_entity(node_id, request(api, version, **fields), listener=listener)

    def asking_entity(self, node_id: int, entity: Any, *, listener: str = CLIENT) -> list[Any]:
        """The same for a request that is there already."""
        schema = load_response_schema(entity.__api_key__, entity.__version__)
        answers: list[Any] = []
        frame = encode_request(entity, next(self._correlation_ids), "test")
        self.send_bytes(node_id, _connection(listener), frame, schema, lambda sent: answers.append(sent[1]))
        return answers

    def send_bytes(
        self, node_id: int, connection: Connection, frame: bytes, schema: Any, sent: Callable[[tuple[Any, Any]], None]
    ) -> None:
        """Send a frame by a connection that is the client's own; `sent` gets the connection and what came of it.

        :param schema: of the response; null for one that is not to be decoded.
        """

        def answer(data: bytes) -> None:
            schema = self._schemas.pop((connection, data[:4]), None)
            sent((connection, data if schema is None else decode_response(schema, data)))

        pipe = self._pipes.get(connection)
        if pipe is None:
            pipe = self._connect(node_id, connection, answer, lambda: sent((connection, CLOSED)))
        self._schemas[connection, frame[4:8]] = schema  # by the correlation id: not every request has a response
        self._later(lambda: self._deliver(pipe, frame))

    def hang_up(self, connection: Connection) -> None:
        """A client ends its connection."""
        if pipe := self._pipes.get(connection):
            self._hang_up(pipe)


def _connection(listener: str) -> Connection:
    return Connection(listener, is_controller=listener == CONTROLLER)
