"""Effects: the outputs of a quorum node, which its caller performs in order.

State that an effect depends on is durable before the effect is returned.
"""

from dataclasses import dataclass
from typing import Any

from reference_broker.core.quorum.messages import OffsetAndEpoch, Request, Response


@dataclass(frozen=True, slots=True)
class SendRequest:
    """A request to send to a voter. The caller passes `request_id` back with the response or the failure."""

    request_id: int
    voter_id: int
    request: Request


@dataclass(frozen=True, slots=True)
class SendResponse:
    """A response to send; `caller` is the argument that was passed with the request."""

    caller: Any
    response: Response


@dataclass(frozen=True, slots=True)
class LeaderChanged:
    """A change of the epoch or of its leader; -1 is an unknown leader (`handleLeaderChange`).

    :param epoch_start_offset: the offset of the leader's first record in the epoch; null unless this node is the
        leader. The leader's controller may become active when the high watermark is above this offset, because all
        records of earlier epochs are then committed.
    """

    leader_id: int
    epoch: int
    epoch_start_offset: int | None = None


@dataclass(frozen=True, slots=True)
class HighWatermarkAdvanced:
    """A new high watermark: records below this offset are committed, and may be applied (`handleCommit`)."""

    offset: int


@dataclass(frozen=True, slots=True)
class SnapshotInstalled:
    """A snapshot of the leader that has replaced the log. The caller must load it (`handleLoadSnapshot`)."""

    snapshot_id: OffsetAndEpoch


@dataclass(frozen=True, slots=True)
class ResponseRejected:
    """A voter's response that was dropped because it contradicts this node's state (`InconsistentMessageError`)."""

    voter_id: int
    reason: str


Effect = SendRequest | SendResponse | LeaderChanged | HighWatermarkAdvanced | SnapshotInstalled | ResponseRejected
