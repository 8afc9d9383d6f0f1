"""InitProducerId (22), versions 0-5: an id for an idempotent producer (KIP-98).

- Each call gives an id that nobody had, at epoch 0, whatever id and epoch the producer says it has (KIP-360 asks more
  only of transactional producers).
- An empty transactional id is INVALID_REQUEST(42).

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
    new = request.replies
    if request.body.transactional_id is not None:
        return new.InitProducerIdResponse(error_code=ErrorCode.invalid_request, producer_id=_NONE, producer_epoch=_NONE)
    return new.InitProducerIdResponse(
        error_code=ErrorCode.none, producer_id=broker.producer_ids.next(now), producer_epoch=0
    )
