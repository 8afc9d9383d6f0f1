"""What this node asks of others: requests under way, by channel, and who waits for their answers.

Rules of this file:
- `then` is called once: with the response, or with null where the connection was lost or the time is over. It is never
  called from inside `ask`, and not at all once the channel is dropped.
- A request that is not answered in time ends its channel, and with it all that is under way there, as Kafka's
  `NetworkClient` does: whatever is wrong with the connection, a new one is the way out.
- Answers come in the order of the requests, as Kafka sends them; one out of order ends the channel.
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from reference_broker.core.clock import Now
from reference_broker.core.connection import Channel, Disconnect, Effect, Send
from reference_broker.core.timers import Timer, Timers
from reference_broker.core.tracer import ChannelDisconnected, RequestSent, Tracer, no_tracer
from reference_broker.protocol.errors import MalformedRequestError
from reference_broker.protocol.messages import client_codec

Then = Callable[[Any, Now], None]
"""Takes kio's response entity, or null."""


@dataclass(frozen=True, slots=True)
class _Asked:
    correlation_id: int
    request_type: type
    then: Then
    deadline_ms: int


class Channels:
    """The requests under way.

    :param emit: takes the effects.
    :param client_id: goes into every request's header.
    """

    def __init__(
        self, timers: Timers, emit: Callable[[Effect], None], client_id: str, trace: Tracer = no_tracer
    ) -> None:
        self._timers = timers
        self._emit = emit
        self._trace = trace
        self._client_id = client_id
        self._under_way: dict[Channel, deque[_Asked]] = {}
        self._watches: dict[Channel, Timer] = {}
        self._next_correlation_id = 0

    @property
    def in_flight(self) -> int:
        """The number of requests without a response."""
        return sum(map(len, self._under_way.values()))

    def deadlines(self) -> Iterator[tuple[Channel, int, int | None]]:
        """Return each channel with requests in flight, the earliest deadline of these, and when its timer is due."""
        for channel, under_way in self._under_way.items():
            timer = self._watches.get(channel)
            yield channel, min(asked.deadline_ms for asked in under_way), None if timer is None else timer.due_ms

    def ask(self, channel: Channel, request: Any, then: Then, *, timeout_ms: int, now: Now) -> None:
        """Send a request (kio's entity; its class says API and version)."""
        self._trace(RequestSent(channel, request))
        correlation_id = self._next_correlation_id
        self._next_correlation_id = (correlation_id + 1) % 2**31
        asked = _Asked(correlation_id, type(request), then, now.monotonic_ms + timeout_ms)
        self._under_way.setdefault(channel, deque()).append(asked)
        data = client_codec(asked.request_type).write(correlation_id, self._client_id, request)
        self._emit(Send(channel, data))
        self._watch(channel)

    def answered(self, channel: Channel, frame: bytes, now: Now) -> None:
        """A response came, without its length."""
        under_way = self._under_way.get(channel)
        if not under_way:
            return  # of a channel that was given up
        asked = under_way.popleft()
        if not under_way:
            del self._under_way[channel]
        try:
            correlation_id, response = client_codec(asked.request_type).read(frame)
        except MalformedRequestError:
            correlation_id, response = -1, None
        if correlation_id == asked.correlation_id:
            asked.then(response, now)
        else:
            self._disconnect(channel)
            asked.then(None, now)
            self.lost(channel, now)

    def lost(self, channel: Channel, now: Now) -> None:
        """The connection could not be made, or is gone."""
        for asked in self._under_way.pop(channel, ()):
            asked.then(None, now)

    def drop(self, channel: Channel) -> None:
        """End a channel; nobody waits for its answers any more."""
        self._under_way.pop(channel, None)
        self._disconnect(channel)

    def _disconnect(self, channel: Channel) -> None:
        deadlines_ms = (asked.deadline_ms for asked in self._under_way.get(channel, ()))
        self._trace(ChannelDisconnected(channel, min(deadlines_ms, default=None)))
        self._emit(Disconnect(channel))

    def _watch(self, channel: Channel) -> None:
        """One timer a channel, for the oldest request: thousands of requests a second need no timer each."""
        if channel not in self._watches:
            deadline_ms = self._under_way[channel][0].deadline_ms
            self._watches[channel] = self._timers.set(deadline_ms, lambda now: self._look(channel, now))

    def _look(self, channel: Channel, now: Now) -> None:
        del self._watches[channel]
        under_way = self._under_way.get(channel)
        if under_way and min(asked.deadline_ms for asked in under_way) <= now.monotonic_ms:
            self._disconnect(channel)
            self.lost(channel, now)
        elif under_way:
            self._watch(channel)
