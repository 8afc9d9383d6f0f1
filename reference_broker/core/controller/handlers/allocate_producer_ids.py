"""AllocateProducerIds (67), version 0: a block of producer ids for a broker, none of them allocated twice (KIP-730).

A broker, or an epoch of it, that is not registered: STALE_BROKER_EPOCH(77).
"""

from typing import Any

from reference_broker.core.clock import Now
from reference_broker.core.controller.controller import Controller, only_active
from reference_broker.core.controller.errors import ControllerError
from reference_broker.core.controller.registrations import check_broker_epoch
from reference_broker.core.metadata.image import MetadataImage
from reference_broker.core.request import Request
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.metadata_records import ProducerIdsRecord

PRODUCER_ID_BLOCK_SIZE = 1000
_LAST = 2**63 - 1


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


def next_block(image: MetadataImage, broker_id: int) -> tuple[range, ProducerIdsRecord]:
    """Return a new block for a registered broker, and its record. Raises `ControllerError`."""
    block = range(image.next_producer_id, image.next_producer_id + PRODUCER_ID_BLOCK_SIZE)
    if block.stop > _LAST:
        raise ControllerError(ErrorCode.unknown_server_error, "There are no producer ids left.")
    broker_epoch = image.brokers[broker_id].broker_epoch
    return block, ProducerIdsRecord(broker_id=broker_id, broker_epoch=broker_epoch, next_producer_id=block.stop)
