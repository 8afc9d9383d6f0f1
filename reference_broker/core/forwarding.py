"""What a broker cannot decide, it passes on to the active controller and brings back the answer (KIP-590).

While there is no controller, or not the one that was asked, or the connection to it is lost, it is tried again, as
Kafka does: a client may so be told TOPIC_ALREADY_EXISTS of a topic that its own request has created. After a minute
the client is told REQUEST_TIMED_OUT.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from reference_broker.core.broker import FORWARDING, Broker
from reference_broker.core.clock import Now
from reference_broker.core.controller.error_responses import error_response
from reference_broker.core.envelope import wrap
from reference_broker.core.request import Request, RequestOutcome
from reference_broker.protocol.errors import ErrorCode

_PATIENCE_MS = 60_000
_REQUEST_TIMEOUT_MS = 30_000
_RETRY_BACKOFF_MS = 50


def handle(broker: Broker, request: Request, now: Now) -> RequestOutcome:
    """Pass a request on; the handler of every API that is the controller's."""
    return forward(broker, request, lambda answer: broker.runtime.relay(request, answer), now)


def forward(broker: Broker, request: Request, answered: Callable[[bytes], None], now: Now) -> RequestOutcome:
    """Pass a request on, and do something else with the controller's answer, a response with its header."""
    _Forwarded(broker, request, answered, now.monotonic_ms + _PATIENCE_MS).attempt(now)
    return RequestOutcome.DEFERRED


@dataclass(frozen=True, slots=True)
class _Forwarded:
    broker: Broker
    request: Request
    then: Callable[[bytes], None]
    deadline_ms: int

    def attempt(self, now: Now) -> None:
        envelope = wrap(self.request)
        self.broker.ask_controller(FORWARDING, envelope, self._answered, timeout_ms=_REQUEST_TIMEOUT_MS, now=now)

    def _answered(self, response: Any, now: Now) -> None:
        runtime = self.broker.runtime
        if response is None or response.error_code is ErrorCode.not_controller:
            if now.monotonic_ms < self.deadline_ms:
                runtime.timers.set(now.monotonic_ms + _RETRY_BACKOFF_MS, self.attempt)
            else:
                runtime.respond(self.request, error_response(self.request, ErrorCode.request_timed_out))
        elif response.response_data is None:
            runtime.respond(self.request, error_response(self.request, ErrorCode.unknown_server_error))
        else:
            self.then(bytes(response.response_data))
