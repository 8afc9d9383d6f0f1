"""One machine: a disk and a clock that outlive the node, and the shell around the node.

Like the server's shell, the machine performs the effects of the node and sets its timer. While the node processes a
request, the machine keeps later frames of the same connection. It ends the node after a shutdown, and when the disk,
quorum, metadata or registration fails. An error of any other kind is a bug, which ends the simulation.

A node is one thread: it processes events one by one, in the order of their arrival. While its machine is paused, or
waits for a slow disk, new events wait, timers are late, and the effects of earlier events are delayed.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Protocol

from reference_broker.core.broker_lifecycle_manager import RegistrationTimeoutError
from reference_broker.core.clock import Now
from reference_broker.core.connection import Channel, Close, Connection, Disconnect, Effect, Note, Respond, Send
from reference_broker.core.metadata.cluster_metadata import MetadataFaultError
from reference_broker.core.node import Node
from reference_broker.core.quorum.election_state import QuorumStateFileError
from reference_broker.core.quorum.quorum_state import QuorumStateError
from reference_broker.core.tracer import Event as TracerEvent
from reference_broker.core.tracer import Tracer
from reference_broker.simulation.clock import MachineClock
from reference_broker.simulation.disk import PowerFailureError, SimulatedDisk
from reference_broker.simulation.network import Network
from reference_broker.simulation.pipe import End, Pipe
from reference_broker.simulation.scheduler import Scheduler
from reference_broker.simulation.trace import Trace

_LENGTH_BYTES = 4
NODE_FAILURES = (OSError, QuorumStateError, QuorumStateFileError, MetadataFaultError, RegistrationTimeoutError)
"""Errors that end a node, as in Kafka."""

Event = Callable[[Node, Now], None]
"""An event, as a function that passes it to the node at the present time."""


class Addresses(Protocol):
    """Lookup of the machine to which a channel leads, and of the function that accepts connections there."""

    def place_of(self, channel: Channel) -> tuple[str, str]:
        """Return the place (the name of the machine) and the listener to which a channel leads."""
        ...

    def accept(self, place: str, listener: str) -> Callable[[Pipe], End | None]:
        """Return the function that accepts a connection to a listener of the machine at a place."""
        ...


@dataclass(eq=False, slots=True)
class _Incoming:
    connection: Connection
    pipe: Pipe
    waiting: deque[bytes] = field(default_factory=deque)


class Machine:
    """The machine of node `node_id`.

    :param random: determines what is left after a power cut.
    :ivar node: the running node; None while none is running.
    :ivar failed: the error that ended the last node; empty if there was none.
    :ivar ended_by: how the last node ended: `kill`, `power`, `failed` or `stop`; empty while one is running.
    :ivar incarnation: how often a node was started here, including failed starts.
    :ivar is_stopping: whether a controlled shutdown was begun.
    :ivar is_busy: whether the node waits for a flush of its disk.
    :ivar notes: texts that the nodes have logged.
    :ivar tracers: called with each event that the node traces.
    :ivar settled: callbacks, called after each event that the node has processed, and when the node has ended.
    """

    def __init__(
        self,
        node_id: int,
        scheduler: Scheduler,
        network: Network,
        trace: Trace,
        addresses: Addresses,
        *,
        random: Random,
    ) -> None:
        self.node_id = node_id
        self.place = str(node_id)
        self.disk = SimulatedDisk()
        self.clock = MachineClock()
        self.node: Node | None = None
        self.failed = ""
        self.ended_by = ""
        self.incarnation = 0
        self.is_paused = False
        self.is_stopping = False
        self.notes: list[str] = []
        self.tracers: list[Tracer] = []
        self.settled: list[Callable[[Machine], None]] = []
        self._scheduler = scheduler
        self._network = network
        self._trace = trace
        self._addresses = addresses
        self._random = random
        self.is_busy = False
        self._events: deque[Event] = deque()
        self._unsent: list[Effect] = []
        self._incoming: dict[Connection, _Incoming] = {}
        self._outgoing: dict[Channel, Pipe] = {}
        self._timer_ms: int | None = None

    @property
    def now(self) -> Now:
        """The time of the machine's clocks."""
        return self.clock.read(self._scheduler.now_ms)

    # Start and end

    def run(self, make: Callable[[Now], Node]) -> None:
        """Start a node. If it cannot start on its disk, `failed` has the error."""
        assert self.node is None, f"node {self.node_id} runs already"
        self.incarnation += 1
        self.failed = self.ended_by = ""
        self._trace.add(self._scheduler.now_ms, "start", self.place)
        self._network.power_on(self.place)
        try:
            self.node = make(self.now)
        except NODE_FAILURES as error:
            self._fail(error)
            return
        self._settle(self.node)

    def shut_down(self) -> None:
        """Begin a controlled shutdown of the node."""

        def begin(node: Node, now: Now) -> None:
            self.is_stopping = True
            node.shut_down(now)

        self.post(begin)

    def kill(self) -> None:
        """Kill the process. The disk is not changed. The other ends of the node's connections are notified."""
        self._end("kill")
        self._network.close_place(self.place)

    def cut_power(self) -> int:
        """Cut the power, which may be off already. Return the number of bytes that the files lose.

        The other ends of the node's connections are not notified.
        """
        self._end("power")
        self._network.power_off(self.place)
        return self.disk.cut_power(self._random)

    def pause(self) -> None:
        """Pause the process; its connections stay open."""
        self._trace.add(self._scheduler.now_ms, "pause", self.place)
        self.is_paused = True

    def resume(self) -> None:
        """Resume the process, which then processes the waiting events."""
        if self.is_paused:
            self._trace.add(self._scheduler.now_ms, "resume", self.place)
            self.is_paused = False
            self._scheduler.after(0, partial(self._continue, self.incarnation))

    def _end(self, kind: str) -> None:
        self._trace.add(self._scheduler.now_ms, kind, self.place)
        self.node = None
        self.ended_by = kind
        self.is_paused = self.is_busy = self.is_stopping = False
        self._events.clear()
        self._unsent.clear()
        self._incoming.clear()
        self._outgoing.clear()
        self._timer_ms = None
        self._notify_settled()

    def _fail(self, error: Exception) -> None:
        self.failed = f"{type(error).__name__}: {error}"
        if isinstance(error, PowerFailureError):
            self.cut_power()
        else:
            self._end("failed")
            self._network.close_place(self.place)

    def _finish(self, node: Node) -> None:
        try:
            node.close()
        except NODE_FAILURES as error:
            self._fail(error)
        else:
            self._end("stop")
            self._network.close_place(self.place)

    def trace_event(self, event: TracerEvent) -> None:
        """Pass an event that the node traces to the tracers."""
        for tracer in self.tracers:
            tracer(event)

    def _notify_settled(self) -> None:
        for callback in self.settled:
            callback(self)

    # Clock

    def jump_clock(self, by_ms: int) -> None:
        """Set the wall clock forward; back if `by_ms` is negative."""
        self._trace.add(self._scheduler.now_ms, "clock", self.place, text=f"jump {by_ms} ms")
        self.clock.wall_offset_ms += by_ms

    def drift_clock(self, rate_ppm: int) -> None:
        """Set the drift of both clocks (`MachineClock.set_rate`), and the timer of the node accordingly."""
        self._trace.add(self._scheduler.now_ms, "clock", self.place, text=f"drift {rate_ppm} ppm")
        self.clock.set_rate(rate_ppm, self._scheduler.now_ms)
        self._timer_ms = None
        if self.node is not None:
            self._set_timer(self.node)

    # Events of the node

    def post(self, event: Event) -> None:
        """Queue an event for the node, and process the queue."""
        if self.node is not None:
            self._events.append(event)
            self._work()

    def _work(self) -> None:
        """Process the queue until it is empty, or the node is paused, waits for its disk, or ends."""
        while self._events and not self.is_paused and not self.is_busy and self.node is not None:
            event = self._events.popleft()
            try:
                event(self.node, self.now)
                while self.node.has_to_write:
                    self.node.write(self.now)
            except NODE_FAILURES as error:
                self._fail(error)
            else:
                self._settle(self.node)

    def _settle(self, node: Node) -> None:
        """Complete an event. If it has flushed files, its effects wait for the duration of the flushes."""
        self._unsent += node.take_effects()
        delay_ms = self.disk.take_delay_ms()
        if delay_ms:
            self.is_busy = True
            self._scheduler.after(delay_ms, partial(self._end_of_flush, self.incarnation))
        else:
            self._carry_out()
        if self.is_stopping and node.is_stopped and not self.is_busy:
            self._finish(node)
            return
        self._set_timer(node)
        self._notify_settled()

    def _end_of_flush(self, incarnation: int) -> None:
        if self.incarnation == incarnation and self.is_busy:
            self.is_busy = False
            self._continue(incarnation)

    def _continue(self, incarnation: int) -> None:
        """Continue after a pause or a flush."""
        if self.incarnation == incarnation and self.node is not None and not self.is_paused and not self.is_busy:
            self._settle(self.node)
            self._work()

    def _carry_out(self) -> None:
        effects, self._unsent = self._unsent, []
        for effect in effects:
            match effect:
                case Respond(connection, data):
                    if incoming := self._incoming.get(connection):
                        if data:
                            self._network.send(incoming.pipe, data, from_opener=False)
                        if incoming.waiting:
                            self._scheduler.after(0, partial(self._proceed, incoming))
                case Send(channel, data):
                    self._send(channel, data)
                case Close(connection):
                    if incoming := self._incoming.pop(connection, None):
                        self._network.close(incoming.pipe, by_opener=False)
                        self._scheduler.after(0, partial(self.post, partial(_disconnect, connection)))
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
            self._scheduler.at(at_ms, partial(self._fire, self.incarnation, at_ms))

    def _fire(self, incarnation: int, at_ms: int) -> None:
        if self.incarnation == incarnation and self._timer_ms == at_ms and self.node is not None:
            self._timer_ms = None
            self.post(_fire_due_timers)

    def is_connected(self, connection: Connection) -> bool:
        """Whether a connection to the node is open."""
        return connection in self._incoming

    # Incoming connections

    def accept(self, listener: str, *, is_controller: bool) -> Callable[[Pipe], End | None]:
        """Return the function that accepts a connection to a listener.

        A node that is not serving accepts only connections to the controller listener.
        """

        def take(pipe: Pipe) -> End | None:
            if self.node is None or not (is_controller or self.node.is_serving):
                return None
            connection = Connection(listener, is_controller=is_controller)
            incoming = self._incoming[connection] = _Incoming(connection, pipe)
            return End(self.place, partial(self._receive, incoming), partial(self._lose, incoming))

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
                    self._scheduler.after(0, partial(self._proceed, incoming))

        self.post(handle)

    def _lose(self, incoming: _Incoming) -> None:
        def disconnected(node: Node, _now: Now) -> None:
            if self._incoming.pop(incoming.connection, None):
                node.disconnected(incoming.connection)

        self.post(disconnected)

    # Outgoing connections

    @property
    def channels(self) -> tuple[Channel, ...]:
        """The channels with an open connection."""
        return tuple(self._outgoing)

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
            def respond(node: Node, now: Now) -> None:
                if is_current():
                    node.handle_response(channel, data[_LENGTH_BYTES:], now)

            self.post(respond)

        def closed() -> None:
            def lost(node: Node, now: Now) -> None:
                if is_current():
                    del self._outgoing[channel]
                    node.lost(channel, now)

            self.post(lost)

        end = End(self.place, received, closed)
        pipe = self._network.connect(end, place, listener, self._addresses.accept(place, listener))
        return pipe


def _fire_due_timers(node: Node, now: Now) -> None:
    if node.next_ms is not None and node.next_ms <= now.monotonic_ms:
        node.fire(now)


def _disconnect(connection: Connection, node: Node, _now: Now) -> None:
    node.disconnected(connection)
