"""Data directories of the reference broker: Apache Kafka opens and serves them."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from fixtures.network.loopback import LoopbackBlock
from fixtures.targets.apache_kafka import LOG4J_PROPERTIES
from fixtures.targets.jars import JarLock
from fixtures.targets.java import find_java
from fixtures.targets.kafka_nodes import JVM_FLAGS
from fixtures.targets.meta_properties import write_properties
from fixtures.targets.processes import GuardedProcess
from fixtures.targets.target import NotInstalledError
from tests.reference_broker.server.process import running

pytestmark = pytest.mark.java

TOPIC, GROUP, RECORDS = "orders", "alone", 500
READY_TIMEOUT_S = 60
T = TypeVar("T")


def fill(address: str) -> None:
    admin = AdminClient({"bootstrap.servers": address})
    [created] = admin.create_topics([NewTopic(TOPIC, 1, 1)]).values()
    created.result(10)
    producer = Producer({"bootstrap.servers": address, "enable.idempotence": True, "compression.type": "zstd"})
    for number in range(RECORDS):
        producer.produce(TOPIC, b"%d" % number)
    assert producer.flush(10) == 0
    consumer = Consumer({"bootstrap.servers": address, "group.id": GROUP, "enable.auto.commit": False})
    consumer.commit(offsets=[TopicPartition(TOPIC, 0, 123)], asynchronous=False)
    consumer.close()


@contextmanager
def apache_kafka(data: Path, work_dir: Path) -> Iterator[str]:
    """Run Apache Kafka with the same node id and quorum; yield its address."""
    try:
        java, class_path = find_java().executable, JarLock.load("4.3.1").class_path()
    except NotInstalledError as error:
        pytest.skip(str(error))
    block = LoopbackBlock.reserve()
    client, controller = f"{block.node(1)}:{block.ports.client}", f"{block.node(1)}:{block.ports.controller}"
    write_properties(
        work_dir / "broker.properties",
        {
            "process.roles": "broker,controller",
            "node.id": "1",
            "listeners": f"PLAINTEXT://{client},CONTROLLER://{controller}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": f"1@{controller}",
            "log.dirs": str(data),
        },
    )
    (work_dir / "log4j.properties").write_text(LOG4J_PROPERTIES)
    logging = f"-Dlog4j.configuration=file:{work_dir / 'log4j.properties'}"
    command = [java, *JVM_FLAGS, logging, "-cp", class_path, "kafka.Kafka"]
    process = GuardedProcess([*command, str(work_dir / "broker.properties")], work_dir / "broker.log")
    try:
        yield client
        assert process.running, process.describe_end()
    finally:
        process.kill()
        block.close()


def test_kafka_serves_our_directory(tmp_path):
    with running(tmp_path / "data", "--set", "offsets.topic.num.partitions=1") as broker:
        fill(broker.address)
        assert broker.stop() == (0, "")
    with apache_kafka(tmp_path / "data", tmp_path) as address:
        consumer = Consumer(
            {"bootstrap.servers": address, "group.id": GROUP, "auto.offset.reset": "earliest", "log_level": 0}
        )
        assert watermarks(consumer) == (0, RECORDS)
        assert committed_offset(consumer) == 123
        consumer.assign([TopicPartition(TOPIC, 0, 0)])
        messages = []
        while len(messages) < RECORDS:
            found = consumer.consume(RECORDS, timeout=20)
            assert found, f"{len(messages)} of {RECORDS} records"
            messages += found
        assert [message.value() for message in messages] == [b"%d" % number for number in range(RECORDS)]
        consumer.close()


def watermarks(consumer: Consumer) -> tuple[int, int]:
    """Return the watermarks as soon as the partition has a leader."""
    return retry_until_available(lambda: consumer.get_watermark_offsets(TopicPartition(TOPIC, 0), timeout=1))


def committed_offset(consumer: Consumer) -> int:
    """Return the committed offset as soon as the coordinator has loaded its partition."""
    [found] = retry_until_available(lambda: consumer.committed([TopicPartition(TOPIC, 0)], timeout=5))
    return found.offset


def retry_until_available(operation: Callable[[], T]) -> T:
    """Retry an operation: Kafka accepts requests before all partitions and coordinators are available."""
    deadline = time.monotonic() + READY_TIMEOUT_S
    while True:
        try:
            return operation()
        except KafkaException:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
