"""Writer of report.html: one self-contained page, still readable after years.

The page loads nothing: it contains its style and script, and addresses of sources are text. It works without the script
(except for the filter), by keyboard, in light and dark, on paper, and without colour: every colour only repeats the
meaning of a sign and a word.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from markupsafe import Markup

from linearizability.finding import Finding, Standing
from linearizability.printable import counted
from reports.program import program_html
from reports.rendering import render
from reports.results import RequirementInfo, Results
from reports.terminal import place

FILE_NAME = "report.html"

SIGNS = {
    Standing.OK: "✓",
    Standing.VIOLATION: "✗",
    Standing.EXPECTED: "✗",
    Standing.FIXED: "!",
    Standing.UNKNOWN: "?",
    Standing.NOT_APPLICABLE: "-",
}
_WORDS = {Standing.EXPECTED: "expected", Standing.NOT_APPLICABLE: "n/a"}
"""Short texts for the cells of some standings; other cells show the name of their standing."""
WITH_SECTION = (Standing.VIOLATION, Standing.FIXED, Standing.UNKNOWN, Standing.EXPECTED)
"""Standings with a section for each finding."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of the matrix. `anchor` is empty if the finding has no section."""

    css: str
    sign: str
    word: str
    title: str
    anchor: str


@dataclass(frozen=True, slots=True)
class FindingSection:
    """The section of one finding."""

    anchor: str
    css: str
    sign: str
    finding: Finding
    requirement: RequirementInfo
    program: Markup
    pictures: tuple[str, ...]
    """Paths of the pages with pictures of the failure, relative to the run directory."""


def write_html(results: Results, run_dir: Path) -> Path:
    """Write `run_dir/report.html`."""
    path = run_dir / FILE_NAME
    path.write_text(render_html(results, run_dir), encoding="utf-8")
    return path


def render_html(results: Results, run_dir: Path | None = None) -> str:
    """Return the page; with a run directory, it links to the pictures of failures in it."""
    return render(
        "report.html.j2",
        place=place,
        results=results,
        counts=[(css_class(s), SIGNS[s], s, count) for s, count in results.counts().items()],
        sections={css_class(standing) for standing in WITH_SECTION},
        areas=list(_areas(results)),
        findings=list(_findings(results, run_dir)),
        differences=list(results.differences()),
    )


def css_class(standing: Standing) -> str:
    """Return the CSS class of a standing, such as `not-applicable`."""
    return standing.name.lower().replace("_", "-")


def _areas(results: Results) -> Iterator[tuple[str, list[tuple[RequirementInfo, list[Cell]]]]]:
    for area, requirements in groupby(results.requirements, key=lambda requirement: requirement.area):
        yield (
            area,
            [
                (r, [_cell_with_link(results.finding(r.id, target.name)) for target in results.targets])
                for r in requirements
            ],
        )


def _cell_with_link(finding: Finding | None) -> Cell:
    return cell_of(finding, _anchor(finding) if finding else "")


def cell_of(finding: Finding | None, anchor: str) -> Cell:
    """Return the cell of a finding, or of a missing one. It links to the anchor if the finding has a section."""
    if finding is None:
        return Cell("not-run", "·", "not run", "the run ended before it", "")
    standing = finding.standing
    word = "flaky" if finding.flaky else _WORDS.get(standing, str(standing))
    title = finding.reason or f"{counted(finding.scripts, 'script')} in {finding.seconds:.1f} s"
    return Cell(css_class(standing), SIGNS[standing], word, title, anchor if standing in WITH_SECTION else "")


def _findings(results: Results, run_dir: Path | None) -> Iterator[FindingSection]:
    """Yield the sections of findings, worst first."""
    for standing in WITH_SECTION:
        for finding in results.with_standing(standing):
            requirement = results.requirement(finding.requirement)
            yield section_of(finding, requirement, _anchor(finding), _pictures(finding, run_dir))


def section_of(
    finding: Finding, requirement: RequirementInfo, anchor: str, pictures: tuple[str, ...] = ()
) -> FindingSection:
    """Return the section of a finding."""
    standing = finding.standing
    return FindingSection(
        anchor, css_class(standing), SIGNS[standing], finding, requirement, program_html(finding.program), pictures
    )


def _pictures(finding: Finding, run_dir: Path | None) -> tuple[str, ...]:
    if run_dir is None or not finding.failure_dir:
        return ()
    failure = run_dir / "failures" / Path(finding.failure_dir).name
    return tuple(path.relative_to(run_dir).as_posix() for path in sorted(failure.glob("picture*.html")))


def _anchor(finding: Finding) -> str:
    return "finding-" + "".join(c if c.isalnum() else "-" for c in f"{finding.requirement} {finding.target}")
