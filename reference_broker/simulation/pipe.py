"""A connection: its two ends, and what is on its way between them."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto

from reference_broker.simulation.links import WELL, Condition


@dataclass(eq=False, slots=True)
class End:
    """One end of a connection.

    :param place: a node or a client.
    :param received: takes a frame, its length first.
    :param closed: the other end, or the network, has ended it. Nothing comes afterwards.
    """

    place: str
    received: Callable[[bytes], None]
    closed: Callable[[], None]


class Sign(Enum):
    """What goes over a connection beside its bytes."""

    CONNECTED = auto()
    CLOSED = auto()
    RESET = auto()


@dataclass(eq=False, slots=True)
class Parcel:
    """Bytes, or a sign, on the way.

    :ivar at_ms: when it arrives; null while it is held.
    """

    content: bytes | Sign
    number: int = 0
    at_ms: int | None = None


@dataclass(eq=False, slots=True)
class Side:
    """One end, and the way to it.

    :ivar end: null until the connection is taken.
    :ivar is_gone: it closed, was told, or lost its power.
    :ivar way: all that is on the way to it, in order.
    :ivar has_lost: bytes to it were lost: nothing that is sent to it will arrive.
    :ivar is_missed: bytes have reached it in vain, without an answer.
    """

    place: str
    end: End | None
    is_gone: bool = False
    condition: Condition = WELL
    way: deque[Parcel] = field(default_factory=deque)
    last_ms: int = 0
    free_ms: int = 0
    has_lost: bool = False
    is_missed: bool = False


@dataclass(eq=False, slots=True)
class Pipe:
    """A connection.

    :ivar is_established: the opener has heard that it was taken.
    :ivar is_reset: the network has ended it; bytes sent from then on are not delivered, and return a reset.
    """

    opener: Side
    acceptor: Side
    listener: str
    accept: "Accept"
    is_established: bool = False
    is_reset: bool = False

    @property
    def is_open(self) -> bool:
        """Whether its opener may use it, as far as that one knows."""
        return not self.opener.is_gone

    def other(self, side: Side) -> Side:
        """Who is at the other end."""
        return self.acceptor if side is self.opener else self.opener


Accept = Callable[[Pipe], End | None]
"""How a place takes a connection; null: nobody listens."""


def is_passable(pipe: Pipe, side: Side) -> bool:
    """Whether bytes may go there already: those of the opener wait until it knows that it is connected."""
    return pipe.is_established or side is pipe.opener
