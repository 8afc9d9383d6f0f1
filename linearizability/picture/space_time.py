"""A space-time diagram before it is a page: lanes of nodes and clients, messages between them, faults, and marks.

Events have places in one order, that of the run: a message that arrives stands behind its sending, and two events of
one moment stand in the order in which they came. Times are milliseconds of the run. What is left out is counted where
it is missing.
"""

from dataclasses import dataclass
from enum import StrEnum


class Happening(StrEnum):
    """What kind of mark stands in a lane."""

    START = "start"
    END = "end"
    """It is down from here on."""
    ELECTION = "election"
    TRUNCATION = "truncation"
    NOTE = "note"
    VIOLATION = "violation"


@dataclass(frozen=True, slots=True)
class Message:
    """From a lane to another. Places are those of the events; null where it never arrived.

    :param text: the API's name.
    """

    source: str
    destination: str
    sent_at: int
    arrived_at: int | None
    text: str
    is_answer: bool


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that happened in a lane, at the place of an event."""

    lane: str
    at: int
    text: str
    kind: Happening


@dataclass(frozen=True, slots=True)
class Stretch:
    """From one place to another a lane is down, or a fault lasts.

    :param lane: null: the whole cluster.
    :param end: null: to the end of the diagram.
    """

    lane: str | None
    begin: int
    end: int | None
    text: str


@dataclass(frozen=True, slots=True)
class Moment:
    """When the event of a place was; `left_out` is how many messages are missing before it."""

    at_ms: int
    left_out: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceTime:
    """The diagram of one run.

    :param lanes: from left to right.
    :param moments: by place, from 0.
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
