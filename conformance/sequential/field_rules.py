"""Rules that the fields of every response must follow, in each version that has the fields.

Each rule is about one element of a response. Fields that a version lacks are not judged. The brokers of a topic
are judged only if the topic belongs to the script: other topics may have replicas on brokers that are down.
"""

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from datetime import timedelta
from typing import Any, Final

from kio.schema.errors import ErrorCode

from conformance.sequential.response import DESCRIBE, NO_OPERATIONS, TOPIC_NAMES, Symbols, first_field

_NONE: Final = -1
"""Kafka's value for no broker, no epoch and no offset."""
_BOOLEAN: Final = 1
_DOUBLE: Final = 6
_PASSWORD: Final = 9
_INTEGERS: Final = frozenset({3, 4, 5})
"""`ConfigType` of INT, SHORT and LONG in a DescribeConfigs response (KIP-569)."""
_TOPIC_RESOURCE: Final = 2


def invalid_fields(request: Mapping[str, Any], response: Any, symbols: Symbols) -> tuple[str, ...]:
    """Return the fields of a response that break a rule, with their values; empty if all are valid."""
    found = [*_invalid(response, symbols, _brokers(response, symbols)), *_not_requested(request, response)]
    return tuple(dict.fromkeys(found))


def _brokers(response: Any, symbols: Symbols) -> frozenset[int]:
    """Return the target's brokers, those that the response lists, and the id for none."""
    listed = getattr(response, "brokers", ())
    return frozenset({_NONE, *symbols.brokers, *(first_field(each, ("node_id", "broker_id")) for each in listed)})


def _invalid(value: Any, symbols: Symbols, brokers: frozenset[int]) -> Iterator[str]:
    """Yield the fields of an element, and of the elements in it, that break a rule."""
    if isinstance(value, tuple):
        for inner in value:
            yield from _invalid(inner, symbols, brokers)
    elif is_dataclass(value) and not _is_other_topic(value, symbols):
        yield from _out_of_range(value)
        yield from _address(value, symbols)
        yield from _unknown_brokers(value, brokers)
        yield from _replicas(value)
        yield from _config(value)
        yield from _operations(value)
        yield from _features(value)
        for item in fields(value):
            yield from _invalid(getattr(value, item.name), symbols, brokers)


def _is_other_topic(value: Any, symbols: Symbols) -> bool:
    name = first_field(value, TOPIC_NAMES)
    return bool(name) and hasattr(value, "partitions") and symbols.script_name(name) is None


def _out_of_range(value: Any) -> Iterator[str]:
    """Yield times below 0, epochs and sizes below -1, empty paths, and usable bytes above the total (KIP-827)."""
    throttled = getattr(value, "throttle_time", timedelta(0))
    if throttled < timedelta(0):
        yield f"throttle_time_ms {throttled // timedelta(milliseconds=1)}"
    for name in ("finalized_features_epoch", "leader_epoch", "partition_size", "total_bytes", "usable_bytes"):
        if (number := getattr(value, name, _NONE)) < _NONE:
            yield f"{name} {number}"
    if getattr(value, "log_dir", None) == "" and not _has_failed(value):
        yield "log_dir ''"
    if getattr(value, "usable_bytes", _NONE) > getattr(value, "total_bytes", _NONE):
        yield f"usable_bytes {value.usable_bytes} of total_bytes {value.total_bytes}"


def _address(value: Any, symbols: Symbols) -> Iterator[str]:
    """Yield the address of a broker or coordinator if it is not the client address of that broker of the target."""
    broker = first_field(value, ("node_id", "broker_id"))
    is_named = broker in symbols.brokers and hasattr(value, "host") and not _has_failed(value)
    if is_named and not symbols.is_address(int(broker), value.host, int(value.port)):
        yield f"address {value.host}:{value.port} of broker {symbols.place(int(broker))}"


def _has_failed(value: Any) -> bool:
    return bool(getattr(value, "error_code", ErrorCode.none) != ErrorCode.none)


def _unknown_brokers(value: Any, brokers: frozenset[int]) -> Iterator[str]:
    """Yield leaders, controllers, coordinators and replicas that are not brokers of the cluster."""
    for name in ("leader_id", "controller_id", "node_id", "preferred_read_replica"):
        if (broker := getattr(value, name, _NONE)) not in brokers:
            yield f"{name} {broker}, which is no broker"
    for name in ("replica_nodes", "isr_nodes", "offline_replicas", "eligible_leader_replicas", "last_known_elr"):
        for broker in getattr(value, name, None) or ():
            if broker not in brokers:
                yield f"{name} {broker}, which is no broker"


def _replicas(value: Any) -> Iterator[str]:
    """Yield contradictions between a partition's replicas, leader, ISR, offline and eligible replicas (KIP-966)."""
    if not hasattr(value, "replica_nodes") or not hasattr(value, "isr_nodes"):
        return
    replicas, in_sync = set(value.replica_nodes), set(value.isr_nodes)
    if len(replicas) < len(value.replica_nodes):
        yield f"replica_nodes {value.replica_nodes}, of which one is repeated"
    if value.leader_id not in {_NONE, *in_sync}:
        yield f"leader_id {value.leader_id}, which is not in isr_nodes"
    for name in ("isr_nodes", "offline_replicas", "eligible_leader_replicas"):
        if others := {*(getattr(value, name, None) or ())} - replicas:
            yield f"{name} {sorted(others)}, which are not in replica_nodes"
    if eligible := {*(getattr(value, "eligible_leader_replicas", None) or ())} & in_sync:
        yield f"eligible_leader_replicas {sorted(eligible)}, which are in isr_nodes"


