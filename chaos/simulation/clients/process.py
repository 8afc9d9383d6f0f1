"""A simulated client's process: generators that ask nodes and wait, resumed by the scheduler.

    answer = yield Ask(node=1, request=request, timeout_ms=2_000)
    yield Sleep(100)
    yield Wait(signal)

Time and connections are an `Environment`: a simulated cluster, or sockets (`chaos.live.sockets`).

A process has one connection to each listener of a node, as Kafka's clients do, with any number of requests in flight;
it may run several generators at once. A request that is not answered in time closes its connection, and all that wait
on it lose their answers, so that a late answer is taken for no other's.
"""

import struct
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from chaos.simulation.clients.answers import check_answer
from fixtures.clients.client_request import ClientRequest
from fixtures.clients.outcomes import NETWORK_EXCEPTION, REQUEST_TIMED_OUT
from fixtures.clients.raw import MalformedResponse
from reference_broker.core.connection import DEFAULT_LISTENER

_LENGTH_BYTES = 4
_CORRELATION_ID = struct.Struct(">i")


class Timers(Protocol):
    """The clock of an environment, and actions at moments of it."""

    @property
    def now_ms(self) -> int:
        """Milliseconds since the start of the environment."""
        ...

    def at(self, at_ms: int, action: Callable[[], None]) -> None:
        """Perform an action at a moment, or as soon as possible if that is past."""
        ...

    def after(self, delay_ms: int, action: Callable[[], None]) -> None:
        """Perform an action later."""
        ...


class Wire(Protocol):
    """A client's end of a connection to a node."""

    @property
    def is_established(self) -> bool:
        """Whether the node has accepted the connection; false means that not one byte has arrived."""
        ...

    def send(self, data: bytes) -> None:
        """Send a whole request, its length first. Does nothing on a closed connection."""
        ...

    def close(self) -> None:
        """Close the connection; nothing is received from it after that."""
        ...


