"""Requests and responses of the quorum, without their constant fields.

Follows: org.apache.kafka.raft.RaftMessage (KIP-595, KIP-996).

A message has the fields of its only topic partition; `wire` converts it to and from kio's entities. Each response has
the leader and epoch that its sender knows; this is how the receiver learns of a newer epoch (KIP-595). If a response
has a `top_level_error`, its other fields have no meaning.
"""

from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from reference_broker.core.quorum.voters import ReplicaKey
from reference_broker.protocol.errors import ErrorCode

NO_LEADER = -1
MAX_EPOCH = 2**31 - 1
"""The highest epoch, because epochs are int32 in the protocol and in files. No further election is possible."""
UNKNOWN_HIGH_WATERMARK = -1
UNSUPPORTED_HIGH_WATERMARK = 2**63 - 1
"""The high watermark in a Fetch request whose version is older than KIP-1166 and has no such field."""


class InconsistentMessageError(ValueError):
    """A message that contradicts the protocol or this node's state. It is rejected, and changes nothing.

    Kafka throws `IllegalStateException` instead, which ends the node that received the message.
    """


class OffsetAndEpoch(NamedTuple):
    """End offset of a log or snapshot, and the epoch of the record before it.

    Compare the ends of logs by `is_at_least`. The order of the tuples is that of snapshots: by offset first.
    """

    offset: int
    epoch: int

    def is_at_least(self, other: "OffsetAndEpoch") -> bool:
        """Whether a log with this end is at least as up-to-date as the other: by epoch, then by offset (Raft 5.4.1)."""
        return (self.epoch, self.offset) >= (other.epoch, other.offset)


@dataclass(frozen=True, slots=True)
class VoteRequest:
    """Vote request of a Candidate, or pre-vote request of a Prospective node.

    A pre-vote begins no epoch and uses up no vote (KIP-996).

    :param voter: the receiver, with the directory id that the sender knows.
    :param replica: the sender.
    :param last: end of the sender's log.
    """

    cluster_id: str
    voter: ReplicaKey
    replica: ReplicaKey
    replica_epoch: int
    last: OffsetAndEpoch
    pre_vote: bool


@dataclass(frozen=True, slots=True)
class VoteResponse:
    """Response to a Vote request."""

    leader_id: int = NO_LEADER
    leader_epoch: int = 0
    vote_granted: bool = False
    error: ErrorCode = ErrorCode.none
    top_level_error: ErrorCode = ErrorCode.none


@dataclass(frozen=True, slots=True)
class BeginQuorumEpochRequest:
    """Announcement of a leader to a voter that does not fetch."""

    cluster_id: str
    voter: ReplicaKey
    leader_id: int
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class BeginQuorumEpochResponse:
    """Response to a BeginQuorumEpoch request."""

    leader_id: int = NO_LEADER
    leader_epoch: int = 0
    error: ErrorCode = ErrorCode.none
    top_level_error: ErrorCode = ErrorCode.none


@dataclass(frozen=True, slots=True)
class EndQuorumEpochRequest:
    """Resignation of a leader, with its preferred successors, the best one first."""

    cluster_id: str
    leader_id: int
    leader_epoch: int
    preferred_candidates: tuple[ReplicaKey, ...]


@dataclass(frozen=True, slots=True)
class EndQuorumEpochResponse:
    """Response to an EndQuorumEpoch request."""

    leader_id: int = NO_LEADER
    leader_epoch: int = 0
    error: ErrorCode = ErrorCode.none
    top_level_error: ErrorCode = ErrorCode.none


@dataclass(frozen=True, slots=True)
class FetchRequest:
    """Fetch request of a voter or observer, whose log ends at the fetch offset."""

    cluster_id: str
    replica: ReplicaKey
    current_leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    max_wait_ms: int
    max_bytes: int
    high_watermark: int = UNSUPPORTED_HIGH_WATERMARK


@dataclass(frozen=True, slots=True)
class FetchResponse:
    """Response to a Fetch: records, or the diverging epoch, or the id of a snapshot that must be fetched first."""

    leader_id: int = NO_LEADER
    leader_epoch: int = 0
    high_watermark: int = UNKNOWN_HIGH_WATERMARK
    log_start_offset: int = -1
    diverging: OffsetAndEpoch | None = None
    snapshot_id: OffsetAndEpoch | None = None
    records: bytes = b""
    error: ErrorCode = ErrorCode.none
    top_level_error: ErrorCode = ErrorCode.none


@dataclass(frozen=True, slots=True)
class FetchSnapshotRequest:
    """Request for a part of a snapshot, from a byte position on (KIP-630)."""

    cluster_id: str
    replica: ReplicaKey
    current_leader_epoch: int
    snapshot_id: OffsetAndEpoch
    position: int
    max_bytes: int


@dataclass(frozen=True, slots=True)
class FetchSnapshotResponse:
    """A part of a snapshot; `size` is that of the whole snapshot. The snapshot id is null if there is an error."""

    leader_id: int = NO_LEADER
    leader_epoch: int = 0
    snapshot_id: OffsetAndEpoch | None = None
    size: int = 0
    position: int = 0
    data: bytes = b""
    error: ErrorCode = ErrorCode.none
    top_level_error: ErrorCode = ErrorCode.none


Request = VoteRequest | BeginQuorumEpochRequest | EndQuorumEpochRequest | FetchRequest | FetchSnapshotRequest
Response = VoteResponse | BeginQuorumEpochResponse | EndQuorumEpochResponse | FetchResponse | FetchSnapshotResponse


@dataclass(frozen=True, slots=True)
class ReplicaDescription:
    """State of a replica on the leader, for DescribeQuorum (KIP-836). Times are wall clock; -1 is unknown."""

    key: ReplicaKey
    log_end_offset: int
    last_fetch_timestamp_ms: int
    last_caught_up_timestamp_ms: int


@dataclass(frozen=True, slots=True)
class QuorumDescription:
    """State of the quorum on its leader."""

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[ReplicaDescription, ...]
    observers: tuple[ReplicaDescription, ...]


METADATA_TOPIC_ID = UUID(int=1)
"""Kafka's constant topic id of `__cluster_metadata`."""
