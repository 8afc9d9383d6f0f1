"""The voters. The set is fixed for the life of a quorum; changes of it (KIP-853) are not supported.

Follows: org.apache.kafka.raft.VoterSet (KIP-595, KIP-853).

A voter is named by its id and the id of its directory: a node that lost its disk and comes back under the same id has
another directory id, is no voter any more, and so cannot vote twice in an epoch that it has forgotten.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID


class ReplicaKey(NamedTuple):
    """Id and directory id of a node. The directory id is null where it is not known."""

    id: int
    directory_id: UUID | None = None

    def matches(self, other: "ReplicaKey") -> bool:
        """Whether both name one node, as far as this one says."""
        return self.id == other.id and self.directory_id in {None, other.directory_id}


@dataclass(frozen=True, slots=True)
class Voter:
    """A member of the quorum, and where its controller listener is."""

    key: ReplicaKey
    host: str = ""
    port: int = 0


class VoterSet:
    """The voters of a quorum."""

    def __init__(self, voters: Iterable[Voter]) -> None:
        self._by_id = {voter.key.id: voter for voter in sorted(voters, key=lambda voter: voter.key.id)}

    @property
    def ids(self) -> tuple[int, ...]:
        """Ids, ascending."""
        return tuple(self._by_id)

    @property
    def majority(self) -> int:
        """How many voters are enough."""
        return len(self._by_id) // 2 + 1

    def contains(self, key: ReplicaKey) -> bool:
        """Whether a node is a voter: its id is, and its directory is the voter's."""
        voter = self._by_id.get(key.id)
        return voter is not None and voter.key.matches(key)

    def get(self, node_id: int) -> Voter | None:
        """The voter with an id."""
        return self._by_id.get(node_id)

    def others(self, node_id: int) -> tuple[int, ...]:
        """The ids of all but one."""
        return tuple(voter_id for voter_id in self._by_id if voter_id != node_id)

    def key_of(self, node_id: int) -> ReplicaKey:
        """The key of a voter. Raises `KeyError`."""
        return self._by_id[node_id].key
