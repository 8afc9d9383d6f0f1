"""Apache Kafka's `DumpLogSegments` reads our log directories and reports no problem."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from reference_broker.core.log.config import LogConfig
from reference_broker.core.log.unified_log import UnifiedLog
from reference_broker.server.file_disk import FileDisk
from tests.reference_broker.log.batches import (
    NOW_MS,
    Compression,
    RecordBatch,
    encode_batch,
    idempotent,
    plain,
    records,
)

pytestmark = pytest.mark.java

DUMP = "org.apache.kafka.tools.DumpLogSegments"
DIRECTORY = "orders-0"
CONFIG = LogConfig(segment_bytes=8000, index_interval_bytes=300, max_message_bytes=4000)
PROBLEMS = re.compile(r"mismatch|is followed by|out of order|isvalid: false|corrupt|exception|error", re.IGNORECASE)
FIRST_OF_A_SEGMENT = "  -1 is followed by "
"""Reported for each segment but the first, because the tool of 4.3.1 expects each file to begin at offset 0.

It is also reported for segments of Apache Kafka.
"""


def problems(printed: str) -> list[str]:
    lines = (line for line in printed.splitlines() if not line.startswith(FIRST_OF_A_SEGMENT))
    return [line for line in lines if PROBLEMS.search(line)]


@pytest.fixture(scope="module")
def log_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a log directory with several epochs, codecs and segments, a producer, and a recovered torn tail."""
    root = tmp_path_factory.mktemp("data")
    disk = FileDisk(root)
    log = UnifiedLog.open(disk, DIRECTORY, CONFIG, NOW_MS)
    for number in range(60):
        epoch = number // 20
        log.append(plain(1 + number % 7, NOW_MS + number * 10, size=50), leader_epoch=epoch, now_ms=NOW_MS)
        log.append(idempotent(1000, 0, number * 3, 3, NOW_MS - number), leader_epoch=epoch, now_ms=NOW_MS)
        codec = Compression(number % 5)
        log.append(plain(4, NOW_MS + 5, size=100, compression=codec), leader_epoch=epoch, now_ms=NOW_MS)
    log.truncate_to(log.log_end_offset - 20, NOW_MS)
    log.config = replace(CONFIG, message_timestamp_type="LogAppendTime")
    for number in range(10):
        log.append(plain(2, NOW_MS), leader_epoch=7, now_ms=NOW_MS + 1000 + number)
        log.append(plain(2, NOW_MS, compression=Compression.GZIP), leader_epoch=7, now_ms=NOW_MS + 1000 + number)
    last = max(name for name in disk.list(DIRECTORY) if name.endswith(".log"))
    disk.append(f"{DIRECTORY}/{last}", b"torn" * 20)
    log = UnifiedLog.open(disk, DIRECTORY, CONFIG, NOW_MS)
    log.append(idempotent(1000, 1, 0, 2), leader_epoch=8, now_ms=NOW_MS)
    log.close()
    disk.close()
    return root / DIRECTORY


def files(directory: Path, *suffixes: str) -> str:
    return ",".join(str(path) for path in sorted(directory.iterdir()) if path.suffix in suffixes)


def test_tool_reads_every_batch_and_record(kafka_tool, log_directory):
    printed = kafka_tool(DUMP, ["--deep-iteration", "--print-data-log", "--files", files(log_directory, ".log")])
    assert not problems(printed)
    batches = re.findall(r"^baseOffset: (\d+) lastOffset: (\d+) count: (\d+)", printed, re.MULTILINE)
    offsets = [int(offset) for offset in re.findall(r"^\| offset: (\d+) ", printed, re.MULTILINE)]
    assert len(list(log_directory.glob("*.log"))) > 3
    assert offsets == list(range(int(batches[-1][1]) + 1))
    assert printed.count("isvalid: true") == len(batches)
    assert set(re.findall(r"compresscodec: (\w+)", printed)) == {"none", "gzip", "snappy", "lz4", "zstd"}
    assert re.findall(r"partitionLeaderEpoch: (\d+)", printed)[-1] == "8"
    assert "producerId: 1000 producerEpoch: 1" in printed


def test_indexes_agree_with_the_log(kafka_tool, log_directory):
    """Without `--index-sanity-check`, the tool compares every entry of an index with its `.log`."""
    printed = kafka_tool(DUMP, ["--deep-iteration", "--files", files(log_directory, ".index", ".timeindex")])
    assert not problems(printed)
    assert len(re.findall(r"^offset: \d+ position: \d+", printed, re.MULTILINE)) > 20
    assert len(re.findall(r"^timestamp: \d+ offset: \d+", printed, re.MULTILINE)) > 10


def test_indexes_pass_the_sanity_check(kafka_tool, log_directory):
    paths = files(log_directory, ".index", ".timeindex")
    printed = kafka_tool(DUMP, ["--index-sanity-check", "--files", paths])
    assert printed.count("passed sanity check.") == len(paths.split(",")), printed


def test_tool_reads_the_producer_snapshot(kafka_tool, log_directory):
    printed = kafka_tool(DUMP, ["--files", files(log_directory, ".snapshot").split(",")[-1]])
    assert "producerId: 1000 producerEpoch: 1" in printed
    assert "lastSequence: 1" in printed


def test_invalid_batch_is_reported(kafka_tool, log_directory, tmp_path):
    """The tool and the pattern detect an invalid batch, which shows that the other tests can fail."""
    path = tmp_path / f"{0:020d}.log"
    path.write_bytes(encode_batch(RecordBatch(records(1))) + encode_batch(RecordBatch(records(1), base_offset=7)))
    printed = kafka_tool(DUMP, ["--deep-iteration", "--files", str(path)])
    assert problems(printed)
