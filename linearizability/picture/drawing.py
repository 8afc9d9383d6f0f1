"""Content of a picture of a violation, without its rendering: lanes with bars, bands, partial orders, a log.

A picture is a value made of numbers and short texts. It contains only a window around the violation, so that the
picture of a long history is as large as that of a short one; `notes` list what was left out. Times are those of the
history. The renderer determines the layout and the appearance.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from linearizability.operation import Outcome

TEXT_MAX: Final = 240
"""Maximum number of characters of a text; `short` cuts longer texts."""


class Mark(StrEnum):
    """The emphasis of a bar."""

    PLAIN = "plain"
    EVIDENCE = "evidence"
    """One of the operations that show the violation."""
    BAD = "bad"
    """The operation that cannot be placed, or the operation of an anomaly's evidence that was invoked last."""


class LaneKind(StrEnum):
    """The owner of a lane: a process of the history, or a node of the cluster."""

    PROCESS = "process"
    NODE = "node"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """An operation from invocation to completion or, in the lane of a node, a request with its response.

    `number` is the bar's index in the order of `begin_ns`, from 0. `end_ns` is None if the operation never completed.
    """

    number: int
    name: str
    label: str
    begin_ns: int
    end_ns: int | None
    outcome: Outcome = Outcome.OK
    mark: Mark = Mark.PLAIN
    details: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Lane:
    """The bars of one process or one node, by time. Bars overlap if a process pipelines operations."""

    name: str
    kind: LaneKind
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class Band:
    """A fault from injection to healing. `end_ns` is None if the fault was never healed."""

    label: str
    begin_ns: int
    end_ns: int | None


@dataclass(frozen=True, slots=True)
class Break:
    """A number of operations that were left out before the operation that was invoked at `before_ns`."""

    before_ns: int
    operations: int


@dataclass(frozen=True, slots=True)
class Step:
    """One operation of an order: the number of its bar, its place in the order from 1, the states before and after."""

    bar: int
    place: int
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Order:
    """A partial linearization.

    `state` is its final state, `reason` is why the bad operation is impossible in this state, and `length` is the
    number of its operations. `steps` contains only the operations in the window.
    """

    state: str
    reason: str
    length: int
    steps: tuple[Step, ...]


class Seen(StrEnum):
    """Whether a read returned a record."""

    RETURNED = "returned"
    PASSED = "passed over"
    NOT_COVERED = "not covered"


@dataclass(frozen=True, slots=True)
class Reader:
    """A column of the log: a read that covers some of its offsets.

    `moved` shows the consumer's positions before and after the read: `65→74`.
    """

    name: str
    process: str
    begin_ns: int
    moved: str
    isolation: str
    is_evidence: bool


@dataclass(frozen=True, slots=True)
class LogRow:
    """A row of the log: a value at an offset, its send, and for each reader whether it returned the value."""

    offset: int | None
    value: str
    key: str
    sent: str
    epoch: str
    seen: tuple[Seen, ...]
    is_evidence: bool


@dataclass(frozen=True, slots=True)
class Log:
    """The part of a partition's log around the evidence: values by offset, and the reads that cover these offsets."""

    partition: str
    readers: tuple[Reader, ...]
    rows: tuple[LogRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """The picture of one violation.

    `origin_ns` is the start of the history, to which shown times are relative. `bad_ns` is the time at which the bad
    operation completed: later operations were not judged. It is None for evidence of an anomaly.
    """

    title: str
    statement: str
    facts: tuple[tuple[str, str], ...]
    origin_ns: int
    begin_ns: int
    end_ns: int
    lanes: tuple[Lane, ...]
    bands: tuple[Band, ...] = ()
    breaks: tuple[Break, ...] = ()
    orders: tuple[Order, ...] = ()
    log: Log | None = None
    bad_ns: int | None = None
    notes: tuple[str, ...] = ()

    @property
    def bars(self) -> tuple[Bar, ...]:
        """All bars, by number."""
        return tuple(sorted((bar for lane in self.lanes for bar in lane.bars), key=lambda bar: bar.number))

    @property
    def first_bad(self) -> Bar | None:
        """The bar to look at first: the bad operation, else the last operation of the evidence."""
        bars = self.bars
        bad = [bar for bar in bars if bar.mark is Mark.BAD]
        return next(iter(bad), next((bar for bar in reversed(bars) if bar.mark is Mark.EVIDENCE), None))


def short(text: object, characters: int = TEXT_MAX) -> str:
    """Return a text, cut to at most this number of characters."""
    whole = str(text)
    return whole if len(whole) <= characters else whole[: characters - 1] + "…"
