"""Conversion of the responses of the admin APIs to plain values, which requirements compare."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from conformance.sequential.inheritance_rules import (
    TOPIC_CONFIG,
    WITH_SEVERAL_SYNONYMS,
    is_same_value,
    not_inherited,
    other_defaults,
    other_types,
    source_name,
)
from conformance.sequential.real_values import Comparison
from conformance.sequential.response import NO_OPERATIONS, Response, Symbols, error_of, only_partition, racks
from conformance.sequential.steps import (
    AlterClientQuotas,
    AlterConfigs,
    AlterReassignment,
    AlterScramCredential,
    CreatePartitions,
    DescribeClientQuotas,
    DescribeCluster,
    DescribeConfigs,
    DescribeLogDirs,
    DescribeQuorum,
    DescribeScramCredentials,
    DescribeTopicPartitions,
    ElectLeaders,
    IncrementalAlterConfigs,
    ListReassignments,
    ResourceType,
    Step,
)


def places(brokers: Sequence[Any], symbols: Symbols) -> tuple[int, ...]:
    """Return the place of each broker among the target's brokers (see `steps`), in the same order."""
    return tuple(symbols.place(int(broker)) for broker in brokers)


def partition_state(partition: Any, symbols: Symbols) -> tuple[int, int, tuple[int, ...], tuple[int, ...]]:
    """Return the index, the leader, the replicas in their order, and the sorted ISR of a partition in a response."""
    in_sync = tuple(sorted(places(partition.isr_nodes, symbols)))
    leader = symbols.place(int(partition.leader_id))
    return int(partition.partition_index), leader, places(partition.replica_nodes, symbols), in_sync


def topic_state(topics: Sequence[Any], symbols: Symbols) -> Response:
    """Return the partitions of one topic in a Metadata response, in the order of their indexes."""
    partitions = sorted((part for topic in topics for part in topic.partitions), key=lambda part: part.partition_index)
    return {
        "partitions": tuple(partition_state(partition, symbols) for partition in partitions),
        "leader_epochs": tuple(int(partition.leader_epoch) for partition in partitions),
        "offline_replicas": sum(len(partition.offline_replicas) for partition in partitions),
    }


def placement(topics: Sequence[Any], brokers: int) -> Response:
    """Return the numbers of replicas, whether those of a partition are distinct, and how unevenly they are spread.

    The unevenness is the maximum per broker minus the minimum per broker.
    """
    partitions = [part for topic in topics for part in topic.partitions]
    return {
        "replication_factors": tuple(sorted({len(part.replica_nodes) for part in partitions})),
        "replicas_are_distinct": all(len(set(p.replica_nodes)) == len(p.replica_nodes) for p in partitions),
        "leaders_unevenness": _unevenness((part.leader_id for part in partitions), brokers),
        "replicas_unevenness": _unevenness((node for part in partitions for node in part.replica_nodes), brokers),
    }


def _unevenness(node_ids: Iterable[int], brokers: int) -> int:
    counts = Counter(node_ids)
    fewest = min(counts.values()) if len(counts) == brokers else 0
    return max(counts.values(), default=0) - fewest


def _only_result(results: Sequence[Any]) -> Response:
    if len(results) != 1:
        return {"malformed": f"{len(results)} results in the response, where one was requested"}
    return {"error": error_of(results[0].error_code)}


def _create_partitions(_step: Step, response: Any, _symbols: Symbols) -> Response:
    return _only_result(response.results)


def _alter_reassignment(step: Step, response: Any, symbols: Symbols) -> Response:
    if error_of(response.error_code) != "NONE":
        return {"error": error_of(response.error_code)}
    partition = only_partition(step, response.responses, symbols)
    return {"error": error_of(partition.error_code)}


def _list_reassignments(step: ListReassignments, response: Any, symbols: Symbols) -> Response:
    ongoing = _partitions(step, response.topics, symbols)
    return {
        "error": error_of(response.error_code),
        "ongoing": tuple(
            (
                int(partition.partition_index),
                places(partition.replicas, symbols),
                places(partition.adding_replicas, symbols),
                places(partition.removing_replicas, symbols),
            )
            for partition in ongoing
        ),
    }


