"""Lifecycle of a broker in its cluster, from registration to controlled shutdown.

Follows: kafka.server.BrokerLifecycleManager (KIP-631).

| state                       | begins when                                    | heartbeat            |
|-----------------------------|------------------------------------------------|----------------------|
| STARTING                    | the process starts; it registers first         | want_fence           |
| RECOVERY                    | its metadata has the broker's registration     |                      |
| RUNNING                     | the controller has unfenced it                 |                      |
| PENDING_CONTROLLED_SHUTDOWN | it is stopped while it is RUNNING              | want_shut_down       |
| SHUTTING_DOWN               | the controller permits it, or there is none    | none is sent         |

`TRANSITIONS` is that table. One request is in flight at a time. Heartbeats are sent every
`broker.heartbeat.interval.ms`, but sooner while a change of state is expected, so that a start is fast.

- Every request contains the epoch of the registration's response, which does not change. A broker that is unregistered
  while it runs receives STALE_BROKER_EPOCH from the controller until it is restarted.
- While another broker is in controlled shutdown, this one reports its metadata offset at once (Kafka waits for the next
  heartbeat), because the other broker waits for that only.
- A rejected request, and one without a response, is retried with exponential backoff. Each error of a registration is
  logged once; it may be transient, as while the session of a killed broker has not ended.
- A broker that is not registered within `initial.broker.registration.timeout.ms` stops its node.
- A controlled shutdown takes at most `broker.session.timeout.ms`, after which the broker would be fenced anyway, and
  ends at once when there is no quorum (`give_up`). Kafka waits up to five minutes for both.
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

_REFUSALS = {
    ErrorCode.duplicate_broker_registration: (
        "another broker with this id is alive, or this one was killed and its session has not ended yet"
    ),
    ErrorCode.inconsistent_cluster_id: "the controller is of another cluster",
    ErrorCode.invalid_registration: "its directory is another broker's, or its features are incomplete",
    ErrorCode.unsupported_version: "the cluster uses features that it does not support",
}
"""Explanations of the errors of a registration. NOT_CONTROLLER is not among them: it is retried."""


class RegistrationTimeoutError(Exception):
    """The broker was not registered within `initial.broker.registration.timeout.ms`."""


class BrokerState(IntEnum):
    """States, with the numbers of Kafka's metric `BrokerState`."""

    NOT_RUNNING = 0
    STARTING = 1
    RECOVERY = 2
    RUNNING = 3
    PENDING_CONTROLLED_SHUTDOWN = 6
    SHUTTING_DOWN = 7


class Trigger(Enum):
    """Events that change the state."""

    START = auto()
    CAUGHT_UP = auto()
    UNFENCED = auto()
    STOP = auto()
    MAY_GO = auto()


TRANSITIONS = {
    (BrokerState.NOT_RUNNING, Trigger.START): BrokerState.STARTING,
    (BrokerState.STARTING, Trigger.CAUGHT_UP): BrokerState.RECOVERY,
    (BrokerState.RECOVERY, Trigger.UNFENCED): BrokerState.RUNNING,
    (BrokerState.RUNNING, Trigger.STOP): BrokerState.PENDING_CONTROLLED_SHUTDOWN,
    (BrokerState.PENDING_CONTROLLED_SHUTDOWN, Trigger.MAY_GO): BrokerState.SHUTTING_DOWN,
    (BrokerState.NOT_RUNNING, Trigger.STOP): BrokerState.SHUTTING_DOWN,
    (BrokerState.STARTING, Trigger.STOP): BrokerState.SHUTTING_DOWN,
    (BrokerState.RECOVERY, Trigger.STOP): BrokerState.SHUTTING_DOWN,
}
"""The next state; any other combination has no effect."""


class AskController(Protocol):
    """Sends requests to the active controller."""

    def __call__(self, request: Any, then: Callable[[Any, Now], None], *, timeout_ms: int, now: Now) -> None:
        """Send a request; `then` gets the response, or null if there is none."""


