"""A network that fails as told: connections whose bytes come in order, and links that hold, lose or delay them.

A connection has two ends, the one that opened it and the one that took it. What is sent arrives later by the delay of
its link, never before what was sent earlier on the same connection; between connections anything goes. A link is
directed, and its condition can be set for all that goes from one place to another or for one listener's connections.

Nothing arrives over a link that is cut, not even what was under way when it was cut. What becomes of the bytes:
- `HOLD`: they arrive once the cut is healed, as TCP sends them again.
- `LOSE`: they are gone, and with them the connection, of which both ends hear when both directions are healed. What
  goes the other way still arrives.

How a connection ends, and who hears of it:
- One end closes it, or its process is killed (`close_place`): the other end hears, behind all that was sent before.
- The machine of one end loses its power (`darken`): nobody hears. Bytes that reach it once it has power again are
  answered by a reset, and so are those that reached it in vain.
- `reset`: at once, and what is under way is lost. An end that is not notified (a half-open connection, or a middlebox
  that forgot both ends) detects the reset when it sends: no byte sent after the lost ones is ever delivered.
- Nothing reaches an end that has closed, or was told: bytes that do are answered by a reset.

An attempt to connect is repeated as TCP repeats it, for `CONNECT_TIMEOUT_MS`; where nobody listens it is refused.
"""

from collections.abc import Callable, Iterable
from functools import partial
from random import Random

from reference_broker.simulation.links import WELL, Condition, Cut, Link, worst
from reference_broker.simulation.pipe import Accept, End, Parcel, Pipe, Side, Sign, is_passable
from reference_broker.simulation.scheduler import Scheduler
from reference_broker.simulation.trace import Trace

CONNECT_TIMEOUT_MS = 10_000
"""How long an attempt to connect goes on (`socket.connection.setup.timeout.ms`)."""
_FIRST_RETRY_MS = 1_000
"""After which a connection is asked for again, then after twice that, and so on (RFC 6298)."""


