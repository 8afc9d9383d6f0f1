"""AllocateProducerIds (67), version 0: allocate a block of producer ids to a broker.

Follows: org.apache.kafka.controller.ProducerIdControlManager (KIP-730).

No id is allocated twice. A broker that is not registered, or is registered with another epoch, gets
STALE_BROKER_EPOCH(77).
"""

from typing import Any

from reference_broker.core.clock import Now
from reference_broker.core.controller.controller import Controller, require_active
from reference_broker.core.controller.errors import ControllerError
from reference_broker.core.controller.registrations import check_broker_epoch
from reference_broker.core.metadata.image import MetadataImage
from reference_broker.core.request import Request
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.metadata_records import ProducerIdsRecord

PRODUCER_ID_BLOCK_SIZE = 1000
_LAST_ID = 2**63 - 1


@require_active
def handle(controller: Controller, request: Request, now: Now) -> Any:
    """Return the first id of the block and its length."""
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
    if block.stop > _LAST_ID:
        raise ControllerError(ErrorCode.unknown_server_error, "There are no producer ids left.")
    broker_epoch = image.brokers[broker_id].broker_epoch
    return block, ProducerIdsRecord(broker_id=broker_id, broker_epoch=broker_epoch, next_producer_id=block.stop)
