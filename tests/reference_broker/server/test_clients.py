"""Real clients on a broker process: confluent-kafka (librdkafka), and kcat if it is installed."""

import shutil
import subprocess
import time

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, OffsetSpec, ResourceType

from tests.reference_broker.server.process import running

RECORDS = 10_000
DEADLINE_S = 30


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    with running(tmp_path_factory.mktemp("clients") / "data", "--set", "offsets.topic.num.partitions=1") as broker:
        yield broker


@pytest.fixture(scope="module")
def admin(broker):
    return AdminClient({"bootstrap.servers": broker.address})


@pytest.fixture(scope="module")
def started_ms():
    """Return the timestamp of the first record."""
    return int(time.time() * 1000) - 1_000_000


@pytest.fixture(scope="module")
def orders(broker, admin, started_ms):
    """Return a topic with the numbers 0 to 9999, one millisecond apart; even numbers are in partition 0, odd in 1."""
    admin.create_topics([NewTopic("orders", 2, 1, config={"retention.ms": "-1"})])["orders"].result(DEADLINE_S)
    producer = Producer({"bootstrap.servers": broker.address, "enable.idempotence": True, "compression.type": "lz4"})
    failed = []
    for number in range(RECORDS):
        producer.produce(
            "orders",
            value=str(number),
            partition=number % 2,
            timestamp=started_ms + number,
            on_delivery=lambda error, _: error and failed.append(error),
        )
    assert producer.flush(DEADLINE_S) == 0
    assert failed == []
    return "orders"


def consumer(broker, **configuration):
    fixed = {"bootstrap.servers": broker.address, "group.id": "readers", "enable.auto.commit": False}
    return Consumer({**fixed, **configuration})


def read(client, count):
    found, deadline = [], time.monotonic() + DEADLINE_S
    while len(found) < count and time.monotonic() < deadline:
        found += client.consume(count - len(found), 1.0)
    assert [message.error() for message in found if message.error()] == []
    return [int(message.value()) for message in found]


def test_all_records_are_read_in_order(broker, orders):
    client = consumer(broker)
    client.assign([TopicPartition(orders, index, OFFSET_BEGINNING) for index in (0, 1)])
    found = read(client, RECORDS)
    client.close()
    assert [number for number in found if number % 2 == 0] == list(range(0, RECORDS, 2))
    assert [number for number in found if number % 2 == 1] == list(range(1, RECORDS, 2))


def test_offsets_for_times(broker, orders, started_ms):
    client = consumer(broker)
    [position] = client.offsets_for_times([TopicPartition(orders, 1, started_ms + 5_000)], DEADLINE_S)
    assert position.offset == 2_500
    client.assign([position])
    assert read(client, 3) == [5_001, 5_003, 5_005]
    [beyond] = client.offsets_for_times([TopicPartition(orders, 1, started_ms + RECORDS)], DEADLINE_S)
    assert beyond.offset == -1
    client.close()


def test_offsets_are_committed_and_listed(broker, admin, orders):
    client = consumer(broker, **{"group.id": "committers"})
    client.assign([TopicPartition(orders, 0, 10)])
    assert read(client, 1) == [20]
    client.commit(offsets=[TopicPartition(orders, 0, 11, "note")], asynchronous=False)
    [found] = client.committed([TopicPartition(orders, 0)], DEADLINE_S)
    assert (found.offset, found.metadata) == (11, "note")
    assert client.get_watermark_offsets(TopicPartition(orders, 0), DEADLINE_S) == (0, RECORDS // 2)
    client.close()
    latest = admin.list_offsets({TopicPartition(orders, 1): OffsetSpec.latest()})
    assert next(iter(latest.values())).result(DEADLINE_S).offset == RECORDS // 2


def test_administration(admin):
    admin.create_topics([NewTopic("brief", 3, 1)])["brief"].result(DEADLINE_S)
    metadata = admin.list_topics(timeout=DEADLINE_S)
    assert len(metadata.topics["brief"].partitions) == 3
    [described] = admin.describe_configs([ConfigResource(ResourceType.TOPIC, "brief")]).values()
    assert described.result(DEADLINE_S)["cleanup.policy"].value == "delete"
    cluster = admin.describe_cluster().result(DEADLINE_S)
    assert [node.id for node in cluster.nodes] == [1]
    admin.delete_topics(["brief"])["brief"].result(DEADLINE_S)
    assert "brief" not in admin.list_topics(timeout=DEADLINE_S).topics


def test_kcat(broker, orders):
    kcat = shutil.which("kcat")
    if kcat is None:
        pytest.skip("kcat is not installed (Debian: apt-get install kcat)")

    def run(*arguments, given=""):
        command = [kcat, "-b", broker.address, *arguments]
        return subprocess.run(
            command, input=given, capture_output=True, text=True, timeout=DEADLINE_S, check=True
        ).stdout

    assert 'topic "orders" with 2 partitions' in run("-L")
    run("-P", "-t", "from-kcat", given="one\ntwo\n")
    assert run("-C", "-t", "from-kcat", "-o", "beginning", "-e", "-q") == "one\ntwo\n"
    assert run("-C", "-t", orders, "-p", "0", "-o", "-1", "-e", "-q") == f"{RECORDS - 2}\n"
