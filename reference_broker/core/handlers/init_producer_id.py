"""InitProducerId (22), versions 0-5: an id for an idempotent producer (KIP-98).

- Each call gives an id that nobody had, at epoch 0, whatever id and epoch the producer says it has (KIP-360 asks more
  only of transactional producers).
- A producer id without an epoch, or an epoch without an id, is INVALID_REQUEST(42).

Gaps: transactions. A transactional id is INVALID_REQUEST(42), which no client retries.
"""

from typing import Any

from reference_broker.core.broker import Broker
from reference_broker.core.clock import Now
from reference_broker.core.request import Request
from reference_broker.protocol.errors import ErrorCode

_NONE = -1


def handle(broker: Broker, request: Request, now: Now) -> Any:
    """A producer id and its epoch."""
    new, body = request.replies, request.body
    half_known = (getattr(body, "producer_id", _NONE) == _NONE) != (getattr(body, "producer_epoch", _NONE) == _NONE)
    if body.transactional_id is not None or half_known:
        return new.InitProducerIdResponse(error_code=ErrorCode.invalid_request, producer_id=_NONE, producer_epoch=_NONE)
    return new.InitProducerIdResponse(
        error_code=ErrorCode.none, producer_id=broker.producer_ids.next(now), producer_epoch=0
    )