def _config(value: Any) -> Iterator[str]:
    """Yield settings of a wrong type, secrets with a value, and read-only settings of a topic (KIP-133, KIP-569)."""
    for config in getattr(value, "configs", None) or ():
        if not hasattr(config, "is_sensitive"):
            return
        kind = int(config.config_type) if hasattr(config, "config_type") else _NONE
        is_secret = config.is_sensitive or kind == _PASSWORD
        if is_secret and config.value is not None:
            yield f"{config.name}, which is_sensitive, with its value"
        elif config.value is not None and not _has_type(config.value, kind):
            yield f"{config.name} = {config.value} with config_type {kind}"
        if config.read_only and getattr(value, "resource_type", _TOPIC_RESOURCE) == _TOPIC_RESOURCE:
            yield f"{config.name} of a topic with read_only"


def _features(value: Any) -> Iterator[str]:
    """Yield empty ranges of features, and finalized levels outside the supported range (KIP-584)."""
    supported = {each.name: each for each in getattr(value, "supported_features", ())}
    for each in supported.values():
        if each.min_version > each.max_version:
            yield f"{each.name} supported from {each.min_version} to {each.max_version}"
    for feature in getattr(value, "finalized_features", ()):
        found = supported.get(feature.name)
        if found and not found.min_version <= feature.max_version_level <= found.max_version:
            range_ = f"{found.min_version} to {found.max_version}"
            yield f"{feature.name} finalized at {feature.max_version_level}, of {range_}"


def _operations(value: Any) -> Iterator[str]:
    """Yield permitted operations of a topic or group that lack DESCRIBE, although it is described (KIP-430)."""
    for name in ("topic_authorized_operations", "authorized_operations"):
        found = getattr(value, name, NO_OPERATIONS)
        if found != NO_OPERATIONS and not found & DESCRIBE and not _has_failed(value):
            yield f"{name} {found}, without DESCRIBE"


def _has_type(text: str, kind: int) -> bool:
    if kind == _BOOLEAN:
        return text in {"true", "false"}
    try:
        if kind in _INTEGERS:
            int(text)
        if kind == _DOUBLE:
            float(text)
    except ValueError:
        return False
    return True


def _not_requested(request: Mapping[str, Any], response: Any) -> Iterator[str]:
    """Yield the content of a response that the request does not request.

    By its fields, a raw request requests a session, aborted transactions, fenced brokers, an endpoint type, resources
    and permitted operations. It has neither a rack nor the epoch of a last fetched record, so content for racks and for
    followers is never requested.
    """
    yield from _unrequested_operations(request, response)
    yield from _unrequested_resources(request, response)
    wanted: Any = request.get("endpoint_type", 1)
    if (endpoint_type := getattr(response, "endpoint_type", wanted)) != wanted:
        yield f"endpoint_type {endpoint_type}"
    for broker in getattr(response, "brokers", ()):
        if getattr(broker, "is_fenced", False) and not request.get("include_fenced_brokers"):
            yield f"broker {broker.broker_id} with is_fenced"
    session: Any = getattr(response, "session_id", 0)
    if session != 0 and not {"session_id", "session_epoch"} & request.keys():
        yield f"session_id {session} without a session"
    partitions = [part for topic in getattr(response, "responses", ()) for part in getattr(topic, "partitions", ())]
    for part in partitions:
        if getattr(part, "preferred_read_replica", _NONE) != _NONE:
            yield f"preferred_read_replica {part.preferred_read_replica} without a rack"
        if getattr(part, "aborted_transactions", None) and not request.get("isolation_level"):
            yield "aborted_transactions for uncommitted reads"
        for name in ("diverging_epoch", "snapshot_id"):
            if (found := getattr(part, name, None)) and (found.epoch, found.end_offset) != (_NONE, _NONE):
                yield f"{name} {found.epoch} to {found.end_offset} for a consumer"


def _unrequested_resources(request: Mapping[str, Any], response: Any) -> Iterator[str]:
    """Yield types of resources, synonyms and documentation that are not requested (KIP-133, KIP-226, KIP-569)."""
    wanted = {each["resource_type"] for each in request.get("resources", ()) if "resource_type" in each}
    for resource in (*getattr(response, "results", ()), *getattr(response, "responses", ())):
        kind: Any = getattr(resource, "resource_type", None)
        if wanted and kind is not None and kind not in wanted:
            yield f"resource_type {kind}"
        for config in getattr(resource, "configs", None) or ():
            if getattr(config, "documentation", None) and request.get("include_documentation") is False:
                yield f"{config.name} with documentation"
            if getattr(config, "synonyms", None) and request.get("include_synonyms") is False:
                yield f"{config.name} with synonyms"


def _unrequested_operations(request: Mapping[str, Any], response: Any) -> Iterator[str]:
    """Yield permitted operations that the request excludes by a field that is false (KIP-430)."""
    described = (*getattr(response, "topics", ()), *getattr(response, "groups", ()))
    for element, name, flag in (
        (response, "cluster_authorized_operations", "include_cluster_authorized_operations"),
        *((topic, "topic_authorized_operations", "include_topic_authorized_operations") for topic in described),
        *((group, "authorized_operations", "include_authorized_operations") for group in described),
    ):
        found = getattr(element, name, NO_OPERATIONS)
        if found != NO_OPERATIONS and request.get(flag) is False:
            yield f"{name} {found} without {flag}"