def _partitions(step: ListReassignments | DescribeLogDirs, topics: Any, symbols: Symbols) -> list[Any]:
    """Return the partitions in a response; only the step's partition, if all topics were requested."""
    return [
        partition
        for topic in topics
        for partition in topic.partitions
        if not step.of_all_topics
        or (symbols.script_name(topic.name), partition.partition_index) == (step.topic, step.partition)
    ]


def _elect_leaders(step: Step, response: Any, symbols: Symbols) -> Response:
    if hasattr(response, "error_code") and error_of(response.error_code) != "NONE":
        return {"error": error_of(response.error_code)}
    partition = only_partition(step, response.replica_election_results, symbols, "partition_result")
    return {"error": error_of(partition.error_code)}


def _alter_configs(_step: Step, response: Any, _symbols: Symbols) -> Response:
    return _only_result(response.responses)


def _describe_configs(step: DescribeConfigs, response: Any, symbols: Symbols) -> Response:
    if step.broker is not None:
        return _describe_configs_with_broker(response)
    values = _only_result(response.results)
    if values.get("error") != "NONE":
        return values
    configs = sorted(response.results[0].configs, key=lambda config: str(config.name))
    own = [config for config in configs if config.config_source == TOPIC_CONFIG]
    return {
        "error": "NONE",
        "set": tuple((config.name, config.value) for config in own),
        "inherited": tuple(config.name for config in configs if config not in own),
        "synonyms_in_order": all(_has_synonyms_in_order(config) for config in configs),
        **_documented(configs),
        "as_created": _as_created(configs, symbols.created_configs(step.topic), symbols.config_error(step.topic)),
    }


def _documented(configs: Sequence[Any]) -> Response:
    """Return the names of the settings that have documentation, in the versions that can have it."""
    if not all(hasattr(config, "documentation") for config in configs):
        return {}
    return {"documented": tuple(config.name for config in configs if config.documentation)}


def _as_created(described: Sequence[Any], created: Mapping[str, Any], error_code: int) -> Comparison:
    """Compare the inherited settings with those in the CreateTopics response of the topic, if it had any (KIP-525).

    CreateTopics returns an error code in place of the settings if the client is not authorised to describe them. Here
    it is a difference, because DescribeConfigs returned the settings to the same client. A setting that the topic had
    at its creation may have been removed since then. Sources are compared only of settings that have one synonym.
    """
    if error_code:
        return Comparison("others", f"DescribeConfigs returned the settings, CreateTopics error code {error_code}")
    inherited = [config for config in described if config.config_source != TOPIC_CONFIG] if created else []
    pairs = [(config, created.get(config.name)) for config in inherited]
    differences = [
        f"{config.name}: DescribeConfigs returned {_shown(config)}, CreateTopics {_shown(at_creation)}"
        for config, at_creation in pairs
        if _shown(config) != _shown(at_creation) and (at_creation is None or at_creation.config_source != TOPIC_CONFIG)
    ]
    return Comparison("others", "; ".join(differences)) if differences else Comparison("as created")


def _shown(config: Any) -> str:
    if config is None:
        return "nothing"
    flags = [name for name in ("read_only", "is_sensitive") if getattr(config, name)]
    source = () if config.name in WITH_SEVERAL_SYNONYMS else (source_name(config),)
    return " ".join([str(config.value), *source, *flags])


def _describe_configs_with_broker(response: Any) -> Response:
    """Return how the settings of a topic differ from those of the broker.

    If the response has an error for the topic or for the broker, return only the topic's error code. A client may not
    be authorised to describe the broker, which is no deviation.
    """
    results = {int(result.resource_type): result for result in response.results}
    if len(response.results) != len(results) or results.keys() != {ResourceType.TOPIC, ResourceType.BROKER}:
        return {
            "malformed": f"{len(response.results)} results in the response, where a topic and a broker were requested"
        }
    topic, broker = results[ResourceType.TOPIC], results[ResourceType.BROKER]
    error = error_of(topic.error_code)
    if error != "NONE" or error_of(broker.error_code) != "NONE":
        return {"error": error}
    return {
        "error": error,
        "not_inherited": not_inherited(topic.configs, broker.configs),
        "other_defaults": other_defaults(topic.configs, broker.configs),
        "other_types": other_types(topic.configs),
    }


