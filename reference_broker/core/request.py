"""A request being processed, and the outcomes of a handler other than an immediate response.

Follows: kafka.network.RequestChannel.
"""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from reference_broker.core.connection import Connection
from reference_broker.protocol.messages import Replies


@dataclass(frozen=True, slots=True)
class Request:
    """One request of a client or of another node.

    :param body: kio's dataclass of this API and version.
    :param replies: constructors of the response classes of the same version.
    :param frame: the request as received, for forwarding.
    :param envelope: the Envelope request that contains this one (KIP-590); the response is sent in an envelope too.
    """

    connection: Connection
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    body: Any
    replies: Replies
    frame: bytes = b""
    envelope: "Request | None" = None


class RequestOutcome(Enum):
    """Return value of a handler in place of a response."""

    DEFERRED = auto()
    """The response is sent later, for example from the purgatory."""
    NO_RESPONSE = auto()
    """The request has no response (Produce with acks=0)."""
    CLOSE_CONNECTION = auto()
    """The connection is closed. This is how an error of a Produce request with acks=0 is reported."""
