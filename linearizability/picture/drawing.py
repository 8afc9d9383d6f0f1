"""Content of a picture of a violation, without its rendering: lanes with bars, bands, partial orders, a log.

Everything here is a value made of numbers and short texts, cut to a window around the failure: the picture of a long
history is as large as that of a short one. `notes` list what was left out. Times are those of the history. The renderer
decides about positions on the page and appearance.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from linearizability.operation import Outcome

TEXT_MAX: Final = 240
"""Maximum number of characters of a text; `short` cuts longer ones."""


class Mark(StrEnum):
    """The emphasis of a bar."""

    PLAIN = "plain"
    EVIDENCE = "evidence"
    """One of the operations that show the violation."""
    BAD = "bad"
    """The operation that cannot be placed, or the operation of an anomaly's evidence that was invoked last."""


class LaneKind(StrEnum):
    """What a lane belongs to: a process or a node."""

    PROCESS = "process"
    NODE = "node"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """An operation from call to return, or, in the lane of a node, a request and its response.

    `number` is its place in the picture by `begin_ns`, from 0. `end_ns` is None if it never returned.
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
    """The bars of one process or one node, by time; those of a process may overlap if it pipelines."""

    name: str
    kind: LaneKind
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class Band:
    """A fault from injection to healing; `end_ns` is None if it was never healed."""

    label: str
    begin_ns: int
    end_ns: int | None


@dataclass(frozen=True, slots=True)
class Break:
    """Operations left out in the middle, before the one that was called at `before_ns`."""

    before_ns: int
    operations: int


@dataclass(frozen=True, slots=True)
class Step:
    """One operation of an order: the number of its bar, its place in the order from 1, and the states around it."""

    bar: int
    place: int
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Order:
    """A partial linearization: its final state, why the bad operation is impossible there, its steps in the window."""

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
    """A column of the log: a read that covers some of its offsets. `moved` is the position before and after."""

    name: str
    process: str
    begin_ns: int
    moved: str
    isolation: str
    is_evidence: bool


@dataclass(frozen=True, slots=True)
class LogRow:
    """A row of the log: a value at an offset, its send, and what each reader shows about it."""

    offset: int | None
    value: str
    key: str
    sent: str
    epoch: str
    seen: tuple[Seen, ...]
    is_evidence: bool


@dataclass(frozen=True, slots=True)
class Log:
    """The part of a partition's log around the evidence: values by offset, with the reads that returned them."""

    partition: str
    readers: tuple[Reader, ...]
    rows: tuple[LogRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """One violation. `origin_ns` is the history's first moment, from which times are shown.

    `bad_ns` is when the bad operation completed, after which nothing was judged; None if there is no such moment.
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
        """The bar to look at first: the bad operation, else the last one of the evidence."""
        bars = self.bars
        bad = [bar for bar in bars if bar.mark is Mark.BAD]
        return next(iter(bad), next((bar for bar in reversed(bars) if bar.mark is Mark.EVIDENCE), None))


def short(text: object, characters: int = TEXT_MAX) -> str:
    """Return a text of any length, cut to that number of characters."""
    whole = str(text)
    return whole if len(whole) <= characters else whole[: characters - 1] + "…"
