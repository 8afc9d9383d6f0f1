"""The lifecycle of a broker with a scripted controller."""

from types import SimpleNamespace
from uuid import UUID

import pytest

from reference_broker.core.broker_lifecycle_manager import (
    TRANSITIONS,
    BrokerLifecycleManager,
    BrokerState,
    RegistrationTimeoutError,
    Trigger,
)
from reference_broker.core.clock import Now
from reference_broker.core.configuration.configuration import BrokerConfiguration
from reference_broker.core.disk import MemoryDisk
from reference_broker.core.identity import Endpoint, Identity
from reference_broker.core.metadata.bootstrap import SUPPORTED_FEATURES
from reference_broker.core.runtime import Runtime
from reference_broker.protocol.errors import ErrorCode

SESSION_MS, HEARTBEAT_MS = 9_000, 2_000


def rejected(error):
    return SimpleNamespace(error_code=ErrorCode[error])


def registered(epoch):
    return SimpleNamespace(error_code=ErrorCode.none, broker_epoch=epoch)


def heartbeat_response(*, caught_up=True, fenced=False, shut_down=False):
    return SimpleNamespace(
        error_code=ErrorCode.none, is_caught_up=caught_up, is_fenced=fenced, should_shut_down=shut_down
    )


class Story:
    """One broker; `pending` is the request that waits for its response."""

    def __init__(self, **properties):
        identity = Identity(1, "cluster", (Endpoint("REPLICATION", "b1", 9093),), UUID(int=1), UUID(int=2))
        named = {name.replace("_", "."): value for name, value in properties.items()}
        self.runtime = Runtime(identity, BrokerConfiguration(named), MemoryDisk(), lambda: UUID(int=3), lambda _: 0)
        self.now = Now(0, 0)
        self.metadata_offset = -1
        self.pending = None
        self.sent_at_ms = []
        self.stopped_at_ms = None
        self.lifecycle = BrokerLifecycleManager(
            self.runtime, self._send, lambda: self.metadata_offset, previous_epoch=5
        )

    def _send(self, request, then, *, timeout_ms, now):
        assert self.pending is None, "two requests at a time"
        self.pending, self._then = request, then
        self.sent_at_ms.append(now.monotonic_ms)

    def respond(self, response):
        sent, self.pending = self.pending, None
        assert sent is not None, "no request is pending"
        self._then(response, self.now)
        return sent

    def advance(self, by_ms):
        end_ms = self.now.monotonic_ms + by_ms
        while (at_ms := self.runtime.timers.next_ms) is not None and at_ms <= end_ms:
            self.now = Now(0, max(at_ms, self.now.monotonic_ms))
            self.runtime.timers.fire(self.now)
        self.now = Now(0, end_ms)

    def run(self):
        """Start the broker and bring it to RUNNING."""
        self.lifecycle.start(self.now)
        self.respond(registered(7))
        self.respond(heartbeat_response(fenced=True))
        self.advance(0)
        self.respond(heartbeat_response())
        return self

    def stop(self):
        def stopped(now):
            self.stopped_at_ms = now.monotonic_ms

        self.lifecycle.begin_controlled_shutdown(stopped, self.now)

    @property
    def state(self):
        return self.lifecycle.state


def test_a_registration_identifies_the_broker():
    story = Story(broker_rack="a")
    story.lifecycle.start(story.now)
    sent = story.pending
    assert (sent.broker_id, sent.cluster_id, sent.incarnation_id, sent.rack) == (1, "cluster", UUID(int=2), "a")
    assert [(listener.name, listener.host, listener.port) for listener in sent.listeners] == [
        ("REPLICATION", "b1", 9093)
    ]
    assert (sent.log_dirs, sent.previous_broker_epoch) == ((UUID(int=1),), 5)
    ranges = {entry.name: (entry.min_supported_version, entry.max_supported_version) for entry in sent.features}
    assert ranges == SUPPORTED_FEATURES


