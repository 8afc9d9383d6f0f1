"""Forwarding of requests to the active controller, in an Envelope.

Follows: kafka.server.ForwardingManager (KIP-590).

As in Kafka, a request is retried while no controller is known, after NOT_CONTROLLER, and after a disconnection. So a
client may receive TOPIC_ALREADY_EXISTS for a topic that an earlier attempt of the same request has created. If an
attempt fails after more than a minute, the response is REQUEST_TIMED_OUT.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from reference_broker.core.broker import FORWARDING, Broker
from reference_broker.core.clock import Now
from reference_broker.core.controller.error_responses import error_response
from reference_broker.core.envelope import wrap
from reference_broker.core.request import Request, RequestOutcome
from reference_broker.protocol.errors import ErrorCode

_FORWARDING_TIMEOUT_MS = 60_000
_REQUEST_TIMEOUT_MS = 30_000
_RETRY_BACKOFF_MS = 50


def handle(broker: Broker, request: Request, now: Now) -> RequestOutcome:
    """Forward a request and relay the response. This is the handler of every forwarded API."""
    runtime = broker.runtime
    return forward(broker, request, partial(runtime.relay, request), partial(runtime.respond, request), now)


def forward(
    broker: Broker, request: Request, on_response: Callable[[bytes], None], on_error: Callable[[Any], None], now: Now
) -> RequestOutcome:
    """Forward a request, and pass the controller's response, with its header, to `on_response`.

    If forwarding fails, the error response for the client is passed to `on_error` instead.
    """
    _Forwarded(broker, request, on_response, on_error, now.monotonic_ms + _FORWARDING_TIMEOUT_MS).attempt(now)
    return RequestOutcome.DEFERRED


@dataclass(frozen=True, slots=True)
class _Forwarded:
    broker: Broker
    request: Request
    then: Callable[[bytes], None]
    on_error: Callable[[Any], None]
    deadline_ms: int

    def attempt(self, now: Now) -> None:
        envelope = wrap(self.request)
        self.broker.send_to_controller(FORWARDING, envelope, self._on_response, timeout_ms=_REQUEST_TIMEOUT_MS, now=now)

    def _on_response(self, response: Any, now: Now) -> None:
        if response is None or response.error_code is ErrorCode.not_controller:
            if now.monotonic_ms < self.deadline_ms:
                self.broker.runtime.timers.set(now.monotonic_ms + _RETRY_BACKOFF_MS, self.attempt)
            else:
                self.on_error(error_response(self.request, ErrorCode.request_timed_out))
        elif response.response_data is None:
            self.on_error(error_response(self.request, ErrorCode.unknown_server_error))
        else:
            self.then(bytes(response.response_data))
