"""Lifecycle of a broker. The test sends the controller's responses to registrations and heartbeats."""

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


class ScriptedLifecycle:
    """The lifecycle manager of one broker, with a clock that the test advances.

    :param properties: properties of the broker, with `_` instead of `.` in their names.
    :ivar pending: the request that waits for its response; None if there is none.
    :ivar sent_at_ms: the times of all requests.
    """

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
        self.pending, self._on_response = request, then
        self.sent_at_ms.append(now.monotonic_ms)

    def respond(self, response):
        """Pass the response of the pending request to the broker, or None if the request failed. Return the request."""
        request, self.pending = self.pending, None
        assert request is not None, "no request is pending"
        self._on_response(response, self.now)
        return request

    def advance(self, by_ms):
        """Advance the clock, and run the timers that are due."""
        end_ms = self.now.monotonic_ms + by_ms
        while (at_ms := self.runtime.timers.next_ms) is not None and at_ms <= end_ms:
            self.now = Now(0, max(at_ms, self.now.monotonic_ms))
            self.runtime.timers.fire(self.now)
        self.now = Now(0, end_ms)

    def run(self):
        """Start the broker, register and unfence it; return it in the state RUNNING."""
        self.lifecycle.start(self.now)
        self.respond(registered(7))
        self.respond(heartbeat_response(fenced=True))
        self.advance(0)
        self.respond(heartbeat_response())
        return self

    def begin_controlled_shutdown(self):
        def stopped(now):
            self.stopped_at_ms = now.monotonic_ms

        self.lifecycle.begin_controlled_shutdown(stopped, self.now)

    @property
    def state(self):
        return self.lifecycle.state


def test_a_registration_identifies_the_broker():
    broker = ScriptedLifecycle(broker_rack="a")
    broker.lifecycle.start(broker.now)
    sent = broker.pending
    assert (sent.broker_id, sent.cluster_id, sent.incarnation_id, sent.rack) == (1, "cluster", UUID(int=2), "a")
    assert [(listener.name, listener.host, listener.port) for listener in sent.listeners] == [
        ("REPLICATION", "b1", 9093)
    ]
    assert (sent.log_dirs, sent.previous_broker_epoch) == ((UUID(int=1),), 5)
    ranges = {entry.name: (entry.min_supported_version, entry.max_supported_version) for entry in sent.features}
    assert ranges == SUPPORTED_FEATURES


def test_a_broker_runs_after_registration_catch_up_and_unfencing():
    broker = ScriptedLifecycle()
    assert broker.state is BrokerState.NOT_RUNNING
    broker.lifecycle.start(broker.now)
    assert (broker.state, broker.lifecycle.broker_epoch) == (BrokerState.STARTING, -1)
    broker.respond(registered(7))
    assert broker.lifecycle.broker_epoch == 7
    heartbeat = broker.respond(heartbeat_response(caught_up=False, fenced=True))
    assert (heartbeat.broker_epoch, heartbeat.current_metadata_offset, heartbeat.want_fence) == (7, -1, True)
    broker.metadata_offset = 7
    broker.advance(10)
    heartbeat = broker.respond(heartbeat_response(fenced=True))
    assert (heartbeat.current_metadata_offset, heartbeat.want_fence, heartbeat.want_shut_down) == (7, True, False)
    assert broker.state is BrokerState.RECOVERY
    broker.advance(0)
    assert not broker.respond(heartbeat_response()).want_fence
    assert broker.state is BrokerState.RUNNING


def test_heartbeats_are_sent_at_their_interval():
    broker = ScriptedLifecycle().run()
    start = len(broker.sent_at_ms)
    for _ in range(3):
        broker.advance(HEARTBEAT_MS - 1)
        assert broker.pending is None
        broker.advance(1)
        broker.respond(heartbeat_response())
    assert broker.sent_at_ms[start:] == [2_000, 4_000, 6_000]


def test_a_broker_whose_session_expired_keeps_running():
    broker = ScriptedLifecycle().run()
    broker.advance(HEARTBEAT_MS)
    broker.respond(heartbeat_response(fenced=True))
    assert broker.state is BrokerState.RUNNING
    broker.advance(HEARTBEAT_MS)
    assert not broker.pending.want_fence


@pytest.mark.parametrize("response", [None, rejected("duplicate_broker_registration"), rejected("not_controller")])
def test_rejected_registrations_are_retried_with_backoff(response):
    broker = ScriptedLifecycle()
    broker.lifecycle.start(broker.now)
    for _ in range(9):
        broker.respond(response)
        while broker.pending is None:
            broker.advance(10)
    pauses = [after - before for before, after in zip(broker.sent_at_ms, broker.sent_at_ms[1:], strict=False)]
    assert pauses == sorted(pauses)
    assert pauses[-1] == 1_000
    broker.respond(registered(7))
    assert broker.lifecycle.broker_epoch == 7


def test_each_registration_error_is_logged_once():
    broker = ScriptedLifecycle()
    broker.lifecycle.start(broker.now)
    errors = ["duplicate_broker_registration", "not_controller", "duplicate_broker_registration"]
    for error in [*errors, "inconsistent_cluster_id", "unknown_server_error", "inconsistent_cluster_id"]:
        broker.respond(rejected(error))
        while broker.pending is None:
            broker.advance(10)
    logged = [note.text.partition(": ")[2] for note in broker.runtime.take_effects()]
    names = [text.partition(" ")[0] for text in logged]
    assert names == ["DUPLICATE_BROKER_REGISTRATION", "INCONSISTENT_CLUSTER_ID", "UNKNOWN_SERVER_ERROR"]


