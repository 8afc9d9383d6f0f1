"""The controller: what is asked of the cluster's metadata becomes records, or an error.

Rules of this file:
- A decision is a function of the image and the request. It returns the records that carry it out and changes nothing;
  `MetadataLog.commit` makes it so. That is the shape of Kafka's `QuorumController` and its `ControllerResult`.
- Checks come in Kafka's order (`ReplicationControlManager.createTopics`), since the first one that fails is the answer.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn
from uuid import UUID

from reference_broker.core.configuration.configuration import BrokerConfiguration, validate_topic_overrides
from reference_broker.core.configuration.key import InvalidConfigError
from reference_broker.core.configuration.resource import ResourceType
from reference_broker.core.controller.errors import ControllerError
from reference_broker.core.metadata.image import MetadataImage
from reference_broker.core.topic_names import CLUSTER_METADATA_TOPIC, collision_key, illegal_topic_name
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.metadata_records import (
    ConfigRecord,
    MetadataRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RemoveTopicRecord,
    TopicRecord,
)

PRODUCER_ID_BLOCK_SIZE = 1000
USE_DEFAULT = -1
"""A number of partitions or a replication factor that is left to the broker (KIP-464)."""


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic that is asked for. `assignments` are replicas by partition index, where the client places them itself."""

    name: str
    num_partitions: int = USE_DEFAULT
    replication_factor: int = USE_DEFAULT
    assignments: Sequence[tuple[int, Sequence[int]]] = ()
    overrides: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PlannedTopic:
    """A topic that can be created: the records that do it, and what its creator is told."""

    topic_id: UUID
    num_partitions: int
    replication_factor: int
    overrides: Mapping[str, str]
    records: tuple[MetadataRecord, ...]


class Controller:
    """The decisions of the active controller.

    :param new_uuid: makes topic ids; randomness comes from outside the core.
    """

    def __init__(
        self, image: MetadataImage, configuration: BrokerConfiguration, directory_id: UUID, new_uuid: Callable[[], UUID]
    ) -> None:
        self._image = image
        self._configuration = configuration
        self._directory_id = directory_id
        self._new_uuid = new_uuid

    def plan_topic(self, topic: NewTopic) -> PlannedTopic:
        """The records that create a topic. Raises `ControllerError`."""
        self._check_name(topic.name)
        try:
            overrides = validate_topic_overrides(topic.overrides)
        except InvalidConfigError as error:
            raise ControllerError(ErrorCode.invalid_config, str(error)) from error
        replicas = self._manual_replicas(topic) if topic.assignments else self._placed_replicas(topic)
        topic_id = self._new_uuid()
        return PlannedTopic(
            topic_id=topic_id,
            num_partitions=len(replicas),
            replication_factor=len(replicas[0]),
            overrides=overrides,
            records=(
                TopicRecord(name=topic.name, topic_id=topic_id),
                *(_config_record(topic.name, name, value) for name, value in overrides.items()),
                *(self._partition_record(topic_id, index, on_nodes) for index, on_nodes in enumerate(replicas)),
            ),
        )

    def _check_name(self, name: str) -> None:
        if name == CLUSTER_METADATA_TOPIC:
            _invalid_request(f"Creation of internal topic {name} is prohibited.")
        reason = illegal_topic_name(name)
        if reason is not None:
            raise ControllerError(ErrorCode.invalid_topic_exception, reason)
        if name in self._image.topics:
            raise ControllerError(ErrorCode.topic_already_exists, f"Topic '{name}' already exists.")
        key = collision_key(name)
        if "_" in key:
            for other in self._image.topics:
                if collision_key(other) == key:
                    message = f"Topic '{name}' collides with existing topic: {other}"
                    raise ControllerError(ErrorCode.invalid_topic_exception, message)

    def _manual_replicas(self, topic: NewTopic) -> list[tuple[int, ...]]:
        if topic.replication_factor != USE_DEFAULT:
            _invalid_request("A manual partition assignment was specified, but replication factor was not set to -1.")
        if topic.num_partitions != USE_DEFAULT:
            _invalid_request("A manual partition assignment was specified, but numPartitions was not set to -1.")
        by_index: dict[int, tuple[int, ...]] = {}
        for index, replicas in topic.assignments:
            if index in by_index:
                _invalid_assignment(f"Found multiple manual partition assignments for partition {index}")
            self._check_replicas(replicas, len(next(iter(by_index.values()), replicas)))
            by_index[index] = tuple(replicas)
        if set(by_index) != set(range(len(by_index))):
            _invalid_assignment("partitions should be a consecutive 0-based integer sequence")
        return [by_index[index] for index in range(len(by_index))]

    def _check_replicas(self, replicas: Sequence[int], replication_factor: int) -> None:
        if not replicas:
            _invalid_assignment("The manual partition assignment includes an empty replica list.")
        previous = None
        for node in sorted(replicas):
            if node not in self._image.brokers:
                _invalid_assignment(
                    f"The manual partition assignment includes broker {node}, but no such broker is registered."
                )
            if node == previous:
                _invalid_assignment(f"The manual partition assignment includes the broker {node} more than once.")
            previous = node
        if len(replicas) != replication_factor:
            _invalid_assignment(
                f"The manual partition assignment includes a partition with {len(replicas)} replica(s), but this is not"
                f" consistent with previous partitions, which have {replication_factor} replica(s)."
            )

    def _placed_replicas(self, topic: NewTopic) -> list[tuple[int, ...]]:
        if topic.replication_factor < USE_DEFAULT or topic.replication_factor == 0:
            message = "Replication factor must be larger than 0, or -1 to use the default value."
            raise ControllerError(ErrorCode.invalid_replication_factor, message)
        if topic.num_partitions < USE_DEFAULT or topic.num_partitions == 0:
            message = "Number of partitions was set to an invalid non-positive value."
            raise ControllerError(ErrorCode.invalid_partitions, message)
        replication_factor = self._or_default(topic.replication_factor, "default.replication.factor")
        num_partitions = self._or_default(topic.num_partitions, "num.partitions")
        nodes = sorted(self._image.brokers)
        if replication_factor > len(nodes):
            message = (
                f"Unable to replicate the partition {replication_factor} time(s): The target replication factor of"
                f" {replication_factor} cannot be reached because only {len(nodes)} broker(s) are registered or some"
                " brokers have all their log directories cordoned."
            )
            raise ControllerError(ErrorCode.invalid_replication_factor, message)
        return [tuple(nodes[:replication_factor])] * num_partitions

    def _or_default(self, number: int, property_name: str) -> int:
        return self._configuration.integer(property_name) if number == USE_DEFAULT else number

    def _partition_record(self, topic_id: UUID, index: int, replicas: tuple[int, ...]) -> PartitionRecord:
        return PartitionRecord(
            partition_id=index,
            topic_id=topic_id,
            replicas=replicas,
            isr=replicas,
            leader=replicas[0],
            leader_epoch=0,
            partition_epoch=0,
            directories=(self._directory_id,) * len(replicas),
        )

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


def _config_record(topic: str, name: str, value: str) -> ConfigRecord:
    return ConfigRecord(resource_type=ResourceType.TOPIC, resource_name=topic, name=name, value=value)


def _invalid_request(message: str) -> NoReturn:
    raise ControllerError(ErrorCode.invalid_request, message)


def _invalid_assignment(message: str) -> NoReturn:
    raise ControllerError(ErrorCode.invalid_replica_assignment, message)
