"""Requests of the admin APIs, built from steps: the values of a message by its field names (see `layout.build`)."""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, Final

from conformance.sequential.inheritance_rules import BROKER_PROPERTIES
from conformance.sequential.layout import REQUEST_TIMEOUT_MS, Names, milliseconds
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
from fixtures.clients.messages import ApiKey

_TIMEOUT: Final = milliseconds(REQUEST_TIMEOUT_MS)
_EXACT: Final = 0
"""Match type of DescribeClientQuotas: only the entity with this name."""
_PASSWORD: Final = b"kafkatrial"
"""Password of the users of a script. No client authenticates with it."""


def _create_partitions(step: CreatePartitions, names: Names) -> dict[str, Any]:
    assignments = step.assignments
    topic = {
        "name": names.real(step.topic),
        "count": step.count,
        "assignments": None
        if assignments is None
        else [{"broker_ids": tuple(map(names.broker, brokers))} for brokers in assignments],
    }
    return {"topics": [topic], "timeout": _TIMEOUT, "validate_only": step.validate_only}


def _alter_reassignment(step: AlterReassignment, names: Names) -> dict[str, Any]:
    replicas = None if step.replicas is None else tuple(map(names.broker, step.replicas))
    partition = {"partition_index": step.partition, "replicas": replicas}
    topic = {"name": names.real(step.topic), "partitions": [partition]}
    return {"topics": [topic], "timeout": _TIMEOUT, "allow_replication_factor_change": step.allow_factor_change}


def _list_reassignments(step: ListReassignments, names: Names) -> dict[str, Any]:
    topic = {"name": names.real(step.topic), "partition_indexes": (step.partition,)}
    return {"topics": None if step.of_all_topics else [topic], "timeout": _TIMEOUT}


def _elect_leaders(step: ElectLeaders, names: Names) -> dict[str, Any]:
    topic = {"topic": names.real(step.topic), "partitions": (step.partition,)}
    return {"election_type": int(step.election), "topic_partitions": [topic], "timeout": _TIMEOUT}


def _resource(step: Any, names: Names, **parts: Any) -> dict[str, Any]:
    """Return the resource of a step about configurations, with further fields; `step.topic` is the resource's name."""
    return {"resource_type": int(step.resource_type), "resource_name": names.real(step.topic), **parts}


def _incremental_alter_configs(step: IncrementalAlterConfigs, names: Names) -> dict[str, Any]:
    configs = [
        {"name": name, "config_operation": int(operation), "value": value} for name, operation, value in step.changes
    ]
    return {"resources": [_resource(step, names, configs=configs)], "validate_only": step.validate_only}


def _alter_configs(step: AlterConfigs, names: Names) -> dict[str, Any]:
    configs = [{"name": name, "value": value} for name, value in step.configs]
    return {"resources": [_resource(step, names, configs=configs)], "validate_only": step.validate_only}


def _describe_configs(step: DescribeConfigs, names: Names) -> dict[str, Any]:
    resources = [_resource(step, names, configuration_keys=step.names)]
    if step.broker is not None:
        kind, name = int(ResourceType.BROKER), str(names.broker(step.broker))
        resources.append({"resource_type": kind, "resource_name": name, "configuration_keys": BROKER_PROPERTIES})
    return {"resources": resources, "include_synonyms": True, "include_documentation": step.with_documentation}


def _alter_client_quotas(step: AlterClientQuotas, names: Names) -> dict[str, Any]:
    ops = [{"key": key, "value": float(value or 0), "remove": value is None} for key, value in step.ops]
    entity = [{"entity_type": "client-id", "entity_name": names.real(step.client)}]
    if step.user is not None:
        entity.append({"entity_type": "user", "entity_name": names.real(step.user)})
    return {"entries": [{"entity": entity, "ops": ops}], "validate_only": step.validate_only}


