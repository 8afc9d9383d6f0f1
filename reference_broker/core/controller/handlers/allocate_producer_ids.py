"""AllocateProducerIds (67), version 0: a broker gets a block of producer ids (KIP-730).

A broker, or an epoch of it, that is not registered: STALE_BROKER_EPOCH(77).
"""

from typing import Any

from reference_broker.core.clock import Now
from reference_broker.core.controller.active import only_active
from reference_broker.core.controller.controller import Controller
from reference_broker.core.controller.producer_ids import next_block
from reference_broker.core.controller.registrations import check_broker_epoch
from reference_broker.core.request import Request
from reference_broker.protocol.errors import ErrorCode


@only_active
def handle(controller: Controller, request: Request, now: Now) -> Any:
    """The block's first id and its length."""
    body = request.body
    check_broker_epoch(controller.image, body.broker_id, body.broker_epoch)
    block, record = next_block(controller.image, body.broker_id)
    response = request.replies.AllocateProducerIdsResponse(
        error_code=ErrorCode.none, producer_id_start=block.start, producer_id_len=len(block)
    )
    return controller.respond_when_committed(request, [record], response, now)
