"""New topics: `createTopics`.

Follows: org.apache.kafka.controller.ReplicationControlManager (KIP-464).

All topics of a request are validated against the image from before the request. So if two new names collide only with
each other, both topics are created, as in Kafka.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn
from uuid import UUID

from reference_broker.core.configuration.configuration import BrokerConfiguration
from reference_broker.core.configuration.key import InvalidConfigError
from reference_broker.core.configuration.resource import ResourceType
from reference_broker.core.configuration.validation import validate_topic_overrides
from reference_broker.core.controller.assignments import check_assignment, new_partition
from reference_broker.core.controller.errors import ControllerError
from reference_broker.core.controller.placement import RandomBelow, place_replicas, usable_brokers
from reference_broker.core.metadata.image import MetadataImage
from reference_broker.core.topic_names import CLUSTER_METADATA_TOPIC, illegal_topic_name
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.metadata_records import ConfigRecord, MetadataRecord, TopicRecord

USE_DEFAULT = -1
"""Number of partitions or replication factor for which the default in the configuration is used (KIP-464)."""


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A requested topic.

    :param assignments: pairs of a partition index and its replicas; empty if the controller places the replicas.
    """

    name: str
    num_partitions: int = USE_DEFAULT
    replication_factor: int = USE_DEFAULT
    assignments: Sequence[tuple[int, Sequence[int]]] = ()
    overrides: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PlannedTopic:
    """A valid new topic: the records that create it, and the values of the response."""

    topic_id: UUID
    num_partitions: int
    replication_factor: int
    overrides: Mapping[str, str]
    records: tuple[MetadataRecord, ...]


@dataclass(frozen=True, slots=True)
class CreationContext:
    """Inputs of topic creation other than the image.

    :param configuration: configuration of the controller's node, for defaults.
    :param new_uuid: generator of topic ids.
    """

    configuration: BrokerConfiguration
    new_uuid: Callable[[], UUID]
    random_below: RandomBelow


def create_topic(image: MetadataImage, topic: NewTopic, context: CreationContext) -> PlannedTopic:
    """Validate a requested topic and place its replicas. Raises `ControllerError`."""
    _check_name(image, topic.name)
    try:
        overrides = validate_topic_overrides(topic.overrides, context.configuration)
    except InvalidConfigError as error:
        raise ControllerError(ErrorCode.invalid_config, str(error)) from error
    replicas = _manual_replicas(image, topic) if topic.assignments else _placed_replicas(image, topic, context)
    topic_id = context.new_uuid()
    return PlannedTopic(
        topic_id=topic_id,
        num_partitions=len(replicas),
        replication_factor=len(replicas[0]),
        overrides=overrides,
        records=(
            TopicRecord(name=topic.name, topic_id=topic_id),
            *(_config_record(topic.name, name, value) for name, value in overrides.items()),
            *(new_partition(image, topic_id, index, on_nodes) for index, on_nodes in enumerate(replicas)),
        ),
    )


def _check_name(image: MetadataImage, name: str) -> None:
    if name == CLUSTER_METADATA_TOPIC:
        _invalid_request(f"Creation of internal topic {name} is prohibited.")
    reason = illegal_topic_name(name)
    if reason is not None:
        raise ControllerError(ErrorCode.invalid_topic_exception, reason)
    if name in image.topics:
        raise ControllerError(ErrorCode.topic_already_exists, f"Topic '{name}' already exists.")
    other = image.colliding_topic(name)
    if other is not None:
        message = f"Topic '{name}' collides with existing topic: {other}"
        raise ControllerError(ErrorCode.invalid_topic_exception, message)


def _manual_replicas(image: MetadataImage, topic: NewTopic) -> list[tuple[int, ...]]:
    if topic.replication_factor != USE_DEFAULT:
        _invalid_request("A manual partition assignment was specified, but replication factor was not set to -1.")
    if topic.num_partitions != USE_DEFAULT:
        _invalid_request("A manual partition assignment was specified, but numPartitions was not set to -1.")
    by_index: dict[int, tuple[int, ...]] = {}
    replication_factor = None
    for index, replicas in topic.assignments:
        if index in by_index:
            _invalid_assignment(f"Found multiple manual partition assignments for partition {index}")
        check_assignment(image, replicas, replication_factor)
        replication_factor = len(replicas)
        if not any(map(image.is_active, replicas)):
            _invalid_assignment(
                f"All brokers specified in the manual partition assignment for partition {index} are fenced or in "
                "controlled shutdown."
            )
        by_index[index] = tuple(replicas)
    if sorted(by_index) != list(range(len(by_index))):
        _invalid_assignment("partitions should be a consecutive 0-based integer sequence")
    return [by_index[index] for index in range(len(by_index))]


def _placed_replicas(image: MetadataImage, topic: NewTopic, context: CreationContext) -> list[tuple[int, ...]]:
    if topic.replication_factor < USE_DEFAULT or topic.replication_factor == 0:
        message = "Replication factor must be larger than 0, or -1 to use the default value."
        raise ControllerError(ErrorCode.invalid_replication_factor, message)
    if topic.num_partitions < USE_DEFAULT or topic.num_partitions == 0:
        message = "Number of partitions was set to an invalid non-positive value."
        raise ControllerError(ErrorCode.invalid_partitions, message)
    configured = context.configuration.integer
    count, factor = topic.num_partitions, topic.replication_factor
    num_partitions = configured("num.partitions") if count == USE_DEFAULT else count
    replication_factor = configured("default.replication.factor") if factor == USE_DEFAULT else factor
    try:
        return place_replicas(usable_brokers(image), num_partitions, replication_factor, context.random_below)
    except ControllerError as error:
        message = f"Unable to replicate the partition {replication_factor} time(s): {error.message}"
        raise ControllerError(error.code, message) from error


def _config_record(topic: str, name: str, value: str) -> ConfigRecord:
    return ConfigRecord(resource_type=ResourceType.TOPIC, resource_name=topic, name=name, value=value)


def _invalid_request(message: str) -> NoReturn:
    raise ControllerError(ErrorCode.invalid_request, message)


def _invalid_assignment(message: str) -> NoReturn:
    raise ControllerError(ErrorCode.invalid_replica_assignment, message)
