"""Apache Kafka and the reference broker write byte-identical files for the same batches."""

import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from fixtures.clients import requests
from fixtures.clients.raw import RawClient
from fixtures.targets.catalogue import parse_target
from fixtures.targets.java import find_java
from fixtures.targets.target import NotInstalledError, Target
from reference_broker.core.log.config import LogConfig
from reference_broker.core.log.producer_state_manager import ProducerStateManager
from reference_broker.core.log.unified_log import UnifiedLog
from reference_broker.server.file_disk import FileDisk
from tests.reference_broker.log.batches import NOW_MS, Compression, decode_batches, idempotent, plain

pytestmark = pytest.mark.java

TOPIC = "orders"
DIRECTORY = f"{TOPIC}-0"
SEGMENT_BYTES = 1024 * 1024
PROPERTIES = {"segment.bytes": str(SEGMENT_BYTES), "index.interval.bytes": "500", "retention.ms": "-1"}
CONFIG = LogConfig(segment_bytes=SEGMENT_BYTES, index_interval_bytes=500, retention_ms=-1)
PRODUCE, CREATE_TOPICS = 0, 19


def batches() -> Iterator[bytes]:
    """Yield three segments of batches: various sizes, codecs and timestamps, and several idempotent producers."""
    for number in range(40):
        timestamp_ms = NOW_MS + number * 100 - (number % 3) * 250
        yield plain(1 + number % 5, timestamp_ms, size=40, compression=Compression(number % 5))
        yield idempotent(1000, 0, number * 2, 2, timestamp_ms)
        yield idempotent(2000 + number % 2, number // 20, number % 20 // 2, 1, timestamp_ms - 1000)
        yield plain(20, timestamp_ms, size=3000)
    yield idempotent(1000, 0, 78, 2, NOW_MS)  # a duplicate


def produce_all(client: RawClient, batches: Sequence[bytes]) -> None:
    for batch in batches:
        schema = client.schema_for(PRODUCE, 12)
        request = requests.produce(schema, TOPIC, 0, batch, acks=-1, timeout_ms=10_000)
        deadline = time.monotonic() + 15
        not_yet = (ErrorCode.unknown_topic_or_partition, ErrorCode.not_leader_or_follower)
        while (produced := partition_response(client.request(request))).error_code in not_yet:
            assert time.monotonic() < deadline, "the new topic has no leader"
        assert produced.error_code == ErrorCode.none, produced


def partition_response(response: Any) -> Any:
    (partition,) = response.responses[0].partition_responses
    return partition


@pytest.fixture(scope="module")
def kafkas_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory of the partition after its Apache Kafka broker was killed."""
    work_dir = tmp_path_factory.mktemp("kafka")
    try:
        find_java()
        target: Target = parse_target("apache-kafka:4.3.1", 1, work_dir=work_dir, mesh=False)
    except NotInstalledError as error:
        pytest.skip(str(error))
    with target:
        (node,) = target.nodes
        with RawClient(node.host, node.port) as client:
            schema = client.schema_for(CREATE_TOPICS)
            client.request(
                requests.create_topic(
                    schema, TOPIC, partitions=1, replication_factor=1, properties=PROPERTIES, timeout_ms=10_000
                )
            )
            produce_all(client, list(batches()))
        (directory,) = target.log_directories(1)
    return Path(directory) / DIRECTORY


@pytest.fixture(scope="module")
def our_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory of our log with the same batches. It is not closed either."""
    root = tmp_path_factory.mktemp("ours")
    disk = FileDisk(root)
    log = UnifiedLog.open(disk, DIRECTORY, CONFIG, NOW_MS)
    for batch in batches():
        log.append(batch, leader_epoch=0, now_ms=NOW_MS)
    disk.close()
    return root / DIRECTORY


def named(directory: Path, suffix: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(directory.iterdir()) if path.suffix == suffix}


def test_segments_are_equal(kafkas_directory, our_directory):
    assert len(named(our_directory, ".log")) == 3
    assert named(our_directory, ".log") == named(kafkas_directory, ".log")


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_indexes_are_equal(kafkas_directory, our_directory, suffix):
    """Kafka preallocates space at the end of the active segment's indexes. The rest is equal."""
    ours, kafkas = named(our_directory, suffix), named(kafkas_directory, suffix)
    active = max(kafkas)
    preallocated = len(kafkas[active]) - len(ours[active])
    assert len(ours[active]) > 0
    assert ours | {active: ours[active] + bytes(preallocated)} == kafkas


def test_producer_snapshots_are_equal(kafkas_directory, our_directory):
    """Only the order of the producers may differ, because Kafka writes them in the order of a hash table."""

    def entries(data: bytes) -> tuple[bytes, list[bytes]]:
        return data[6:10], sorted(data[start : start + 46] for start in range(10, len(data), 46))

    ours, kafkas = named(our_directory, ".snapshot"), named(kafkas_directory, ".snapshot")
    assert {name: entries(data) for name, data in ours.items()} == {
        name: entries(data) for name, data in kafkas.items()
    }
    assert all(len(entries(data)[1]) == 3 for data in ours.values())
    assert all(ProducerStateManager().load(data) for data in kafkas.values())


def test_epoch_checkpoints_are_equal(kafkas_directory, our_directory):
    name = "leader-epoch-checkpoint"
    assert (our_directory / name).read_bytes() == (kafkas_directory / name).read_bytes()


def test_our_log_recovers_kafkas_directory(kafkas_directory, our_directory, tmp_path):
    shutil.copytree(kafkas_directory, tmp_path / DIRECTORY)
    disk = FileDisk(tmp_path)
    log = UnifiedLog.open(disk, DIRECTORY, CONFIG, NOW_MS)
    stored = [batch for data in named(our_directory, ".log").values() for batch in decode_batches(data)]
    assert log.log_end_offset == stored[-1].next_offset
    assert log.append(idempotent(1000, 0, 80), leader_epoch=1, now_ms=NOW_MS).base_offset == stored[-1].next_offset
    disk.close()
