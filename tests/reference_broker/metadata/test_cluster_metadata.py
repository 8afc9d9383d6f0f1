"""The metadata image of the committed records, and the error for missing records."""

from unittest.mock import patch

import pytest

from reference_broker.core.disk import MemoryDisk
from reference_broker.core.log.config import LogConfig
from reference_broker.core.metadata.cluster_metadata import ClusterMetadata, MetadataFaultError
from reference_broker.core.quorum.control_records import leader_change_batch
from reference_broker.core.quorum.quorum_log import QUORUM_LOG_DIRECTORY, QuorumLog
from reference_broker.protocol.metadata_records import FeatureLevelRecord, encode_metadata_record
from reference_broker.protocol.records import KeyValue, encode_batch
from reference_broker.protocol.steps import finish

NOW_MS = 1_700_000_000_000
CONFIG = LogConfig(cleanup_policy=frozenset(), segment_bytes=200, index_interval_bytes=100)


def log_with_records(disk: MemoryDisk, records: int) -> QuorumLog:
    log = QuorumLog(disk, CONFIG, NOW_MS)
    for level in range(1, records + 1):
        value = encode_metadata_record(FeatureLevelRecord(name="metadata.version", feature_level=level))
        log.append_as_leader(encode_batch([KeyValue(None, value)], NOW_MS), 1, NOW_MS)
    log.flush()
    return log


def segments(disk: MemoryDisk) -> list[str]:
    return [name for name in disk.list(QUORUM_LOG_DIRECTORY) if name.endswith(".log")]


def test_image_follows_the_high_watermark():
    metadata = ClusterMetadata(log_with_records(MemoryDisk(), 9))
    for high_watermark in (0, 1, 5, 9):
        finish(metadata.advance(high_watermark))
        assert (metadata.offset, metadata.image.features.get("metadata.version", 0)) == (
            high_watermark - 1,
            high_watermark,
        )


LENGTH = slice(8, 12)


@pytest.mark.parametrize(
    "damage",
    [
        lambda batch: batch[:-1],
        lambda batch: batch[:40],
        lambda batch: batch[: LENGTH.start] + (-12).to_bytes(4, "big", signed=True) + batch[LENGTH.stop :],
        lambda batch: batch[: LENGTH.start] + bytes(4) + batch[LENGTH.stop :],
    ],
    ids=["records", "header", "negative length", "no length"],
)
def test_incomplete_batches_are_an_error(damage):
    """Even control batches must be complete, although their records are not decoded."""
    log = QuorumLog(MemoryDisk(), CONFIG, NOW_MS)
    log.append_as_leader(leader_change_batch(1, (1,), (1,), NOW_MS), 1, NOW_MS)
    metadata = ClusterMetadata(log)
    damaged = damage(log.read(0, 1_000))
    with (
        patch.object(QuorumLog, "read", lambda *_: damaged),
        pytest.raises(MetadataFaultError, match="after offset -1: BatchError"),
    ):
        finish(metadata.advance(1))
    assert metadata.offset == -1


def test_missing_records_are_an_error():
    disk = MemoryDisk()
    log_with_records(disk, 9)
    middle = segments(disk)[1]
    disk.delete(f"{QUORUM_LOG_DIRECTORY}/{middle}")
    metadata = ClusterMetadata(QuorumLog(disk, CONFIG, NOW_MS))
    with pytest.raises(MetadataFaultError, match=f"records are missing after offset {int(middle[:20]) - 1}"):
        finish(metadata.advance(9))