def _describe_client_quotas(step: DescribeClientQuotas, names: Names) -> dict[str, Any]:
    component = {"entity_type": "client-id", "match_type": _EXACT, "match": names.real(step.client)}
    return {"components": [component], "strict": step.strict}


def _alter_scram_credential(step: AlterScramCredential, names: Names) -> dict[str, Any]:
    credential = {"name": names.real(step.user), "mechanism": int(step.mechanism)}
    if step.iterations is None:
        return {"deletions": [credential], "upsertions": []}
    salt = step.user.encode()
    algorithm = step.mechanism.name.replace("_", "").lower()
    salted = hashlib.pbkdf2_hmac(algorithm, _PASSWORD, salt, step.iterations)
    upsertion = {**credential, "iterations": step.iterations, "salt": salt, "salted_password": salted}
    return {"deletions": [], "upsertions": [upsertion]}


def _describe_scram_credentials(step: DescribeScramCredentials, names: Names) -> dict[str, Any]:
    return {"users": [{"name": names.real(step.user)}]}


def _describe_topic_partitions(step: DescribeTopicPartitions, names: Names) -> dict[str, Any]:
    cursor = None
    if step.cursor is not None:
        topic, partition = step.cursor
        cursor = {"topic_name": names.real(topic), "partition_index": partition}
    topics = [{"name": names.real(name)} for name in step.topics]
    return {"topics": topics, "response_partition_limit": step.limit, "cursor": cursor}


def _describe_log_dirs(step: DescribeLogDirs, names: Names) -> dict[str, Any]:
    topic = {"topic": names.real(step.topic), "partitions": (step.partition,)}
    return {"topics": None if step.of_all_topics else [topic]}


def _describe_quorum(step: DescribeQuorum, names: Names) -> dict[str, Any]:
    return {"topics": [{"topic_name": names.real(step.topic), "partitions": [{"partition_index": step.partition}]}]}


def _describe_cluster(step: DescribeCluster, _names: Names) -> dict[str, Any]:
    return {
        "include_cluster_authorized_operations": step.with_operations,
        "endpoint_type": int(step.endpoint_type),
        "include_fenced_brokers": False,
    }


REQUESTS: Final[Mapping[type[Step], tuple[ApiKey, Callable[[Any, Names], dict[str, Any]]]]] = {
    CreatePartitions: (ApiKey.CREATE_PARTITIONS, _create_partitions),
    AlterReassignment: (ApiKey.ALTER_PARTITION_REASSIGNMENTS, _alter_reassignment),
    ListReassignments: (ApiKey.LIST_PARTITION_REASSIGNMENTS, _list_reassignments),
    ElectLeaders: (ApiKey.ELECT_LEADERS, _elect_leaders),
    IncrementalAlterConfigs: (ApiKey.INCREMENTAL_ALTER_CONFIGS, _incremental_alter_configs),
    AlterConfigs: (ApiKey.ALTER_CONFIGS, _alter_configs),
    DescribeConfigs: (ApiKey.DESCRIBE_CONFIGS, _describe_configs),
    AlterScramCredential: (ApiKey.ALTER_USER_SCRAM_CREDENTIALS, _alter_scram_credential),
    DescribeScramCredentials: (ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, _describe_scram_credentials),
    AlterClientQuotas: (ApiKey.ALTER_CLIENT_QUOTAS, _alter_client_quotas),
    DescribeClientQuotas: (ApiKey.DESCRIBE_CLIENT_QUOTAS, _describe_client_quotas),
    DescribeTopicPartitions: (ApiKey.DESCRIBE_TOPIC_PARTITIONS, _describe_topic_partitions),
    DescribeLogDirs: (ApiKey.DESCRIBE_LOG_DIRS, _describe_log_dirs),
    DescribeQuorum: (ApiKey.DESCRIBE_QUORUM, _describe_quorum),
    DescribeCluster: (ApiKey.DESCRIBE_CLUSTER, _describe_cluster),
}
"""By kind of step, the API of its request, and the function that returns the values of the request."""
