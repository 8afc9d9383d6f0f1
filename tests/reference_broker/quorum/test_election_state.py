"""The `quorum-state` file in Kafka's format."""

from uuid import UUID

import pytest

from reference_broker.core.disk import MemoryDisk
from reference_broker.core.quorum.election_state import ElectionState, ElectionStateStore, QuorumStateFileError
from reference_broker.core.quorum.voters import ReplicaKey

PATH = "log/quorum-state"
WRITTEN_BY_KAFKA = (
    b'{"clusterId":"","leaderId":1,"leaderEpoch":7,"votedId":-1,"appliedOffset":0,'
    b'"currentVoters":[{"voterId":1}],"data_version":0}'
)
"""Content that Apache Kafka 4.3.1 wrote with static voters."""


def store(content=None):
    disk = MemoryDisk()
    if content is not None:
        disk.replace(PATH, content)
    return disk, ElectionStateStore(disk, "log")


@pytest.mark.parametrize(
    "election",
    [
        ElectionState(),
        ElectionState(3, 2),
        ElectionState(4, -1, ReplicaKey(1, UUID(int=5))),
        ElectionState(4, 2, ReplicaKey(2)),
    ],
)
def test_election_state_round_trips(election):
    disk, written = store()
    written.write(election)
    assert ElectionStateStore(disk, "log").read() == election


def test_file_has_kafkas_version_1():
    disk, written = store()
    written.write(ElectionState(4, -1, ReplicaKey(1, UUID(int=1))))
    assert bytes(disk.files[PATH]) == (
        b'{"leaderId":-1,"leaderEpoch":4,"votedId":1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAQ","data_version":1}'
    )


def test_version_0_is_accepted():
    assert store(WRITTEN_BY_KAFKA)[1].read() == ElectionState(7, 1)


def test_new_node_is_in_epoch_0():
    assert store()[1].read() == ElectionState()


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"data_version":2}', WRITTEN_BY_KAFKA[:-10]])
def test_damaged_file_is_rejected(content):
    """If the node started again in epoch 0, it could vote twice in an epoch."""
    with pytest.raises(QuorumStateFileError, match="quorum-state"):
        store(content)[1].read()
