"""Apache Kafka's `DumpLogSegments` decodes every type of our metadata records to the same values."""

import json
import re
from uuid import UUID

import pytest

from reference_broker.core.clock import Now
from reference_broker.core.metadata.metadata_writer import MetadataWriter
from reference_broker.core.quorum.configuration import QuorumConfig
from reference_broker.core.quorum.quorum_log import QUORUM_LOG_DIRECTORY
from reference_broker.core.quorum.raft_client import KafkaRaftClient
from reference_broker.core.quorum.voters import ReplicaKey, Voter, VoterSet
from reference_broker.protocol.metadata_records import (
    NO_LEADER,
    RECORD_TYPES,
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    PartitionChangeRecord,
    RemoveTopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)
from reference_broker.protocol.uuids import format_uuid
from reference_broker.server.file_disk import FileDisk
from tests.reference_broker.metadata.story import DIRECTORY, ORDERS, PAYMENTS, STORY

pytestmark = pytest.mark.java

NOW = Now(1_700_000_000_000, 0)
CHANGES = [
    PartitionChangeRecord(
        partition_id=0,
        topic_id=ORDERS,
        isr=(2,),
        leader=NO_LEADER,
        replicas=(2, 3),
        removing_replicas=(),
        adding_replicas=(3,),
        leader_recovery_state=1,
        directories=(None, DIRECTORY),
    ),
    PartitionChangeRecord(partition_id=1, topic_id=ORDERS, leader=2),
    UnfenceBrokerRecord(id=1, epoch=3),
    FenceBrokerRecord(id=1, epoch=3),
    BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=3, fenced=-1, in_controlled_shutdown=1),
    UnregisterBrokerRecord(broker_id=1, broker_epoch=3),
    RemoveTopicRecord(topic_id=PAYMENTS),
]


@pytest.fixture
def dumped(kafka_tool, tmp_path):
    """Return type and content of each record in the output of Kafka's tool."""
    disk = FileDisk(tmp_path)
    local = ReplicaKey(1, UUID(int=1))
    quorum = KafkaRaftClient(
        local=local,
        voters=VoterSet([Voter(local)]),
        cluster_id="dumped",
        config=QuorumConfig(),
        disk=disk,
        random_below=lambda _: 0,
        now=NOW,
    )
    writer = MetadataWriter(quorum)
    writer.append([*STORY, *CHANGES], quorum.state.epoch, NOW)
    writer.flush(NOW)
    disk.close()
    path = str(tmp_path / QUORUM_LOG_DIRECTORY / f"{0:020d}.log")
    printed = kafka_tool(
        "org.apache.kafka.tools.DumpLogSegments",
        ["--cluster-metadata-decoder", "--deep-iteration", "--print-data-log", "--files", path],
    )
    payloads = [json.loads(text) for text in re.findall(r"payload: (\{.*\})", printed)]
    return [(payload["type"], payload["data"]) for payload in payloads]


def test_tool_decodes_every_record(dumped):
    written = [*STORY, *CHANGES]
    kinds = [kind.replace("_", "").lower() for kind, _ in dumped]
    assert kinds == [type(record).__name__.lower() for record in written]
    assert set(kinds) == {known.__name__.lower() for known in RECORD_TYPES.values()}
    by_type = {}
    for kind, data in dumped:
        by_type.setdefault(kind, []).append(data)
    [registered, _] = by_type["REGISTER_BROKER_RECORD"]
    assert (registered["brokerId"], registered["brokerEpoch"], registered["fenced"]) == (1, 3, True)
    assert registered["logDirs"] == [format_uuid(DIRECTORY)]
    [partition, *_] = by_type["PARTITION_RECORD"]
    assert (partition["replicas"], partition["isr"], partition["leader"]) == ([1, 2], [1, 2], 1)
    [change, election] = by_type["PARTITION_CHANGE_RECORD"]
    assert {name: value for name, value in change.items() if name not in {"topicId", "directories"}} == {
        "partitionId": 0,
        "isr": [2],
        "leader": -1,
        "replicas": [2, 3],
        "removingReplicas": [],
        "addingReplicas": [3],
        "leaderRecoveryState": 1,
    }
    assert change["directories"] == [format_uuid(UUID(int=0)), format_uuid(DIRECTORY)]
    assert election == {"partitionId": 1, "topicId": format_uuid(ORDERS), "leader": 2}
    [unfenced] = by_type["BROKER_REGISTRATION_CHANGE_RECORD"]
    assert (unfenced["fenced"], unfenced["inControlledShutdown"]) == (-1, 1)
