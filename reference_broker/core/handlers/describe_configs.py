"""DescribeConfigs (32), versions 1-4: effective configuration values and their sources.

Follows: kafka.server.ConfigHelper (KIP-133, KIP-226, KIP-569).

- For a topic, the response has all of Kafka's topic properties. A value is the topic's own (source 1), the broker's
  (2-4) or the default (5). Invalid name: INVALID_TOPIC_EXCEPTION(17). Unknown topic: UNKNOWN_TOPIC_OR_PARTITION(3).
- For a broker resource with the id of this broker, the response has the properties that this broker uses, and all that
  were set dynamically. Another broker's id: INVALID_REQUEST(42). For the empty id, the response has the dynamic
  defaults of all brokers.
- The value of a property that this broker does not know is omitted, since it may be a secret.
- If synonyms are requested, each property has every source with a value, and the effective source is the first
  (KIP-226). From version 3 each property has its type and, if it is requested, its documentation (KIP-569).
- A resource that occurs again in the request: INVALID_REQUEST(42). Kafka describes it again.
- An unknown resource type: INVALID_REQUEST(42) for the whole request.

Gaps: the properties of brokers have no documentation; groups, client metrics and loggers have no properties.
"""

from collections.abc import Callable, Collection, Iterable
from functools import cache, partial
from typing import Any

from reference_broker.core.broker import Broker
from reference_broker.core.clock import Now
from reference_broker.core.configuration.configuration import ConfigEntry
from reference_broker.core.configuration.documentation import TOPIC_DOCUMENTATION
from reference_broker.core.configuration.key import ConfigSource, canonical
from reference_broker.core.configuration.keys import BROKER_CONFIG_KEYS, DYNAMIC_BROKER_CONFIGS, TOPIC_CONFIG_KEYS
from reference_broker.core.configuration.resource import ResourceType, parse_node_id
from reference_broker.core.controller.errors import ControllerError
from reference_broker.core.request import Request
from reference_broker.core.topic_names import illegal_topic_name
from reference_broker.protocol.encoding import SharedArray
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.steps import Pace, Steps

_WITHOUT_PROPERTIES = {8, 16, 32}
"""Loggers, client metrics and groups."""
_UNKNOWN_TYPE = 0
_MALFORMED = (
    "This most likely occurs because of a request being malformed by the client library or the message was sent to an "
    "incompatible broker. See the broker logs for more details."
)
_REPEATED = "Each resource must appear at most once."

TopicConfigs = Callable[[tuple[tuple[str, str], ...], frozenset[str]], tuple[Any, ...]]
"""Takes the overrides of a topic, and property names. Returns the properties with these names; all for an empty set."""


def handle(broker: Broker, request: Request, now: Now) -> Steps[Any]:
    """Describe the properties of each resource, and reject repeated resources."""
    resources = request.body.resources
    known_types = {*ResourceType, *_WITHOUT_PROPERTIES}
    is_malformed = any(resource.resource_type not in known_types for resource in resources)
    described: set[tuple[int, str]] = set()
    results = []
    topic_configs = cache(partial(_topic_configs, broker, request))
    pace = Pace()
    for resource in resources:
        if pace.is_due():
            yield
        key = resource.resource_type, resource.resource_name
        if is_malformed or key in described:
            message = _MALFORMED if is_malformed else _REPEATED
            result = _error_result(request, resource, ControllerError(ErrorCode.invalid_request, message))
        else:
            described.add(key)
            result = _describe(broker, request, resource, topic_configs)
            pace.elements += len(result.configs)
        results.append(result)
    return request.replies.DescribeConfigsResponse(results=tuple(results))


def _describe(broker: Broker, request: Request, resource: Any, topic_configs: TopicConfigs) -> Any:
    try:
        configs = _properties(broker, request, resource, topic_configs)
    except ControllerError as error:
        return _error_result(request, resource, error)
    return request.replies.DescribeConfigsResult(
        error_code=ErrorCode.none,
        error_message="",
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=configs,
    )


def _error_result(request: Request, resource: Any, error: ControllerError) -> Any:
    return request.replies.DescribeConfigsResult(
        error_code=error.code,
        error_message=error.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=(),
    )


