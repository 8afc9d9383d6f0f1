"""Simulated network with faults: connections that keep the order of bytes, and links that hold, lose or delay them.

A connection has two ends, the opener and the acceptor. Data arrive after the delay of their link. Data of one
connection arrive in the order in which they were sent; the order between connections is not defined. A link is one
direction between two places (`links`). Its condition applies to all connections, or to those of one listener or opener.

Nothing arrives over a link that is cut, not even data that were in flight before the cut:
- `HOLD`: the data arrive once the cut is healed, because TCP retransmits them.
- `LOSE`: the data are lost. Once both directions are healed, the connection is reset, and both ends are notified. Until
  then, data in the other direction still arrive.

How a connection ends:
- One end closes the connection, or its process is killed (`close_place`): the other end is notified, after all data
  that were sent before.
- The machine of one end loses its power (`power_off`): the other end is not notified. If bytes arrive while the power
  is off, a reset is returned when the power is back; if they arrive later, a reset is returned at once.
- `reset` ends the connection at once, and data in flight are lost. An end may remain without notification, as if a
  middlebox had lost its state. This end detects the reset when it sends data.

Bytes that are sent after lost bytes of the same connection are never delivered. No data are delivered to an end after
it has closed the connection, or after it was notified that the connection has ended: a reset is returned for such data.

A connection request is sent again, as in TCP, until `CONNECT_TIMEOUT_MS` have passed. If no listener accepts it, a
reset is returned.
"""

from collections.abc import Callable, Iterable
from functools import partial
from random import Random

from reference_broker.simulation.links import NORMAL, Condition, Cut, Link, worst
from reference_broker.simulation.pipe import Accept, End, Parcel, Pipe, Side, Sign, is_passable
from reference_broker.simulation.scheduler import Scheduler
from reference_broker.simulation.trace import Trace

CONNECT_TIMEOUT_MS = 10_000
"""Duration of an attempt to connect (`socket.connection.setup.timeout.ms`)."""
_FIRST_RETRY_MS = 1_000
"""Delay before the first retransmission of a SYN; it doubles each time (RFC 6298)."""


