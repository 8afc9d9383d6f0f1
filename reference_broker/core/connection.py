"""What the node knows of one client connection, and what it can want done: the effects.

A connection has one request in hand at a time, as in Kafka, where a channel is muted until its answer is sent; that
is what keeps answers in the order of their requests. `busy` says so: while it holds, the shell keeps later frames back.

A channel is the other way round: a connection that this node opens to another one, on which many requests may be under
way. The shell connects at the first `Send`, and says when it is lost (`Channels.lost`).
"""

from dataclasses import dataclass

DEFAULT_LISTENER = "PLAINTEXT"
LOOPBACK = bytes((127, 0, 0, 1))


@dataclass(slots=True, eq=False)
class Connection:
    """One connection that somebody opened to us, compared by identity.

    :param listener: name of the listener it came in by: brokers tell a client the addresses of that one.
    :param is_controller: that listener is the controller's, which serves other APIs.
    :param peer_address: the IP address of whoever opened it, four or sixteen bytes.
    """

    listener: str = DEFAULT_LISTENER
    is_controller: bool = False
    peer_address: bytes = LOOPBACK
    busy: bool = False


@dataclass(frozen=True, slots=True)
class Channel:
    """A connection to another node. Equal values are one connection; `purpose` keeps apart what must not wait."""

    purpose: str
    node_id: int
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Respond:
    """Send these bytes and continue with the connection's next request.

    They are a whole response, its length first; none after a request that has no response.
    """

    connection: Connection
    data: bytes


@dataclass(frozen=True, slots=True)
class Close:
    """End the connection, after what was sent before. `reason` is for the broker's own log."""

    connection: Connection
    reason: str


@dataclass(frozen=True, slots=True)
class Send:
    """Send these bytes, a whole request with its length first; connect before, if need be."""

    channel: Channel
    data: bytes


@dataclass(frozen=True, slots=True)
class Disconnect:
    """End a channel at once, and do not say that it is lost."""

    channel: Channel


@dataclass(frozen=True, slots=True)
class Note:
    """Say this to whoever runs the node: one line of its log."""

    text: str


Effect = Respond | Close | Send | Disconnect | Note
"""What the shell has to do for the core."""
