"""InitProducerId (22), versions 0-5: an id for an idempotent producer (KIP-98).

- Each call gives an id that nobody had, at epoch 0, whatever id and epoch the producer says it has (KIP-360 asks more
  only of transactional producers).
- A producer id without an epoch, or an epoch without an id, is INVALID_REQUEST(42).
- The controller gives ids in blocks (KIP-730). Where none comes: COORDINATOR_LOAD_IN_PROGRESS(14), which old clients
  retry too. Kafka says so at once while it waits for a block; here the answer waits with it.

Gaps: transactions. A transactional id is INVALID_REQUEST(42), which no client retries.
"""

from typing import Any

from reference_broker.core.broker import Broker
from reference_broker.core.clock import Now
from reference_broker.core.request import Outcome, Request
from reference_broker.protocol.errors import ErrorCode

_NONE = -1


def handle(broker: Broker, request: Request, now: Now) -> Any:
    """A producer id and its epoch."""
    body = request.body
    half_known = (getattr(body, "producer_id", _NONE) == _NONE) != (getattr(body, "producer_epoch", _NONE) == _NONE)
    if body.transactional_id is not None or half_known:
        return _refusal(request, ErrorCode.invalid_request)

    def taken(producer_id: int | None, _: Now) -> None:
        none_came = _refusal(request, ErrorCode.coordinator_load_in_progress)
        broker.runtime.respond(request, none_came if producer_id is None else _response(request, producer_id))

    broker.producer_ids.take(taken, now)
    return Outcome.DEFERRED


def _response(request: Request, producer_id: int) -> Any:
    return request.replies.InitProducerIdResponse(error_code=ErrorCode.none, producer_id=producer_id, producer_epoch=0)


def _refusal(request: Request, error: ErrorCode) -> Any:
    return request.replies.InitProducerIdResponse(error_code=error, producer_id=_NONE, producer_epoch=_NONE)
