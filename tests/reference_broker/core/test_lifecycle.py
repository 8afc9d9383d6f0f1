"""The life of a broker, told with a controller that answers as the test says."""

from types import SimpleNamespace
from uuid import UUID

import pytest

from reference_broker.core.clock import Now
from reference_broker.core.configuration.configuration import BrokerConfiguration
from reference_broker.core.disk import MemoryDisk
from reference_broker.core.identity import Endpoint, Identity
from reference_broker.core.lifecycle import TRANSITIONS, BrokerState, Lifecycle, RegistrationTimeoutError, Trigger
from reference_broker.core.metadata.bootstrap import SUPPORTED_FEATURES
from reference_broker.core.runtime import Runtime
from reference_broker.protocol.errors import ErrorCode

SESSION_MS, HEARTBEAT_MS = 9_000, 2_000


def refused(error):
    return SimpleNamespace(error_code=ErrorCode[error])


def registered(epoch):
    return SimpleNamespace(error_code=ErrorCode.none, broker_epoch=epoch)


def heard(*, caught_up=True, fenced=False, go=False):
    return SimpleNamespace(error_code=ErrorCode.none, is_caught_up=caught_up, is_fenced=fenced, should_shut_down=go)


class Story:
    """One broker. `asked` is the request that waits for its answer."""

    def __init__(self, **properties):
        identity = Identity(1, "cluster", (Endpoint("REPLICATION", "b1", 9093),), UUID(int=1), UUID(int=2))
        named = {name.replace("_", "."): value for name, value in properties.items()}
        self.runtime = Runtime(identity, BrokerConfiguration(named), MemoryDisk(), lambda: UUID(int=3), lambda _: 0)
        self.now = Now(0, 0)
        self.metadata_offset = -1
        self.asked = None
        self.asked_at_ms = []
        self.stopped_at_ms = None
        self.lifecycle = Lifecycle(self.runtime, self._ask, lambda: self.metadata_offset, previous_epoch=5)

    def _ask(self, request, then, *, timeout_ms, now):
        assert self.asked is None, "two at a time"
        self.asked, self._then = request, then
        self.asked_at_ms.append(now.monotonic_ms)

    def answer(self, response):
        asked, self.asked = self.asked, None
        assert asked is not None, "nothing was asked"
        self._then(response, self.now)
        return asked

    def advance(self, by_ms):
        end_ms = self.now.monotonic_ms + by_ms
        while (at_ms := self.runtime.timers.next_ms) is not None and at_ms <= end_ms:
            self.now = Now(0, max(at_ms, self.now.monotonic_ms))
            self.runtime.timers.fire(self.now)
        self.now = Now(0, end_ms)

    def run(self):
        """To RUNNING."""
        self.lifecycle.start(self.now)
        self.answer(registered(7))
        self.answer(heard(fenced=True))
        self.advance(0)
        self.answer(heard())
        return self

    def stop(self):
        def stopped(now):
            self.stopped_at_ms = now.monotonic_ms

        self.lifecycle.stop(stopped, self.now)

    @property
    def state(self):
        return self.lifecycle.state


def test_a_broker_says_who_it_is():
    story = Story(broker_rack="a")
    story.lifecycle.start(story.now)
    asked = story.asked
    assert (asked.broker_id, asked.cluster_id, asked.incarnation_id, asked.rack) == (1, "cluster", UUID(int=2), "a")
    assert [(listener.name, listener.host, listener.port) for listener in asked.listeners] == [
        ("REPLICATION", "b1", 9093)
    ]
    assert (asked.log_dirs, asked.previous_broker_epoch) == ((UUID(int=1),), 5)
    ranges = {entry.name: (entry.min_supported_version, entry.max_supported_version) for entry in asked.features}
    assert ranges == SUPPORTED_FEATURES


