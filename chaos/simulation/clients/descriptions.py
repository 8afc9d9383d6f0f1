"""Describing requests by subject, of which a trial has some, so that their responses are checked.

Each requests all that its API can return, and includes a name that does not exist, if it contains names.
"""

from collections.abc import Callable, Mapping
from datetime import timedelta
from types import MappingProxyType, ModuleType
from typing import Any, Final

from fixtures.clients.administration import AdminRequest
from fixtures.clients.messages import ApiKey

_NOWHERE: Final = "nowhere"
"""A topic that is never created."""
_TOPIC, _BROKER = 2, 4
_TIMEOUT: Final = timedelta(milliseconds=2_000)
_METADATA_TOPIC: Final = "__cluster_metadata"
_FIRST_NODE: Final = "1"


def _cluster(schema: ModuleType, topic: str) -> Any:
    return schema.DescribeClusterRequest(include_cluster_authorized_operations=True, include_fenced_brokers=True)


def _metadata(schema: ModuleType, topic: str) -> Any:
    return schema.MetadataRequest(
        topics=None, allow_auto_topic_creation=False, include_topic_authorized_operations=True
    )


def _missing(schema: ModuleType, topic: str) -> Any:
    topics = tuple(schema.MetadataRequestTopic(topic_id=None, name=name) for name in (topic, _NOWHERE, "no/name"))
    return schema.MetadataRequest(
        topics=topics, allow_auto_topic_creation=False, include_topic_authorized_operations=False
    )


def _partitions(schema: ModuleType, topic: str) -> Any:
    return schema.DescribeTopicPartitionsRequest(topics=())


def _page(schema: ModuleType, topic: str) -> Any:
    topics = tuple(schema.TopicRequest(name=name) for name in (topic, _NOWHERE))
    cursor = schema.Cursor(topic_name=topic, partition_index=1)
    return schema.DescribeTopicPartitionsRequest(topics=topics, response_partition_limit=1, cursor=cursor)


def _properties(schema: ModuleType, topic: str) -> Any:
    resources = ((_TOPIC, topic), (_TOPIC, _NOWHERE), (_BROKER, _FIRST_NODE), (_BROKER, ""))
    return schema.DescribeConfigsRequest(
        resources=tuple(
            schema.DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
            for kind, name in resources
        ),
        include_synonyms=True,
    )


def _property(schema: ModuleType, topic: str) -> Any:
    resource = schema.DescribeConfigsResource(
        resource_type=_TOPIC, resource_name=topic, configuration_keys=("min.insync.replicas", "retention.ms")
    )
    return schema.DescribeConfigsRequest(resources=(resource,))


def _reassignments(schema: ModuleType, topic: str) -> Any:
    return schema.ListPartitionReassignmentsRequest(timeout=_TIMEOUT, topics=None)


def _reassignments_of_topic(schema: ModuleType, topic: str) -> Any:
    topics = tuple(
        schema.ListPartitionReassignmentsTopics(name=name, partition_indexes=(0, 7)) for name in (topic, _NOWHERE)
    )
    return schema.ListPartitionReassignmentsRequest(timeout=_TIMEOUT, topics=topics)


def _quorum(schema: ModuleType, topic: str) -> Any:
    partition = schema.PartitionData(partition_index=0)
    return schema.DescribeQuorumRequest(topics=(schema.TopicData(topic_name=_METADATA_TOPIC, partitions=(partition,)),))


_REQUESTS: Final[Mapping[str, tuple[ApiKey, Callable[[ModuleType, str], Any]]]] = MappingProxyType(
    {
        "cluster": (ApiKey.DESCRIBE_CLUSTER, _cluster),
        "metadata": (ApiKey.METADATA, _metadata),
        "missing topics": (ApiKey.METADATA, _missing),
        "partitions": (ApiKey.DESCRIBE_TOPIC_PARTITIONS, _partitions),
        "a page of partitions": (ApiKey.DESCRIBE_TOPIC_PARTITIONS, _page),
        "properties": (ApiKey.DESCRIBE_CONFIGS, _properties),
        "a property": (ApiKey.DESCRIBE_CONFIGS, _property),
        "movements": (ApiKey.LIST_PARTITION_REASSIGNMENTS, _reassignments),
        "movements of a topic": (ApiKey.LIST_PARTITION_REASSIGNMENTS, _reassignments_of_topic),
        "quorum": (ApiKey.DESCRIBE_QUORUM, _quorum),
    }
)
SUBJECTS: Final = tuple(_REQUESTS)


def description(subject: str, topic: str) -> AdminRequest:
    """Return the request for a subject; for this topic, if it is about one. Its errors are not recorded."""
    api_key, build = _REQUESTS[subject]
    return AdminRequest("describe", None, None, api_key, lambda schema: build(schema, topic), lambda _: ())
