"""CreateTopics, DeleteTopics, Metadata, DescribeCluster, and DescribeConfigs."""

from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode

from reference_broker.core.configuration.key import ConfigSource, ConfigType
from reference_broker.core.configuration.resource import ResourceType
from tests.reference_broker.scripted import ScriptedBroker, batch

CLUSTER_OPERATIONS = {
    "CREATE": 5,
    "ALTER": 7,
    "DESCRIBE": 8,
    "CLUSTER_ACTION": 9,
    "DESCRIBE_CONFIGS": 10,
    "ALTER_CONFIGS": 11,
    "IDEMPOTENT_WRITE": 12,
}
"""Codes of `AclOperation`."""


@pytest.fixture
def broker() -> ScriptedBroker:
    return ScriptedBroker(auto_create_topics_enable="false")


def create(broker, name="orders", *, validate_only=False, **fields):
    """Create one topic, by default with one partition and replica, and return its result."""
    topic = {"name": name, "num_partitions": 1, "replication_factor": 1, **fields}
    [result] = broker.request("CreateTopics", 7, topics=[topic], validate_only=validate_only).topics
    return result


def metadata(broker, *names, allow_auto_topic_creation=True):
    requested = [{"name": name, "topic_id": None} for name in names]
    return broker.request("Metadata", 12, topics=requested, allow_auto_topic_creation=allow_auto_topic_creation).topics


def config(name, value):
    return [{"name": name, "value": value}]


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"name": "a/b"}, ErrorCode.invalid_topic_exception),
        ({"name": ""}, ErrorCode.invalid_topic_exception),
        ({"name": ".."}, ErrorCode.invalid_topic_exception),
        ({"name": "x" * 250}, ErrorCode.invalid_topic_exception),
        ({"name": "taken.name"}, ErrorCode.invalid_topic_exception),
        ({"name": "taken_name"}, ErrorCode.topic_already_exists),
        ({"name": "__cluster_metadata"}, ErrorCode.invalid_request),
        ({"num_partitions": 0}, ErrorCode.invalid_partitions),
        ({"num_partitions": -2}, ErrorCode.invalid_partitions),
        ({"replication_factor": 0}, ErrorCode.invalid_replication_factor),
        ({"replication_factor": 2}, ErrorCode.invalid_replication_factor),
        ({"configs": config("no.such", "1")}, ErrorCode.invalid_config),
        ({"configs": config("retention.ms", "soon")}, ErrorCode.invalid_config),
        ({"configs": config("retention.ms", None)}, ErrorCode.invalid_config),
        ({"configs": config("cleanup.policy", "burn")}, ErrorCode.invalid_config),
        ({"configs": config("segment.bytes", "100")}, ErrorCode.invalid_config),
        ({"assignments": [{"partition_index": 0, "broker_ids": [1]}]}, ErrorCode.invalid_request),
    ],
    ids=str,
)
def test_invalid_topics_are_not_created(broker, fields, error):
    create(broker, "taken_name")
    assert create(broker, **fields).error_code == error
    assert list(broker.broker.image.topics) == ["taken_name"]


@pytest.mark.parametrize(
    ("assignments", "error"),
    [
        ([(0, [1]), (1, [1])], ErrorCode.none),
        ([(1, [1])], ErrorCode.invalid_replica_assignment),
        ([(0, [2])], ErrorCode.invalid_replica_assignment),
        ([(0, [])], ErrorCode.invalid_replica_assignment),
        ([(0, [1, 1])], ErrorCode.invalid_replica_assignment),
        ([(0, [1]), (0, [1])], ErrorCode.invalid_replica_assignment),
    ],
    ids=str,
)
def test_manual_assignment_is_validated(broker, assignments, error):
    requested = [{"partition_index": index, "broker_ids": nodes} for index, nodes in assignments]
    result = create(broker, num_partitions=-1, replication_factor=-1, assignments=requested)
    assert result.error_code == error
    assert ("orders" in broker.broker.image.topics) == (error == 0)


def test_defaults_and_the_configuration_are_returned(broker):
    result = create(broker, num_partitions=-1, replication_factor=-1, configs=config("retention.ms", "7"))
    assert (result.num_partitions, result.replication_factor) == (1, 1)
    configs = {entry.name: (entry.value, entry.config_source) for entry in result.configs}
    assert configs["retention.ms"] == ("7", ConfigSource.TOPIC)
    assert configs["segment.ms"] == ("604800000", ConfigSource.DEFAULT)


