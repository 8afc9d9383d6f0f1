"""Messages of the quorum: Kafka's requests and responses, without their constant fields.

Follows: org.apache.kafka.raft.RaftMessage (KIP-595, KIP-996).

One value stands for one topic partition of one request; `wire` makes kio's messages of them and back. A response says
`leader_id` and `leader_epoch` as its sender knows them, by which the one who asked learns of a newer epoch (KIP-595).
`top_level_error` is set when the request as a whole was refused; then the other fields mean nothing.
"""

from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from reference_broker.core.quorum.voters import ReplicaKey
from reference_broker.protocol.errors import ErrorCode

NO_LEADER = -1
MAX_EPOCH = 2**31 - 1
"""Epochs are int32 in the protocol and in every file: in the last one no election can begin."""
UNKNOWN_HIGH_WATERMARK = -1
UNSUPPORTED_HIGH_WATERMARK = 2**63 - 1
"""The high watermark in a fetch of a replica that does not tell it (before KIP-1166)."""


class InconsistentMessageError(ValueError):
    """A peer's message contradicts the protocol, or what this node knows: it is rejected, and changes nothing.

    Kafka throws `IllegalStateException` here, which ends the node. A message is the peer's fault, not this node's.
    """


class OffsetAndEpoch(NamedTuple):
    """An end offset and the epoch of the record before it. Compare with `is_at_least`, not as tuples."""

    offset: int
    epoch: int

    def is_at_least(self, other: "OffsetAndEpoch") -> bool:
        """Raft's order of logs: the epoch first, then the length."""
        return (self.epoch, self.offset) >= (other.epoch, other.offset)


@dataclass(frozen=True, slots=True)
class VoteRequest:
    """A candidate asks for a vote; with `pre_vote` a prospective one asks if it would get it (KIP-996).

    :param last: the end of the asking node's log.
    """

    cluster_id: str
    voter: ReplicaKey
    replica: ReplicaKey
    replica_epoch: int
    last: OffsetAndEpoch
    pre_vote: bool


@dataclass(frozen=True, slots=True)
class VoteResponse:
    """The answer to a candidate."""

    leader_id: int = NO_LEADER
    leader_epoch: int = 0
    vote_granted: bool = False
    error: ErrorCode = ErrorCode.none
    top_level_error: ErrorCode = ErrorCode.none


@dataclass(frozen=True, slots=True)
class BeginQuorumEpochRequest:
    """A leader makes itself known to a voter that does not fetch."""

    cluster_id: str
    voter: ReplicaKey
    leader_id: int
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class BeginQuorumEpochResponse:
    """The answer to a new leader."""

    leader_id: int = NO_LEADER
    leader_epoch: int = 0
    error: ErrorCode = ErrorCode.none
    top_level_error: ErrorCode = ErrorCode.none


@dataclass(frozen=True, slots=True)
class EndQuorumEpochRequest:
    """A leader resigns, and says who should follow it, the best first."""

    cluster_id: str
    leader_id: int
    leader_epoch: int
    preferred_candidates: tuple[ReplicaKey, ...]


@dataclass(frozen=True, slots=True)
class EndQuorumEpochResponse:
    """The answer to a leader that resigns."""

    leader_id: int = NO_LEADER
    leader_epoch: int = 0
    error: ErrorCode = ErrorCode.none
    top_level_error: ErrorCode = ErrorCode.none


@dataclass(frozen=True, slots=True)
class FetchRequest:
    """A voter or an observer asks for what follows its log: by that it also says what it has."""

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
    """Records; or the point at which the logs may have parted; or the snapshot to fetch first."""

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
    """A piece of a snapshot, from a byte position on (KIP-630)."""

    cluster_id: str
    replica: ReplicaKey
    current_leader_epoch: int
    snapshot_id: OffsetAndEpoch
    position: int
    max_bytes: int


@dataclass(frozen=True, slots=True)
class FetchSnapshotResponse:
    """A piece of a snapshot; `size` is that of the whole. The id is null where there is none."""

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
    """A replica as the leader knows it, for DescribeQuorum (KIP-836). Times are wall clock; -1 is unknown."""

    key: ReplicaKey
    log_end_offset: int
    last_fetch_timestamp_ms: int
    last_caught_up_timestamp_ms: int


@dataclass(frozen=True, slots=True)
class QuorumDescription:
    """The quorum as its leader knows it."""

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[ReplicaDescription, ...]
    observers: tuple[ReplicaDescription, ...]


METADATA_TOPIC_ID = UUID(int=1)
"""The id that Kafka gives `__cluster_metadata` everywhere."""
