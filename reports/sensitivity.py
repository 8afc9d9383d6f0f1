"""Writer of sensitivity.html: a self-contained page of detected and missed defects, what detected them, and how soon.

As with `report.html`, nothing is fetched. The page works without its script (except for the filter), by keyboard, in
light and dark, on paper and without colour.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from reports.program import program_html
from reports.rendering import render

FILE_NAME = "sensitivity.html"


@dataclass(frozen=True, slots=True)
class FalseAlarmRow:
    """A trial with a violation on the broker without a defect."""

    seed: int
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class DefectRow:
    """One defect, and whether it was detected.

    :param sources: tickets, KIPs and reports of the defect; empty if it never occurred in practice.
    :param place: the function that is replaced.
    :param caught_by: the invariant, anomaly or requirement that detected it; empty if it was missed.
    :param seed: seed of the trial that detected it; None if a requirement or the saved trial did, or if it was missed.
    :param seconds: computing time.
    :param program: the smallest trial that shows it, as a program; empty if none is saved.
    :param reproduce: the command line that shows it again.
    """

    name: str
    area: str
    story: str
    sources: tuple[str, ...]
    place: str
    expected: tuple[str, ...]
    caught_by: str
    text: str
    is_expected: bool
    seed: int | None
    scripts: int
    seconds: float
    program: str = ""
    reproduce: str = ""

    @property
    def is_caught(self) -> bool:
        """Whether something detected the defect."""
        return bool(self.caught_by)


@dataclass(slots=True)
class Sensitivity:
    """Results of all defects, for the table, the JSON and the page.

    :ivar budget_s: computing time for each defect.
    :ivar complete: false if it was interrupted.
    """

    kafkatrial: str
    first_seed: int
    budget_s: float
    workers: int
    planned: int
    rows: list[DefectRow] = field(default_factory=list)
    clean_scripts: int = 0
    false_alarms: list[FalseAlarmRow] = field(default_factory=list)
    seconds: float = 0.0
    complete: bool = False

    @property
    def caught(self) -> list[DefectRow]:
        """The detected defects, in their order."""
        return [row for row in self.rows if row.is_caught]

    @property
    def missed(self) -> list[DefectRow]:
        """The missed defects, in their order."""
        return [row for row in self.rows if not row.is_caught]

    @property
    def catchers(self) -> Counter[str]:
        """The number of defects that each invariant, anomaly and requirement detected."""
        return Counter(row.caught_by for row in self.caught)

    def as_json(self) -> Mapping[str, Any]:
        """Return the results as one object."""
        return {**asdict(self), "caught": len(self.caught), "missed": [row.name for row in self.missed]}


def write_sensitivity(results: Sensitivity, directory: Path) -> Path:
    """Write `sensitivity.html` into a directory."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / FILE_NAME
    path.write_text(render_sensitivity(results), encoding="utf-8")
    return path


def render_sensitivity(results: Sensitivity) -> str:
    """Return the page."""
    areas = [(area, list(rows)) for area, rows in groupby(results.rows, key=lambda row: row.area)]
    slowest_s = max((row.seconds for row in results.rows), default=0.0) or 1.0
    return render(
        "sensitivity.html.j2",
        results=results,
        areas=areas,
        slowest_s=slowest_s,
        catchers=sorted(results.catchers.items(), key=lambda found: (-found[1], found[0])),
        scripts=sum(row.scripts for row in results.rows),
        code=program_html,
    )