def test_validate_only_changes_nothing(broker):
    assert create(broker, validate_only=True).error_code == 0
    assert broker.broker.image.topics == {}
    assert create(broker, num_partitions=0, validate_only=True).error_code == ErrorCode.invalid_partitions


def test_a_topic_that_a_request_contains_twice_is_rejected(broker):
    topic = {"name": "orders", "num_partitions": 1, "replication_factor": 1}
    [result] = broker.request("CreateTopics", 7, topics=[topic, topic]).topics
    assert result.error_code == ErrorCode.invalid_request


def test_a_topic_created_again_has_another_id_and_no_records(broker):
    first = broker.create_topic()
    broker.produce(batch(b"old"))
    [deleted] = broker.request("DeleteTopics", 6, topics=[{"name": None, "topic_id": first}]).responses
    assert (deleted.name, deleted.topic_id, deleted.error_code) == ("orders", first, 0)
    assert broker.create_topic() != first
    assert broker.fetch(0).high_watermark == 0


@pytest.mark.parametrize(
    ("topic", "error"),
    [
        ({"name": "nowhere"}, ErrorCode.unknown_topic_or_partition),
        ({"topic_id": UUID(int=999)}, ErrorCode.unknown_topic_id),
        ({"name": "orders", "topic_id": UUID(int=999)}, ErrorCode.invalid_request),
        ({}, ErrorCode.invalid_request),
    ],
    ids=str,
)
def test_invalid_deletions_are_rejected(broker, topic, error):
    broker.create_topic()
    [result] = broker.request("DeleteTopics", 6, topics=[topic]).responses
    assert result.error_code == error
    assert "orders" in broker.broker.image.topics


def test_deletion_can_be_disabled():
    broker = ScriptedBroker(delete_topic_enable="false")
    broker.create_topic()
    for version, error in ((2, ErrorCode.invalid_request), (5, ErrorCode.topic_deletion_disabled)):
        [result] = broker.request("DeleteTopics", version, topic_names=["orders"]).responses
        assert result.error_code == error


def test_metadata_of_a_topic(broker):
    topic_id = broker.create_topic(partitions=2)
    [topic] = metadata(broker, "orders")
    assert (topic.error_code, topic.name, topic.topic_id, topic.is_internal) == (0, "orders", topic_id, False)
    assert [(found.partition_index, found.leader_id, found.leader_epoch) for found in topic.partitions] == [
        (0, 1, 0),
        (1, 1, 0),
    ]
    assert all(found.replica_nodes == found.isr_nodes == (1,) for found in topic.partitions)
    requested = [{"name": None, "topic_id": topic_id}, {"name": None, "topic_id": UUID(int=999)}]
    by_id = broker.request("Metadata", 12, topics=requested).topics
    assert [(found.name, found.error_code) for found in by_id] == [("orders", 0), (None, ErrorCode.unknown_topic_id)]


def test_unknown_and_invalid_names_are_errors(broker):
    unknown, invalid = metadata(broker, "nowhere", "a/b")
    assert unknown.error_code == ErrorCode.unknown_topic_or_partition
    assert invalid.error_code == ErrorCode.invalid_topic_exception


def test_all_topics_and_no_topics(broker):
    broker.create_topic()
    assert [topic.name for topic in broker.request("Metadata", 0, topics=[]).topics] == ["orders"]
    assert broker.request("Metadata", 1, topics=[]).topics == ()
    assert [topic.name for topic in broker.request("Metadata", 12, topics=None).topics] == ["orders"]


@pytest.mark.parametrize(
    ("enabled", "allowed", "created"), [("true", True, True), ("true", False, False), ("false", True, False)]
)
def test_a_topic_is_created_after_the_first_response_if_broker_and_client_allow_it(enabled, allowed, created):
    broker = ScriptedBroker(auto_create_topics_enable=enabled, num_partitions="3")
    [first] = metadata(broker, "fresh", allow_auto_topic_creation=allowed)
    [second] = metadata(broker, "fresh", allow_auto_topic_creation=allowed)
    assert (first.error_code, len(first.partitions)) == (ErrorCode.unknown_topic_or_partition, 0)
    expected = (ErrorCode.none, 3) if created else (ErrorCode.unknown_topic_or_partition, 0)
    assert (second.error_code, len(second.partitions)) == expected
    assert ("fresh" in broker.broker.image.topics) is created


