"""Lifecycle of a broker in its cluster, from registration to controlled shutdown.

Follows: org.apache.kafka.server.BrokerLifecycleManager (KIP-631).

| state                       | begins when                                    | flag in heartbeats   |
|-----------------------------|------------------------------------------------|----------------------|
| STARTING                    | a controller is known                          | want_fence           |
| RECOVERY                    | the broker has applied its own registration    |                      |
| RUNNING                     | the controller has unfenced the broker         |                      |
| PENDING_CONTROLLED_SHUTDOWN | a shutdown begins while the broker is RUNNING  | want_shut_down       |
| SHUTTING_DOWN               | the controlled shutdown has ended, or a        | no heartbeats        |
|                             | shutdown begins that is not controlled         |                      |

`TRANSITIONS` implements this table. In STARTING the broker registers; after that it sends heartbeats. One request is in
flight at a time. Heartbeats are sent every `broker.heartbeat.interval.ms`, but sooner in STARTING and
PENDING_CONTROLLED_SHUTDOWN, so that a start and a shutdown are fast.

- Every heartbeat contains the broker epoch from the registration's response. A broker does not register again while it
  runs: if it is unregistered, it receives STALE_BROKER_EPOCH until it is restarted.
- When a broker has begun a controlled shutdown, all other brokers send heartbeats with their new metadata offset at
  once, because the controller waits for these offsets. In Kafka, the next regular heartbeats contain them.
- If a request is rejected or has no response, it is retried with exponential backoff. Each registration error other
  than NOT_CONTROLLER is logged once. An error may be transient: for example, the session of a killed broker has not
  expired.
- A broker that is not registered within `initial.broker.registration.timeout.ms` stops its node.
- A controlled shutdown takes at most `broker.session.timeout.ms`, because a broker that cannot reach the controller is
  fenced after that time anyway. If there is no quorum, the shutdown ends early (`begin_shutdown`). Kafka waits up to
  five minutes in both cases.
"""

from collections.abc import Callable
from enum import Enum, IntEnum, auto
from typing import Any, Protocol

from kio.schema.broker_heartbeat.v1.request import BrokerHeartbeatRequest
from kio.schema.broker_registration.v4 import request as registration

from reference_broker.core.clock import Now
from reference_broker.core.metadata.bootstrap import SUPPORTED_FEATURES
from reference_broker.core.runtime import Runtime
from reference_broker.core.timers import Timer
from reference_broker.protocol.errors import ErrorCode

UNKNOWN_EPOCH = -1
_CATCH_UP_POLL_MS = 10
_SHUTDOWN_POLL_MS = 50
_FIRST_RETRY_MS, _LAST_RETRY_MS = 20, 1000
_PLAINTEXT = 0

_REGISTRATION_ERRORS = {
    ErrorCode.duplicate_broker_registration: (
        "another broker with this id is alive, or this one was killed and its session has not ended yet"
    ),
    ErrorCode.inconsistent_cluster_id: "the controller belongs to another cluster",
    ErrorCode.invalid_registration: "its log directory is another broker's, or its features are incomplete",
    ErrorCode.unsupported_version: "the cluster uses features that this broker does not support",
}
"""Explanations of registration errors for the log. NOT_CONTROLLER has none, because it is not logged."""


class RegistrationTimeoutError(Exception):
    """Failure to register within `initial.broker.registration.timeout.ms`."""


class BrokerState(IntEnum):
    """State of a broker, with the numbers of Kafka's metric `BrokerState`."""

    NOT_RUNNING = 0
    STARTING = 1
    RECOVERY = 2
    RUNNING = 3
    PENDING_CONTROLLED_SHUTDOWN = 6
    SHUTTING_DOWN = 7


class Trigger(Enum):
    """Event that changes the state."""

    START = auto()
    CAUGHT_UP = auto()
    UNFENCED = auto()
    STOP = auto()
    SHOULD_SHUT_DOWN = auto()


TRANSITIONS = {
    (BrokerState.NOT_RUNNING, Trigger.START): BrokerState.STARTING,
    (BrokerState.STARTING, Trigger.CAUGHT_UP): BrokerState.RECOVERY,
    (BrokerState.RECOVERY, Trigger.UNFENCED): BrokerState.RUNNING,
    (BrokerState.RUNNING, Trigger.STOP): BrokerState.PENDING_CONTROLLED_SHUTDOWN,
    (BrokerState.PENDING_CONTROLLED_SHUTDOWN, Trigger.SHOULD_SHUT_DOWN): BrokerState.SHUTTING_DOWN,
    (BrokerState.NOT_RUNNING, Trigger.STOP): BrokerState.SHUTTING_DOWN,
    (BrokerState.STARTING, Trigger.STOP): BrokerState.SHUTTING_DOWN,
    (BrokerState.RECOVERY, Trigger.STOP): BrokerState.SHUTTING_DOWN,
}
"""The next state, by present state and trigger; any other combination has no effect."""


