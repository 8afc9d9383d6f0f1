"""Charts as values, from which a template draws lines, spans and ticks as inline SVG.

A chart is PLANE_WIDTH wide inside its margins on every page; times are seconds from 0. Before a series is drawn, it is
reduced to at most POINTS_MAX points, so that the chart of a day is no larger than that of a minute. The caller passes
the function that combines the values of one point.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

POINTS_MAX: Final = 240
PLANE_WIDTH: Final = 980.0
PLANE_HEIGHT: Final = 130.0
MARGIN_LEFT: Final = 62.0
MARGIN_TOP: Final = 8.0
_TICKS: Final = 4
_NOTHING: Final = 1e-9
"""Smaller values count as 0."""
_STEPS: Final = (1, 2, 5, 10)
_TIME_STEPS_S: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400)

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Tick:
    """A horizontal or vertical line of the plane, with its label."""

    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Line:
    """A series: SVG path data, interrupted at gaps, and the name of its style."""

    name: str
    style: str
    path: str
    dots: tuple[Point, ...]
    """Points with a gap on both sides, which a line would not show."""


@dataclass(frozen=True, slots=True)
class Span:
    """A period, drawn as a bar in a row of spans."""

    x: float
    width: float
    label: str
    title: str
    style: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """A named row of spans. `left_out` later ones are not drawn."""

    name: str
    spans: tuple[Span, ...]
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class TimeAxis:
    """Mapping of seconds to positions on a plane."""

    seconds: float

    def x(self, second: float) -> float:
        """Return the position of a second."""
        return round(min(max(second / self.seconds, 0.0), 1.0) * PLANE_WIDTH, 1)

    @property
    def ticks(self) -> list[Tick]:
        """Marks at round times: at most eleven."""
        step = next((step for step in _TIME_STEPS_S if self.seconds / step <= 10), max(1, int(self.seconds / 8)))
        return [Tick(self.x(at), _clock(at)) for at in range(0, int(self.seconds) + 1, step)]

    @property
    def bin_s(self) -> int:
        """The number of seconds in one point."""
        return max(1, math.ceil((self.seconds + 1) / POINTS_MAX))

    def binned(
        self, values: Iterable[tuple[int, float]], combine: Callable[[Sequence[float]], float]
    ) -> dict[int, float]:
        """Return values by bin from values by second; `combine` reduces those of one bin."""
        bins: dict[int, list[float]] = {}
        for second, value in values:
            bins.setdefault(second // self.bin_s, []).append(value)
        return {number: combine(found) for number, found in sorted(bins.items())}


@dataclass(frozen=True, slots=True)
class Chart:
    """Lines over time."""

    title: str
    note: str
    unit: str
    lines: tuple[Line, ...]
    ticks: tuple[Tick, ...]


def chart(
    title: str, note: str, unit: str, axis: TimeAxis, series: Mapping[str, Mapping[int, float]], *, log: bool = False
) -> Chart | None:
    """Return a chart of series by bin of the axis; None if there is nothing to draw."""
    values = [value for points in series.values() for value in points.values()]
    if not values:
        return None
    scale = _Scale.of(values, log=log)
    lines = tuple(
        _line(name, f"series-{number}", axis, points, scale) for number, (name, points) in enumerate(series.items())
    )
    return Chart(title, note, unit, lines, tuple(scale.ticks()))


@dataclass(frozen=True, slots=True)
class _Scale:
    """Mapping of values to heights on a plane, from the bottom up."""

    low: float
    high: float
    log: bool

    @classmethod
    def of(cls, values: Sequence[float], *, log: bool) -> "_Scale":
        if log:
            positive = [value for value in values if value > _NOTHING] or [1.0]
            low, high = 10.0 ** math.floor(math.log10(min(positive))), 10.0 ** math.ceil(math.log10(max(positive)))
            return cls(low, high if high > low else low * 10, log=True)
        return cls(0.0, high if (high := max(values)) > _NOTHING else 1.0, log=False)

    def y(self, value: float) -> float:
        if self.log:
            part = math.log10(max(value, self.low) / self.low) / math.log10(self.high / self.low)
        else:
            part = value / self.high
        return round((1 - min(max(part, 0.0), 1.0)) * PLANE_HEIGHT, 1)

    def ticks(self) -> Iterable[Tick]:
        if self.log:
            decades = round(math.log10(self.high / self.low))
            step = max(1, math.ceil(decades / _TICKS))
            marks = [self.low * 10.0**place for place in range(0, decades + 1, step)]
        else:
            rough = self.high / _TICKS
            power = 10.0 ** math.floor(math.log10(rough))
            width = next(step * power for step in _STEPS if step * power >= rough * 0.999)
            marks = [width * place for place in range(int(self.high / width * 1.001) + 1)]
        return (Tick(self.y(mark), figure(mark)) for mark in marks)


def _line(name: str, style: str, axis: TimeAxis, points: Mapping[int, float], scale: _Scale) -> Line:
    path: list[str] = []
    dots: list[Point] = []
    for number, value in points.items():
        x, y = axis.x((number + 0.5) * axis.bin_s), scale.y(value)
        begins = number - 1 not in points
        if begins and number + 1 not in points:
            dots.append((x, y))
        path.append(f"{'M' if begins else 'L'}{x:g} {y:g}")
    return Line(name, style, "".join(path), tuple(dots))


def span(axis: TimeAxis, begin_s: float, end_s: float, *, label: str, title: str, style: str = "") -> Span:
    """Return a span that is wide enough to be visible. It has no label if the label does not fit."""
    x = axis.x(begin_s)
    width = max(axis.x(end_s) - x, 2.0)
    room = int(width / 7.2)
    return Span(x, round(width, 1), label if len(label) <= room else "", title, style)


def figure(value: float | None) -> str:
    """Return a number as text: `1,234`, `0.25`, `12.3M`; `-` for None."""
    if value is None:
        return "-"
    size = abs(value)
    for limit, name in ((1e9, "G"), (1e6, "M")):
        if size >= limit * 10:
            return f"{value / limit:,.0f}{name}" if size >= limit * 100 else f"{value / limit:.3g}{name}"
    if size >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _clock(second: int) -> str:
    if second < 60:
        return f"{second} s"
    minutes, seconds = divmod(second, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
