"""Kafka's `DumpLogSegments` reads the metadata log and the committed offsets of a broker process."""

import json
import time

import pytest
from kio.schema.errors import ErrorCode

from fixtures.clients.raw import RawClient
from reference_broker.core.group_coordinator import partition_for_group
from tests.reference_broker.scripted import request
from tests.reference_broker.server.process import running

pytestmark = pytest.mark.java
PARTITIONS = 2


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Return a data directory after a clean shutdown.

    It has a topic, the records of a deleted topic, a committed offset, and an allocated block of producer ids.
    """
    data = tmp_path_factory.mktemp("dump") / "data"
    with running(data, "--set", f"offsets.topic.num.partitions={PARTITIONS}") as broker:
        with RawClient(broker.host, broker.port) as client:
            for name in ("orders", "brief"):
                configs = [{"name": "retention.ms", "value": "7"}]
                topic = {"name": name, "num_partitions": 1, "replication_factor": 1, "configs": configs}
                client.request(request("CreateTopics", 7, topics=[topic]))
            client.request(request("DeleteTopics", 5, topic_names=["brief"]))
            client.request(request("InitProducerId", 4, producer_id=-1, producer_epoch=-1))
            partition = {"partition_index": 0, "committed_offset": 3, "committed_metadata": "note"}
            topics = [{"name": "orders", "partitions": [partition]}]
            commit = {"group_id": "g", "generation_id_or_member_epoch": -1, "topics": topics}
            coordinator = request("FindCoordinator", 4, key_type=0, coordinator_keys=["g"])
            until_no_error(lambda: client.request(coordinator).coordinators[0])
            offset_commit = request("OffsetCommit", 9, **commit)
            until_no_error(lambda: client.request(offset_commit).topics[0].partitions[0])
        broker.stop()
    return data


def until_no_error(send):
    """Retry a request until it succeeds: the first FindCoordinator creates the offsets topic."""
    deadline = time.monotonic() + 30
    while send().error_code is not ErrorCode.none:
        assert time.monotonic() < deadline, "no coordinator"
        time.sleep(0.05)


def dump(kafka_tool, directory, decoder):
    log = directory / "00000000000000000000.log"
    return kafka_tool("org.apache.kafka.tools.DumpLogSegments", [decoder, "--files", str(log)])


def test_tool_decodes_the_metadata_log(kafka_tool, data):
    printed = dump(kafka_tool, data / "__cluster_metadata-0", "--cluster-metadata-decoder")
    payloads = [line.partition("payload: ")[2] for line in printed.splitlines() if "payload: " in line]
    records = [json.loads(payload) for payload in payloads]
    types = [record["type"] for record in records if record["type"] != "NO_OP_RECORD"]
    assert types[:7] == [
        "FEATURE_LEVEL_RECORD",
        "REGISTER_BROKER_RECORD",
        "BROKER_REGISTRATION_CHANGE_RECORD",
        "TOPIC_RECORD",
        "CONFIG_RECORD",
        "PARTITION_RECORD",
        "TOPIC_RECORD",
    ]
    assert types.count("REMOVE_TOPIC_RECORD") == 1
    by_type = {record["type"]: record["data"] for record in reversed(records)}
    assert by_type["TOPIC_RECORD"]["name"] == "orders"
    assert by_type["CONFIG_RECORD"] == {
        "resourceType": 2,
        "resourceName": "orders",
        "name": "retention.ms",
        "value": "7",
    }
    assert by_type["PARTITION_RECORD"]["isr"] == [1]
    assert by_type["PRODUCER_IDS_RECORD"]["nextProducerId"] == 1000
    assert by_type["REGISTER_BROKER_RECORD"]["fenced"] is True


def test_tool_decodes_the_offsets_topic(kafka_tool, data):
    directory = data / f"__consumer_offsets-{partition_for_group('g', PARTITIONS)}"
    printed = dump(kafka_tool, directory, "--offsets-decoder")
    [line] = [line for line in printed.splitlines() if '"group":"g"' in line]
    assert '"topic":"orders"' in line
    assert '"offset":3' in line
    assert '"metadata":"note"' in line
