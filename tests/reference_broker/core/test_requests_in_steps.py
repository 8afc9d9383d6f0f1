"""Requests with a thousand elements: a node processes them in steps, and handles other requests in between."""

import pytest
from kio.index import load_response_schema
from kio.schema.errors import ErrorCode

from fixtures.clients.raw import encode_request
from reference_broker.core.connection import Connection
from reference_broker.simulation.cluster import CONTROLLER
from tests.reference_broker.scripted import ScriptedBroker, request

COUNT = 1_000
NAMES = [f"{number:05d}".ljust(249, "x") for number in range(COUNT)]
"""Names with the maximum length of a topic name."""
BATCHES = [{"index": number, "records": b""} for number in range(COUNT)]


def partitions(**fields):
    """Return the partitions of the topic `orders` in a request, each with the same fields."""
    return [{"name": "orders", "partitions": [{"partition_index": number, **fields} for number in range(COUNT)]}]


LARGE_REQUESTS = [
    ("Metadata", 12, {"topics": [{"name": name} for name in NAMES], "allow_auto_topic_creation": False}),
    ("DescribeTopicPartitions", 0, {"topics": [{"name": name} for name in NAMES]}),
    ("FindCoordinator", 6, {"key_type": 0, "coordinator_keys": NAMES}),
    ("OffsetFetch", 9, {"groups": [{"group_id": name, "topics": None} for name in NAMES]}),
    ("OffsetFetch", 9, {"groups": [{"group_id": name, "topics": None} for name in NAMES], "require_stable": True}),
    (
        "DescribeConfigs",
        4,
        {"resources": [{"resource_type": 2, "resource_name": name, "configuration_keys": None} for name in NAMES]},
    ),
    ("IncrementalAlterConfigs", 1, {"resources": [{"resource_type": 2, "resource_name": name} for name in NAMES]}),
    ("AlterConfigs", 2, {"resources": [{"resource_type": 4, "resource_name": name} for name in NAMES]}),
    ("CreateTopics", 7, {"topics": [{"name": f"#{name}", "num_partitions": 1} for name in NAMES]}),
    ("CreatePartitions", 3, {"topics": [{"name": name, "count": 3, "assignments": None} for name in NAMES]}),
    ("DeleteTopics", 6, {"topics": [{"name": name} for name in NAMES]}),
    ("AlterPartitionReassignments", 1, {"topics": partitions(replicas=None)}),
    ("DeleteRecords", 2, {"topics": partitions(offset=0)}),
    ("ListOffsets", 8, {"replica_id": -1, "topics": partitions(timestamp=5)}),
    (
        "OffsetForLeaderEpoch",
        4,
        {"topics": [{"topic": "orders", "partitions": [{"partition": number} for number in range(COUNT)]}]},
    ),
    ("Produce", 12, {"acks": -1, "topic_data": [{"name": "orders", "partition_data": BATCHES}]}),
]


@pytest.fixture
def broker():
    broker = ScriptedBroker()
    broker.create_topic("orders")
    return broker


def send(broker, connection, received, api, version, **fields):
    """Send a request to node 1. Later, its connection and the response are appended to `received`."""
    entity = request(api, version, **fields)
    frame = encode_request(entity, 1, "test")
    schema = load_response_schema(entity.__api_key__, entity.__version__)
    broker.cluster.send_bytes(1, connection, frame, schema, received.append)


@pytest.mark.parametrize(
    ("api", "version", "fields"), LARGE_REQUESTS, ids=[f"{api}-{version}" for api, version, _ in LARGE_REQUESTS]
)
def test_a_large_request_does_not_delay_another_connection(broker, api, version, fields):
    large, small, received = Connection(), Connection(), []
    send(broker, large, received, api, version, **fields)
    send(broker, small, received, "ApiVersions", 3, client_software_name="test", client_software_version="1")
    broker.cluster.run(1_000)
    assert [connection for connection, _ in received] == [small, large]
    assert b"" not in [response for _, response in received]


def test_a_controller_request_is_decided_again_if_the_metadata_has_changed_between_its_steps(broker):
    """Both requests create the same topic. The small request is decided first, although it is sent later."""
    topics = [{"name": name, "num_partitions": 1, "replication_factor": 1} for name in NAMES[:900]]
    large, small = (Connection(CONTROLLER, is_controller=True) for _ in range(2))
    received = []
    send(broker, large, received, "CreateTopics", 7, topics=topics)
    send(broker, small, received, "CreateTopics", 7, topics=topics[4:5])
    broker.cluster.run(1_000)
    assert [connection for connection, _ in received] == [small, large]
    (_, small_response), (_, large_response) = received
    assert [topic.error_code for topic in small_response.topics] == [ErrorCode.none]
    rejected = [topic.name for topic in large_response.topics if topic.error_code is ErrorCode.topic_already_exists]
    assert rejected == [NAMES[4]]
    assert {*broker.node.metadata.image.topics} == {"orders", *NAMES[:900]}
