"""Requests to other nodes: each gets its own answer, once, or learns that there is none."""

from collections.abc import Callable
from typing import Any

from kio.schema.broker_heartbeat.v1.request import BrokerHeartbeatRequest

from reference_broker.core.channels import Channels
from reference_broker.core.clock import Now
from reference_broker.core.connection import Channel, Disconnect, Effect, Send
from reference_broker.core.timers import Timers
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.messages import message_codec, read_header

HEARTBEAT = 63
PEER = Channel("heartbeat", 2, "b2.kafka.test", 9093)


def at(ms: int) -> Now:
    return Now(1_000_000 + ms, ms)


class Caller:
    """A node that asks, and what it wanted sent and heard."""

    def __init__(self) -> None:
        self.effects: list[Effect] = []
        self.heard: list[tuple[str, Any]] = []
        self.timers = Timers()
        self.channels = Channels(self.timers, self.effects.append, "node-1")

    def ask(self, name: str, now: Now, timeout_ms: int = 1000, channel: Channel = PEER) -> None:
        request = BrokerHeartbeatRequest(
            broker_id=1, broker_epoch=5, current_metadata_offset=3, want_fence=False, want_shut_down=False
        )
        self.channels.ask(channel, request, self.hear(name), timeout_ms=timeout_ms, now=now)

    def hear(self, name: str) -> Callable[[Any, Now], None]:
        return lambda response, now: self.heard.append((name, response))


def answer(sent: Effect, *, error: ErrorCode = ErrorCode.none, correlation_id: int | None = None) -> bytes:
    assert isinstance(sent, Send)
    header = read_header(sent.data[4:])
    codec = message_codec(HEARTBEAT, 1)
    response = codec.replies.BrokerHeartbeatResponse(
        error_code=error, is_caught_up=True, is_fenced=False, should_shut_down=False
    )
    return codec.write(header.correlation_id if correlation_id is None else correlation_id, response)[4:]


def test_answers_reach_those_who_asked_in_order() -> None:
    caller = Caller()
    caller.ask("first", at(0))
    caller.ask("second", at(1))
    first, second = caller.effects
    caller.channels.answered(PEER, answer(first, error=ErrorCode.not_controller), at(2))
    caller.channels.answered(PEER, answer(second), at(3))
    assert [(name, response.error_code) for name, response in caller.heard] == [
        ("first", ErrorCode.not_controller),
        ("second", ErrorCode.none),
    ]
    caller.timers.fire(at(10_000))
    assert len(caller.effects) == 2, "nothing was under way any more"


def test_a_lost_channel_answers_all_that_is_under_way_there_and_nothing_elsewhere() -> None:
    other = Channel("heartbeat", 3, "b3.kafka.test", 9093)
    caller = Caller()
    caller.ask("first", at(0))
    caller.ask("second", at(0))
    caller.ask("elsewhere", at(0), channel=other)
    caller.channels.lost(PEER, at(5))
    assert caller.heard == [("first", None), ("second", None)]
    caller.channels.answered(other, answer(caller.effects[2]), at(6))
    assert caller.heard[-1][0] == "elsewhere"


def test_a_request_that_is_not_answered_in_time_ends_its_channel() -> None:
    caller = Caller()
    caller.ask("patient", at(0), timeout_ms=5000)
    caller.ask("hasty", at(10), timeout_ms=100)
    caller.timers.fire(at(5000))
    assert caller.heard == [("patient", None), ("hasty", None)]
    assert caller.effects[-1] == Disconnect(PEER)


def test_the_time_of_a_later_request_is_watched_after_an_earlier_one_was_answered() -> None:
    caller = Caller()
    caller.ask("first", at(0), timeout_ms=100)
    caller.ask("second", at(50), timeout_ms=100)
    caller.channels.answered(PEER, answer(caller.effects[0]), at(60))
    caller.timers.fire(at(100))
    assert [name for name, _ in caller.heard] == ["first"]
    assert caller.timers.next_ms == 150
    caller.timers.fire(at(150))
    assert caller.heard[-1] == ("second", None)


def test_an_answer_to_another_question_ends_the_channel() -> None:
    caller = Caller()
    caller.ask("asked", at(0))
    caller.channels.answered(PEER, answer(caller.effects[0], correlation_id=77), at(1))
    assert caller.heard == [("asked", None)]
    assert caller.effects[-1] == Disconnect(PEER)


def test_bytes_that_are_no_answer_end_the_channel() -> None:
    caller = Caller()
    caller.ask("asked", at(0))
    caller.channels.answered(PEER, b"\x00\x00", at(1))
    assert caller.heard == [("asked", None)]
    assert caller.effects[-1] == Disconnect(PEER)


def test_nobody_hears_of_a_channel_that_was_dropped() -> None:
    caller = Caller()
    caller.ask("asked", at(0))
    caller.channels.drop(PEER)
    caller.channels.answered(PEER, answer(caller.effects[0]), at(1))
    caller.channels.lost(PEER, at(2))
    caller.timers.fire(at(10_000))
    assert caller.heard == []
