"""A space-time diagram as one self-contained HTML page: lanes side by side, time downwards.

Every event has its own line, in the order of the run. So a higher line is always earlier. The space between two lines
grows with the logarithm of the time between them. The arrow of a message goes from the line on which it is sent to the
line on which it arrives. The page fetches nothing and needs no script.
"""

import math
from dataclasses import dataclass
from typing import Final

from linearizability.picture.drawing import short
from linearizability.picture.space_time import Mark, MarkKind, Message, SpaceTime, Stretch
from linearizability.printable import counted
from reports.rendering import render

_HEAD: Final = 34
_LINE: Final = 15
"""The height of an event with a text beside it."""
_BARE_LINE: Final = 7
_BREAK: Final = 34
_TIMES: Final = 84
"""The width of the column of times."""
_FAULT: Final = 26
"""The width of a column of faults; faults at the same time are in different columns."""
_LANE: Final = 160
_MARK_MAX: Final = 60
_STATEMENT_MAX: Final = 160
_SIGNS: Final = {
    MarkKind.START: "▲",
    MarkKind.END: "✝",
    MarkKind.ELECTION: "★",
    MarkKind.TRUNCATION: "✂",
    MarkKind.NOTE: "·",
    MarkKind.VIOLATION: "✗",
}


@dataclass(frozen=True, slots=True)
class Arrow:
    """A message in its place. The arrow of one that never arrived ends halfway, with a cross."""

    message: Message
    x1: float
    y1: float
    x2: float
    y2: float
    label_x: float
    anchor: str

    @property
    def is_lost(self) -> bool:
        """Whether it never arrived."""
        return self.message.arrived_at is None

    @property
    def is_loop(self) -> bool:
        """Whether a node sent it to itself."""
        return self.message.source == self.message.destination


@dataclass(frozen=True, slots=True)
class Flag:
    """A mark in its place."""

    mark: Mark
    x: float
    y: float
    text: str
    sign: str


@dataclass(frozen=True, slots=True)
class StretchShape:
    """A stretch in its place."""

    stretch: Stretch
    x: float
    y1: float
    y2: float


@dataclass(frozen=True, slots=True)
class TimeTick:
    """A time beside its line, or the number of left-out messages."""

    y: float
    text: str
    is_break: bool


@dataclass(frozen=True, slots=True)
class SpaceTimePlane:
    """The whole drawing, in pixels."""

    width: float
    height: float
    head: float
    lanes: tuple[tuple[str, float], ...]
    arrows: tuple[Arrow, ...]
    flags: tuple[Flag, ...]
    faults: tuple[StretchShape, ...]
    downs: tuple[StretchShape, ...]
    ticks: tuple[TimeTick, ...]
    left: float


def space_time_page(diagram: SpaceTime) -> str:
    """Return the page of a diagram."""
    return render("space_time.html.j2", diagram=diagram, plane=lay_out_space_time(diagram))


def lay_out_space_time(diagram: SpaceTime) -> SpaceTimePlane:
    """Return the drawing of a diagram."""
    ys = _ys(diagram)
    end_y = (ys[-1] if ys else _HEAD) + _LINE
    columns = _columns(diagram.faults, len(diagram.moments))
    left = _TIMES + _FAULT * (max(columns, default=-1) + 1) + 12
    xs = {lane: left + _LANE * (place + 0.5) for place, lane in enumerate(diagram.lanes)}

    def bar(stretch: Stretch, x: float) -> StretchShape:
        return StretchShape(stretch, x, ys[stretch.begin], end_y if stretch.end is None else ys[stretch.end])

    return SpaceTimePlane(
        width=left + _LANE * len(diagram.lanes) + _LANE,
        height=end_y + 8,
        head=_HEAD,
        lanes=tuple(xs.items()),
        arrows=tuple(_arrow(message, xs, ys) for message in diagram.messages),
        flags=tuple(Flag(mark, xs[mark.lane], ys[mark.at], _text(mark), _SIGNS[mark.kind]) for mark in diagram.marks),
        faults=tuple(
            bar(fault, _TIMES + _FAULT * column) for fault, column in zip(diagram.faults, columns, strict=True)
        ),
        downs=tuple(bar(down, xs[down.lane]) for down in diagram.downs if down.lane is not None),
        ticks=tuple(_ticks(diagram, ys)),
        left=left,
    )


def _text(mark: Mark) -> str:
    return short(mark.text, _STATEMENT_MAX if mark.kind is MarkKind.VIOLATION else _MARK_MAX)


def _ys(diagram: SpaceTime) -> list[float]:
    """Return the y of every event. The space between two events depends on the time between them."""
    with_text = {message.sent_at for message in diagram.messages} | {mark.at for mark in diagram.marks}
    with_text |= {place for fault in diagram.faults for place in (fault.begin, fault.end) if place is not None}
    ys: list[float] = []
    y = float(_HEAD)
    before_ms = diagram.moments[0].at_ms if diagram.moments else 0
    for place, moment in enumerate(diagram.moments):
        y += _LINE if place in with_text else _BARE_LINE
        y += 5 * math.log2(1 + moment.at_ms - before_ms)
        y += _BREAK if moment.left_out else 0
        ys.append(y)
        before_ms = moment.at_ms
    return ys


def _arrow(message: Message, xs: dict[str, float], ys: list[float]) -> Arrow:
    x1, x2 = xs[message.source], xs[message.destination]
    y1 = ys[message.sent_at]
    y2 = y1 + _LINE if message.arrived_at is None else ys[message.arrived_at]
    if message.arrived_at is None:
        x2 = x1 + (x2 - x1) / 2
    goes_right = x2 >= x1
    return Arrow(message, x1, y1, x2, y2, x1 + (6 if goes_right else -6), "start" if goes_right else "end")


def _columns(stretches: tuple[Stretch, ...], last: int) -> list[int]:
    """Return the number of a column for each stretch. Overlapping stretches have different columns."""
    free: list[int] = []
    columns: list[int] = []
    for stretch in stretches:
        column = next((column for column, until in enumerate(free) if until < stretch.begin), len(free))
        free[column : column + 1] = [last if stretch.end is None else stretch.end]
        columns.append(column)
    return columns


def _ticks(diagram: SpaceTime, ys: list[float]) -> list[TimeTick]:
    """Return the times that fit beside their lines, and the numbers of left-out messages."""
    ticks: list[TimeTick] = []
    free_y, before_ms = 0.0, -1
    for moment, y in zip(diagram.moments, ys, strict=True):
        if moment.left_out:
            ticks.append(TimeTick(y - _BREAK / 2 - 4, f"⋯ {counted(moment.left_out, 'message')} left out ⋯", True))
        if moment.at_ms != before_ms and y >= free_y:
            ticks.append(TimeTick(y, f"{moment.at_ms:,} ms", False))
            free_y, before_ms = y + 13, moment.at_ms
    return ticks