class BrokerLifecycleManager:
    """State of a broker, and its registration and heartbeats.

    :param ask: sends a request to the active controller.
    :param metadata_offset: returns the offset of the last metadata record that the broker has applied.
    :param previous_epoch: its epoch before a clean shutdown; -1 if the last shutdown was not clean.
    """

    def __init__(
        self,
        runtime: Runtime,
        ask: AskController,
        metadata_offset: Callable[[], int],
        previous_epoch: int = UNKNOWN_EPOCH,
    ) -> None:
        self.state = BrokerState.NOT_RUNNING
        self.broker_epoch = UNKNOWN_EPOCH
        self._runtime = runtime
        self._ask = ask
        self._metadata_offset = metadata_offset
        self._previous_epoch = previous_epoch
        self._heartbeat_ms = runtime.configuration.integer("broker.heartbeat.interval.ms")
        self._session_ms = runtime.configuration.integer("broker.session.timeout.ms")
        self._is_asking = False
        self._is_urgent = False
        self._next: Timer | None = None
        self._retry_ms = _FIRST_RETRY_MS
        self._stopped: Callable[[Now], None] | None = None
        self._registration_limit: Timer | None = None
        self._last_refusal = "no controller has answered"

    @property
    def is_request_in_flight(self) -> bool:
        """Whether a registration or a heartbeat waits for its response."""
        return self._is_asking

    @property
    def next_request_ms(self) -> int | None:
        """When the next registration or heartbeat is sent; null if none is scheduled."""
        return None if self._next is None else self._next.due_ms

    # Calls of the broker

    def limit_registration(self, now: Now) -> None:
        """Start the registration timeout, whether a controller is known or not.

        When it expires, the timer raises `RegistrationTimeoutError`.
        """
        if self.broker_epoch != UNKNOWN_EPOCH or self.state is BrokerState.SHUTTING_DOWN:
            return
        limit_ms = self._runtime.configuration.integer("initial.broker.registration.timeout.ms")

        def end(now: Now) -> None:
            raise RegistrationTimeoutError(
                f"broker {self._runtime.identity.node_id} could not register within {limit_ms} ms"
                f" (initial.broker.registration.timeout.ms): {self._last_refusal}"
            )

        self._registration_limit = self._runtime.timers.set(now.monotonic_ms + limit_ms, end)

    def start(self, now: Now) -> None:
        """Register, and send heartbeats until the broker is RUNNING, and after that."""
        self._go(Trigger.START)
        self._communicate(now)

    def stop(self, stopped: Callable[[Now], None], now: Now) -> None:
        """Begin a controlled shutdown if the broker is RUNNING; `stopped` is called at its end, perhaps at once."""
        self._lift_registration_limit()
        self._stopped = stopped
        self._go(Trigger.STOP)
        if not self._runtime.configuration.value("controlled.shutdown.enable"):
            self._go(Trigger.MAY_GO)
        if self.state is BrokerState.SHUTTING_DOWN:
            self._end(now)
        else:
            self._runtime.timers.set(now.monotonic_ms + self._session_ms, self._let_go)
            self._communicate(now)

    def report(self, now: Now) -> None:
        """Send a heartbeat with the metadata offset at once, because a broker in controlled shutdown waits for it."""
        if self.state is BrokerState.RUNNING:
            self._communicate(now)

    def give_up(self, now: Now) -> None:
        """End the controlled shutdown without the controller, because there is no quorum."""
        self._let_go(now)

    # Requests to the controller

    def _communicate(self, now: Now) -> None:
        self._cancel_next()
        if self.state is BrokerState.SHUTTING_DOWN:
            return
        if self._is_asking:
            self._is_urgent = True
            return
        self._is_asking, self._is_urgent = True, False
        is_registered = self.broker_epoch != UNKNOWN_EPOCH
        request = self._heartbeat() if is_registered else self._registration()
        then = self._heartbeat_answered if is_registered else self._registration_answered

        def answered(response: Any, now: Now) -> None:
            self._is_asking = False
            if response is None or response.error_code is not ErrorCode.none:
                if response is not None and not is_registered:
                    self._registration_refused(response.error_code)
                self._failed(now)
            else:
                self._retry_ms = _FIRST_RETRY_MS
                then(response, now)

        self._ask(request, answered, timeout_ms=self._session_ms // 2, now=now)

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

    def _registration_refused(self, error: ErrorCode) -> None:
        name = error.name.upper()
        self._last_refusal = f"{name} ({_REFUSALS[error]})" if error in _REFUSALS else name
        if error is not ErrorCode.not_controller:
            who = f"broker {self._runtime.identity.node_id}"
            self._runtime.say_once(f"{who} is refused its registration, and asks again: {self._last_refusal}")

    def _registration_answered(self, response: Any, now: Now) -> None:
        self._lift_registration_limit()
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

    def _heartbeat_answered(self, response: Any, now: Now) -> None:
        if self.state is BrokerState.STARTING:
            if response.is_caught_up:
                self._go(Trigger.CAUGHT_UP)
            self._communicate_in(0 if response.is_caught_up else _CATCH_UP_POLL_MS, now)
        elif self.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN:
            if response.should_shut_down:
                self._let_go(now)
            else:
                self._communicate_in(_SHUTDOWN_POLL_MS, now)
        else:
            if not response.is_fenced:
                self._go(Trigger.UNFENCED)
            self._communicate_in(self._heartbeat_ms, now)

    def _failed(self, now: Now) -> None:
        """Schedule a retry after an error, or without a response."""
        self._is_urgent = False
        delay_ms, self._retry_ms = self._retry_ms, min(2 * self._retry_ms, _LAST_RETRY_MS)
        self._communicate_in(delay_ms, now)

    def _communicate_in(self, delay_ms: int, now: Now) -> None:
        """Send the next request after a delay, or at once if it became urgent while a request was in flight."""
        self._cancel_next()
        at_ms = now.monotonic_ms + (0 if self._is_urgent else delay_ms)
        self._next = self._runtime.timers.set(at_ms, self._communicate)

    def _lift_registration_limit(self) -> None:
        if self._registration_limit is not None:
            self._runtime.timers.cancel(self._registration_limit)
            self._registration_limit = None

    def _cancel_next(self) -> None:
        if self._next is not None:
            self._runtime.timers.cancel(self._next)
            self._next = None

    # Transitions

    def _go(self, trigger: Trigger) -> None:
        self.state = TRANSITIONS.get((self.state, trigger), self.state)

    def _let_go(self, now: Now) -> None:
        if self.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN:
            self._go(Trigger.MAY_GO)
            self._end(now)

    def _end(self, now: Now) -> None:
        self._cancel_next()
        stopped, self._stopped = self._stopped, None
        if stopped is not None:
            stopped(now)
