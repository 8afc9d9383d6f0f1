"""Changes of topic and broker configurations.

Follows: org.apache.kafka.controller.ConfigurationControlManager (KIP-339).

IncrementalAlterConfigs changes some properties of a resource, AlterConfigs replaces all of them. In both cases either
all requested changes are made to a resource, or none. The resulting properties of a topic are validated together
(INVALID_CONFIG). The existence of the resource is checked last.

The broker that forwards a request validates the values of broker properties, since limits may depend on its own
configuration. The controller accepts any value of a broker property that is not too long. A record is written for a
broker property even if its value stays the same, so that the broker reloads the file that the value names
(KAFKA-14136).
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum

from reference_broker.core.configuration.configuration import BrokerConfiguration
from reference_broker.core.configuration.key import ConfigType, InvalidConfigError
from reference_broker.core.configuration.keys import BROKER_CONFIG_KEYS, TOPIC_CONFIG_KEYS
from reference_broker.core.configuration.resource import ResourceType, parse_node_id
from reference_broker.core.configuration.validation import validate_topic_overrides
from reference_broker.core.controller.errors import ControllerError
from reference_broker.core.metadata.image import CLUSTER_DEFAULT, MetadataImage
from reference_broker.core.topic_names import illegal_topic_name
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.metadata_records import ConfigRecord

_VALUE_SIZE_MAX = 2**15 - 1


class Operation(IntEnum):
    """Operation on a property, with the numbers of IncrementalAlterConfigs (`AlterConfigOp.OpType`)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True)
class Change:
    """Change of one property; the value of a `DELETE` is ignored."""

    name: str
    operation: Operation
    value: str | None


@dataclass(frozen=True, slots=True)
class Resource:
    """A topic, a broker (its id is the name), or all brokers (the name is empty)."""

    type: ResourceType
    name: str


def apply_changes(
    resource: Resource, changes: Iterable[Change], properties: Mapping[str, str]
) -> dict[str, str | None]:
    """Return the new value of each changed property; null for a deleted one.

    :param properties: the present properties of the resource.

    Raises `ControllerError` with INVALID_CONFIG.
    """
    return {change.name: _new_value(resource, change, properties.get(change.name)) for change in changes}


def replace_properties(new: Mapping[str, str], properties: Mapping[str, str]) -> dict[str, str | None]:
    """Return the new value of each property; null for a present property that `new` does not contain.

    :param properties: the present properties of the resource.
    """
    return {**new, **{name: None for name in properties if name not in new}}


def config_records(
    image: MetadataImage, resource: Resource, values: Mapping[str, str | None], configuration: BrokerConfiguration
) -> list[ConfigRecord]:
    """Return the records that set these values of an existing resource. Raises `ControllerError`.

    :param values: the new value of each changed property; null deletes the property.
    :param configuration: configuration of the controller's node, which has the defaults of topic properties.
    """
    before = image.overrides(resource.type, resource.name)
    if any(value is not None and len(value) > _VALUE_SIZE_MAX for value in values.values()):
        message = "The configuration value cannot be added because it exceeds the maximum value size of 32767 bytes."
        raise ControllerError(ErrorCode.invalid_config, message)
    after = {name: value for name, value in {**before, **values}.items() if value is not None}
    _check_resource(resource)
    if resource.type is ResourceType.TOPIC:
        try:
            validate_topic_overrides(after, configuration)
        except InvalidConfigError as error:
            raise ControllerError(ErrorCode.invalid_config, str(error)) from error
    _check_existence(image, resource)
    return [
        ConfigRecord(resource_type=resource.type, resource_name=resource.name, name=name, value=value)
        for name, value in values.items()
        if value != before.get(name) or resource.type is ResourceType.BROKER
    ]


def _new_value(resource: Resource, change: Change, present: str | None) -> str | None:
    match change.operation:
        case Operation.SET:
            return change.value
        case Operation.DELETE:
            return None
    keys = TOPIC_CONFIG_KEYS if resource.type is ResourceType.TOPIC else BROKER_CONFIG_KEYS
    key = keys.get(change.name)
    if key is None or key.type is not ConfigType.LIST:
        message = f"Can't {change.operation.name} to key {change.name} because its type is not LIST."
        raise ControllerError(ErrorCode.invalid_config, message)
    parts = [part for part in (key.default or "" if present is None else present).split(",") if part]
    changed = Counter((change.value or "").split(","))
    if change.operation is Operation.APPEND:
        known = {*parts}
        return ",".join([*parts, *(part for part in changed if part not in known)])
    kept = []
    for part in parts:
        if changed[part]:
            changed[part] -= 1  # each value removes one part
        else:
            kept.append(part)
    return ",".join(kept)


def _check_resource(resource: Resource) -> None:
    if resource.type is ResourceType.TOPIC:
        if not resource.name:
            raise _invalid("Default topic resources are not allowed.")
        reason = illegal_topic_name(resource.name)
        if reason is not None:
            raise ControllerError(ErrorCode.invalid_topic_exception, reason)
    elif resource.name != CLUSTER_DEFAULT:
        node_id = parse_node_id(resource.name)
        if node_id is None:
            raise _invalid("Unable to parse broker name as a base 10 number.")
        if node_id < 0:
            raise _invalid("Invalid negative broker ID.")


def _check_existence(image: MetadataImage, resource: Resource) -> None:
    if resource.type is ResourceType.TOPIC:
        if resource.name not in image.topics:
            message = f"The topic '{resource.name}' does not exist."
            raise ControllerError(ErrorCode.unknown_topic_or_partition, message)
    elif resource.name != CLUSTER_DEFAULT and int(resource.name) not in {*image.brokers, *image.controllers}:
        message = f"No node with id {int(resource.name)} found."
        raise ControllerError(ErrorCode.broker_id_not_registered, message)


def _invalid(message: str) -> ControllerError:
    return ControllerError(ErrorCode.invalid_request, message)
