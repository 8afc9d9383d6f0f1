"""Bounds on requests: arrays of every API, created partitions, strings, digits of numbers, and repeated elements."""

import dataclasses
from typing import get_args, get_origin, get_type_hints

import pytest
from kio.index import load_request_schema
from kio.schema.errors import ErrorCode

from fixtures.clients.raw import encode_request
from reference_broker.core.apis import BROKER_APIS, CONTROLLER_APIS
from reference_broker.core.configuration.resource import ResourceType
from reference_broker.protocol.bounds import ELEMENTS_MAX, without_null
from reference_broker.protocol.errors import MalformedRequestError
from reference_broker.protocol.messages import message_codec
from tests.reference_broker.cluster import CLOSED
from tests.reference_broker.requests import populated
from tests.reference_broker.scripted import ScriptedBroker

pytestmark = pytest.mark.sampled(2)

VERSIONS = sorted({(api.key, api.max_version) for api in (*BROKER_APIS.values(), *CONTROLLER_APIS.values())})


def arrays_of(entity_type, path=()):
    """Yield the path of every array in a message, nested ones included."""
    for name, hint in get_type_hints(entity_type).items():
        inner = without_null(hint)
        is_array = get_origin(inner) is tuple
        element = get_args(inner)[0] if is_array else inner
        if is_array:
            yield (*path, name)
        if dataclasses.is_dataclass(element) and not name.startswith("_"):
            yield from arrays_of(element, (*path, name))


def multiplied(entity, path, count):
    """Return the message with `count` elements in the array at a path."""
    name, *rest = path
    value = getattr(entity, name)
    if not rest:
        return dataclasses.replace(entity, **{name: value[:1] * count})
    inner = multiplied(value[0] if isinstance(value, tuple) else value, rest, count)
    return dataclasses.replace(entity, **{name: (inner,) if isinstance(value, tuple) else inner})


ARRAYS = [(*version, path) for version in VERSIONS for path in arrays_of(load_request_schema(*version))]


