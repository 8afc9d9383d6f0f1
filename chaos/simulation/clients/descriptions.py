"""What a client may ask to be described, by name: questions of which a script draws some, to see what is answered.

Each asks for all that its API can tell, and, where it names things, also for one that is not there.
"""

from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import lru_cache
from types import MappingProxyType, ModuleType
from typing import Any, Final

from chaos.simulation.clients.questions import ADMIN_TIMEOUT_MS, Question, administer
from fixtures.clients.messages import ApiKey

_NOWHERE: Final = "nowhere"
"""A topic that is never made."""
_TOPIC, _BROKER = 2, 4
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


def _movements(schema: ModuleType, topic: str) -> Any:
    return schema.ListPartitionReassignmentsRequest(timeout=_TIMEOUT, topics=None)


def _movements_of_topic(schema: ModuleType, topic: str) -> Any:
    topics = tuple(
        schema.ListPartitionReassignmentsTopics(name=name, partition_indexes=(0, 7)) for name in (topic, _NOWHERE)
    )
    return schema.ListPartitionReassignmentsRequest(timeout=_TIMEOUT, topics=topics)


def _quorum(schema: ModuleType, topic: str) -> Any:
    partition = schema.PartitionData(partition_index=0)
    return schema.DescribeQuorumRequest(topics=(schema.TopicData(topic_name=_METADATA_TOPIC, partitions=(partition,)),))


_TIMEOUT: Final = timedelta(milliseconds=ADMIN_TIMEOUT_MS)
_QUESTIONS: Final[Mapping[str, tuple[ApiKey, Callable[[ModuleType, str], Any]]]] = MappingProxyType(
    {
        "cluster": (ApiKey.DESCRIBE_CLUSTER, _cluster),
        "metadata": (ApiKey.METADATA, _metadata),
        "missing topics": (ApiKey.METADATA, _missing),
        "partitions": (ApiKey.DESCRIBE_TOPIC_PARTITIONS, _partitions),
        "a page of partitions": (ApiKey.DESCRIBE_TOPIC_PARTITIONS, _page),
        "properties": (ApiKey.DESCRIBE_CONFIGS, _properties),
        "a property": (ApiKey.DESCRIBE_CONFIGS, _property),
        "movements": (ApiKey.LIST_PARTITION_REASSIGNMENTS, _movements),
        "movements of a topic": (ApiKey.LIST_PARTITION_REASSIGNMENTS, _movements_of_topic),
        "quorum": (ApiKey.DESCRIBE_QUORUM, _quorum),
    }
)
SUBJECTS: Final = tuple(_QUESTIONS)
"""What can be asked for."""


@lru_cache
def describe(subject: str, topic: str) -> Question:
    """The question about a subject; about a topic, where it is about one."""
    api_key, make = _QUESTIONS[subject]
    return administer(api_key, lambda schema: make(schema, topic))
