"""What a quorum node wants done, and what it wants known, in order. What is to be durable is so before any of these."""

from dataclasses import dataclass
from typing import Any

from reference_broker.core.quorum.messages import OffsetAndEpoch, Request, Response


@dataclass(frozen=True, slots=True)
class SendRequest:
    """Send this to a voter; its answer, or the loss of it, comes back with the id."""

    request_id: int
    voter_id: int
    request: Request


@dataclass(frozen=True, slots=True)
class SendResponse:
    """Answer a caller, by the token it came with."""

    caller: Any
    response: Response


@dataclass(frozen=True, slots=True)
class LeaderChanged:
    """Another epoch, or its leader, is known: -1 is nobody.

    :param epoch_start_offset: for the new leader itself, the offset of its first record: once the high watermark is
        above it, its state machine has all that was ever committed, and may act.
    """

    leader_id: int
    epoch: int
    epoch_start_offset: int | None = None


@dataclass(frozen=True, slots=True)
class HighWatermarkAdvanced:
    """Records below this offset are committed: they can be applied, and are never lost."""

    offset: int


@dataclass(frozen=True, slots=True)
class SnapshotInstalled:
    """The log was replaced by a snapshot: the state is to be made again from it."""

    snapshot_id: OffsetAndEpoch


@dataclass(frozen=True, slots=True)
class ResponseRejected:
    """A voter's response contradicts this node (`InconsistentMessageError`), and was dropped."""

    voter_id: int
    reason: str


Effect = SendRequest | SendResponse | LeaderChanged | HighWatermarkAdvanced | SnapshotInstalled | ResponseRejected