@pytest.mark.parametrize(("api_key", "version", "path"), ARRAYS, ids=str)
def test_an_array_of_any_api_has_a_bound(api_key, version, path):
    entity = populated(load_request_schema(api_key, version))
    codec = message_codec(api_key, version)
    codec.read(encode_request(multiplied(entity, path, ELEMENTS_MAX // 20), 1, "test"))
    with pytest.raises(MalformedRequestError, match="array elements"):
        codec.read(encode_request(multiplied(entity, path, ELEMENTS_MAX + 1), 1, "test"))


def test_most_apis_have_arrays():
    assert len({api_key for api_key, *_ in ARRAYS}) >= 30


@pytest.fixture
def broker():
    broker = ScriptedBroker()
    broker.create_topic("orders")
    return broker


def added(broker, *counts, **fields):
    topics = [{"name": f"t{number}", "count": count, "assignments": None} for number, count in enumerate(counts)]
    return [result.error_code for result in broker.request("CreatePartitions", 3, topics=topics, **fields).results]


@pytest.mark.parametrize("counts", [(2_000_000_000,), (2**31 - 1, 2), (5_001, 5_002), (10_002,)])
@pytest.mark.parametrize("validate_only", [True, False])
def test_partitions_of_one_request_have_a_bound(broker, counts, validate_only):
    for number in range(len(counts)):
        broker.create_topic(f"t{number}")
    assert set(added(broker, *counts, validate_only=validate_only)) == {ErrorCode.policy_violation}
    assert {len(topic.partitions) for topic in broker.node.metadata.image.topics.values()} == {1}
    assert added(broker, 3)[0] is ErrorCode.none


@pytest.mark.parametrize("counts", [(2_000_000_000,), (5_001, 5_000), (2**31 - 1, 2**31 - 1)])
def test_partitions_of_new_topics_have_a_bound(broker, counts):
    topics = [
        {"name": f"n{number}", "num_partitions": count, "replication_factor": 1} for number, count in enumerate(counts)
    ]
    created = broker.request("CreateTopics", 7, topics=topics).topics
    assert {topic.error_code for topic in created} == {ErrorCode.policy_violation}


def test_a_request_with_too_many_records_writes_none(broker):
    topics = [{"name": f"c{number}", "num_partitions": 1, "replication_factor": 1} for number in range(5_001)]
    created = broker.request("CreateTopics", 7, topics=topics).topics
    assert {topic.error_code for topic in created} == {ErrorCode.policy_violation}, "each topic needs two records"
    assert set(broker.node.metadata.image.topics) == {"orders"}


def test_a_request_above_the_bound_closes_only_its_connection(broker):
    topics = [{"name": f"x{number}"} for number in range(ELEMENTS_MAX + 1)]
    assert broker.request("Metadata", 12, topics=topics) == CLOSED
    assert broker.request("Metadata", 12, topics=[]) != CLOSED


@pytest.mark.parametrize("size", [0x8000, 1_000_000])
def test_a_string_that_is_too_long_for_kafka_closes_its_connection(broker, size):
    resources = [{"resource_type": 2, "resource_name": "orders", "configs": [{"name": "x" * size, "value": "1"}]}]
    assert broker.request("IncrementalAlterConfigs", 1, resources=resources) == CLOSED
    assert broker.request("Metadata", 12, topics=[]) != CLOSED


def test_only_a_produce_request_may_be_large(broker):
    assert broker.request("Metadata", 12, topics=[{"name": "x" * 30_000}] * 300) == CLOSED
    data = [{"name": "orders", "partition_data": [{"index": 0, "records": bytes(9_000_000)}]}]
    assert broker.request("Produce", 12, acks=-1, timeout=1_000, topic_data=data) != CLOSED


def test_each_of_thousands_of_list_elements_is_appended_and_subtracted_once(broker):
    """A quadratic merge of such lists takes seconds."""
    name = "leader.replication.throttled.replicas"
    parts = [f"{number}:1" for number in range(4_000)]

    def altered(operation, *values):
        configs = [{"name": name, "config_operation": operation, "value": ",".join(values)}]
        resources = [{"resource_type": 2, "resource_name": "orders", "configs": configs}]
        [changed] = broker.request("IncrementalAlterConfigs", 1, resources=resources).responses
        assert changed.error_code is ErrorCode.none
        return broker.node.metadata.image.overrides(ResourceType.TOPIC, "orders")[name].split(",")

    assert altered(2, *parts) == parts
    assert altered(2, *parts, "9:9", "9:9") == [*parts, "9:9"]
    assert altered(3, *parts[1:], "7:7") == [parts[0], "9:9"]


def test_colliding_names_are_found_after_creation_and_deletion(broker):
    def created(name):
        topic = {"name": name, "num_partitions": 1, "replication_factor": 1}
        return broker.request("CreateTopics", 7, topics=[topic]).topics[0].error_code

    assert created("a.b_c") is ErrorCode.none
    assert created("a_b.c") is ErrorCode.invalid_topic_exception
    broker.request("DeleteTopics", 5, topic_names=["a.b_c"])
    assert created("a_b.c") is ErrorCode.none
    broker.restart()
    assert created("a.b_c") is ErrorCode.invalid_topic_exception


REPEATED = 900


def test_a_topic_that_is_repeated_in_a_request_is_returned_once(broker):
    topic_id = broker.node.metadata.image.topics["orders"].topic_id
    for topic in ({"name": None, "topic_id": topic_id}, {"name": "orders"}):
        assert len(broker.request("Metadata", 12, topics=[topic] * REPEATED).topics) == 1


def test_a_resource_that_is_repeated_in_a_request_is_described_once(broker):
    names = {2: "orders", 4: "1"}
    resources = [
        {"resource_type": kind, "resource_name": name, "configuration_keys": None} for kind, name in names.items()
    ]
    results = broker.request("DescribeConfigs", 4, resources=resources * REPEATED).results
    assert [result.resource_type for result in results] == [*names] * REPEATED
    assert [result.error_code for result in results[:2]] == [ErrorCode.none] * 2
    assert {(result.error_code, result.configs) for result in results[2:]} == {(ErrorCode.invalid_request, ())}


@pytest.mark.parametrize("name", ["9" * 5000, "-" + "9" * 5000, "--1", "-", "2147483648", "\u00b2", "1_0", " 1"])
def test_an_invalid_node_id_is_an_error(broker, name):
    resource = {"resource_type": 4, "resource_name": name}
    described = broker.request("DescribeConfigs", 4, resources=[{**resource, "configuration_keys": None}]).results[0]
    assert described.error_message == f"Broker id must be an integer, but it is: {name}"
    for api, version in (("AlterConfigs", 2), ("IncrementalAlterConfigs", 1)):
        changed = broker.request(api, version, resources=[{**resource, "configs": []}]).responses[0]
        assert changed.error_code is ErrorCode.invalid_request


def test_the_quorum_is_described_only_if_one_partition_is_requested(broker):
    def described(*counts):
        topics = [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}] * n} for n in counts]
        topics = broker.request("DescribeQuorum", 2, topics=topics).topics
        return {(partition.error_code, len(partition.current_voters)) for t in topics for partition in t.partitions}

    assert described(1) == {(ErrorCode.none, 1)}
    assert described(REPEATED) == described(1, 1) == described(0, 1) == {(ErrorCode.unknown_topic_or_partition, 0)}


