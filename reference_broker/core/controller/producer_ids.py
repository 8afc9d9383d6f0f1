"""Blocks of producer ids for brokers, none of them given twice (KIP-730)."""

from reference_broker.core.controller.errors import ControllerError
from reference_broker.core.metadata.image import MetadataImage
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.metadata_records import ProducerIdsRecord

PRODUCER_ID_BLOCK_SIZE = 1000
_LAST = 2**63 - 1


def next_block(image: MetadataImage, broker_id: int) -> tuple[range, ProducerIdsRecord]:
    """A new block for a registered broker, and the record that gives it. Raises `ControllerError`."""
    block = range(image.next_producer_id, image.next_producer_id + PRODUCER_ID_BLOCK_SIZE)
    if block.stop > _LAST:
        raise ControllerError(ErrorCode.unknown_server_error, "There are no producer ids left.")
    broker_epoch = image.brokers[broker_id].broker_epoch
    return block, ProducerIdsRecord(broker_id=broker_id, broker_epoch=broker_epoch, next_producer_id=block.stop)
