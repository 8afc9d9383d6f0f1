"""A request in hand, and the ways to go on from it other than with an answer at once."""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from reference_broker.core.connection import Connection
from reference_broker.protocol.messages import Replies


@dataclass(frozen=True, slots=True)
class Request:
    """One request of one client.

    :param body: kio's dataclass of this API and version.
    :param replies: makes the response classes of the same version.
    :param frame: the request as it came, for who passes it on.
    :param envelope: the request of a broker in which this one came (KIP-590); its answer goes back in one too.
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
    """What a handler returns in place of a response."""

    DEFERRED = auto()
    """The answer comes later, from the purgatory."""
    NO_RESPONSE = auto()
    """There is none (Produce with acks=0)."""
    CLOSE_CONNECTION = auto()
    """The one sign of an error that a request without a response can be given."""
