"""Apache Kafka's `DumpLogSegments` reads the log and the snapshots of a quorum."""

import re
from pathlib import Path
from uuid import UUID

import pytest

from reference_broker.core.clock import Now
from reference_broker.core.quorum.configuration import QuorumConfig
from reference_broker.core.quorum.quorum_log import QUORUM_LOG_DIRECTORY
from reference_broker.core.quorum.raft_client import KafkaRaftClient
from reference_broker.core.quorum.snapshots import encode_snapshot
from reference_broker.core.quorum.voters import ReplicaKey, Voter, VoterSet
from reference_broker.protocol.metadata_records import FeatureLevelRecord, encode_metadata_record
from reference_broker.protocol.records import KeyValue, encode_batch
from reference_broker.server.file_disk import FileDisk

pytestmark = pytest.mark.java

DUMP = "org.apache.kafka.tools.DumpLogSegments"
NOW = Now(1_700_000_000_000, 0)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Return the metadata log directory of a single voter with records of epochs 1 and 2 and a snapshot."""
    disk = FileDisk(tmp_path)
    local = ReplicaKey(1, UUID(int=1))
    for epoch in (1, 2):
        node = KafkaRaftClient(
            local=local,
            voters=VoterSet([Voter(local)]),
            cluster_id="dumped",
            config=QuorumConfig(),
            disk=disk,
            random_below=lambda _: 0,
            now=NOW,
        )
        record = FeatureLevelRecord(name="metadata.version", feature_level=20 + epoch)
        value = KeyValue(None, encode_metadata_record(record))
        node.append([encode_batch([value], NOW.wall_ms)], epoch, NOW)
    data = encode_snapshot(2, [[value]], last_contained_log_timestamp_ms=NOW.wall_ms, now_ms=NOW.wall_ms)
    node.create_snapshot(4, data)
    disk.close()
    return tmp_path / QUORUM_LOG_DIRECTORY


def test_tool_reads_the_log(kafka_tool, directory):
    path = str(directory / f"{0:020d}.log")
    printed = kafka_tool(DUMP, ["--cluster-metadata-decoder", "--deep-iteration", "--print-data-log", "--files", path])
    assert len(re.findall(r"LeaderChange", printed)) == 2
    assert re.findall(r'"featureLevel":(\d+)', printed) == ["21", "22"]
    assert re.findall(r"partitionLeaderEpoch: (\d+)", printed) == ["1", "1", "2", "2"]
    assert printed.count("isvalid: true") == 4


def test_tool_reads_the_snapshot(kafka_tool, directory):
    path = str(directory / f"{4:020d}-{2:010d}.checkpoint")
    printed = kafka_tool(DUMP, ["--cluster-metadata-decoder", "--deep-iteration", "--print-data-log", "--files", path])
    assert "SnapshotHeader" in printed
    assert re.findall(r'"featureLevel":(\d+)', printed) == ["22"]
    assert "SnapshotFooter" in printed
