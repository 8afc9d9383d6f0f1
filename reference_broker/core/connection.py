"""Accepted connections, channels to other nodes, and the effects that the core returns to the shell.

Follows: kafka.network.RequestChannel.

The shell is the part of a node that does the IO: the server or the simulation.

One request of a connection is processed at a time, so responses are in the order of the requests. (Kafka mutes the
connection until the response is sent.) While a connection is `busy`, its later frames wait in the shell.

A channel is a connection that this node opens to another node; many requests may be in flight on it. The shell
connects at the first `Send`, and reports a disconnection (`Node.lost`).
"""

from dataclasses import dataclass

DEFAULT_LISTENER = "PLAINTEXT"
CONTROLLER_LISTENER = "CONTROLLER"
"""Name of the controller listener, unless `controller.listener.names` is set."""
LOOPBACK = bytes((127, 0, 0, 1))


@dataclass(slots=True, eq=False)
class Connection:
    """An accepted connection, compared by identity.

    :param listener: name of the listener that accepted it; responses contain the advertised addresses of that listener.
    :param is_controller: whether that listener is the controller's, which serves other APIs.
    :param peer_address: the IP address of the peer, four or sixteen bytes.
    """

    listener: str = DEFAULT_LISTENER
    is_controller: bool = False
    peer_address: bytes = LOOPBACK
    busy: bool = False


@dataclass(frozen=True, slots=True)
class Channel:
    """A connection to another node; equal values are one connection. Each `purpose` has a separate connection."""

    purpose: str
    node_id: int
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Respond:
    """A response to send, which begins with its length. The connection then continues with its next request.

    `data` is empty for a request without a response.
    """

    connection: Connection
    data: bytes


@dataclass(frozen=True, slots=True)
class Close:
    """A connection to close after all earlier responses are sent; `reason` is for the node's log."""

    connection: Connection
    reason: str


@dataclass(frozen=True, slots=True)
class Send:
    """A request to send, which begins with its length. The shell connects first if necessary."""

    channel: Channel
    data: bytes


@dataclass(frozen=True, slots=True)
class Disconnect:
    """A channel to close at once. The shell does not report this disconnection."""

    channel: Channel


@dataclass(frozen=True, slots=True)
class Note:
    """A line for the node's log."""

    text: str


Effect = Respond | Close | Send | Disconnect | Note
"""Action that the shell performs for the core."""
