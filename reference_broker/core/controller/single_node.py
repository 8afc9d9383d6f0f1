"""The controller of a node alone, until the quorum takes its place."""

from collections.abc import Callable
from uuid import UUID

from reference_broker.core.configuration.configuration import BrokerConfiguration
from reference_broker.core.controller.errors import ControllerError
from reference_broker.core.controller.topics import NewTopic, PlannedTopic, Surroundings, plan_topic
from reference_broker.core.metadata.image import MetadataImage
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.metadata_records import MetadataRecord, ProducerIdsRecord, RemoveTopicRecord

PRODUCER_ID_BLOCK_SIZE = 1000


class Controller:
    """The decisions of the active controller."""

    def __init__(
        self, image: MetadataImage, configuration: BrokerConfiguration, directory_id: UUID, new_uuid: Callable[[], UUID]
    ) -> None:
        self._image = image
        self._surroundings = Surroundings(configuration, new_uuid, lambda _: 0)

    def plan_topic(self, topic: NewTopic) -> PlannedTopic:
        """The records that create a topic. Raises `ControllerError`."""
        return plan_topic(self._image, topic, self._surroundings)

    def delete_topic(self, topic_id: UUID) -> list[MetadataRecord]:
        """The records that delete a topic. Raises `ControllerError` (UNKNOWN_TOPIC_ID)."""
        if topic_id not in self._image.topics_by_id:
            raise ControllerError(ErrorCode.unknown_topic_id)
        return [RemoveTopicRecord(topic_id=topic_id)]

    def allocate_producer_ids(self, node_id: int) -> tuple[int, list[MetadataRecord]]:
        """The first id of a new block for a broker, and the record that gives it the block."""
        first = self._image.next_producer_id
        broker_epoch = self._image.brokers[node_id].broker_epoch
        next_producer_id = first + PRODUCER_ID_BLOCK_SIZE
        return first, [
            ProducerIdsRecord(broker_id=node_id, broker_epoch=broker_epoch, next_producer_id=next_producer_id)
        ]