def test_a_group_that_is_repeated_in_a_request_is_fetched_once(broker):
    broker.request("FindCoordinator", 6, key_type=0, coordinator_keys=["g"])
    partition = {"partition_index": 0, "committed_offset": 5, "committed_metadata": "m" * 4000}
    commit = {"group_id": "g", "member_id": "", "generation_id_or_member_epoch": -1}
    broker.request("OffsetCommit", 9, topics=[{"name": "orders", "partitions": [partition]}], **commit)
    for is_stable in (False, True):
        groups = [{"group_id": "g", "topics": None}] * REPEATED
        first, *others = broker.request("OffsetFetch", 9, groups=groups, require_stable=is_stable).groups
        assert [topic.partitions[0].committed_offset for topic in first.topics] == [5]
        assert {(group.error_code, group.topics) for group in others} == {(ErrorCode.invalid_request, ())}


@pytest.mark.parametrize("value", ["9" * 5_000, "-" + "9" * 30_000, "0" * 5_000])
@pytest.mark.parametrize("name", ["retention.ms", "segment.bytes", "min.cleanable.dirty.ratio"])
def test_a_number_of_thousands_of_digits_is_an_invalid_value(broker, name, value):
    config = {"name": name, "value": value}
    resource = {"resource_type": 2, "resource_name": "orders"}
    expected = {ErrorCode.invalid_config, ErrorCode.invalid_request}
    if name.endswith("ratio"):
        expected.add(ErrorCode.none)
    for api, version, fields in (("AlterConfigs", 2, {}), ("IncrementalAlterConfigs", 1, {"config_operation": 0})):
        changed = broker.request(api, version, resources=[{**resource, "configs": [{**config, **fields}]}]).responses[0]
        assert changed.error_code in expected
    topic = {"name": "new", "num_partitions": 1, "replication_factor": 1, "configs": [config]}
    assert broker.request("CreateTopics", 7, topics=[topic]).topics[0].error_code in expected


def test_a_partition_that_is_repeated_in_a_request_is_read_once(broker):
    partition = {"partition": 0, "fetch_offset": 0, "current_leader_epoch": -1, "partition_max_bytes": 2**20}
    last = {**partition, "fetch_offset": 7}
    unknown = {**partition, "partition": 5}
    topics = [{"topic": "orders", "partitions": [partition, unknown, last] * 9}] * (REPEATED // 9)
    [fetched] = broker.request("Fetch", 12, max_wait=0, min_bytes=0, topics=topics).responses
    assert [(each.partition_index, each.error_code) for each in fetched.partitions] == [
        (0, ErrorCode.offset_out_of_range),
        (5, ErrorCode.unknown_topic_or_partition),
    ]
