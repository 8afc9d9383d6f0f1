"""Durable election state of a node: epoch, leader and vote, in the file `quorum-state`.

Follows: org.apache.kafka.raft.ElectionState, org.apache.kafka.raft.FileQuorumStateStore (KIP-595).

    {"leaderId":1,"leaderEpoch":4,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}

Rules of this file:
- `write` writes version 1 (KIP-853, `QuorumStateData.json`). `read` also accepts version 0, which Kafka writes for
  static voters.
- A state that `read` would reject is never written.
- `write` replaces `quorum-state` atomically and durably. The new state takes effect only afterwards.
"""

import json
from dataclasses import dataclass
from uuid import UUID

from reference_broker.core.disk import Disk
from reference_broker.core.quorum.messages import MAX_EPOCH, NO_LEADER
from reference_broker.core.quorum.voters import ReplicaKey
from reference_broker.protocol.uuids import format_uuid, parse_uuid

QUORUM_STATE_FILE = "quorum-state"
_VERSION = 1
_NOT_VOTED = -1
_MAX_ID = 2**31 - 1
_NO_DIRECTORY = UUID(int=0)


class QuorumStateFileError(ValueError):
    """A `quorum-state` file that cannot be read. The node must stop; otherwise it might vote twice in an epoch."""


@dataclass(frozen=True, slots=True)
class ElectionState:
    """An epoch, its leader if known, and this node's vote in it. Raises `ValueError` for an invalid epoch or id."""

    epoch: int = 0
    leader_id: int = NO_LEADER
    voted: ReplicaKey | None = None

    def __post_init__(self) -> None:
        ids = self.leader_id, _NOT_VOTED if self.voted is None else self.voted.id
        if not (0 <= self.epoch <= MAX_EPOCH and all(-1 <= node_id <= _MAX_ID for node_id in ids)):
            raise ValueError(f"invalid epoch or node id: {self}")


class ElectionStateStore:
    """The file `quorum-state` in one directory."""

    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk = disk
        self._path = f"{directory}/{QUORUM_STATE_FILE}"

    def read(self) -> ElectionState:
        """Read the state; epoch 0 if there is no file. Raises `QuorumStateFileError`."""
        if not self._disk.exists(self._path):
            return ElectionState()
        text = self._disk.read(self._path, 0, self._disk.size(self._path))
        try:
            data = json.loads(text)
            if data["data_version"] not in {0, _VERSION}:
                raise ValueError(f"version {data['data_version']}")
            voted_directory = parse_uuid(data["votedDirectoryId"]) if "votedDirectoryId" in data else _NO_DIRECTORY
            voted = None if data["votedId"] == _NOT_VOTED else ReplicaKey(data["votedId"], _known(voted_directory))
            return ElectionState(int(data["leaderEpoch"]), int(data["leaderId"]), voted)
        except (KeyError, TypeError, ValueError) as error:
            raise QuorumStateFileError(f"{self._path} cannot be read: {error}") from error

    def write(self, election: ElectionState) -> None:
        """Write the state, durably."""
        voted = election.voted or ReplicaKey(_NOT_VOTED)
        data = {
            "leaderId": election.leader_id,
            "leaderEpoch": election.epoch,
            "votedId": voted.id,
            "votedDirectoryId": format_uuid(voted.directory_id or _NO_DIRECTORY),
            "data_version": _VERSION,
        }
        self._disk.replace(self._path, json.dumps(data, separators=(",", ":")).encode())


def _known(directory_id: UUID) -> UUID | None:
    return None if directory_id == _NO_DIRECTORY else directory_id
