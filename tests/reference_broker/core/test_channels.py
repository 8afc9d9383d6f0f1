"""Requests to other nodes: each completes once, with or without a response, unless its channel is dropped."""

from collections.abc import Callable
from typing import Any

from kio.schema.broker_heartbeat.v1.request import BrokerHeartbeatRequest

from reference_broker.core.channels import Channels
from reference_broker.core.clock import Now
from reference_broker.core.connection import Channel, Disconnect, Effect, Send
from reference_broker.core.timers import Timers
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.messages import message_codec, read_header

BROKER_HEARTBEAT = 63
"""API key."""
PEER = Channel("heartbeat", 2, "b2.kafka.test", 9093)


def at(ms: int) -> Now:
    return Now(1_000_000 + ms, ms)


class Caller:
    """A node that sends requests, with its effects and the responses that its callbacks received."""

    def __init__(self) -> None:
        self.effects: list[Effect] = []
        self.received: list[tuple[str, Any]] = []
        self.timers = Timers()
        self.channels = Channels(self.timers, self.effects.append, "node-1")

    def send(self, name: str, now: Now, timeout_ms: int = 1000, channel: Channel = PEER) -> None:
        request = BrokerHeartbeatRequest(
            broker_id=1, broker_epoch=5, current_metadata_offset=3, want_fence=False, want_shut_down=False
        )
        self.channels.send_request(channel, request, self._receiver(name), timeout_ms=timeout_ms, now=now)

    def _receiver(self, name: str) -> Callable[[Any, Now], None]:
        return lambda response, now: self.received.append((name, response))


def encoded_response(sent: Effect, *, error: ErrorCode = ErrorCode.none, correlation_id: int | None = None) -> bytes:
    assert isinstance(sent, Send)
    header = read_header(sent.data[4:])
    codec = message_codec(BROKER_HEARTBEAT, 1)
    response = codec.replies.BrokerHeartbeatResponse(
        error_code=error, is_caught_up=True, is_fenced=False, should_shut_down=False
    )
    return codec.write(header.correlation_id if correlation_id is None else correlation_id, response)[4:]


def test_responses_are_matched_to_requests_in_order() -> None:
    caller = Caller()
    caller.send("first", at(0))
    caller.send("second", at(1))
    first, second = caller.effects
    caller.channels.handle_response(PEER, encoded_response(first, error=ErrorCode.not_controller), at(2))
    caller.channels.handle_response(PEER, encoded_response(second), at(3))
    assert [(name, response.error_code) for name, response in caller.received] == [
        ("first", ErrorCode.not_controller),
        ("second", ErrorCode.none),
    ]
    caller.timers.fire(at(10_000))
    assert len(caller.effects) == 2, "a completed request timed out"


def test_only_the_requests_of_a_lost_channel_fail() -> None:
    other = Channel("heartbeat", 3, "b3.kafka.test", 9093)
    caller = Caller()
    caller.send("first", at(0))
    caller.send("second", at(0))
    caller.send("other", at(0), channel=other)
    caller.channels.lost(PEER, at(5))
    assert caller.received == [("first", None), ("second", None)]
    caller.channels.handle_response(other, encoded_response(caller.effects[2]), at(6))
    name, response = caller.received[-1]
    assert name == "other"
    assert response is not None


def test_a_request_timeout_closes_the_channel_and_fails_its_other_requests() -> None:
    caller = Caller()
    caller.send("times out", at(0), timeout_ms=100)
    caller.send("fails", at(10), timeout_ms=5000)
    caller.timers.fire(at(100))
    assert caller.received == [("times out", None), ("fails", None)]
    assert caller.effects[-1] == Disconnect(PEER)


def test_a_request_with_a_shorter_timeout_fails_with_the_oldest_request_at_the_latest() -> None:
    caller = Caller()
    caller.send("long", at(0), timeout_ms=5000)
    caller.send("short", at(10), timeout_ms=100)
    caller.timers.fire(at(5000))
    assert caller.received == [("long", None), ("short", None)]
    assert caller.effects[-1] == Disconnect(PEER)


def test_a_later_request_times_out_after_an_earlier_response() -> None:
    caller = Caller()
    caller.send("first", at(0), timeout_ms=100)
    caller.send("second", at(50), timeout_ms=100)
    caller.channels.handle_response(PEER, encoded_response(caller.effects[0]), at(60))
    caller.timers.fire(at(100))
    assert [name for name, _ in caller.received] == ["first"]
    assert caller.timers.next_ms == 150
    caller.timers.fire(at(150))
    assert caller.received[-1] == ("second", None)


def test_an_unexpected_correlation_id_closes_the_channel() -> None:
    caller = Caller()
    caller.send("request", at(0))
    caller.channels.handle_response(PEER, encoded_response(caller.effects[0], correlation_id=77), at(1))
    assert caller.received == [("request", None)]
    assert caller.effects[-1] == Disconnect(PEER)


def test_a_malformed_response_closes_the_channel() -> None:
    caller = Caller()
    caller.send("request", at(0))
    caller.channels.handle_response(PEER, b"\x00\x00", at(1))
    assert caller.received == [("request", None)]
    assert caller.effects[-1] == Disconnect(PEER)


def test_a_dropped_channel_completes_no_request() -> None:
    caller = Caller()
    caller.send("request", at(0))
    caller.channels.drop(PEER)
    caller.channels.handle_response(PEER, encoded_response(caller.effects[0]), at(1))
    caller.channels.lost(PEER, at(2))
    caller.timers.fire(at(10_000))
    assert caller.received == []
