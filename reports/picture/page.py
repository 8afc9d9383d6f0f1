"""One violation as one self-contained HTML page, to look at and to paste into an issue.

Nothing is fetched: style, script and drawing are inside. Without the script, the drawing, the first order and the log
are complete, and each bar has a title. With the script, the page goes to the first bad operation, the keyboard selects
the next or previous one, and the state before and after it is shown. The page is readable in light, in dark and on
paper; every colour only repeats the meaning of a sign, a pattern or a word.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from linearizability.history.reader import History
from linearizability.judgement import Evidence
from linearizability.operation import Outcome
from linearizability.picture.anomaly import draw_anomaly
from linearizability.picture.drawing import Bar, LaneKind, Mark, Order, Picture, Seen
from linearizability.picture.generic import draw_verification
from linearizability.printable import printable
from linearizability.verify import Verification
from reports.picture.layout import BAR_HEIGHT, BarShape, Clock, lane_names_width, lay_out
from reports.rendering import render

SIZE_MAX: Final = 1_000_000
"""If a page has at least this number of bytes, a page with fewer operations is rendered instead."""
_BARS: Final = (200, 100, 50, 20)
"""Numbers of operations to try, until the page is small enough."""

_SIGNS = {Mark.BAD: "✗", Mark.EVIDENCE: "●"}
_OUTCOME_SIGNS = {Outcome.OK: "", Outcome.INFO: "?", Outcome.FAIL: "⊘"}
_SEEN = {Seen.RETURNED: ("✓", "returned"), Seen.PASSED: ("✗", "passed"), Seen.NOT_COVERED: ("·", "uncovered")}


def anomaly_page(history: History, name: str, evidence: Evidence) -> str:
    """Return the page of one piece of evidence. Raises HistoryError if the history cannot be read."""
    return _fitting(lambda bars_max: draw_anomaly(history, name, evidence, bars_max=bars_max))


def verification_page(verification: Verification) -> str:
    """Return the page of the first subhistory in violation. Raises ValueError if there is none."""
    return _fitting(lambda bars_max: draw_verification(verification, bars_max=bars_max))


def render_picture(picture: Picture) -> str:
    """Return the page of a picture."""
    clock, plane = Clock(picture), lay_out(picture)
    lanes = {bar.number: lane for lane in picture.lanes for bar in lane.bars}
    steps = [_Step(bar, lanes[bar.number].name, clock) for bar in picture.bars]
    return render(
        "picture.html.j2",
        picture=picture,
        plane=plane,
        names_width=lane_names_width(picture.lanes),
        bar_height=BAR_HEIGHT,
        clock=clock,
        steps=steps,
        first=picture.first_bad or next(iter(picture.bars), None),
        css_class=_css_class,
        signs=_signs,
        seen=_SEEN,
        has_nodes=any(lane.kind is LaneKind.NODE for lane in picture.lanes),
        data={"bars": [step.as_json() for step in steps], "orders": [_order_json(order) for order in picture.orders]},
    )


def _fitting(draw: Callable[[int], Picture]) -> str:
    """Return the page with as many operations as fit in SIZE_MAX; the one with the fewest if none fits."""
    page = ""
    for bars_max in _BARS:
        page = render_picture(draw(bars_max))
        if len(page.encode()) < SIZE_MAX:
            return page
    return page


@dataclass(frozen=True, slots=True)
class _Step:
    """The details of a bar, which the page shows when the bar is selected."""

    bar: Bar
    lane: str
    clock: Clock

    @property
    def title(self) -> str:
        name = self.bar.name
        return f"operation {name}" if self.lane.startswith(("process", "no process")) else name

    @property
    def details(self) -> list[tuple[str, str]]:
        """Names and texts, in order."""
        bar, clock = self.bar, self.clock
        details = [("Where", self.lane), ("Called", clock.time(bar.begin_ns))]
        if bar.end_ns is None:
            details.append(("Returned", "never"))
        else:
            took = clock.duration(bar.end_ns - bar.begin_ns)
            details.append(("Returned", f"{clock.time(bar.end_ns)}, after {took}"))
        return [*details, *bar.details]

    def as_json(self) -> dict[str, Any]:
        """Return the object for the script."""
        details = [[printable(name), printable(text)] for name, text in self.details]
        return {"title": printable(self.title), "label": printable(self.bar.label), "details": details}


def _order_json(order: Order) -> dict[int, list[str | int]]:
    return {step.bar: [step.place, printable(step.before), printable(step.after)] for step in order.steps}


def _css_class(shape: BarShape) -> str:
    bar = shape.bar
    return f"bar {bar.mark} {bar.outcome}{' open' if bar.end_ns is None else ''}"


def _signs(bar: Bar) -> str:
    """Return the signs of a bar, which repeat its colour: bad, evidence, or an outcome other than ok."""
    return _SIGNS.get(bar.mark, "") + _OUTCOME_SIGNS[bar.outcome]