def _properties(broker: Broker, request: Request, resource: Any, topic_configs: TopicConfigs) -> tuple[Any, ...]:
    match resource.resource_type, resource.resource_name:
        case ResourceType.TOPIC, _:
            return _topic(broker, resource, topic_configs)
        case ResourceType.BROKER, "":
            return tuple(_cluster_wide(broker, request, resource))
        case ResourceType.BROKER, _:
            return tuple(_broker(broker, request, resource))
    return ()


def _topic(broker: Broker, resource: Any, topic_configs: TopicConfigs) -> tuple[Any, ...]:
    name = resource.resource_name
    reason = illegal_topic_name(name)
    if reason is not None:
        raise ControllerError(ErrorCode.invalid_topic_exception, reason)
    if name not in broker.image.topics:
        raise ControllerError(ErrorCode.unknown_topic_or_partition, "")
    overrides = tuple(broker.image.topic_overrides(name).items())
    return topic_configs(overrides, frozenset(resource.configuration_keys or ()))


def _topic_configs(
    broker: Broker, request: Request, overrides: tuple[tuple[str, str], ...], names: frozenset[str]
) -> tuple[Any, ...]:
    """Return the properties of a topic: those with these names, or all for an empty set.

    Topics with the same overrides share the result, so it is encoded once.
    """
    configuration = broker.configuration.topic(dict(overrides))
    return SharedArray(
        _entry(
            request,
            configuration.entry(key),
            configuration.synonyms(key),
            TOPIC_CONFIG_KEYS[key].type,
            read_only=False,
            documentation=TOPIC_DOCUMENTATION[key],
        )
        for key in _requested(names, TOPIC_CONFIG_KEYS)
    )


def _broker(broker: Broker, request: Request, resource: Any) -> Iterable[Any]:
    node_id = broker.identity.node_id
    requested_id = parse_node_id(resource.resource_name)
    if requested_id is None:
        message = f"Broker id must be an integer, but it is: {resource.resource_name}"
        raise ControllerError(ErrorCode.invalid_request, message)
    if requested_id != node_id:
        message = f"Unexpected broker id, expected {node_id} or empty string, but received {resource.resource_name}"
        raise ControllerError(ErrorCode.invalid_request, message)
    configuration = broker.configuration
    dynamic = (ConfigSource.DYNAMIC_BROKER, ConfigSource.DYNAMIC_DEFAULT_BROKER)
    names = {**BROKER_CONFIG_KEYS, **{name: None for source in dynamic for name in configuration.given(source)}}
    for name in _requested(resource.configuration_keys or (), names):
        yield _broker_entry(request, configuration.entry(name), configuration.synonyms(name))


def _cluster_wide(broker: Broker, request: Request, resource: Any) -> Iterable[Any]:
    source = ConfigSource.DYNAMIC_DEFAULT_BROKER
    given = broker.configuration.given(source)
    for name in _requested(resource.configuration_keys or (), given):
        entry = ConfigEntry(name, given[name], source)
        yield _broker_entry(request, entry, [entry])


def _requested(requested: Collection[str], names: Iterable[str]) -> Iterable[str]:
    """Return the elements of `names` that are requested; if no names are requested, return all."""
    wanted = set(requested)
    return [name for name in names if not wanted or name in wanted]


def _broker_entry(request: Request, entry: ConfigEntry, synonyms: list[ConfigEntry]) -> Any:
    key = BROKER_CONFIG_KEYS.get(entry.name)
    if key is None:
        hidden = [ConfigEntry(synonym.name, None, synonym.source) for synonym in synonyms]
        return _entry(request, hidden[0], hidden, _UNKNOWN_TYPE, read_only=True, is_sensitive=True)
    if entry.value is not None:
        entry = ConfigEntry(entry.name, canonical(key.parse(entry.value)), entry.source)
    return _entry(request, entry, synonyms, key.type, read_only=key.name not in DYNAMIC_BROKER_CONFIGS)


def _entry(
    request: Request,
    entry: ConfigEntry,
    synonyms: list[ConfigEntry],
    config_type: int,
    *,
    read_only: bool,
    is_sensitive: bool = False,
    documentation: str | None = None,
) -> Any:
    new = request.replies
    return new.DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=read_only,
        config_source=entry.source,
        is_sensitive=is_sensitive,
        synonyms=tuple(
            new.DescribeConfigsSynonym(name=synonym.name, value=synonym.value, source=synonym.source)
            for synonym in (synonyms if request.body.include_synonyms else ())
        ),
        config_type=config_type,
        documentation=documentation if getattr(request.body, "include_documentation", False) else None,
    )