def test_from_start_to_service():
    story = Story()
    assert story.state is BrokerState.NOT_RUNNING
    story.lifecycle.start(story.now)
    assert (story.state, story.lifecycle.broker_epoch) == (BrokerState.STARTING, -1)
    story.answer(registered(7))
    assert story.lifecycle.broker_epoch == 7
    heartbeat = story.answer(heard(caught_up=False, fenced=True))
    assert (heartbeat.broker_epoch, heartbeat.current_metadata_offset, heartbeat.want_fence) == (7, -1, True)
    story.metadata_offset = 7
    story.advance(10)
    heartbeat = story.answer(heard(fenced=True))
    assert (heartbeat.current_metadata_offset, heartbeat.want_fence, heartbeat.want_shut_down) == (7, True, False)
    assert story.state is BrokerState.RECOVERY
    story.advance(0)
    assert not story.answer(heard()).want_fence
    assert story.state is BrokerState.RUNNING


def test_heartbeats_keep_their_interval():
    story = Story().run()
    start = len(story.asked_at_ms)
    for _ in range(3):
        story.advance(HEARTBEAT_MS - 1)
        assert story.asked is None
        story.advance(1)
        story.answer(heard())
    assert story.asked_at_ms[start:] == [2_000, 4_000, 6_000]


def test_a_broker_that_was_fenced_goes_on():
    """It was silent for long, and is heard again."""
    story = Story().run()
    story.advance(HEARTBEAT_MS)
    story.answer(heard(fenced=True))
    assert story.state is BrokerState.RUNNING
    story.advance(HEARTBEAT_MS)
    assert not story.asked.want_fence


@pytest.mark.parametrize("answer", [None, refused("duplicate_broker_registration"), refused("not_controller")])
def test_what_is_refused_is_asked_again_less_and_less_often(answer):
    story = Story()
    story.lifecycle.start(story.now)
    for _ in range(9):
        story.answer(answer)
        while story.asked is None:
            story.advance(10)
    pauses = [after - before for before, after in zip(story.asked_at_ms, story.asked_at_ms[1:], strict=False)]
    assert pauses == sorted(pauses)
    assert pauses[-1] == 1_000
    story.answer(registered(7))
    assert story.lifecycle.broker_epoch == 7


def test_each_kind_of_refusal_is_said_once():
    story = Story()
    story.lifecycle.start(story.now)
    refusals = ["duplicate_broker_registration", "not_controller", "duplicate_broker_registration"]
    for refusal in [*refusals, "inconsistent_cluster_id", "unknown_server_error", "inconsistent_cluster_id"]:
        story.answer(refused(refusal))
        while story.asked is None:
            story.advance(10)
    said = [note.text.partition(": ")[2] for note in story.runtime.take_effects()]
    names = [text.partition(" ")[0] for text in said]
    assert names == ["DUPLICATE_BROKER_REGISTRATION", "INCONSISTENT_CLUSTER_ID", "UNKNOWN_SERVER_ERROR"]


def test_a_heartbeat_that_is_refused_is_no_refusal_of_a_registration():
    story = Story().run()
    story.advance(HEARTBEAT_MS)
    story.answer(refused("stale_broker_epoch"))
    assert not story.runtime.take_effects()


@pytest.mark.parametrize("refusal", [None, "inconsistent_cluster_id"])
def test_a_broker_without_a_registration_ends(refusal):
    story = Story(initial_broker_registration_timeout_ms="5000")
    story.lifecycle.limit_registration(story.now)
    if refusal is not None:
        story.advance(1_000)
        story.lifecycle.start(story.now)
        story.answer(refused(refusal))
    story.advance(4_999 - story.now.monotonic_ms)
    reason = "no controller has answered" if refusal is None else "INCONSISTENT_CLUSTER_ID"
    with pytest.raises(RegistrationTimeoutError, match=f"broker 1 .* 5000 ms .*: {reason}"):
        story.advance(1)


