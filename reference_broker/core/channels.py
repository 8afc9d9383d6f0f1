"""Client for requests to other nodes: in-flight requests by channel, with their callbacks and timeouts.

Follows: org.apache.kafka.clients.NetworkClient.

Rules of this file:
- `then` is called once: with the response, or with null after a disconnection, a timeout or an invalid response. It is
  never called inside `send_request`, and not at all once the channel is dropped.
- If a request times out, its channel is disconnected, and all requests in flight on this channel fail, as in Kafka.
- Responses must arrive in the order of the requests. A response that is out of order or malformed has the effect of a
  timeout.
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from reference_broker.core.clock import Now
from reference_broker.core.connection import Channel, Disconnect, Effect, Send
from reference_broker.core.timers import Timer, Timers
from reference_broker.core.tracer import ChannelDisconnected, RequestCompleted, RequestSent, Tracer, no_tracer
from reference_broker.protocol.errors import MalformedRequestError
from reference_broker.protocol.messages import client_codec

ResponseHandler = Callable[[Any, Now], None]
"""Takes kio's response entity, or null (`ControllerRequestCompletionHandler`)."""
SendToController = Callable[[Any, ResponseHandler, Now], None]
"""Sends a request to the active controller."""


@dataclass(frozen=True, slots=True)
class _InFlightRequest:
    correlation_id: int
    request_type: type
    then: ResponseHandler
    deadline_ms: int


class Channels:
    """The requests in flight to other nodes, by channel.

    :param emit: receives the effects.
    :param client_id: client id in the header of every request.
    """

    def __init__(
        self, timers: Timers, emit: Callable[[Effect], None], client_id: str, trace: Tracer = no_tracer
    ) -> None:
        self._timers = timers
        self._emit = emit
        self._trace = trace
        self._client_id = client_id
        self._under_way: dict[Channel, deque[_InFlightRequest]] = {}
        self._watches: dict[Channel, Timer] = {}
        self._next_correlation_id = 0

    @property
    def in_flight(self) -> int:
        """The number of requests without a response."""
        return sum(map(len, self._under_way.values()))

    def deadlines(self) -> Iterator[tuple[Channel, int, int | None]]:
        """Yield each channel with requests in flight, their earliest deadline, and the time of the channel's timer.

        Both times are monotonic; the second is null if no timer is set.
        """
        for channel, under_way in self._under_way.items():
            timer = self._watches.get(channel)
            yield (
                channel,
                min(in_flight.deadline_ms for in_flight in under_way),
                None if timer is None else timer.due_ms,
            )

    def send_request(self, channel: Channel, request: Any, then: ResponseHandler, *, timeout_ms: int, now: Now) -> None:
        """Send a request entity of kio. Its class determines API and version."""
        correlation_id = self._next_correlation_id
        self._trace(RequestSent(channel, request, correlation_id))
        self._next_correlation_id = (correlation_id + 1) % 2**31
        in_flight = _InFlightRequest(correlation_id, type(request), then, now.monotonic_ms + timeout_ms)
        self._under_way.setdefault(channel, deque()).append(in_flight)
        data = client_codec(in_flight.request_type).write(correlation_id, self._client_id, request)
        self._emit(Send(channel, data))
        self._watch(channel)

    def handle_response(self, channel: Channel, frame: bytes, now: Now) -> None:
        """Handle the frame of a response, without its length."""
        under_way = self._under_way.get(channel)
        if not under_way:
            return  # the requests of the channel have failed, or the channel was dropped
        in_flight = under_way.popleft()
        if not under_way:
            del self._under_way[channel]
        try:
            correlation_id, response = client_codec(in_flight.request_type).read(frame)
        except MalformedRequestError:
            correlation_id, response = -1, None
        if correlation_id == in_flight.correlation_id:
            self._complete(channel, in_flight, response, now)
        else:
            self._disconnect(channel)
            self._complete(channel, in_flight, None, now)
            self.lost(channel, now)

    def lost(self, channel: Channel, now: Now) -> None:
        """Fail the requests of a channel that could not be connected, or was disconnected."""
        for in_flight in self._under_way.pop(channel, ()):
            self._complete(channel, in_flight, None, now)

    def _complete(self, channel: Channel, in_flight: _InFlightRequest, response: Any, now: Now) -> None:
        self._trace(RequestCompleted(channel, in_flight.correlation_id, response))
        in_flight.then(response, now)

    def drop(self, channel: Channel) -> None:
        """Disconnect a channel without calling the callbacks of its requests."""
        self._under_way.pop(channel, None)
        self._disconnect(channel)

    def _disconnect(self, channel: Channel) -> None:
        deadlines_ms = (in_flight.deadline_ms for in_flight in self._under_way.get(channel, ()))
        self._trace(ChannelDisconnected(channel, min(deadlines_ms, default=None)))
        self._emit(Disconnect(channel))

    def _watch(self, channel: Channel) -> None:
        """Set the timer of a channel for its oldest request. A timer for each request would be expensive."""
        if channel not in self._watches:
            deadline_ms = self._under_way[channel][0].deadline_ms
            self._watches[channel] = self._timers.set(deadline_ms, lambda now: self._look(channel, now))

    def _look(self, channel: Channel, now: Now) -> None:
        """Disconnect the channel if a request has timed out; otherwise set its timer again."""
        del self._watches[channel]
        under_way = self._under_way.get(channel)
        if under_way and min(in_flight.deadline_ms for in_flight in under_way) <= now.monotonic_ms:
            self._disconnect(channel)
            self.lost(channel, now)
        elif under_way:
            self._watch(channel)
