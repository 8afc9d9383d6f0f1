"""One machine: a disk and a clock that outlive the node that runs on them, and the shell around that node.

As the server's shell does, it carries out effects, keeps the timer and the frames that wait while the node is busy
with a connection, and ends the node where its disk, its quorum or its metadata fail. An error of any other kind is a
bug: it is not caught here, and ends the simulation.

A machine that is paused, or whose disk is slow, does nothing meanwhile: what reaches it waits, and its timers are late.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from reference_broker.core.clock import Now
from reference_broker.core.connection import Channel, Close, Connection, Disconnect, Effect, Note, Respond, Send
from reference_broker.core.lifecycle import RegistrationTimeoutError
from reference_broker.core.metadata.cluster_metadata import MetadataFaultError
from reference_broker.core.node import Node
from reference_broker.core.quorum.states import QuorumStateError
from reference_broker.simulation.clock import MachineClock
from reference_broker.simulation.disk import SimulatedDisk
from reference_broker.simulation.network import End, Network, Pipe
from reference_broker.simulation.scheduler import Scheduler
from reference_broker.simulation.trace import Trace

_LENGTH_BYTES = 4
NODE_FAILURES = (OSError, QuorumStateError, MetadataFaultError, RegistrationTimeoutError)
"""What ends a node, and is no bug of it."""


class Addresses(Protocol):
    """Who listens where."""

    def place_of(self, channel: Channel) -> tuple[str, str]:
        """The machine, and the listener, that a channel leads to."""
        ...

    def accept(self, place: str, listener: str) -> Callable[[Pipe], End | None]:
        """How that machine takes a connection."""
        ...


@dataclass(eq=False, slots=True)
class _Incoming:
    connection: Connection
    pipe: Pipe
    waiting: deque[bytes] = field(default_factory=deque)


class Machine:
    """Where node `node_id` runs.

    :ivar node: null while none runs.
    :ivar failed: why the last node ended by itself; empty where it did not.
    :ivar is_settled: called after each event of the node, for whoever watches.
    """

    def __init__(
        self, node_id: int, scheduler: Scheduler, network: Network, trace: Trace, addresses: Addresses
    ) -> None:
        self.node_id = node_id
        self.place = str(node_id)
        self.disk = SimulatedDisk()
        self.clock = MachineClock()
        self.node: Node | None = None
        self.failed = ""
        self.incarnation = 0
        self.is_paused = False
        self.notes: list[str] = []
        self.is_settled: list[Callable[[Machine], None]] = []
        self._scheduler = scheduler
        self._network = network
        self._trace = trace
        self._addresses = addresses
        self._busy_until_ms = 0
        self._late: list[Callable[[], None]] = []
        self._incoming: dict[Connection, _Incoming] = {}
        self._outgoing: dict[Channel, Pipe] = {}
        self._timer_ms: int | None = None

    @property
    def now(self) -> Now:
        """As its clocks show it."""
        return self.clock.read(self._scheduler.now_ms)

    # Life

    def run(self, make: Callable[[Now], Node]) -> None:
        """Start a node. One that its disk does not let start has `failed`."""
        self.incarnation += 1
        self.failed = ""
        self._trace.add(self._scheduler.now_ms, "start", self.place)
        try:
            self.node = make(self.now)
        except NODE_FAILURES as error:
            self._fail(error)
            return
        self._settle()

    def end(self, kind: str) -> None:
        """The process is gone, without a word. Its disk stays as it is."""
        self._trace.add(self._scheduler.now_ms, kind, self.place)
        self.node = None
        self.is_paused = False
        self._late.clear()
        self._incoming.clear()
        self._outgoing.clear()
        self._timer_ms = None
        self._busy_until_ms = 0
        self._network.drop_place(self.place)
        for watch in self.is_settled:
            watch(self)

    def pause(self) -> None:
        """Nothing runs any more; connections stay."""
        self.is_paused = True

    def resume(self) -> None:
        """Go on; what came meanwhile comes now."""
        self.is_paused = False
        late, self._late = self._late, []
        for action in late:
            self._scheduler.after(0, action)

    def _fail(self, error: Exception) -> None:
        self.failed = f"{type(error).__name__}: {error}"
        self.end("failed")

    # Events of the node

    def tell(self, event: Callable[[Node, Now], None]) -> None:
        """Let the node see an event, when it can."""
        incarnation = self.incarnation

        def happen() -> None:
            if self.node is None or self.incarnation != incarnation:
                return
            if self.is_paused:
                self._late.append(happen)
            elif self._busy_until_ms > self._scheduler.now_ms:
                self._scheduler.at(self._busy_until_ms, happen)
            else:
                self._guarded(self.node, event)

        happen()

    def _guarded(self, node: Node, event: Callable[[Node, Now], None]) -> None:
        try:
            event(node, self.now)
            while node.has_to_write:
                node.write(self.now)
        except NODE_FAILURES as error:
            self._fail(error)
            return
        self._settle()

    def _settle(self) -> None:
        node = self.node
        assert node is not None
        effects = node.take_effects()
        delay_ms = self.disk.take_delay_ms()
        if delay_ms:
            self._busy_until_ms = self._scheduler.now_ms + delay_ms
            incarnation = self.incarnation
            self._scheduler.after(delay_ms, lambda: self._carry_out_late(incarnation, effects))
        else:
            self._carry_out(effects)
        self._set_timer(node)
        for watch in self.is_settled:
            watch(self)

    def _carry_out_late(self, incarnation: int, effects: list[Effect]) -> None:
        if self.node is not None and self.incarnation == incarnation:
            self._carry_out(effects)

    def _carry_out(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Respond(connection, data):
                    if incoming := self._incoming.get(connection):
                        self._network.send(incoming.pipe, data, from_opener=False)
                        if incoming.waiting:
                            self._scheduler.after(0, partial(self._proceed, incoming))
                case Send(channel, data):
                    self._send(channel, data)
                case Close(connection):
                    if incoming := self._incoming.pop(connection, None):
                        self._network.close(incoming.pipe, by_opener=False)
                case Disconnect(channel):
                    if pipe := self._outgoing.pop(channel, None):
                        self._network.close(pipe, by_opener=True)
                case Note(text):
                    self.notes.append(text)
                    self._trace.add(self._scheduler.now_ms, "note", self.place, text=text)

    def _set_timer(self, node: Node) -> None:
        next_ms = node.next_ms
        if next_ms is None:
            return
        at_ms = max(self.clock.true_ms(next_ms), self._scheduler.now_ms)
        if self._timer_ms is None or at_ms < self._timer_ms:
            self._timer_ms = at_ms
            incarnation = self.incarnation
            self._scheduler.at(at_ms, lambda: self._fire(incarnation, at_ms))

    def _fire(self, incarnation: int, at_ms: int) -> None:
        if self.incarnation != incarnation or self._timer_ms != at_ms or self.node is None:
            return
        self._timer_ms = None

        def fire(node: Node, now: Now) -> None:
            if node.next_ms is not None and node.next_ms <= now.monotonic_ms:
                node.fire(now)

        self.tell(fire)

    # Connections to it

    def accept(self, listener: str, *, is_controller: bool) -> Callable[[Pipe], End | None]:
        """Take connections to a listener; a node that does not serve yet takes those of controllers only."""

        def take(pipe: Pipe) -> End | None:
            if self.node is None or not (is_controller or self.node.is_serving):
                return None
            connection = Connection(listener, is_controller=is_controller)
            incoming = self._incoming[connection] = _Incoming(connection, pipe)
            return End(self.place, lambda data: self._receive(incoming, data), lambda: self._lose(incoming))

        return take

    def _receive(self, incoming: _Incoming, data: bytes) -> None:
        incoming.waiting.append(data[_LENGTH_BYTES:])
        self._proceed(incoming)

    def _proceed(self, incoming: _Incoming) -> None:
        def handle(node: Node, now: Now) -> None:
            connection = incoming.connection
            if connection in self._incoming and incoming.waiting and not connection.busy:
                node.handle(connection, incoming.waiting.popleft(), now)
                if incoming.waiting and not connection.busy:
                    self._scheduler.after(0, lambda: self._proceed(incoming))

        self.tell(handle)

    def _lose(self, incoming: _Incoming) -> None:
        def disconnected(node: Node, _now: Now) -> None:
            if self._incoming.pop(incoming.connection, None):
                node.disconnected(incoming.connection)

        self.tell(disconnected)

    # Connections of it

    def _send(self, channel: Channel, data: bytes) -> None:
        pipe = self._outgoing.get(channel)
        if pipe is None:
            pipe = self._outgoing[channel] = self._open(channel)
        self._network.send(pipe, data, from_opener=True)

    def _open(self, channel: Channel) -> Pipe:
        place, listener = self._addresses.place_of(channel)

        def is_current() -> bool:
            return self._outgoing.get(channel) is pipe

        def received(data: bytes) -> None:
            def answered(node: Node, now: Now) -> None:
                if is_current():
                    node.answered(channel, data[_LENGTH_BYTES:], now)

            self.tell(answered)

        def closed() -> None:
            def lost(node: Node, now: Now) -> None:
                if is_current():
                    del self._outgoing[channel]
                    node.lost(channel, now)

            self.tell(lost)

        end = End(self.place, received, closed)
        pipe = self._network.connect(end, place, listener, self._addresses.accept(place, listener), closed)
        return pipe
