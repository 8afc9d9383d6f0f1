"""A network that fails as told: connections whose bytes come in order, and links that hold, lose or delay them.

A connection has two ends, the one that opened it and the one that took it. What is sent arrives later by the delay of
its link, never before what was sent earlier on the same connection; between connections anything goes. A link is
directed, and its condition can be set for all that goes from one place to another or for one listener's connections.

What a cut does to bytes:
- `HOLD`: they arrive once the cut is healed, as TCP sends them again; nobody can connect meanwhile.
- `LOSE`: they are gone, and so is the connection, of which both ends hear when the cut is healed.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random

from reference_broker.simulation.scheduler import Scheduler
from reference_broker.simulation.trace import Trace

CONNECT_TIMEOUT_MS = 10_000
"""How long an attempt to connect goes on over a link that is cut."""


class Cut(StrEnum):
    """What becomes of bytes on a link that is cut."""

    HOLD = "hold"
    LOSE = "lose"


@dataclass(frozen=True, slots=True)
class Link:
    """One direction between two places: `1`, `2`, `client`. What a place names none of stands for all.

    :param listener: only connections to this listener; null: all.
    :param opener: only connections that this place opened; null: all.
    """

    source: str
    destination: str
    listener: str | None = None
    opener: str | None = None


@dataclass(frozen=True, slots=True)
class Condition:
    """What a link does from now on."""

    cut: Cut | None = None
    delay_ms: int = 0
    jitter_ms: int = 0
    bytes_per_ms: int | None = None


@dataclass(eq=False, slots=True)
class End:
    """One end of a connection.

    :param place: a node or a client.
    :param received: takes a frame, its length first.
    :param closed: the other end, or the network, has ended it.
    """

    place: str
    received: Callable[[bytes], None]
    closed: Callable[[], None]


@dataclass(eq=False, slots=True)
class Pipe:
    """A connection from `opener` to `acceptor`."""

    opener: End
    acceptor: End
    listener: str
    is_open: bool = True
    is_established: bool = False
    """Its acceptor has taken it."""
    is_broken: bool = False
    """Bytes of it were lost: nothing passes any more, and the ends do not know."""
    last_arrival_ms: dict[bool, int] = field(default_factory=lambda: {True: 0, False: 0})
    """By direction: true is from the opener."""
    held: dict[bool, list[bytes]] = field(default_factory=lambda: {True: [], False: []})


class Network:
    """All connections. `base_ms` is the delay of a link of which nothing is said."""

    def __init__(self, scheduler: Scheduler, trace: Trace, random: Random, *, base_ms: int = 1) -> None:
        self._scheduler = scheduler
        self._trace = trace
        self._random = random
        self._base_ms = base_ms
        self._conditions: dict[Link, Condition] = {}
        self._pipes: list[Pipe] = []
        self._numbers = 0

    # Conditions

    def set(self, link: Link, condition: Condition) -> None:
        """A link behaves so until it is healed; where several apply, the worst of each does."""
        self._conditions[link] = condition

    def heal(self, link: Link) -> None:
        """A link works again."""
        self._conditions.pop(link, None)
        self._release()

    def heal_all(self) -> None:
        """Every link works again."""
        self._conditions.clear()
        self._release()

    def reset(self, one: str, other: str, *, tells: tuple[bool, bool] = (True, True)) -> None:
        """End the connections between two places; half-open where only one of the two (opener, acceptor) is told."""
        for pipe in [pipe for pipe in self._pipes if {pipe.opener.place, pipe.acceptor.place} == {one, other}]:
            self._drop(pipe, tell_opener=tells[0], tell_acceptor=tells[1])

    def _condition(self, pipe: Pipe, *, from_opener: bool) -> Condition:
        if not self._conditions:
            return _WELL
        source, destination = pipe.opener.place, pipe.acceptor.place
        if not from_opener:
            source, destination = destination, source
        found = [
            condition
            for link, condition in self._conditions.items()
            if link.source == source
            and link.destination == destination
            and link.listener in (None, pipe.listener)
            and link.opener in (None, pipe.opener.place)
        ]
        return _worst(found) if found else _WELL

    # Connections

    def connect(
        self, opener: End, place: str, listener: str, accept: Callable[[Pipe], End | None], failed: Callable[[], None]
    ) -> Pipe:
        """Open a connection; what is sent into it meanwhile follows. `accept` gives the other end; null: refused."""
        pipe = Pipe(opener, End(place, _ignore, _nothing), listener)
        there, back = self._condition(pipe, from_opener=True), self._condition(pipe, from_opener=False)
        self._trace.add(self._scheduler.now_ms, "connect", opener.place, place, listener)
        if there.cut or back.cut:
            self._scheduler.after(CONNECT_TIMEOUT_MS, lambda: self._fail(pipe, failed))
            pipe.is_broken = True
            return pipe

        def arrive() -> None:
            if not pipe.is_open:
                return
            end = accept(pipe)
            if end is None:
                self._scheduler.after(self._base_ms, lambda: self._fail(pipe, failed))
                pipe.is_broken = True
            else:
                pipe.acceptor = end
                pipe.is_established = True
                self._pipes.append(pipe)

        delay_ms = self._base_ms + there.delay_ms
        pipe.last_arrival_ms[True] = self._scheduler.now_ms + delay_ms
        self._scheduler.after(delay_ms, arrive)
        return pipe

    def _fail(self, pipe: Pipe, failed: Callable[[], None]) -> None:
        if pipe.is_open:
            pipe.is_open = False
            failed()

    def send(self, pipe: Pipe, data: bytes, *, from_opener: bool) -> None:
        """Send bytes, a whole frame, from one of its ends to the other."""
        if not pipe.is_open or pipe.is_broken:
            return
        condition = self._condition(pipe, from_opener=from_opener)
        if condition.cut is Cut.LOSE:
            pipe.is_broken = True
        elif condition.cut is Cut.HOLD or pipe.held[from_opener]:
            pipe.held[from_opener].append(data)
        else:
            self._pass(pipe, data, condition, from_opener=from_opener)

    def _pass(self, pipe: Pipe, data: bytes, condition: Condition, *, from_opener: bool) -> None:
        delay_ms = self._base_ms + condition.delay_ms
        if condition.jitter_ms:
            delay_ms += self._random.randrange(condition.jitter_ms + 1)
        if condition.bytes_per_ms:
            delay_ms += len(data) // condition.bytes_per_ms
        at_ms = max(self._scheduler.now_ms + delay_ms, pipe.last_arrival_ms[from_opener])
        pipe.last_arrival_ms[from_opener] = at_ms
        source, end = (pipe.opener, pipe.acceptor) if from_opener else (pipe.acceptor, pipe.opener)
        self._numbers += 1
        number = self._numbers
        self._trace.add(
            self._scheduler.now_ms, "send", source.place, end.place, pipe.listener, data=data, number=number
        )

        def arrive() -> None:
            if pipe.is_open and not pipe.is_broken:
                receiver = pipe.acceptor if from_opener else pipe.opener
                self._trace.add(
                    self._scheduler.now_ms, "deliver", source.place, receiver.place, pipe.listener, number=number
                )
                receiver.received(data)

        self._scheduler.at(at_ms, arrive)

    def close(self, pipe: Pipe, *, by_opener: bool) -> None:
        """One end closes; the other hears of it, behind what was sent before."""
        if not pipe.is_open:
            return
        at_ms = max(self._scheduler.now_ms + self._base_ms, pipe.last_arrival_ms[by_opener])
        other = pipe.acceptor if by_opener else pipe.opener
        if pipe in self._pipes:
            self._pipes.remove(pipe)

        def arrive() -> None:
            if pipe.is_open:
                pipe.is_open = False
                other.closed()

        self._scheduler.at(at_ms, arrive)

    def drop_place(self, place: str) -> None:
        """A process ended: the other ends of its connections hear of it."""
        for pipe in [pipe for pipe in self._pipes if place in (pipe.opener.place, pipe.acceptor.place)]:
            is_opener = pipe.opener.place == place
            self._drop(pipe, tell_opener=not is_opener, tell_acceptor=is_opener)

    def _drop(self, pipe: Pipe, *, tell_opener: bool, tell_acceptor: bool) -> None:
        self._pipes.remove(pipe)
        pipe.is_broken = True
        told = [pipe.opener] * tell_opener + [pipe.acceptor] * tell_acceptor
        for end in told:
            self._scheduler.after(self._base_ms, end.closed)

    def _release(self) -> None:
        """Let pass what is held no more, and end what lost bytes."""
        for pipe in list(self._pipes):
            if pipe.is_broken:
                self._drop(pipe, tell_opener=True, tell_acceptor=True)
                continue
            for from_opener, held in pipe.held.items():
                condition = self._condition(pipe, from_opener=from_opener)
                if held and condition.cut is None:
                    pipe.held[from_opener] = []
                    for data in held:
                        self._pass(pipe, data, condition, from_opener=from_opener)


_WELL = Condition()


def _worst(conditions: list[Condition]) -> Condition:
    cuts = {condition.cut for condition in conditions}
    rates = [condition.bytes_per_ms for condition in conditions if condition.bytes_per_ms is not None]
    return Condition(
        cut=Cut.LOSE if Cut.LOSE in cuts else Cut.HOLD if Cut.HOLD in cuts else None,
        delay_ms=max(condition.delay_ms for condition in conditions),
        jitter_ms=max(condition.jitter_ms for condition in conditions),
        bytes_per_ms=min(rates, default=None),
    )


def _ignore(_data: bytes) -> None:
    """Nobody is there yet."""


def _nothing() -> None:
    """Nobody is there yet."""