class Network:
    """All connections.

    :param delay_ms: of every link.
    :param jitter_ms: of every link: up to so much is added, by chance.
    :ivar sent: called with each message that is sent, and whether the opener sends it, for whoever watches.
    """

    def __init__(
        self, scheduler: Scheduler, trace: Trace, random: Random, *, delay_ms: int = 1, jitter_ms: int = 0
    ) -> None:
        self._scheduler = scheduler
        self._trace = trace
        self._random = random
        self._delay_ms = delay_ms
        self._jitter_ms = jitter_ms
        self._conditions: list[tuple[Link, Condition]] = []
        self.sent: list[Callable[[Pipe, bytes, bool], None]] = []
        self._pipes: dict[Pipe, None] = {}
        self._dark: set[str] = set()
        self._numbers = 0

    # Conditions

    def set(self, link: Link, condition: Condition) -> None:
        """A link behaves so until it is healed; where several conditions apply, the worst of each does."""
        self._conditions.append((link, condition))
        self._look_again()

    def heal(self, link: Link, condition: Condition | None = None) -> None:
        """Take one condition from a link, or all that were set for it."""
        if condition is None:
            self._conditions = [entry for entry in self._conditions if entry[0] != link]
        else:
            self._conditions.remove((link, condition))
        self._look_again()

    def heal_all(self) -> None:
        """Every link works again."""
        self._conditions.clear()
        self._look_again()

    def _look_again(self) -> None:
        for pipe in tuple(self._pipes):
            sides = pipe.opener, pipe.acceptor
            were_cut = [side for side in sides if side.condition.cut]
            self._set_conditions(pipe)
            if any(side.has_lost for side in sides) and not any(side.condition.cut for side in sides):
                self._reset(pipe, sides)
            else:
                for side in were_cut:
                    self._release(pipe, side)

    def _set_conditions(self, pipe: Pipe) -> None:
        opener, acceptor = pipe.opener, pipe.acceptor
        acceptor.condition = self._condition(opener.place, acceptor.place, pipe.listener, opener.place)
        opener.condition = self._condition(acceptor.place, opener.place, pipe.listener, opener.place)

    def _condition(self, *way: str) -> Condition:
        found = [condition for link, condition in self._conditions if link.has(*way)]
        return worst(found) if found else WELL

    def _release(self, pipe: Pipe, side: Side) -> None:
        """Let pass what was held, in order, and behind it what was sent later."""
        if side.condition.cut or not is_passable(pipe, side):
            return
        now_ms = side.last_ms = self._scheduler.now_ms
        is_held = False
        for parcel in side.way:
            is_held = is_held or parcel.at_ms is None or parcel.at_ms <= now_ms
            if is_held:
                self._schedule(pipe, side, parcel)
            else:
                assert parcel.at_ms is not None
                side.last_ms = parcel.at_ms

    # Connections

    def connect(self, opener: End, place: str, listener: str, accept: Accept) -> Pipe:
        """Open a connection; what is sent into it meanwhile follows. Its opener is told (`closed`) if that fails."""
        pipe = Pipe(Side(opener.place, opener), Side(place, None), listener, accept)
        self._pipes[pipe] = None
        self._set_conditions(pipe)
        self._trace.add(self._scheduler.now_ms, "connect", opener.place, place, listener)
        if place in self._dark or any(side.condition is not WELL for side in (pipe.opener, pipe.acceptor)):
            self._watch(pipe)
        self._ask(pipe, _FIRST_RETRY_MS)
        return pipe

    def _watch(self, pipe: Pipe) -> None:
        """Give up in time. Where all is well there is no need to: most connections are made in no time."""
        self._scheduler.after(CONNECT_TIMEOUT_MS, partial(self._give_up, pipe))

    def _ask(self, pipe: Pipe, retry_ms: int) -> None:
        """Ask for a connection, which is forgotten on its way where the link is cut."""
        condition = pipe.acceptor.condition
        if pipe.opener.is_gone:
            self._forget(pipe)
        elif condition.cut:
            self._scheduler.after(retry_ms, partial(self._ask, pipe, 2 * retry_ms))
        else:
            self._scheduler.after(self._delay_of(condition), partial(self._take, pipe, retry_ms))

    def _take(self, pipe: Pipe, retry_ms: int) -> None:
        if pipe.opener.is_gone:
            self._forget(pipe)
        elif pipe.acceptor.condition.cut or pipe.opener.condition.cut or pipe.acceptor.place in self._dark:
            if retry_ms == _FIRST_RETRY_MS:
                self._watch(pipe)
            self._scheduler.after(retry_ms, partial(self._ask, pipe, 2 * retry_ms))
        else:
            pipe.acceptor.end = end = pipe.accept(pipe)
            pipe.acceptor.is_gone = end is None
            self._put(pipe, pipe.opener, Parcel(Sign.RESET if end is None else Sign.CONNECTED))

    def _give_up(self, pipe: Pipe) -> None:
        if not pipe.is_established and not pipe.opener.is_gone:
            self._tell(pipe, pipe.opener)

    def send(self, pipe: Pipe, data: bytes, *, from_opener: bool) -> None:
        """Send bytes, a whole frame, from one of its ends to the other."""
        source, destination = (pipe.opener, pipe.acceptor) if from_opener else (pipe.acceptor, pipe.opener)
        if source.is_gone:
            return
        self._numbers += 1
        self._trace.add(
            self._scheduler.now_ms,
            "request" if from_opener else "answer",
            source.place,
            destination.place,
            pipe.listener,
            data=data,
            number=self._numbers,
        )
        for watch in self.sent:
            watch(pipe, data, from_opener)
        self._put(pipe, destination, Parcel(data, self._numbers))

    def close(self, pipe: Pipe, *, by_opener: bool) -> None:
        """One end closes; the other hears of it, behind what was sent before."""
        self._end(pipe, pipe.opener if by_opener else pipe.acceptor)

    def close_place(self, place: str) -> None:
        """A process ended: the other ends of its connections hear of it."""
        for pipe in tuple(self._pipes):
            for side in (pipe.opener, pipe.acceptor):
                if side.place == place and side.end is not None:
                    self._end(pipe, side)

    def darken(self, place: str) -> None:
        """A machine lost its power: nobody hears of it, and nobody can connect until it is there again (`lighten`)."""
        self._dark.add(place)
        for pipe in tuple(self._pipes):
            for side in (pipe.opener, pipe.acceptor):
                if side.place == place and side.end is not None:
                    other = pipe.other(side)
                    self._leave(pipe, side)
                    if other.condition.cut:
                        self._lose(pipe, other)

    def lighten(self, place: str) -> None:
        """A machine has power again, and knows nothing of the connections that it had."""
        self._dark.discard(place)
        for pipe in tuple(self._pipes):
            for side in (pipe.opener, pipe.acceptor):
                if side.place == place and side.is_missed:
                    side.is_missed = False
                    self._refuse(pipe, side)

    def reset(self, one: str, other: str, *, tells: tuple[bool, bool] = (True, True)) -> None:
        """End the connections between two places.

        :param tells: whether the opener, and the acceptor, are notified; an end that is not detects it when it sends.
        """
        self._trace.add(self._scheduler.now_ms, "reset", one, other)
        for pipe in tuple(self._pipes):
            if {pipe.opener.place, pipe.acceptor.place} == {one, other}:
                self._reset(pipe, [pipe.opener] * tells[0] + [pipe.acceptor] * tells[1])

    def _reset(self, pipe: Pipe, told: Iterable[Side]) -> None:
        if not pipe.is_established:
            told = (pipe.opener, pipe.acceptor)  # an attempt to connect is repeated until there is a response
        pipe.is_reset = True
        for side in (pipe.opener, pipe.acceptor):
            self._lose(pipe, side)
            side.has_lost = False
        for side in told:
            self._scheduler.after(self._delay_ms, partial(self._tell, pipe, side))

    # The way of a parcel

    def _put(self, pipe: Pipe, side: Side, parcel: Parcel) -> None:
        """Bring something on its way to a side."""
        side.way.append(parcel)
        if side.has_lost or side.condition.cut is Cut.LOSE:
            side.has_lost = True
            self._lose(pipe, side)
        elif side.condition.cut is None and is_passable(pipe, side):
            self._schedule(pipe, side, parcel)

    def _lose(self, pipe: Pipe, side: Side) -> None:
        """All that is on the way to a side is gone."""
        for parcel in side.way:
            if parcel.number:
                self._note(pipe, side, "drop", parcel)
        side.way.clear()

    def _note(self, pipe: Pipe, side: Side, kind: str, parcel: Parcel) -> None:
        source = pipe.other(side).place
        self._trace.add(self._scheduler.now_ms, kind, source, side.place, pipe.listener, number=parcel.number)

    def _schedule(self, pipe: Pipe, side: Side, parcel: Parcel) -> None:
        condition, at_ms = side.condition, self._scheduler.now_ms
        if condition.bytes_per_ms and isinstance(parcel.content, bytes):
            at_ms = side.free_ms = max(at_ms, side.free_ms) + -(-len(parcel.content) // condition.bytes_per_ms)
        parcel.at_ms = side.last_ms = max(at_ms + self._delay_of(condition), side.last_ms)
        self._scheduler.at(parcel.at_ms, partial(self._arrive, pipe, side, parcel))

    def _delay_of(self, condition: Condition) -> int:
        jitter_ms = self._jitter_ms + condition.jitter_ms
        delay_ms = self._delay_ms + condition.delay_ms
        return delay_ms + self._random.randrange(jitter_ms + 1) if jitter_ms else delay_ms

    def _arrive(self, pipe: Pipe, side: Side, parcel: Parcel) -> None:
        way = side.way
        if not way or way[0] is not parcel or parcel.at_ms != self._scheduler.now_ms:
            return  # lost meanwhile, or held: it comes later
        if side.condition.cut is not None:
            if side.condition.cut is Cut.LOSE:
                side.has_lost = True
                self._lose(pipe, side)
            if parcel.content is Sign.CONNECTED:
                self._watch(pipe)
            return
        way.popleft()
        if isinstance(parcel.content, Sign):
            self._arrive_sign(pipe, side, parcel.content)
        elif side.is_gone or pipe.is_reset:
            self._refuse(pipe, side)
        elif side.end is not None:
            self._note(pipe, side, "deliver", parcel)
            side.end.received(parcel.content)

    def _arrive_sign(self, pipe: Pipe, side: Side, sign: Sign) -> None:
        if sign is not Sign.CONNECTED:
            self._tell(pipe, side)
        elif side.is_gone:
            self._tell(pipe, pipe.acceptor)
        else:
            pipe.is_established = True
            self._release(pipe, pipe.acceptor)

    def _refuse(self, pipe: Pipe, side: Side) -> None:
        """Return a reset to the sender of bytes whose connection has ended on this side."""
        other = pipe.other(side)
        if side.place in self._dark:
            side.is_missed = True
        elif not other.is_gone and not any(parcel.content is Sign.RESET for parcel in other.way):
            self._put(pipe, other, Parcel(Sign.RESET))

    def _tell(self, pipe: Pipe, side: Side) -> None:
        """One end hears that it is over."""
        if not side.is_gone:
            self._leave(pipe, side)
            if side.end is not None:
                side.end.closed()

    def _end(self, pipe: Pipe, side: Side) -> None:
        """One end ends it."""
        if not side.is_gone:
            if pipe.is_established or side is pipe.acceptor:
                self._put(pipe, pipe.other(side), Parcel(Sign.CLOSED))
            self._leave(pipe, side)

    def _leave(self, pipe: Pipe, side: Side) -> None:
        side.is_gone = True
        if pipe.other(side).is_gone:
            self._forget(pipe)

    def _forget(self, pipe: Pipe) -> None:
        self._pipes.pop(pipe, None)