def _has_synonyms_in_order(config: Any) -> bool:
    """Whether value and source are those of the first synonym, and the synonyms are in order of precedence (KIP-226).

    A setting may have no synonyms, unless the topic sets it: the broker's configuration need not have a value for it.
    """
    sources = [synonym.source for synonym in config.synonyms]
    if not sources:
        return bool(config.config_source != TOPIC_CONFIG)
    first = config.synonyms[0]
    is_effective = is_same_value(first.value, config.value) and first.source == config.config_source
    return is_effective and sources == sorted(sources)


def _alter_client_quotas(_step: Step, response: Any, _symbols: Symbols) -> Response:
    return _only_result(response.entries)


def _describe_client_quotas(step: DescribeClientQuotas, response: Any, symbols: Symbols) -> Response:
    """Return the quotas of the requested client id, and the number of entries of other entities."""
    if error_of(response.error_code) != "NONE":
        return {"error": error_of(response.error_code)}
    wanted = [("client-id", symbols.real(step.client))]
    entries = [
        ([(part.entity_type, part.entity_name) for part in entry.entity], entry.values)
        for entry in response.entries or ()
    ]
    quotas = sorted(
        (value.key, float(value.value)) for entity, values in entries for value in values if entity == wanted
    )
    others = sum(entity != wanted for entity, _ in entries)
    return {"error": "NONE", "quotas": tuple(quotas), "others": others}


def _alter_scram_credential(step: AlterScramCredential, response: Any, symbols: Symbols) -> Response:
    return _result_of_user(step.user, response.results, symbols)


def _describe_scram_credentials(step: DescribeScramCredentials, response: Any, symbols: Symbols) -> Response:
    if error_of(response.error_code) != "NONE":
        return {"error": error_of(response.error_code)}
    infos = (each for result in response.results for each in result.credential_infos)
    credentials = tuple(sorted((int(each.mechanism), int(each.iterations)) for each in infos))
    return {**_result_of_user(step.user, response.results, symbols), "credentials": credentials}


def _result_of_user(user: str, results: Sequence[Any], symbols: Symbols) -> Response:
    result = _only_result(results)
    if "error" in result and results[0].user != symbols.real(user):
        return {"malformed": f"a result about {results[0].user}, where one about {symbols.real(user)} was requested"}
    return result


def _describe_topic_partitions(_step: Step, response: Any, symbols: Symbols) -> Response:
    topics = [(symbols.script_name(topic.name or ""), topic) for topic in response.topics]
    cursor = response.next_cursor
    return {
        "topics": tuple((name, error_of(topic.error_code)) for name, topic in topics),
        "topic_ids": tuple(symbols.saw_topic_id(name, topic.topic_id) for name, topic in topics),
        "internal": any(topic.is_internal for _, topic in topics),
        "listed": tuple((name, int(part.partition_index)) for name, topic in topics for part in topic.partitions),
        "next": None if cursor is None else (symbols.script_name(cursor.topic_name), int(cursor.partition_index)),
        "partitions": tuple(partition_state(part, symbols) for _, topic in topics for part in topic.partitions),
        "leader_epochs": tuple(int(part.leader_epoch) for _, topic in topics for part in topic.partitions),
    }


def _describe_log_dirs(step: DescribeLogDirs, response: Any, symbols: Symbols) -> Response:
    directories = list(response.results)
    errors = {error_of(directory.error_code) for directory in directories}
    replicas = [found for directory in directories for found in _partitions(step, directory.topics, symbols)]
    values: dict[str, Any] = {
        "error": min(errors - {"NONE"}, default="NONE"),
        "replicas": len(replicas),
        "has_bytes": any(replica.partition_size > 0 for replica in replicas),
        "offset_lag": sum(int(replica.offset_lag) for replica in replicas),
        "is_future": any(replica.is_future_key for replica in replicas),
    }
    fetched_bytes = symbols.log_size(step)
    if fetched_bytes is None or not replicas:
        return values
    return values | {"size": _compared_size(replicas, fetched_bytes)}