def test_heartbeat_errors_are_not_registration_errors():
    broker = ScriptedLifecycle().run()
    broker.advance(HEARTBEAT_MS)
    broker.respond(rejected("stale_broker_epoch"))
    assert not broker.runtime.take_effects()


@pytest.mark.parametrize("error", [None, "inconsistent_cluster_id"])
def test_a_broker_without_a_registration_times_out(error):
    broker = ScriptedLifecycle(initial_broker_registration_timeout_ms="5000")
    broker.lifecycle.schedule_registration_timeout(broker.now)
    if error is not None:
        broker.advance(1_000)
        broker.lifecycle.start(broker.now)
        broker.respond(rejected(error))
    broker.advance(4_999 - broker.now.monotonic_ms)
    reason = "no controller has responded" if error is None else "INCONSISTENT_CLUSTER_ID"
    with pytest.raises(RegistrationTimeoutError, match=f"broker 1 .* 5000 ms .*: {reason}"):
        broker.advance(1)


@pytest.mark.parametrize("ending", ["registered", "stopped"])
def test_a_registered_or_stopping_broker_has_no_registration_timeout(ending):
    broker = ScriptedLifecycle()
    broker.lifecycle.schedule_registration_timeout(broker.now)
    broker.advance(59_999)
    if ending == "registered":
        broker.run()
    else:
        broker.begin_controlled_shutdown()
    while broker.now.monotonic_ms < 120_000:
        broker.advance(1_000)
        if broker.pending is not None:
            broker.respond(None)


def test_an_already_registered_broker_has_no_registration_timeout():
    broker = ScriptedLifecycle().run()
    broker.lifecycle.schedule_registration_timeout(broker.now)
    while broker.now.monotonic_ms < 120_000:
        broker.advance(1_000)
        if broker.pending is not None:
            broker.respond(heartbeat_response())


def test_a_stale_broker_epoch_does_not_cause_a_new_registration():
    broker = ScriptedLifecycle().run()
    broker.advance(HEARTBEAT_MS)
    broker.respond(rejected("stale_broker_epoch"))
    broker.advance(20)
    assert (broker.pending.broker_epoch, broker.lifecycle.broker_epoch) == (7, 7)


def test_a_controlled_shutdown_ends_when_the_controller_permits_it():
    broker = ScriptedLifecycle().run()
    broker.begin_controlled_shutdown()
    assert broker.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN
    heartbeat = broker.respond(heartbeat_response())
    assert (heartbeat.want_shut_down, heartbeat.want_fence) == (True, False)
    broker.advance(50)
    broker.respond(heartbeat_response(fenced=True, shut_down=True))
    assert (broker.state, broker.stopped_at_ms) == (BrokerState.SHUTTING_DOWN, 50)
    broker.advance(60_000)
    assert broker.pending is None


def test_a_shutdown_is_requested_right_after_the_pending_heartbeat():
    broker = ScriptedLifecycle().run()
    broker.advance(HEARTBEAT_MS)
    broker.begin_controlled_shutdown()
    assert not broker.respond(heartbeat_response()).want_shut_down
    broker.advance(0)
    assert broker.pending.want_shut_down


@pytest.mark.parametrize("response_count", range(3))
def test_a_broker_that_is_not_running_shuts_down_at_once(response_count):
    broker = ScriptedLifecycle()
    broker.lifecycle.start(broker.now)
    for response in (registered(7), heartbeat_response(fenced=True))[:response_count]:
        broker.respond(response)
        broker.advance(0)
    broker.begin_controlled_shutdown()
    assert (broker.state, broker.stopped_at_ms) == (BrokerState.SHUTTING_DOWN, broker.now.monotonic_ms)
    broker.respond(heartbeat_response() if response_count else registered(7))
    broker.advance(60_000)
    assert broker.pending is None
    assert broker.state is BrokerState.SHUTTING_DOWN


def test_without_controlled_shutdown_a_broker_stops_at_once():
    broker = ScriptedLifecycle(controlled_shutdown_enable="false").run()
    broker.begin_controlled_shutdown()
    assert (broker.state, broker.stopped_at_ms) == (BrokerState.SHUTTING_DOWN, 0)


def test_a_shutdown_without_a_quorum_ends_early():
    broker = ScriptedLifecycle().run()
    broker.lifecycle.begin_shutdown(broker.now)
    assert broker.state is BrokerState.RUNNING
    broker.begin_controlled_shutdown()
    broker.respond(None)
    broker.lifecycle.begin_shutdown(broker.now)
    assert (broker.state, broker.stopped_at_ms) == (BrokerState.SHUTTING_DOWN, 0)


def test_a_controlled_shutdown_ends_at_the_latest_after_the_session_timeout():
    broker = ScriptedLifecycle().run()
    broker.begin_controlled_shutdown()
    while broker.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN:
        if broker.pending is not None:
            broker.respond(heartbeat_response())
        broker.advance(50)
    assert broker.stopped_at_ms == SESSION_MS


def test_a_metadata_offset_is_reported_at_once_or_right_after_the_pending_heartbeat():
    broker = ScriptedLifecycle().run()
    broker.lifecycle.report(broker.now)
    broker.metadata_offset = 9
    broker.lifecycle.report(broker.now)
    assert broker.respond(heartbeat_response()).current_metadata_offset == -1
    broker.advance(0)
    assert broker.respond(heartbeat_response()).current_metadata_offset == 9


def test_every_state_but_the_last_has_transitions():
    assert {state for state, _ in TRANSITIONS} == set(BrokerState) - {BrokerState.SHUTTING_DOWN}
    assert {trigger for _, trigger in TRANSITIONS} == set(Trigger)