class ControllerChannel(Protocol):
    """Channel to the active controller (`NodeToControllerChannelManager`)."""

    def __call__(self, request: Any, then: Callable[[Any, Now], None], *, timeout_ms: int, now: Now) -> None:
        """Send a request; `then` receives the response, or null if there is none."""


class BrokerLifecycleManager:
    """State of a broker, and its registration and heartbeats.

    :param send_to_controller: sends a request to the active controller.
    :param metadata_offset: returns the offset of the last metadata record that the broker has applied.
    :param previous_epoch: the broker's epoch before its last shutdown; -1 if that shutdown was not clean, or the epoch
        is unknown.
    """

    def __init__(
        self,
        runtime: Runtime,
        send_to_controller: ControllerChannel,
        metadata_offset: Callable[[], int],
        previous_epoch: int = UNKNOWN_EPOCH,
    ) -> None:
        self.state = BrokerState.NOT_RUNNING
        self.broker_epoch = UNKNOWN_EPOCH
        self._runtime = runtime
        self._send_to_controller = send_to_controller
        self._metadata_offset = metadata_offset
        self._previous_epoch = previous_epoch
        self._heartbeat_ms = runtime.configuration.integer("broker.heartbeat.interval.ms")
        self._session_ms = runtime.configuration.integer("broker.session.timeout.ms")
        self._is_communication_in_flight = False
        self._is_urgent = False
        self._next: Timer | None = None
        self._retry_ms = _FIRST_RETRY_MS
        self._stopped: Callable[[Now], None] | None = None
        self._registration_timeout: Timer | None = None
        self._last_registration_error = "no controller has responded"

    @property
    def is_request_in_flight(self) -> bool:
        """Whether a registration or a heartbeat waits for its response."""
        return self._is_communication_in_flight

    @property
    def next_request_ms(self) -> int | None:
        """Monotonic time of the next registration or heartbeat; null if none is scheduled."""
        return None if self._next is None else self._next.due_ms

    # Calls by the broker

    def schedule_registration_timeout(self, now: Now) -> None:
        """Start the registration timeout, whether a controller is known or not.

        When it expires, the timer raises `RegistrationTimeoutError`. Do nothing if the broker has registered or is
        shutting down.
        """
        if self.broker_epoch != UNKNOWN_EPOCH or self.state is BrokerState.SHUTTING_DOWN:
            return
        limit_ms = self._runtime.configuration.integer("initial.broker.registration.timeout.ms")

        def end(now: Now) -> None:
            raise RegistrationTimeoutError(
                f"broker {self._runtime.identity.node_id} could not register within {limit_ms} ms"
                f" (initial.broker.registration.timeout.ms): {self._last_registration_error}"
            )

        self._registration_timeout = self._runtime.timers.set(now.monotonic_ms + limit_ms, end)

    def start(self, now: Now) -> None:
        """Register, and send heartbeats from then on."""
        self._transition(Trigger.START)
        self._communicate(now)

    def begin_controlled_shutdown(self, stopped: Callable[[Now], None], now: Now) -> None:
        """Begin a shutdown: a controlled one if the broker is RUNNING and `controlled.shutdown.enable` is true.

        `stopped` is called at the end of the controlled shutdown, or at once if the shutdown is not controlled.
        """
        self._cancel_registration_timeout()
        self._stopped = stopped
        self._transition(Trigger.STOP)
        if not self._runtime.configuration.value("controlled.shutdown.enable"):
            self._transition(Trigger.SHOULD_SHUT_DOWN)
        if self.state is BrokerState.SHUTTING_DOWN:
            self._end(now)
        else:
            self._runtime.timers.set(now.monotonic_ms + self._session_ms, self.begin_shutdown)
            self._communicate(now)

    def report(self, now: Now) -> None:
        """Send a heartbeat with the metadata offset at once, because a broker in controlled shutdown waits for it."""
        if self.state is BrokerState.RUNNING:
            self._communicate(now)

    def begin_shutdown(self, now: Now) -> None:
        """End the controlled shutdown, if one has begun.

        Called when the controller permits the shutdown, when the time limit has passed, or when there is no quorum.
        """
        if self.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN:
            self._transition(Trigger.SHOULD_SHUT_DOWN)
            self._end(now)

    # Requests to the controller

    def _communicate(self, now: Now) -> None:
        """Send a registration, or a heartbeat if the broker is registered."""
        self._cancel_next()
        if self.state is BrokerState.SHUTTING_DOWN:
            return
        if self._is_communication_in_flight:
            self._is_urgent = True
            return
        self._is_communication_in_flight, self._is_urgent = True, False
        is_registered = self.broker_epoch != UNKNOWN_EPOCH
        request = self._heartbeat() if is_registered else self._registration()
        then = self._handle_heartbeat_response if is_registered else self._handle_registration_response

        def on_response(response: Any, now: Now) -> None:
            self._is_communication_in_flight = False
            if response is None or response.error_code is not ErrorCode.none:
                if response is not None and not is_registered:
                    self._handle_registration_error(response.error_code)
                self._schedule_next_communication_after_failure(now)
            else:
                self._retry_ms = _FIRST_RETRY_MS
                then(response, now)

        self._send_to_controller(request, on_response, timeout_ms=self._session_ms // 2, now=now)

    def _registration(self) -> Any:
        identity = self._runtime.identity
        rack = self._runtime.configuration.entry("broker.rack").value
        return registration.BrokerRegistrationRequest(
            broker_id=identity.node_id,  # type: ignore[arg-type]
            cluster_id=identity.cluster_id,
            incarnation_id=identity.incarnation_id,
            listeners=tuple(
                registration.Listener(
                    name=endpoint.listener,
                    host=endpoint.host,
                    port=endpoint.port,  # type: ignore[arg-type]
                    security_protocol=_PLAINTEXT,  # type: ignore[arg-type]
                )
                for endpoint in identity.endpoints
            ),
            features=tuple(
                registration.Feature(
                    name=name,
                    min_supported_version=lowest,  # type: ignore[arg-type]
                    max_supported_version=highest,  # type: ignore[arg-type]
                )
                for name, (lowest, highest) in SUPPORTED_FEATURES.items()
            ),
            rack=rack,
            log_dirs=(identity.directory_id,),
            previous_broker_epoch=self._previous_epoch,  # type: ignore[arg-type]
        )

    def _handle_registration_error(self, error: ErrorCode) -> None:
        name = error.name.upper()
        reason = f"{name} ({_REGISTRATION_ERRORS[error]})" if error in _REGISTRATION_ERRORS else name
        self._last_registration_error = reason
        if error is not ErrorCode.not_controller:
            node_id = self._runtime.identity.node_id
            self._runtime.log_once(f"the registration of broker {node_id} is rejected, and retried: {reason}")

    def _handle_registration_response(self, response: Any, now: Now) -> None:
        self._cancel_registration_timeout()
        self.broker_epoch = int(response.broker_epoch)
        self._communicate(now)

    def _heartbeat(self) -> Any:
        return BrokerHeartbeatRequest(
            broker_id=self._runtime.identity.node_id,  # type: ignore[arg-type]
            broker_epoch=self.broker_epoch,  # type: ignore[arg-type]
            current_metadata_offset=self._metadata_offset(),  # type: ignore[arg-type]
            want_fence=self.state is BrokerState.STARTING,
            want_shut_down=self.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN,
        )

    def _handle_heartbeat_response(self, response: Any, now: Now) -> None:
        if self.state is BrokerState.STARTING:
            if response.is_caught_up:
                self._transition(Trigger.CAUGHT_UP)
            self._schedule_next_communication(0 if response.is_caught_up else _CATCH_UP_POLL_MS, now)
        elif self.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN:
            if response.should_shut_down:
                self.begin_shutdown(now)
            else:
                self._schedule_next_communication(_SHUTDOWN_POLL_MS, now)
        else:
            if not response.is_fenced:
                self._transition(Trigger.UNFENCED)
            self._schedule_next_communication(self._heartbeat_ms, now)

    def _schedule_next_communication_after_failure(self, now: Now) -> None:
        """Schedule a retry after a response with an error, or after a failed request."""
        self._is_urgent = False
        delay_ms, self._retry_ms = self._retry_ms, min(2 * self._retry_ms, _LAST_RETRY_MS)
        self._schedule_next_communication(delay_ms, now)

    def _schedule_next_communication(self, delay_ms: int, now: Now) -> None:
        """Send the next request after a delay, or at once if it became urgent while a request was in flight."""
        self._cancel_next()
        at_ms = now.monotonic_ms + (0 if self._is_urgent else delay_ms)
        self._next = self._runtime.timers.set(at_ms, self._communicate)

    def _cancel_registration_timeout(self) -> None:
        if self._registration_timeout is not None:
            self._runtime.timers.cancel(self._registration_timeout)
            self._registration_timeout = None

    def _cancel_next(self) -> None:
        if self._next is not None:
            self._runtime.timers.cancel(self._next)
            self._next = None

    # Transitions

    def _transition(self, trigger: Trigger) -> None:
        self.state = TRANSITIONS.get((self.state, trigger), self.state)

    def _end(self, now: Now) -> None:
        self._cancel_next()
        stopped, self._stopped = self._stopped, None
        if stopped is not None:
            stopped(now)
