"""Layout of a picture: from moments to pixels, from lanes to rows.

Time runs to the right but not to scale, because most of it is waiting, and even an operation of a microsecond needs
room for its label. The distance between two moments grows with the logarithm of the time between them. It is
increased if a bar that ends at the later moment would otherwise be too short for its label. The order of moments is
exact, and ticks show the true times. Overlapping bars of a lane get separate rows.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Final

from linearizability.picture.drawing import Bar, Lane, LaneKind, Mark, Order, Picture, short

CHARACTER: Final = 6.7
"""The width of a letter of a label, in pixels."""
MARGIN: Final = 16
BAR_HEIGHT: Final = 22
_SPACE: Final = 8
_DOTS: Final = 18
"""Space below a bar for the dot that shows its place in an order."""
_HEAD: Final = 26
_BAND_ROW: Final = 22
_BREAK_ROOM: Final = 90
_TICK_ROOM: Final = 120
_LABEL_MAX: Final = {Mark.PLAIN: 22, Mark.EVIDENCE: 44, Mark.BAD: 44}
_BESIDE_LABEL: Final = 22
_WIDTH_MIN: Final = 1200
_STRETCH_MAX: Final = 2.5
"""The largest factor by which a short history is stretched."""
_UNITS: Final = ((10_000_000_000, 1_000_000_000, "s"), (1_000_000, 1_000_000, "ms"), (1_000, 1_000, "µs"), (0, 1, "ns"))


@dataclass(frozen=True, slots=True)
class BarShape:
    """A bar in its place; `text` is as much of the label as fits. `lane` is the number of its lane, from 0."""

    bar: Bar
    lane: int
    x: float
    y: float
    width: float
    text: str


@dataclass(frozen=True, slots=True)
class LaneRow:
    """The name of a lane, and its place."""

    name: str
    kind: LaneKind
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class BandShape:
    """A fault in its place: a period across all lanes, with its label in a separate row at the top."""

    label: str
    x: float
    y: float
    width: float
    is_open: bool


@dataclass(frozen=True, slots=True)
class LabelledLine:
    """A labelled line across all lanes."""

    x: float
    text: str


@dataclass(frozen=True, slots=True)
class Dot:
    """The point at which an operation takes effect in an order."""

    x: float
    y: float
    place: int


@dataclass(frozen=True, slots=True)
class Plane:
    """The whole drawing, in pixels."""

    width: float
    height: float
    top: float
    rows: tuple[LaneRow, ...]
    bars: tuple[BarShape, ...]
    bands: tuple[BandShape, ...]
    ticks: tuple[LabelledLine, ...]
    breaks: tuple[LabelledLine, ...]
    orders: tuple[tuple[Dot, ...], ...]
    bad_x: float | None


class Clock:
    """Formatter of moments as times since the start of the history, in a unit that fits the window."""

    def __init__(self, picture: Picture) -> None:
        self._origin_ns = picture.origin_ns
        span_ns = picture.end_ns - picture.begin_ns
        self._divisor, self.unit = next((size, unit) for least, size, unit in _UNITS if span_ns >= least)

    def time(self, moment_ns: int) -> str:
        """Return a moment as `431.142 ms`."""
        return self.duration(moment_ns - self._origin_ns)

    def duration(self, duration_ns: int) -> str:
        """Return a duration in the same unit."""
        decimals = 0 if self._divisor == 1 else 3
        return f"{duration_ns / self._divisor:,.{decimals}f} {self.unit}"


def lay_out(picture: Picture) -> Plane:
    """Return the drawing of a picture."""
    ends = _visible_ends(picture)
    axis = _axis(picture, ends)
    bands = tuple(_bands(picture, axis))
    top = _HEAD + _BAND_ROW * len(bands)
    rows, bars = _rows(picture, axis, ends, top)
    height = rows[-1].y + rows[-1].height if rows else top
    return Plane(
        width=max(axis.values()) + MARGIN,
        height=height,
        top=top,
        rows=tuple(rows),
        bars=tuple(bars),
        bands=bands,
        ticks=tuple(_ticks(axis, Clock(picture))),
        breaks=tuple(
            LabelledLine(axis[gap.before_ns] - _BREAK_ROOM / 2, f"{gap.operations:,} left out")
            for gap in picture.breaks
        ),
        orders=tuple(_dots(order, bars) for order in picture.orders),
        bad_x=None if picture.bad_ns is None else axis[picture.bad_ns],
    )


def _visible_ends(picture: Picture) -> dict[int, int]:
    """Return the end of each bar; for a call that never returned, the next call in its lane or else the last moment."""
    ends: dict[int, int] = {}
    for lane in picture.lanes:
        for place, bar in enumerate(lane.bars):
            later = (other.begin_ns for other in lane.bars[place + 1 :] if other.begin_ns > bar.begin_ns)
            ends[bar.number] = next(later, max(picture.end_ns, bar.begin_ns)) if bar.end_ns is None else bar.end_ns
    return ends


def _axis(picture: Picture, ends: dict[int, int]) -> dict[int, float]:
    """Return the x of every moment: begins and ends of bars and bands, breaks, and the first bad moment."""
    bars = picture.bars
    first = min([picture.begin_ns, *(bar.begin_ns for bar in bars)])
    last = max([picture.end_ns, *ends.values()])
    moments = {first, last, *(bar.begin_ns for bar in bars), *ends.values()}
    moments |= {ns for band in picture.bands for ns in (band.begin_ns, band.end_ns) if ns and first < ns < last}
    moments |= {gap.before_ns for gap in picture.breaks}
    if picture.bad_ns is not None:
        moments.add(picture.bad_ns)
    ordered = sorted(moments)
    usual = median([after - before for before, after in pairwise(ordered)] or [1])
    ending: dict[int, list[Bar]] = {}
    for bar in bars:
        ending.setdefault(ends[bar.number], []).append(bar)
    before_gaps = {gap.before_ns for gap in picture.breaks}
    axis = {ordered[0]: float(MARGIN)}
    for before, after in pairwise(ordered):
        x = axis[before] + min(44.0, 8 + 6 * math.log2(1 + (after - before) / usual))
        x += _BREAK_ROOM if after in before_gaps else 0
        wanted = (axis[bar.begin_ns] + _room(bar) for bar in ending.get(after, ()) if bar.begin_ns < after)
        axis[after] = max([x, *wanted])
    wider = max(1.0, min(_STRETCH_MAX, _WIDTH_MIN / max(axis.values())))
    return {moment: MARGIN + (x - MARGIN) * wider for moment, x in axis.items()}


def _room(bar: Bar) -> float:
    return min(len(bar.label), _LABEL_MAX[bar.mark]) * CHARACTER + _BESIDE_LABEL


def _bands(picture: Picture, axis: dict[int, float]) -> Iterable[BandShape]:
    last = max(axis)
    for row, band in enumerate(picture.bands):
        begin, end = max(band.begin_ns, min(axis)), last if band.end_ns is None else min(band.end_ns, last)
        is_open = band.end_ns is None or band.end_ns > last
        yield BandShape(band.label, axis[begin], _HEAD + row * _BAND_ROW, max(6.0, axis[end] - axis[begin]), is_open)


def _rows(
    picture: Picture, axis: dict[int, float], ends: dict[int, int], top: float
) -> tuple[list[LaneRow], list[BarShape]]:
    rows: list[LaneRow] = []
    shapes: list[BarShape] = []
    y = top
    for number, lane in enumerate(picture.lanes):
        step = BAR_HEIGHT + _SPACE + (_DOTS if picture.orders and lane.kind is LaneKind.PROCESS else 0)
        tracks: list[float] = []
        for bar in lane.bars:
            x = axis[bar.begin_ns]
            width = max(8.0, axis[ends[bar.number]] - x)
            track = next((track for track, free in enumerate(tracks) if free <= x), len(tracks))
            tracks[track : track + 1] = [x + width]
            room = int((width - _BESIDE_LABEL + 4) / CHARACTER)
            text = short(bar.label, room) if room >= 3 else ""
            shapes.append(BarShape(bar, number, x, y + _SPACE / 2 + track * step, width, text))
        height = step * len(tracks) + _SPACE / 2
        rows.append(LaneRow(lane.name, lane.kind, y, height))
        y += height
    return rows, shapes


def _ticks(axis: dict[int, float], clock: Clock) -> Iterable[LabelledLine]:
    free = 0.0
    for moment, x in axis.items():
        if x >= free:
            yield LabelledLine(x, clock.time(moment))
            free = x + _TICK_ROOM


def _dots(order: Order, bars: Sequence[BarShape]) -> tuple[Dot, ...]:
    """Return a dot for each step: within its bar and, if there is room, right of the previous dot."""
    shapes = {shape.bar.number: shape for shape in bars}
    dots: list[Dot] = []
    reached = 0.0
    for step in order.steps:
        shape = shapes[step.bar]
        reached = min(max(shape.x + 6, reached + 6), shape.x + shape.width - 3)
        dots.append(Dot(reached, shape.y + BAR_HEIGHT + 5, step.place))
    return tuple(dots)


def lane_names_width(lanes: Iterable[Lane]) -> float:
    """Return the width of the column of names."""
    return max((len(lane.name) for lane in lanes), default=0) * (CHARACTER + 0.4) + 24