class Network:
    """All connections.

    :param delay_ms: delay of every link.
    :param jitter_ms: maximum of the random time that is added to the delay.
    :ivar sent: callbacks, called with each message: its connection, its bytes, and whether the opener sends it.
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
        self._powered_off: set[str] = set()
        self._numbers = 0

    # Conditions

    def set(self, link: Link, condition: Condition) -> None:
        """Add a condition to a link. Of several conditions, the worst cut, delay, jitter and bandwidth apply."""
        self._conditions.append((link, condition))
        self._apply_conditions()

    def heal(self, link: Link, condition: Condition | None = None) -> None:
        """Remove one condition of a link, or all of them."""
        if condition is None:
            self._conditions = [entry for entry in self._conditions if entry[0] != link]
        else:
            self._conditions.remove((link, condition))
        self._apply_conditions()

    def heal_all(self) -> None:
        """Remove all conditions."""
        self._conditions.clear()
        self._apply_conditions()

    def _apply_conditions(self) -> None:
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
        found = [condition for link, condition in self._conditions if link.carries(*way)]
        return worst(found) if found else NORMAL

    def _release(self, pipe: Pipe, side: Side) -> None:
        """Schedule the data that the cut has held, in order, and all later data after them."""
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
        """Open a connection. The opener's data wait until it is established; on failure `opener.closed` is called."""
        pipe = Pipe(Side(opener.place, opener), Side(place, None), listener, accept)
        self._pipes[pipe] = None
        self._set_conditions(pipe)
        self._trace.add(self._scheduler.now_ms, "connect", opener.place, place, listener)
        if place in self._powered_off or any(side.condition is not NORMAL for side in (pipe.opener, pipe.acceptor)):
            self._schedule_timeout(pipe)
        self._request(pipe, _FIRST_RETRY_MS)
        return pipe

    def _schedule_timeout(self, pipe: Pipe) -> None:
        """Schedule the timeout of an attempt to connect. Called only when a fault may delay the attempt."""
        self._scheduler.after(CONNECT_TIMEOUT_MS, partial(self._time_out, pipe))

    def _request(self, pipe: Pipe, retry_ms: int) -> None:
        """Send a connection request. If the link is cut, send it again later."""
        condition = pipe.acceptor.condition
        if pipe.opener.is_gone:
            self._remove(pipe)
        elif condition.cut:
            self._scheduler.after(retry_ms, partial(self._request, pipe, 2 * retry_ms))
        else:
            self._scheduler.after(self._delay_of(condition), partial(self._accept, pipe, retry_ms))

    def _accept(self, pipe: Pipe, retry_ms: int) -> None:
        if pipe.opener.is_gone:
            self._remove(pipe)
        elif pipe.acceptor.condition.cut or pipe.opener.condition.cut or pipe.acceptor.place in self._powered_off:
            if retry_ms == _FIRST_RETRY_MS:
                self._schedule_timeout(pipe)
            self._scheduler.after(retry_ms, partial(self._request, pipe, 2 * retry_ms))
        else:
            pipe.acceptor.end = end = pipe.accept(pipe)
            pipe.acceptor.is_gone = end is None
            self._put(pipe, pipe.opener, Parcel(Sign.RESET if end is None else Sign.CONNECTED))

    def _time_out(self, pipe: Pipe) -> None:
        if not pipe.is_established and not pipe.opener.is_gone:
            self._notify(pipe, pipe.opener)

    def send(self, pipe: Pipe, data: bytes, *, from_opener: bool) -> None:
        """Send a frame from one end to the other."""
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
        for callback in self.sent:
            callback(pipe, data, from_opener)
        self._put(pipe, destination, Parcel(data, self._numbers))

    def close(self, pipe: Pipe, *, by_opener: bool) -> None:
        """Close one end. The other end is notified after all data that were sent before have arrived."""
        self._end(pipe, pipe.opener if by_opener else pipe.acceptor)

    def close_place(self, place: str) -> None:
        """Close the connections of a process that ended; their other ends are notified."""
        for pipe in tuple(self._pipes):
            for side in (pipe.opener, pipe.acceptor):
                if side.place == place and side.end is not None:
                    self._end(pipe, side)

    def power_off(self, place: str) -> None:
        """Cut a machine's power: no end is notified, and no connection is accepted until `power_on`."""
        self._powered_off.add(place)
        for pipe in tuple(self._pipes):
            for side in (pipe.opener, pipe.acceptor):
                if side.place == place and side.end is not None:
                    other = pipe.other(side)
                    self._leave(pipe, side)
                    if other.condition.cut:
                        self._lose(pipe, other)  # the machine cannot retransmit them

    def power_on(self, place: str) -> None:
        """Restore a machine's power, without the connections that it had."""
        self._powered_off.discard(place)
        for pipe in tuple(self._pipes):
            for side in (pipe.opener, pipe.acceptor):
                if side.place == place and side.is_missed:
                    side.is_missed = False
                    self._return_reset(pipe, side)

    def reset(self, one: str, other: str, *, notifies: tuple[bool, bool] = (True, True)) -> None:
        """End the connections between two places.

        :param notifies: whether opener and acceptor are notified. An end that is not notified detects the reset when it
            sends.
        """
        self._trace.add(self._scheduler.now_ms, "reset", one, other)
        for pipe in tuple(self._pipes):
            if {pipe.opener.place, pipe.acceptor.place} == {one, other}:
                self._reset(pipe, [pipe.opener] * notifies[0] + [pipe.acceptor] * notifies[1])

    def _reset(self, pipe: Pipe, notified: Iterable[Side]) -> None:
        if not pipe.is_established:
            # An opener that is still connecting sends its request again, so it detects the reset in any case.
            notified = (pipe.opener, pipe.acceptor)
        pipe.is_reset = True
        for side in (pipe.opener, pipe.acceptor):
            self._lose(pipe, side)
            side.has_lost = False
        for side in notified:
            self._scheduler.after(self._delay_ms, partial(self._notify, pipe, side))

    # Delivery

    def _put(self, pipe: Pipe, side: Side, parcel: Parcel) -> None:
        """Send a parcel to a side."""
        side.way.append(parcel)
        if side.has_lost or side.condition.cut is Cut.LOSE:
            side.has_lost = True
            self._lose(pipe, side)
        elif side.condition.cut is None and is_passable(pipe, side):
            self._schedule(pipe, side, parcel)

    def _lose(self, pipe: Pipe, side: Side) -> None:
        """Lose all parcels in flight to a side."""
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
            return  # the parcel was lost, or a cut holds it
        if side.condition.cut is not None:
            if side.condition.cut is Cut.LOSE:
                side.has_lost = True
                self._lose(pipe, side)
            if parcel.content is Sign.CONNECTED:
                self._schedule_timeout(pipe)
            return
        way.popleft()
        if isinstance(parcel.content, Sign):
            self._arrive_sign(pipe, side, parcel.content)
        elif side.is_gone or pipe.is_reset:
            self._return_reset(pipe, side)
        elif side.end is not None:
            self._note(pipe, side, "deliver", parcel)
            side.end.received(parcel.content)

    def _arrive_sign(self, pipe: Pipe, side: Side, sign: Sign) -> None:
        if sign is not Sign.CONNECTED:
            self._notify(pipe, side)
        elif side.is_gone:
            self._notify(pipe, pipe.acceptor)
        else:
            pipe.is_established = True
            self._release(pipe, pipe.acceptor)

    def _return_reset(self, pipe: Pipe, side: Side) -> None:
        """Return a reset to the sender of bytes, because this side has ended the connection."""
        other = pipe.other(side)
        if side.place in self._powered_off:
            side.is_missed = True
        elif not other.is_gone and not any(parcel.content is Sign.RESET for parcel in other.way):
            self._put(pipe, other, Parcel(Sign.RESET))

    def _notify(self, pipe: Pipe, side: Side) -> None:
        """Notify one end that the connection has ended."""
        if not side.is_gone:
            self._leave(pipe, side)
            if side.end is not None:
                side.end.closed()

    def _end(self, pipe: Pipe, side: Side) -> None:
        """Close one end."""
        if not side.is_gone:
            if pipe.is_established or side is pipe.acceptor:
                self._put(pipe, pipe.other(side), Parcel(Sign.CLOSED))
            self._leave(pipe, side)

    def _leave(self, pipe: Pipe, side: Side) -> None:
        side.is_gone = True
        if pipe.other(side).is_gone:
            self._remove(pipe)

    def _remove(self, pipe: Pipe) -> None:
        self._pipes.pop(pipe, None)