@pytest.mark.parametrize("ending", ["registered", "stopped"])
def test_a_broker_with_a_registration_or_a_wish_to_stop_has_no_limit(ending):
    story = Story()
    story.lifecycle.limit_registration(story.now)
    story.advance(59_999)
    if ending == "registered":
        story.run()
    else:
        story.stop()
    while story.now.monotonic_ms < 120_000:
        story.advance(1_000)
        if story.asked is not None:
            story.answer(None)


def test_a_broker_that_is_registered_already_has_no_limit():
    story = Story().run()
    story.lifecycle.limit_registration(story.now)
    while story.now.monotonic_ms < 120_000:
        story.advance(1_000)
        if story.asked is not None:
            story.answer(heard())


def test_a_stale_epoch_stays_what_it_is():
    story = Story().run()
    story.advance(HEARTBEAT_MS)
    story.answer(refused("stale_broker_epoch"))
    story.advance(20)
    assert (story.asked.broker_epoch, story.lifecycle.broker_epoch) == (7, 7)


def test_a_broker_hands_over_and_goes():
    story = Story().run()
    story.stop()
    assert story.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN
    heartbeat = story.answer(heard())
    assert (heartbeat.want_shut_down, heartbeat.want_fence) == (True, False)
    story.advance(50)
    story.answer(heard(fenced=True, go=True))
    assert (story.state, story.stopped_at_ms) == (BrokerState.SHUTTING_DOWN, 50)
    story.advance(60_000)
    assert story.asked is None


def test_a_wish_to_stop_waits_for_the_answer_under_way_only():
    story = Story().run()
    story.advance(HEARTBEAT_MS)
    story.stop()
    assert not story.answer(heard()).want_shut_down
    story.advance(0)
    assert story.asked.want_shut_down


@pytest.mark.parametrize("steps", range(3))
def test_a_broker_that_does_not_serve_goes_at_once(steps):
    story = Story()
    story.lifecycle.start(story.now)
    for answer in (registered(7), heard(fenced=True))[:steps]:
        story.answer(answer)
        story.advance(0)
    story.stop()
    assert (story.state, story.stopped_at_ms) == (BrokerState.SHUTTING_DOWN, story.now.monotonic_ms)
    story.answer(heard() if steps else registered(7))
    story.advance(60_000)
    assert story.asked is None
    assert story.state is BrokerState.SHUTTING_DOWN


def test_a_broker_goes_at_once_if_it_is_told_to():
    story = Story(controlled_shutdown_enable="false").run()
    story.stop()
    assert (story.state, story.stopped_at_ms) == (BrokerState.SHUTTING_DOWN, 0)


def test_where_no_quorum_is_left_there_is_nobody_to_hand_over_to():
    story = Story().run()
    story.lifecycle.give_up(story.now)
    assert story.state is BrokerState.RUNNING
    story.stop()
    story.answer(None)
    story.lifecycle.give_up(story.now)
    assert (story.state, story.stopped_at_ms) == (BrokerState.SHUTTING_DOWN, 0)


def test_a_controlled_shutdown_takes_no_longer_than_a_session():
    story = Story().run()
    story.stop()
    while story.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN:
        if story.asked is not None:
            story.answer(heard())
        story.advance(50)
    assert story.stopped_at_ms == SESSION_MS


def test_a_report_is_sent_at_once_or_after_the_answer_under_way():
    story = Story().run()
    story.lifecycle.report(story.now)
    story.metadata_offset = 9
    story.lifecycle.report(story.now)
    assert story.answer(heard()).current_metadata_offset == -1
    story.advance(0)
    assert story.answer(heard()).current_metadata_offset == 9


def test_every_state_can_be_left_but_the_last():
    assert {state for state, _ in TRANSITIONS} == set(BrokerState) - {BrokerState.SHUTTING_DOWN}
    assert {trigger for _, trigger in TRANSITIONS} == set(Trigger)
