"""Effects of a quorum node, in order. State that must be durable before an effect is durable when it is returned."""

from dataclasses import dataclass
from typing import Any

from reference_broker.core.quorum.messages import OffsetAndEpoch, Request, Response


@dataclass(frozen=True, slots=True)
class SendRequest:
    """Send a request to a voter; the id is passed back with the response or the failure."""

    request_id: int
    voter_id: int
    request: Request


@dataclass(frozen=True, slots=True)
class SendResponse:
    """Send the response to a request; `caller` is the argument that was passed with the request."""

    caller: Any
    response: Response


@dataclass(frozen=True, slots=True)
class LeaderChanged:
    """The epoch or its leader has changed; -1 is an unknown leader (`handleLeaderChange`).

    :param epoch_start_offset: the offset of the leader's first record in the epoch; null on other nodes. Once the high
        watermark is above it, the leader's state machine has every committed record, and may become active.
    """

    leader_id: int
    epoch: int
    epoch_start_offset: int | None = None


@dataclass(frozen=True, slots=True)
class HighWatermarkAdvanced:
    """Records below this offset are committed, and can be applied (`handleCommit`)."""

    offset: int


@dataclass(frozen=True, slots=True)
class SnapshotInstalled:
    """A snapshot has replaced the log, and must be loaded (`handleLoadSnapshot`)."""

    snapshot_id: OffsetAndEpoch


@dataclass(frozen=True, slots=True)
class ResponseRejected:
    """A voter's response was dropped because it contradicts this node's state (`InconsistentMessageError`)."""

    voter_id: int
    reason: str


Effect = SendRequest | SendResponse | LeaderChanged | HighWatermarkAdvanced | SnapshotInstalled | ResponseRejected