def _compared_size(replicas: Sequence[Any], fetched_bytes: int) -> Comparison:
    """Compare the sizes of replicas with the size of the log that Fetch returned."""
    others = [str(int(replica.partition_size)) for replica in replicas if replica.partition_size != fetched_bytes]
    if not others:
        return Comparison("as fetched")
    return Comparison("another", f"Fetch returned {fetched_bytes} bytes, DescribeLogDirs {', '.join(others)}")


def _describe_quorum(step: Step, response: Any, symbols: Symbols) -> Response:
    if error_of(response.error_code) != "NONE":
        return {"error": error_of(response.error_code)}
    partition = only_partition(step, response.topics, symbols)
    if error_of(partition.error_code) != "NONE":
        return {"error": error_of(partition.error_code)}
    end_offsets = {int(voter.replica_id): int(voter.log_end_offset) for voter in partition.current_voters}
    leader_end_offset = end_offsets.get(int(partition.leader_id), 0)
    listed = Counter(map(_replica, (*partition.current_voters, *partition.observers)))
    values = {
        "error": "NONE",
        "leader_is_voter": int(partition.leader_id) in end_offsets,
        "has_epoch": int(partition.leader_epoch) > 0,
        "high_watermark_is_reached": 0 < int(partition.high_watermark) <= leader_end_offset,
        "leader_log_is_longest": max(end_offsets.values(), default=0) <= leader_end_offset,
        "listed_twice": tuple(sorted(replica_id for (replica_id, _), count in listed.items() if count > 1)),
        "every_broker": {replica_id for replica_id, _ in listed}.issuperset(symbols.brokers),
    }
    if hasattr(response, "nodes"):  # the endpoints of the voters
        values["nodes_vote"] = sorted(end_offsets) == sorted(int(node.node_id) for node in response.nodes)
    return values


def _replica(state: Any) -> tuple[int, Any]:
    """Return the id of a voter or an observer and, in the versions that have it, of its directory (KIP-853)."""
    return int(state.replica_id), getattr(state, "replica_directory_id", None)


def _describe_cluster(_step: Step, response: Any, symbols: Symbols) -> Response:
    error = error_of(response.error_code)
    if error != "NONE":
        return {"error": error}
    brokers = {int(broker.broker_id) for broker in response.brokers}
    return {
        "error": error,
        "cluster_id": symbols.saw_cluster_id(response.cluster_id),
        "racks": racks(response.brokers, symbols),
        "every_broker": brokers == set(symbols.brokers),
        "addresses": all(symbols.is_address(int(b.broker_id), b.host, b.port) for b in response.brokers),
        "controller_is_broker": int(response.controller_id) in brokers,
        "operations": int(response.cluster_authorized_operations) != NO_OPERATIONS,
    }


NORMALISERS: Final[Mapping[type[Step], Callable[[Any, Any, Symbols], Response]]] = {
    CreatePartitions: _create_partitions,
    AlterReassignment: _alter_reassignment,
    ListReassignments: _list_reassignments,
    ElectLeaders: _elect_leaders,
    IncrementalAlterConfigs: _alter_configs,
    AlterConfigs: _alter_configs,
    DescribeConfigs: _describe_configs,
    AlterScramCredential: _alter_scram_credential,
    DescribeScramCredentials: _describe_scram_credentials,
    AlterClientQuotas: _alter_client_quotas,
    DescribeClientQuotas: _describe_client_quotas,
    DescribeTopicPartitions: _describe_topic_partitions,
    DescribeLogDirs: _describe_log_dirs,
    DescribeQuorum: _describe_quorum,
    DescribeCluster: _describe_cluster,
}
