"""InitProducerId (22), versions 0-5: allocate an id for an idempotent producer.

Follows: kafka.server.KafkaApis (KIP-98, KIP-360, KIP-730).

- Each request allocates an unused id with epoch 0. A producer id and an epoch in the request have no effect (KIP-360
  uses them only for transactional producers). If only one of them is set, the error is INVALID_REQUEST(42).
- The controller allocates ids in blocks (KIP-730). While the broker waits for a block, it delays the response. If no
  block arrives, the error is COORDINATOR_LOAD_IN_PROGRESS(14), which old clients retry too. Kafka does not delay the
  response: it returns this error at once.

Gaps: transactions. For a request with a transactional id, the error is INVALID_REQUEST(42), which no client retries.
"""

from typing import Any

from reference_broker.core.broker import Broker
from reference_broker.core.clock import Now
from reference_broker.core.request import Request, RequestOutcome
from reference_broker.protocol.errors import ErrorCode

_NONE = -1


def handle(broker: Broker, request: Request, now: Now) -> Any:
    """Return a new producer id and its epoch."""
    body = request.body
    is_incomplete = (getattr(body, "producer_id", _NONE) == _NONE) != (getattr(body, "producer_epoch", _NONE) == _NONE)
    if body.transactional_id is not None or is_incomplete:
        return _error_response(request, ErrorCode.invalid_request)

    def on_id(producer_id: int | None, _: Now) -> None:
        error_response = _error_response(request, ErrorCode.coordinator_load_in_progress)
        broker.runtime.respond(request, error_response if producer_id is None else _response(request, producer_id))

    broker.producer_ids.generate_producer_id(on_id, now)
    return RequestOutcome.DEFERRED


def _response(request: Request, producer_id: int) -> Any:
    return request.replies.InitProducerIdResponse(error_code=ErrorCode.none, producer_id=producer_id, producer_epoch=0)


def _error_response(request: Request, error: ErrorCode) -> Any:
    return request.replies.InitProducerIdResponse(error_code=error, producer_id=_NONE, producer_epoch=_NONE)
