"""Voters of a static quorum. Changes of the set (KIP-853) are not supported.

Follows: org.apache.kafka.raft.VoterSet (KIP-595, KIP-853).

A voter is identified by its node id, and by its directory id if the set contains directory ids. A node that restarts
with an empty disk has lost its vote, and has a new directory id:

- In a set with directory ids, it is no longer a voter. Otherwise it could vote twice in an epoch.
- In a set without, such as that of `controller.quorum.voters`, it remains a voter, as in Kafka.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from reference_broker.core.connection import CONTROLLER_LISTENER


class ReplicaKey(NamedTuple):
    """Node id and directory id; the directory id is null if it is unknown."""

    id: int
    directory_id: UUID | None = None

    def matches(self, other: "ReplicaKey") -> bool:
        """Whether the other key has the same id, and the same directory id if the directory id of this key is known."""
        return self.id == other.id and self.directory_id in {None, other.directory_id}


@dataclass(frozen=True, slots=True)
class Voter:
    """A voter, and the endpoint of its controller listener.

    :param listener: the name of the controller listener, the same for all voters (`VoterSet.fromInetSocketAddresses`).
    """

    key: ReplicaKey
    host: str = ""
    port: int = 0
    listener: str = CONTROLLER_LISTENER


class VoterSet:
    """Voters of a quorum, by id."""

    def __init__(self, voters: Iterable[Voter]) -> None:
        self._by_id = {voter.key.id: voter for voter in sorted(voters, key=lambda voter: voter.key.id)}

    @property
    def ids(self) -> tuple[int, ...]:
        """Ids of the voters, ascending."""
        return tuple(self._by_id)

    @property
    def majority(self) -> int:
        """The smallest number of voters that is a majority."""
        return len(self._by_id) // 2 + 1

    def contains(self, key: ReplicaKey) -> bool:
        """Whether a node is a voter, by id and directory id."""
        voter = self._by_id.get(key.id)
        return voter is not None and voter.key.matches(key)

    def get(self, node_id: int) -> Voter | None:
        """Return the voter with an id, or null."""
        return self._by_id.get(node_id)

    def others(self, node_id: int) -> tuple[int, ...]:
        """Return the ids of all voters except this node, ascending."""
        return tuple(voter_id for voter_id in self._by_id if voter_id != node_id)

    def key_of(self, node_id: int) -> ReplicaKey:
        """Return the key of a voter. Raises `KeyError`."""
        return self._by_id[node_id].key
