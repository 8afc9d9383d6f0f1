"""What the broker knows of one client connection, and what it can want done to it.

A connection has one request in hand at a time, as in Kafka, where a channel is muted until its answer is sent; that
is what keeps answers in the order of their requests. `busy` says so: while it holds, the shell keeps later frames back.
"""

from dataclasses import dataclass


@dataclass(slots=True, eq=False)
class Connection:
    """One connection, compared by identity."""

    busy: bool = False


@dataclass(frozen=True, slots=True)
class Respond:
    """Send these bytes; they are a whole response, its length first."""

    connection: Connection
    data: bytes


@dataclass(frozen=True, slots=True)
class Close:
    """End the connection, after what was sent before. `reason` is for the broker's own log."""

    connection: Connection
    reason: str


Effect = Respond | Close
"""What the shell has to do for the core."""
