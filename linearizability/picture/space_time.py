"""Content of a space-time diagram, without its rendering: lanes of nodes and clients, messages, faults, and marks.

The place of an event is its index in the order of the run. Therefore a message arrives at a later place than it is
sent, and two events at the same time keep their order. Times are milliseconds since the start of the run. A gap in the
diagram shows the number of messages that were left out.
"""

from dataclasses import dataclass
from enum import StrEnum


class MarkKind(StrEnum):
    """Kind of a mark in a lane."""

    START = "start"
    END = "end"
    """End of a node's process."""
    ELECTION = "election"
    TRUNCATION = "truncation"
    NOTE = "note"
    VIOLATION = "violation"


@dataclass(frozen=True, slots=True)
class Message:
    """A message between two lanes.

    :param sent_at: the place of its sending.
    :param arrived_at: the place of its arrival; None if the message never arrived.
    :param text: the API's name.
    """

    source: str
    destination: str
    sent_at: int
    arrived_at: int | None
    text: str
    is_response: bool


@dataclass(frozen=True, slots=True)
class Mark:
    """An event in one lane. `at` is its place."""

    lane: str
    at: int
    text: str
    kind: MarkKind


@dataclass(frozen=True, slots=True)
class Stretch:
    """A range of places in which a node is down or a fault lasts.

    :param lane: the lane; None for the whole cluster.
    :param end: the place of the end; None if it is the end of the diagram.
    """

    lane: str | None
    begin: int
    end: int | None
    text: str


@dataclass(frozen=True, slots=True)
class Moment:
    """The time of the event at a place. `left_out` is the number of messages left out before this event."""

    at_ms: int
    left_out: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceTime:
    """The diagram of one run.

    :param lanes: lanes from left to right.
    :param moments: moments in the order of their places, which begin at 0.
    """

    title: str
    statement: str
    facts: tuple[tuple[str, str], ...]
    lanes: tuple[str, ...]
    moments: tuple[Moment, ...]
    messages: tuple[Message, ...]
    marks: tuple[Mark, ...] = ()
    faults: tuple[Stretch, ...] = ()
    downs: tuple[Stretch, ...] = ()
    program: str = ""
    notes: tuple[str, ...] = ()