def test_a_broker_runs_after_registration_catch_up_and_unfencing():
    story = Story()
    assert story.state is BrokerState.NOT_RUNNING
    story.lifecycle.start(story.now)
    assert (story.state, story.lifecycle.broker_epoch) == (BrokerState.STARTING, -1)
    story.respond(registered(7))
    assert story.lifecycle.broker_epoch == 7
    heartbeat = story.respond(heartbeat_response(caught_up=False, fenced=True))
    assert (heartbeat.broker_epoch, heartbeat.current_metadata_offset, heartbeat.want_fence) == (7, -1, True)
    story.metadata_offset = 7
    story.advance(10)
    heartbeat = story.respond(heartbeat_response(fenced=True))
    assert (heartbeat.current_metadata_offset, heartbeat.want_fence, heartbeat.want_shut_down) == (7, True, False)
    assert story.state is BrokerState.RECOVERY
    story.advance(0)
    assert not story.respond(heartbeat_response()).want_fence
    assert story.state is BrokerState.RUNNING


def test_heartbeats_keep_their_interval():
    story = Story().run()
    start = len(story.sent_at_ms)
    for _ in range(3):
        story.advance(HEARTBEAT_MS - 1)
        assert story.pending is None
        story.advance(1)
        story.respond(heartbeat_response())
    assert story.sent_at_ms[start:] == [2_000, 4_000, 6_000]


def test_a_fenced_broker_keeps_running():
    """The session of the broker expired before this heartbeat."""
    story = Story().run()
    story.advance(HEARTBEAT_MS)
    story.respond(heartbeat_response(fenced=True))
    assert story.state is BrokerState.RUNNING
    story.advance(HEARTBEAT_MS)
    assert not story.pending.want_fence


@pytest.mark.parametrize("response", [None, rejected("duplicate_broker_registration"), rejected("not_controller")])
def test_rejected_registrations_are_retried_with_backoff(response):
    story = Story()
    story.lifecycle.start(story.now)
    for _ in range(9):
        story.respond(response)
        while story.pending is None:
            story.advance(10)
    pauses = [after - before for before, after in zip(story.sent_at_ms, story.sent_at_ms[1:], strict=False)]
    assert pauses == sorted(pauses)
    assert pauses[-1] == 1_000
    story.respond(registered(7))
    assert story.lifecycle.broker_epoch == 7


def test_each_registration_error_is_logged_once():
    story = Story()
    story.lifecycle.start(story.now)
    errors = ["duplicate_broker_registration", "not_controller", "duplicate_broker_registration"]
    for error in [*errors, "inconsistent_cluster_id", "unknown_server_error", "inconsistent_cluster_id"]:
        story.respond(rejected(error))
        while story.pending is None:
            story.advance(10)
    logged = [note.text.partition(": ")[2] for note in story.runtime.take_effects()]
    names = [text.partition(" ")[0] for text in logged]
    assert names == ["DUPLICATE_BROKER_REGISTRATION", "INCONSISTENT_CLUSTER_ID", "UNKNOWN_SERVER_ERROR"]


def test_heartbeat_errors_are_not_registration_errors():
    story = Story().run()
    story.advance(HEARTBEAT_MS)
    story.respond(rejected("stale_broker_epoch"))
    assert not story.runtime.take_effects()


@pytest.mark.parametrize("error", [None, "inconsistent_cluster_id"])
def test_a_broker_without_a_registration_times_out(error):
    story = Story(initial_broker_registration_timeout_ms="5000")
    story.lifecycle.schedule_registration_timeout(story.now)
    if error is not None:
        story.advance(1_000)
        story.lifecycle.start(story.now)
        story.respond(rejected(error))
    story.advance(4_999 - story.now.monotonic_ms)
    reason = "no controller has responded" if error is None else "INCONSISTENT_CLUSTER_ID"
    with pytest.raises(RegistrationTimeoutError, match=f"broker 1 .* 5000 ms .*: {reason}"):
        story.advance(1)


