"""Effects of a quorum node, in the order of the decisions. What has to be durable is so before they are taken."""

from dataclasses import dataclass
from typing import Any

from reference_broker.core.quorum.messages import OffsetAndEpoch, Request, Response


@dataclass(frozen=True, slots=True)
class SendRequest:
    """Send a request to a voter; its response, or the failure, is handed in with the id."""

    request_id: int
    voter_id: int
    request: Request


@dataclass(frozen=True, slots=True)
class SendResponse:
    """Send the response to a request, which is named by the caller that was handed in with it."""

    caller: Any
    response: Response


@dataclass(frozen=True, slots=True)
class LeaderChanged:
    """A new epoch, or its leader, is known; -1 is an unknown leader (`handleLeaderChange`).

    :param epoch_start_offset: on the leader itself, the offset of its first record: once the high watermark is above
        it, its state machine has all that was ever committed, and may act.
    """

    leader_id: int
    epoch: int
    epoch_start_offset: int | None = None


@dataclass(frozen=True, slots=True)
class HighWatermarkAdvanced:
    """Records below this offset are committed: they can be applied, and are never lost (`handleCommit`)."""

    offset: int


@dataclass(frozen=True, slots=True)
class SnapshotInstalled:
    """A snapshot replaced the log: the state machine loads it (`handleLoadSnapshot`)."""

    snapshot_id: OffsetAndEpoch


@dataclass(frozen=True, slots=True)
class ResponseRejected:
    """A voter's response contradicts this node (`InconsistentMessageError`), and was dropped."""

    voter_id: int
    reason: str


Effect = SendRequest | SendResponse | LeaderChanged | HighWatermarkAdvanced | SnapshotInstalled | ResponseRejected
