"""DescribeConfigs (32), versions 1-4: the properties in force, and where they come from (KIP-133, KIP-226).

- A topic: all of Kafka's properties, its own (source 1), the broker's (4) or the default (5). Illegal name
  INVALID_TOPIC_EXCEPTION(17), unknown topic UNKNOWN_TOPIC_OR_PARTITION(3).
- This broker, by its id: those that it heeds. The empty id asks for what is set dynamically for all brokers: nothing.
- Synonyms on demand: every source that has a value, the one in force first. Version 3 adds types (KIP-569).
- A resource of another type makes the whole request INVALID_REQUEST(42).

Gaps: no documentation texts; no properties of groups, client metrics and loggers.
"""

from collections.abc import Iterable
from typing import Any

from reference_broker.core.broker import Broker
from reference_broker.core.clock import Now
from reference_broker.core.configuration.configuration import ConfigEntry
from reference_broker.core.configuration.key import ConfigKey
from reference_broker.core.configuration.keys import BROKER_CONFIG_KEYS, DYNAMIC_BROKER_CONFIGS, TOPIC_CONFIG_KEYS
from reference_broker.core.configuration.resource import ResourceType
from reference_broker.core.controller import ControllerError
from reference_broker.core.request import Request
from reference_broker.core.topic_names import illegal_topic_name
from reference_broker.protocol.errors import ErrorCode


def handle(broker: Broker, request: Request, now: Now) -> Any:
    """The properties of each resource."""
    resources = request.body.resources
    if any(resource.resource_type not in set(ResourceType) for resource in resources):
        refused = ControllerError(ErrorCode.invalid_request, "Only topics and brokers have properties here.")
        results = tuple(_refused(request, resource, refused) for resource in resources)
    else:
        results = tuple(_describe(broker, request, resource) for resource in resources)
    return request.replies.DescribeConfigsResponse(results=results)


def _describe(broker: Broker, request: Request, resource: Any) -> Any:
    describe = _topic if resource.resource_type == ResourceType.TOPIC else _broker
    try:
        configs = tuple(describe(broker, request, resource))
    except ControllerError as error:
        return _refused(request, resource, error)
    return request.replies.DescribeConfigsResult(
        error_code=ErrorCode.none,
        error_message="",
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=configs,
    )


def _refused(request: Request, resource: Any, error: ControllerError) -> Any:
    return request.replies.DescribeConfigsResult(
        error_code=error.code,
        error_message=error.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=(),
    )


def _topic(broker: Broker, request: Request, resource: Any) -> Iterable[Any]:
    name = resource.resource_name
    reason = illegal_topic_name(name)
    if reason is not None:
        raise ControllerError(ErrorCode.invalid_topic_exception, reason)
    if name not in broker.image.topics:
        raise ControllerError(ErrorCode.unknown_topic_or_partition, "")
    configuration = broker.replicas.configuration(name)
    for key in _asked(resource, TOPIC_CONFIG_KEYS):
        yield _entry(request, key, configuration.entry(key.name), configuration.synonyms(key.name), read_only=False)


def _broker(broker: Broker, request: Request, resource: Any) -> Iterable[Any]:
    node_id = broker.identity.node_id
    if not resource.resource_name:
        return
    if not resource.resource_name.removeprefix("-").isdecimal():
        message = f"Broker id must be an integer, but it is: {resource.resource_name}"
        raise ControllerError(ErrorCode.invalid_request, message)
    if int(resource.resource_name) != node_id:
        message = f"Unexpected broker id, expected {node_id} or empty string, but received {resource.resource_name}"
        raise ControllerError(ErrorCode.invalid_request, message)
    for key in _asked(resource, BROKER_CONFIG_KEYS):
        entries = broker.configuration.entries(key.name)
        entry = broker.configuration.entry(key.name)
        yield _entry(request, key, entry, entries, read_only=key.name not in DYNAMIC_BROKER_CONFIGS)


def _asked(resource: Any, keys: dict[str, ConfigKey]) -> Iterable[ConfigKey]:
    """Those named, or all; names that do not exist are passed over."""
    names = resource.configuration_keys
    return [key for name, key in keys.items() if not names or name in names]


def _entry(
    request: Request, key: ConfigKey, entry: ConfigEntry, synonyms: list[ConfigEntry], *, read_only: bool
) -> Any:
    new = request.replies
    return new.DescribeConfigsResourceResult(
        name=key.name,
        value=entry.value,
        read_only=read_only,
        config_source=entry.source,
        is_sensitive=False,
        synonyms=tuple(
            new.DescribeConfigsSynonym(name=synonym.name, value=synonym.value, source=synonym.source)
            for synonym in (synonyms if request.body.include_synonyms else ())
        ),
        config_type=key.type,
        documentation=None,
    )