def test_describe_cluster_returns_the_broker_and_the_controller(broker):
    cluster = broker.request("DescribeCluster", 1, endpoint_type=1, include_cluster_authorized_operations=True)
    assert (cluster.cluster_id, cluster.controller_id) == ("cluster", 1)
    assert cluster.cluster_authorized_operations == sum(1 << code for code in CLUSTER_OPERATIONS.values())
    assert [(node.broker_id, node.host, node.port) for node in cluster.brokers] == [(1, "b1.kafka.test", 9092)]
    for endpoint_type, error in ((2, ErrorCode.mismatched_endpoint_type), (3, ErrorCode.unsupported_endpoint_type)):
        assert broker.request("DescribeCluster", 1, endpoint_type=endpoint_type).error_code == error


def describe(broker, resource_type, name, *keys):
    resource = {"resource_type": resource_type, "resource_name": name, "configuration_keys": keys or None}
    [result] = broker.request("DescribeConfigs", 4, resources=[resource], include_synonyms=True).results
    return result


@pytest.mark.parametrize("is_requested", [True, False])
def test_each_property_of_a_topic_has_documentation_if_it_is_requested(is_requested):
    broker = ScriptedBroker()
    broker.create_topic()
    resource = {"resource_type": ResourceType.TOPIC, "resource_name": "orders", "configuration_keys": None}
    [result] = broker.request("DescribeConfigs", 4, resources=[resource], include_documentation=is_requested).results
    assert {bool(entry.documentation) for entry in result.configs} == {is_requested}


def test_properties_of_a_topic_are_described_with_sources_and_synonyms():
    broker = ScriptedBroker(log_retention_hours="2")
    broker.create_topic(max_message_bytes="2000")
    found = {entry.name: entry for entry in describe(broker, ResourceType.TOPIC, "orders").configs}
    assert len(found) == 33
    retention, size, segment = found["retention.ms"], found["max.message.bytes"], found["segment.ms"]
    # Kafka describes a value that results from `log.retention.hours` as a default without synonyms, too.
    assert (retention.value, retention.config_source, retention.synonyms) == ("7200000", ConfigSource.DEFAULT, ())
    assert retention.config_type == ConfigType.LONG
    assert [(synonym.name, synonym.value, synonym.source) for synonym in size.synonyms] == [
        ("max.message.bytes", "2000", ConfigSource.TOPIC),
        ("message.max.bytes", "1048588", ConfigSource.DEFAULT),
    ]
    assert (segment.value, segment.config_source, segment.synonyms) == ("604800000", ConfigSource.DEFAULT, ())


def test_properties_of_a_broker_are_described(broker):
    found = {entry.name: entry for entry in describe(broker, ResourceType.BROKER, "1").configs}
    enabled = found["auto.create.topics.enable"]
    assert (enabled.value, enabled.config_source, enabled.read_only) == ("false", ConfigSource.STATIC_BROKER, True)
    assert not found["log.retention.bytes"].read_only
    [known] = describe(broker, ResourceType.BROKER, "1", "num.partitions", "no.such").configs
    assert (known.name, known.value) == ("num.partitions", "1")


@pytest.mark.parametrize(
    ("resource", "error"),
    [
        ((ResourceType.TOPIC, "nowhere"), ErrorCode.unknown_topic_or_partition),
        ((ResourceType.TOPIC, "a/b"), ErrorCode.invalid_topic_exception),
        ((ResourceType.BROKER, "7"), ErrorCode.invalid_request),
        ((ResourceType.BROKER, "x"), ErrorCode.invalid_request),
        ((77, "x"), ErrorCode.invalid_request),
        ((ResourceType.BROKER, ""), ErrorCode.none),
    ],
    ids=str,
)
def test_resources_that_have_no_properties(broker, resource, error):
    result = describe(broker, *resource)
    assert (result.error_code, result.configs) == (error, ())
