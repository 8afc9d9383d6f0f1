"""Model of the alteration and description of topic configurations (`ConfigurationControlManager`, KIP-339, KIP-226)."""

from collections.abc import Mapping
from typing import Final

from conformance.sequential.expectation import Expectation
from conformance.sequential.model.cluster import ModelCluster
from conformance.sequential.steps import (
    AlterConfigs,
    DescribeConfigs,
    IncrementalAlterConfigs,
    ListConfigResources,
    Operation,
    ResourceType,
)

THROTTLED: Final = "follower.replication.throttled.replicas"
"""A list that is empty unless it is set."""
LISTS: Final = frozenset({"cleanup.policy", THROTTLED})
"""The settings that scripts append to and subtract from."""
BAD_SETTINGS: Final = frozenset({("retention.ms", "soon"), ("cleanup.policy", "burn"), ("no.such.property", "1")})

_UNKNOWN: Final = "UNKNOWN_TOPIC_OR_PARTITION"


def incremental_alter_configs(cluster: ModelCluster, step: IncrementalAlterConfigs) -> Expectation:
    """Apply every change, or none if one is invalid; other settings stay."""
    if error := _resource_error(cluster, step.resource_type, step.topic):
        return {"error": error}
    names = [name for name, _, _ in step.changes]
    if len(names) != len(set(names)):
        return {"error": "INVALID_REQUEST"}
    properties = dict(cluster.topics[step.topic].properties)
    for name, operation, value in step.changes:
        if operation in {Operation.APPEND, Operation.SUBTRACT} and name not in LISTS:
            return {"error": "INVALID_CONFIG"}
        _change(properties, name, operation, value)
    return _altered(cluster, step, properties)


def _change(properties: dict[str, str], name: str, operation: Operation, value: str | None) -> None:
    present = [item for item in properties.get(name, _DEFAULT_LISTS.get(name, "")).split(",") if item]
    named = (value or "").split(",")
    match operation:
        case Operation.DELETE:
            properties.pop(name, None)
        case Operation.SET:
            properties[name] = value or ""
        case Operation.APPEND:
            properties[name] = ",".join([*present, *(item for item in named if item not in present)])
        case Operation.SUBTRACT:
            for item in named:
                if item in present:
                    present.remove(item)  # the first of equal items only
            properties[name] = ",".join(present)


_DEFAULT_LISTS: Final = {"cleanup.policy": "delete"}
"""Inherited values of lists that are not set."""


def alter_configs(cluster: ModelCluster, step: AlterConfigs) -> Expectation:
    """Replace all settings of the topic; those that are not named are inherited again."""
    if error := _resource_error(cluster, step.resource_type, step.topic):
        return {"error": error}
    return _altered(cluster, step, {name: value or "" for name, value in step.configs})


def _resource_error(cluster: ModelCluster, resource_type: ResourceType, topic: str) -> str | None:
    if resource_type is ResourceType.UNKNOWN:
        return "INVALID_REQUEST"
    return None if topic in cluster.topics else _UNKNOWN


def _altered(cluster: ModelCluster, step: IncrementalAlterConfigs | AlterConfigs, to: Mapping[str, str]) -> Expectation:
    if BAD_SETTINGS & set(to.items()):
        return {"error": "INVALID_CONFIG"}
    if not step.validate_only:
        cluster.topics[step.topic].properties = dict(to)
    return {"error": "NONE"}


def describe_configs(cluster: ModelCluster, step: DescribeConfigs) -> Expectation:
    """Return the topic's own settings with their values, the names of inherited ones, and of those with documentation.

    If the step describes the broker, too, every inherited setting must be the broker's, and every default Kafka's.
    """
    if error := _resource_error(cluster, step.resource_type, step.topic):
        return {"error": error}
    if step.broker is not None:
        return {"error": "NONE", "not_inherited": (), "other_defaults": (), "other_types": ()}
    own = cluster.topics[step.topic].properties
    known = sorted(name for name in step.names if name != "no.such.property")
    return {
        "error": "NONE",
        "set": tuple((name, own[name]) for name in known if name in own),
        "inherited": tuple(name for name in known if name not in own),
        "synonyms_in_order": True,
        "as_created": "as created",
        "documented": tuple(known) if step.with_documentation else (),
    }


def list_config_resources(_cluster: ModelCluster, _step: ListConfigResources) -> Expectation:
    """Return that exactly the resources that exist are listed."""
    return {"differences": ()}
