"""Content of a space-time diagram, without its rendering: lanes of nodes and clients, messages, faults, and marks.

The place of an event is its number in the order of the run. So the arrival of a message has a later place than its
sending, and two events at the same time keep their order. Times are milliseconds since the start of the run. A gap
shows the number of messages left out.
"""

from dataclasses import dataclass
from enum import StrEnum


class MarkKind(StrEnum):
    """Kind of a mark in a lane."""

    START = "start"
    END = "end"
    """The node is down from here on."""
    ELECTION = "election"
    TRUNCATION = "truncation"
    NOTE = "note"
    VIOLATION = "violation"


@dataclass(frozen=True, slots=True)
class Message:
    """A message between two lanes. `sent_at` and `arrived_at` are places; `arrived_at` is None if it never arrived.

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
    """Something that happened in a lane, at the place of an event."""

    lane: str
    at: int
    text: str
    kind: MarkKind


@dataclass(frozen=True, slots=True)
class Stretch:
    """A stretch of places in which a lane is down or a fault lasts.

    :param lane: the lane; None for the whole cluster.
    :param end: the place of its end; None if it lasts to the end of the diagram.
    """

    lane: str | None
    begin: int
    end: int | None
    text: str


@dataclass(frozen=True, slots=True)
class Moment:
    """The time of the event at a place. `left_out` messages before this event are not in the diagram."""

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