@pytest.mark.parametrize("ending", ["registered", "stopped"])
def test_a_registered_or_stopping_broker_has_no_registration_timeout(ending):
    story = Story()
    story.lifecycle.schedule_registration_timeout(story.now)
    story.advance(59_999)
    if ending == "registered":
        story.run()
    else:
        story.stop()
    while story.now.monotonic_ms < 120_000:
        story.advance(1_000)
        if story.pending is not None:
            story.respond(None)


def test_an_already_registered_broker_has_no_registration_timeout():
    story = Story().run()
    story.lifecycle.schedule_registration_timeout(story.now)
    while story.now.monotonic_ms < 120_000:
        story.advance(1_000)
        if story.pending is not None:
            story.respond(heartbeat_response())


def test_a_stale_epoch_is_kept():
    story = Story().run()
    story.advance(HEARTBEAT_MS)
    story.respond(rejected("stale_broker_epoch"))
    story.advance(20)
    assert (story.pending.broker_epoch, story.lifecycle.broker_epoch) == (7, 7)


def test_a_controlled_shutdown_ends_when_the_controller_permits_it():
    story = Story().run()
    story.stop()
    assert story.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN
    heartbeat = story.respond(heartbeat_response())
    assert (heartbeat.want_shut_down, heartbeat.want_fence) == (True, False)
    story.advance(50)
    story.respond(heartbeat_response(fenced=True, shut_down=True))
    assert (story.state, story.stopped_at_ms) == (BrokerState.SHUTTING_DOWN, 50)
    story.advance(60_000)
    assert story.pending is None


def test_a_shutdown_waits_only_for_the_pending_response():
    story = Story().run()
    story.advance(HEARTBEAT_MS)
    story.stop()
    assert not story.respond(heartbeat_response()).want_shut_down
    story.advance(0)
    assert story.pending.want_shut_down


@pytest.mark.parametrize("steps", range(3))
def test_a_broker_that_is_not_running_shuts_down_at_once(steps):
    story = Story()
    story.lifecycle.start(story.now)
    for response in (registered(7), heartbeat_response(fenced=True))[:steps]:
        story.respond(response)
        story.advance(0)
    story.stop()
    assert (story.state, story.stopped_at_ms) == (BrokerState.SHUTTING_DOWN, story.now.monotonic_ms)
    story.respond(heartbeat_response() if steps else registered(7))
    story.advance(60_000)
    assert story.pending is None
    assert story.state is BrokerState.SHUTTING_DOWN


def test_without_controlled_shutdown_a_broker_stops_at_once():
    story = Story(controlled_shutdown_enable="false").run()
    story.stop()
    assert (story.state, story.stopped_at_ms) == (BrokerState.SHUTTING_DOWN, 0)


def test_a_shutdown_without_a_quorum_is_not_controlled():
    story = Story().run()
    story.lifecycle.begin_shutdown(story.now)
    assert story.state is BrokerState.RUNNING
    story.stop()
    story.respond(None)
    story.lifecycle.begin_shutdown(story.now)
    assert (story.state, story.stopped_at_ms) == (BrokerState.SHUTTING_DOWN, 0)


def test_a_controlled_shutdown_ends_after_the_session_timeout():
    story = Story().run()
    story.stop()
    while story.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN:
        if story.pending is not None:
            story.respond(heartbeat_response())
        story.advance(50)
    assert story.stopped_at_ms == SESSION_MS


def test_a_report_is_sent_at_once_or_after_the_pending_response():
    story = Story().run()
    story.lifecycle.report(story.now)
    story.metadata_offset = 9
    story.lifecycle.report(story.now)
    assert story.respond(heartbeat_response()).current_metadata_offset == -1
    story.advance(0)
    assert story.respond(heartbeat_response()).current_metadata_offset == 9


def test_every_state_but_the_last_has_transitions():
    assert {state for state, _ in TRANSITIONS} == set(BrokerState) - {BrokerState.SHUTTING_DOWN}
    assert {trigger for _, trigger in TRANSITIONS} == set(Trigger)
