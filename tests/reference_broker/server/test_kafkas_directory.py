"""Data directories of Apache Kafka: the reference broker opens and serves them, and decodes their segments."""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from kio.schema.errors import ErrorCode

from fixtures.clients import requests
from fixtures.clients.raw import RawClient
from fixtures.clients.record_batch import Compression, decode_batches
from fixtures.targets.catalogue import parse_target
from fixtures.targets.java import find_java
from fixtures.targets.stored_batches import read_segment, segment_files
from fixtures.targets.target import NotInstalledError
from tests.reference_broker.log.batches import idempotent, plain
from tests.reference_broker.server.process import RunningBroker, running
from tests.waiting import wait_until

pytestmark = pytest.mark.java

TOPIC = "orders"
PRODUCE, FETCH, CREATE_TOPICS = 0, 1, 19
PROPERTIES = {"segment.bytes": "1048576", "index.interval.bytes": "500", "retention.ms": "-1"}
COMMITTED = {"alone": 12, "another": 34}
DUMP = "org.apache.kafka.tools.DumpLogSegments"
NOW_MS = int(time.time() * 1000)
"""The current time: with older timestamps, the producers would be expired."""


def batches() -> Iterator[bytes]:
    """Yield two segments of batches: every codec, several idempotent producers, timestamps that are not sorted."""
    for number in range(40):
        timestamp_ms = NOW_MS + number * 100 - (number % 3) * 250
        yield plain(1 + number % 5, timestamp_ms, size=40, compression=Compression(number % 5))
        yield idempotent(1000, 0, number * 2, 2, timestamp_ms)
        yield idempotent(2000 + number % 2, number // 20, number % 20 // 2, 1, timestamp_ms - 1000)
        yield plain(10, timestamp_ms, size=4000)


def produce(client: RawClient, batch: bytes) -> Any:
    schema = client.schema_for(PRODUCE, 12)
    response = client.request(requests.produce(schema, TOPIC, 0, batch, acks=-1, timeout_ms=10_000))
    [partition] = response.responses[0].partition_responses
    return partition


def produce_to_leader(client: RawClient, batch: bytes) -> Any:
    """Produce a batch, with retries until the new topic has a leader; return the response."""
    not_yet = (ErrorCode.unknown_topic_or_partition, ErrorCode.not_leader_or_follower)
    responses = []

    def is_served() -> bool:
        responses.append(produce(client, batch))
        return responses[-1].error_code not in not_yet

    wait_until(is_served)
    return responses[-1]


def commit(address: str) -> None:
    for group, offset in COMMITTED.items():
        consumer = Consumer({"bootstrap.servers": address, "group.id": group, "enable.auto.commit": False})
        consumer.commit(offsets=[TopicPartition(TOPIC, 0, offset)], asynchronous=False)
        consumer.close()


@pytest.fixture(scope="module")
def kafkas_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the data directory of Apache Kafka after a clean shutdown."""
    work_dir = tmp_path_factory.mktemp("kafka")
    try:
        find_java()
        target = parse_target("apache-kafka:4.3.1", 1, work_dir=work_dir, mesh=False)
    except NotInstalledError as error:
        pytest.skip(str(error))
    with target:
        [node] = target.nodes
        with RawClient(node.host, node.port) as client:
            schema = client.schema_for(CREATE_TOPICS)
            client.request(
                requests.create_topic(
                    schema, TOPIC, partitions=1, replication_factor=1, properties=PROPERTIES, timeout_ms=10_000
                )
            )
            for batch in batches():
                assert produce_to_leader(client, batch).error_code == ErrorCode.none
        commit(f"{node.host}:{node.port}")
        [data] = target.log_directories(1)
        target.processes.shut_down(1)
    return Path(data)


@pytest.fixture(params=["stopped", "crashed"])
def served(request: pytest.FixtureRequest, kafkas_directory: Path, tmp_path: Path) -> Iterator[Any]:
    """Yield a broker that runs on a copy of Kafka's directory, and the stored batches.

    The case `crashed` has no clean shutdown file, so the broker recovers its logs.
    """
    data = shutil.copytree(kafkas_directory, tmp_path / "data")
    if request.param == "crashed":
        (data / ".kafka_cleanshutdown").unlink()
    batches = [batch for segment in segment_files(data / f"{TOPIC}-0") for batch in read_segment(segment)]
    with running(data) as broker:
        yield broker, batches


def test_reference_broker_serves_kafkas_directory(served):
    broker, stored = served
    assert read_all(broker) == [
        offset for batch in stored for offset in range(batch.base_offset, batch.last_offset + 1)
    ]
    for group, offset in COMMITTED.items():
        consumer = Consumer({"bootstrap.servers": broker.address, "group.id": group})
        [found] = consumer.committed([TopicPartition(TOPIC, 0)], timeout=10)
        consumer.close()
        assert found.offset == offset
    with RawClient(broker.host, broker.port) as client:
        end = stored[-1].last_offset + 1
        again = produce(client, idempotent(1000, 0, 78, 2, NOW_MS))
        assert (again.error_code, again.base_offset) == (ErrorCode.none, offset_of(stored, 1000, 78))
        assert produce(client, idempotent(1000, 0, 90)).error_code == ErrorCode.out_of_order_sequence_number
        assert produce(client, idempotent(1000, 0, 80)).base_offset == end
    producer = Producer({"bootstrap.servers": broker.address, "enable.idempotence": True})
    offsets: list[int] = []
    producer.produce(TOPIC, b"x", on_delivery=lambda _, message: offsets.append(message.offset()))
    producer.flush(10)
    assert offsets == [end + 1]
    assert broker.stop() == (0, "")


def offset_of(batches: list[Any], producer_id: int, base_sequence: int) -> int:
    wanted = (producer_id, base_sequence)
    return next(batch.base_offset for batch in batches if (batch.producer_id, batch.base_sequence) == wanted)


def read_all(broker: RunningBroker) -> list[int]:
    """Fetch all records and return their offsets."""
    offsets: list[int] = []
    with RawClient(broker.host, broker.port) as client:
        schema = client.schema_for(FETCH, 12)
        while True:
            request = requests.fetch(
                schema, TOPIC, 0, offsets[-1] + 1 if offsets else 0, max_wait_ms=0, max_bytes=500_000, min_bytes=0
            )
            [fetched] = client.request(request).responses[0].partitions
            assert fetched.error_code == ErrorCode.none
            found = [record.offset for batch in decode_batches(fetched.records or b"") for record in batch.records]
            if not found:
                return offsets
            offsets += found


def test_our_dump_equals_kafkas(kafka_tool, kafkas_directory):
    segments = segment_files(kafkas_directory / f"{TOPIC}-0")
    assert len(segments) == 2
    printed = kafka_tool(DUMP, ["--deep-iteration", "--print-data-log", "--files", ",".join(map(str, segments))])
    ours = [batch.as_dumped() for segment in segments for batch in read_segment(segment)]
    assert [line for line in printed.splitlines() if line.startswith("baseOffset: ")] == ours
    assert len(ours) == 160