class Environment(Protocol):
    """What a process runs in."""

    @property
    def scheduler(self) -> Timers:
        """The clock."""
        ...

    def connect(
        self, place: str, node_id: int, received: Callable[[bytes], None], closed: Callable[[], None], listener: str
    ) -> Wire:
        """Open a connection to a listener of a node.

        :param place: of the client, for links.
        :param received: is called with each response, its length first.
        :param closed: is called when the connection has ended or could not be opened.
        """
        ...


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a request.

    :ivar response: kio's; null where none came.
    :ivar error: Kafka's name of what kept it from coming.
    :ivar sent: false only where it is certain that not one byte arrived.
    """

    response: Any = None
    error: str | None = None
    sent: bool = True


@dataclass(frozen=True, slots=True)
class Ask:
    """Send a request to a node, and go on with its `Answer`. One that is not answered goes on at once."""

    node: int
    request: ClientRequest
    timeout_ms: int
    listener: str = DEFAULT_LISTENER


@dataclass(frozen=True, slots=True)
class Sleep:
    """Go on later."""

    duration_ms: int


@dataclass(eq=False, slots=True)
class Signal:
    """What generators wait for; all of them go on when it is given."""

    _waiting: list[Callable[[], None]] = field(default_factory=list)

    def give(self) -> None:
        """Let all go on."""
        waiting, self._waiting = self._waiting, []
        for resume in waiting:
            resume()

    def add(self, resume: Callable[[], None]) -> None:
        """One more waits."""
        self._waiting.append(resume)


@dataclass(frozen=True, slots=True)
class Wait:
    """Go on when a signal is given."""

    signal: Signal


Behaviour = Generator[Ask | Sleep | Wait, Any, None]
"""What runs in a process: is sent an `Answer` for each `Ask`, null otherwise."""


class MalformedAnswerError(Exception):
    """A node has answered with bytes that are no answer."""


class Process:
    """One client.

    :ivar number: of it in the history.
    :ivar place: where it stands, for links; by default at a place of its own.
    """

    def __init__(self, number: int, environment: Environment, place: str | None = None) -> None:
        self.number = number
        self.place = place_of(number) if place is None else place
        self._environment = environment
        self._connections: dict[tuple[int, str], _Connection] = {}
        self._running = 0
        self._is_closed = False

    @property
    def scheduler(self) -> Timers:
        """Return the clock of the process."""
        return self._environment.scheduler

    @property
    def is_done(self) -> bool:
        """Whether nothing of it runs any more."""
        return self._running == 0

    def start(self, behaviour: Behaviour) -> None:
        """Run one more generator, from the next event on."""
        self._running += 1
        self.scheduler.after(0, lambda: self._go_on(behaviour, None))

    def close(self) -> None:
        """End its connections. Whatever a lost response makes it do next opens no connection."""
        self._is_closed = True
        connections = tuple(self._connections.values())
        self._connections.clear()
        for connection in connections:
            connection.close()

    def _go_on(self, behaviour: Behaviour, sent: Answer | None) -> None:
        try:
            wanted = behaviour.send(sent)
        except StopIteration:
            self._running -= 1
            return
        match wanted:
            case Ask() if self._is_closed:
                self._running -= 1
                behaviour.close()
            case Ask():
                self._connection(wanted.node, wanted.listener).ask(wanted, partial(self._go_on, behaviour))
            case Sleep(duration_ms):
                self.scheduler.after(duration_ms, lambda: self._go_on(behaviour, None))
            case Wait(signal):
                signal.add(lambda: self.scheduler.after(0, lambda: self._go_on(behaviour, None)))

    def _connection(self, node: int, listener: str) -> "_Connection":
        connection = self._connections.get((node, listener))
        if connection is None or connection.is_closed:
            connection = self._connections[node, listener] = _Connection(self, self._environment, node, listener)
        return connection


def place_of(number: int) -> str:
    """Where the client of that number stands."""
    return f"client-{number}"


@dataclass(frozen=True, slots=True)
class _Pending:
    request: ClientRequest
    resume: Callable[[Answer], None]
    deadline_ms: int
    asked_ms: int


class _Connection:
    """To one listener of a node. Answers come in the order of the questions."""

    def __init__(self, process: Process, environment: Environment, node: int, listener: str) -> None:
        self.is_closed = False
        self._scheduler = process.scheduler
        self._pending: dict[int, _Pending] = {}
        self._correlation_id = 0
        self._alarm_ms: int | None = None
        self._wire = environment.connect(process.place, node, self._received, self._lost, listener)

    def ask(self, ask: Ask, resume: Callable[[Answer], None]) -> None:
        self._correlation_id += 1
        number = self._correlation_id
        self._wire.send(ask.request.frame(number))
        if not ask.request.expects_response:
            self._scheduler.after(0, lambda: resume(Answer()))
            return
        now_ms = self._scheduler.now_ms
        deadline_ms = now_ms + ask.timeout_ms
        self._pending[number] = _Pending(ask.request, resume, deadline_ms, now_ms)
        self._set_alarm(deadline_ms)

    def close(self, *, first: int | None = None) -> None:
        """End it; whoever waits learns that.

        :param first: whose time is over.
        """
        if not self.is_closed:
            self._wire.close()
            self._end(first)

    def _received(self, data: bytes) -> None:
        if self.is_closed:
            return
        (number,) = _CORRELATION_ID.unpack_from(data, _LENGTH_BYTES)
        pending = self._pending.pop(number, None)
        if pending is None:
            raise MalformedAnswerError(f"an answer with correlation id {number}, which nothing asked for")
        try:
            response = pending.request.read(data[_LENGTH_BYTES:])
        except MalformedResponse as error:
            raise MalformedAnswerError(str(error)) from error
        if pending.request.body is not None:
            check_answer(pending.request.body, response, self._scheduler.now_ms - pending.asked_ms)
        pending.resume(Answer(response))

    def _set_alarm(self, deadline_ms: int) -> None:
        """One timer for all that is asked: the next one is set when it rings."""
        if self._alarm_ms is None or deadline_ms < self._alarm_ms:
            self._alarm_ms = deadline_ms
            self._scheduler.at(deadline_ms, partial(self._ring, deadline_ms))

    def _ring(self, alarm_ms: int) -> None:
        if alarm_ms != self._alarm_ms or self.is_closed:
            return
        self._alarm_ms = None
        if self._pending:
            number, first = min(self._pending.items(), key=lambda entry: entry[1].deadline_ms)
            if first.deadline_ms <= alarm_ms:
                self.close(first=number)
            else:
                self._set_alarm(first.deadline_ms)

    def _lost(self) -> None:
        if not self.is_closed:
            self._end(None)

    def _end(self, first: int | None) -> None:
        self.is_closed = True
        sent = self._wire.is_established
        pending, self._pending = self._pending, {}
        for number, waiting in pending.items():
            error = REQUEST_TIMED_OUT if number == first else NETWORK_EXCEPTION
            waiting.resume(Answer(error=error, sent=sent))
