"""A connection: its two ends, and the data in flight between them."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto

from reference_broker.simulation.links import NORMAL, Condition


@dataclass(eq=False, slots=True)
class End:
    """One end of a connection.

    :param place: name of a machine or a client.
    :param received: called with each frame that arrives, including its length field.
    :param closed: called when the other end, or the network, has closed the connection. No callback is called
        afterwards.
    """

    place: str
    received: Callable[[bytes], None]
    closed: Callable[[], None]


class Sign(Enum):
    """Signals over a connection, in addition to its bytes."""

    CONNECTED = auto()
    CLOSED = auto()
    RESET = auto()


@dataclass(eq=False, slots=True)
class Parcel:
    """Bytes, or a signal, in flight.

    :ivar number: number of the message; 0 for a signal.
    :ivar at_ms: scheduled time of arrival; None if the arrival is not scheduled. If a cut holds the parcel, this time
        may have passed.
    """

    content: bytes | Sign
    number: int = 0
    at_ms: int | None = None


@dataclass(eq=False, slots=True)
class Side:
    """One end, and the data in flight to it.

    :ivar end: None until the connection is accepted.
    :ivar is_gone: this end has closed or rejected the connection, has lost its power, or was notified that the
        connection was closed or reset.
    :ivar condition: the condition of the link to this end.
    :ivar way: parcels in flight to this end, in order.
    :ivar last_ms: the latest scheduled arrival. Later parcels do not arrive before it.
    :ivar free_ms: when the bandwidth of the link is free for the next parcel.
    :ivar has_lost: bytes to this end were lost, so nothing that is sent later will arrive.
    :ivar is_missed: bytes arrived while this end had no power. A reset is returned when the power is back.
    """

    place: str
    end: End | None
    is_gone: bool = False
    condition: Condition = NORMAL
    way: deque[Parcel] = field(default_factory=deque)
    last_ms: int = 0
    free_ms: int = 0
    has_lost: bool = False
    is_missed: bool = False


@dataclass(eq=False, slots=True)
class Pipe:
    """A connection.

    :ivar is_established: the opener was notified that the connection was accepted.
    :ivar is_reset: the network has reset the connection. Bytes that are sent afterwards are not delivered: a reset is
        returned for them.
    """

    opener: Side
    acceptor: Side
    listener: str
    accept: "Accept"
    is_established: bool = False
    is_reset: bool = False

    @property
    def is_open(self) -> bool:
        """Whether the connection is open for its opener."""
        return not self.opener.is_gone

    def other(self, side: Side) -> Side:
        """Return the other side."""
        return self.acceptor if side is self.opener else self.opener


Accept = Callable[[Pipe], End | None]
"""Function that accepts a connection at a place, or returns None if nothing listens there."""


def is_passable(pipe: Pipe, side: Side) -> bool:
    """Whether bytes may be sent to a side. Bytes to the acceptor wait until the connection is established."""
    return pipe.is_established or side is pipe.opener
