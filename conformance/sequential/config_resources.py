"""Comparison of the resources that ListConfigResources returns with those that the cluster has (KIP-1000, KIP-1142).

Topics and brokers are those of Metadata. Client metrics and groups are resources only if settings were made for them.
Types that the broker does not list are not compared.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Final

from kio.schema.errors import ErrorCode

from fixtures.clients.messages import ApiKey
from fixtures.clients.raw import RawClient
from fixtures.clients.requests import fitted, metadata

_TYPES: Final = {2: "topic", 4: "broker", 8: "broker logger", 16: "client metrics", 32: "group"}
_TOPIC, _BROKER, _LOGGER, _METRICS, _GROUP = _TYPES
_OWN: Final = {_METRICS: 7, _GROUP: 8}
"""For the types of resources that exist only while they have settings, the `ConfigSource` of these settings."""
_DESCRIBED_MAX: Final = 100
"""Maximum number of listed resources whose settings are described."""

_Resource = tuple[int, str]


def differences(client: RawClient, metrics: Collection[str]) -> Iterator[str]:
    """Yield a text for each resource that is listed wrongly.

    Such a resource exists and is not listed, is listed and does not exist, is listed twice, or has a type that was not
    requested. Other clients may create and delete topics meanwhile, so a script repeats the step (`Eventually`). Raises
    `UnsupportedApi` if the broker does not offer the API.

    :param metrics: names of client metrics that may exist.
    """
    requested: list[tuple[int, tuple[int, ...]]] = [(0, ())]
    if client.version_for(ApiKey.LIST_CONFIG_RESOURCES) > 0:
        requested += [(1, ()), *((1, (type_,)) for type_ in _TYPES)]
    existing = _existing(client) | _with_settings(client, [(_METRICS, name) for name in metrics])
    for version, types in requested:
        listed = _listed(client, version, types)
        if listed is None:
            continue
        wanted = types or (_TYPES if version else (_METRICS,))
        yield from (f"{_words(one)} is listed {count} times" for one, count in listed.items() if count > 1)
        yield from (f"{_words(one)} is not listed" for one in sorted(existing - {*listed}) if one[0] in wanted)
        yield from (f"{_words(one)} is listed unrequested" for one in sorted({*listed}) if one[0] not in wanted)
        for one in _nonexistent(client, sorted({*listed} - existing)):
            yield f"{_words(one)} is listed, but does not exist"


def _words(resource: _Resource) -> str:
    return f"{_TYPES.get(resource[0], f'resource of type {resource[0]}')} {resource[1]}"


def _listed(client: RawClient, version: int, types: tuple[int, ...]) -> Counter[_Resource] | None:
    """Return the number of times that each resource is listed; None after an error."""
    schema = client.schema_for(ApiKey.LIST_CONFIG_RESOURCES, version)
    response = client.request(fitted(schema.ListConfigResourcesRequest, resource_types=types))
    if response.error_code != ErrorCode.none:
        return None
    found = response.config_resources
    return Counter((int(getattr(each, "resource_type", _METRICS)), str(each.resource_name)) for each in found)


def _existing(client: RawClient) -> set[_Resource]:
    """Return the topics, brokers and broker loggers."""
    described = _metadata(client, None)
    brokers = {(type_, str(each.node_id)) for each in described.brokers for type_ in (_BROKER, _LOGGER)}
    return brokers | {(_TOPIC, str(each.name)) for each in described.topics}


def _nonexistent(client: RawClient, listed: Iterable[_Resource]) -> Iterator[_Resource]:
    """Yield the listed resources that do not exist. A topic may exist although Metadata lists only others."""
    topics = [name for type_, name in listed if type_ == _TOPIC]
    described = _metadata(client, topics).topics if topics else ()
    unknown = {each.name for each in described if each.error_code == ErrorCode.unknown_topic_or_partition}
    by_settings = [one for one in listed if one[0] in _OWN][:_DESCRIBED_MAX]
    without_settings = {*by_settings} - _with_settings(client, by_settings)
    for type_, name in listed:
        is_broker = type_ in {_BROKER, _LOGGER} and name
        if is_broker or (type_ == _TOPIC and name in unknown) or (type_, name) in without_settings:
            yield type_, name


def _metadata(client: RawClient, topics: Sequence[str] | None) -> Any:
    return client.request(metadata(client.schema_for(ApiKey.METADATA), topics))


def _with_settings(client: RawClient, resources: Iterable[_Resource]) -> set[_Resource]:
    """Return those of these client metrics and groups for which settings were made."""
    schema = client.schema_for(ApiKey.DESCRIBE_CONFIGS)
    described = tuple(
        fitted(schema.DescribeConfigsResource, resource_type=type_, resource_name=name, configuration_keys=None)
        for type_, name in resources
    )
    if not described:
        return set()
    results = client.request(fitted(schema.DescribeConfigsRequest, resources=described)).results
    return {
        (int(each.resource_type), str(each.resource_name))
        for each in results
        if any(config.config_source == _OWN[int(each.resource_type)] for config in each.configs)
    }
