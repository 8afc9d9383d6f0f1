"""Renderer of matrix.html: targets by requirements on one self-contained page.

Each cell has a section, unless it is ok, not applicable or not run. As with `report.html`, nothing is fetched. The page
works without its script (except for the filters), by keyboard, in light and dark, on paper and without colour.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from reports.html import SIGNS, WITH_SECTION, Cell, FindingSection, cell_of, css_class, section_of
from reports.matrix import WORST_FIRST, Matrix, TargetColumn, day_of
from reports.rendering import render
from reports.results import RequirementInfo
from reports.terminal import place

FILE_NAME: Final = "matrix.html"
_NOT_JUDGED: Final = Cell("not-run", "·", "not run", "no run has judged it", "")


@dataclass(frozen=True, slots=True)
class TargetView:
    """A column, the sections of its cells, and for each level the counts as (standing, sign, CSS class, number)."""

    column: TargetColumn
    anchor: str
    counts: tuple[tuple[tuple[str, str, str, int], ...], ...]
    sections: tuple[tuple[FindingSection, str], ...]
    """Each section and a line with the findings of all runs (empty if only one run has judged the requirement)."""


def render_matrix(matrix: Matrix, command: str) -> str:
    """Return the page. `command` is the command line that makes it again."""
    anchors = _anchors(matrix)
    return render(
        "matrix.html.j2",
        matrix=matrix,
        command=command,
        targets=[_target(matrix, number, anchors) for number in range(len(matrix.columns))],
        standings=[(css_class(standing), SIGNS[standing], standing) for standing in WORST_FIRST],
        areas=[(level, area, _rows(matrix, requirements, anchors)) for level, area, requirements in matrix.areas()],
        day_of=day_of,
        place=place,
    )


def _anchors(matrix: Matrix) -> dict[tuple[str, int], str]:
    """Return a unique id for each cell that has a section."""
    used: set[str] = set()
    found = {}
    for number, column in enumerate(matrix.columns):
        for requirement in matrix.requirements:
            finding = matrix.cell(requirement.id, number)
            if finding is not None and finding.standing in WITH_SECTION:
                name = _slug(f"finding {column.name} {requirement.id}")
                anchor = name if name not in used else f"{name}-{number}-{len(used)}"
                used.add(anchor)
                found[requirement.id, number] = anchor
    return found


def _slug(text: str) -> str:
    return "".join(character if character.isalnum() else "-" for character in text)


def _rows(
    matrix: Matrix, requirements: tuple[RequirementInfo, ...], anchors: dict[tuple[str, int], str]
) -> list[tuple[RequirementInfo, list[Cell]]]:
    return [
        (each, [_cell(matrix, each.id, number, anchors) for number in range(len(matrix.columns))])
        for each in requirements
    ]


def _cell(matrix: Matrix, requirement: str, column: int, anchors: dict[tuple[str, int], str]) -> Cell:
    finding = matrix.cell(requirement, column)
    return cell_of(finding, anchors.get((requirement, column), "")) if finding else _NOT_JUDGED


def _target(matrix: Matrix, number: int, anchors: dict[tuple[str, int], str]) -> TargetView:
    return TargetView(
        matrix.columns[number],
        f"target-{number + 1}",
        tuple(tuple(_counts(matrix, number, level)) for level in matrix.levels),
        tuple(_sections(matrix, number, anchors)),
    )


def _counts(matrix: Matrix, number: int, level: str) -> Iterator[tuple[str, str, str, int]]:
    for standing, count in matrix.counts(number, level).items():
        if standing is None:
            yield _NOT_JUDGED.word, _NOT_JUDGED.sign, _NOT_JUDGED.css, count
        else:
            yield str(standing), SIGNS[standing], css_class(standing), count


def _sections(matrix: Matrix, number: int, anchors: dict[tuple[str, int], str]) -> Iterator[tuple[FindingSection, str]]:
    for standing in WITH_SECTION:
        for requirement in matrix.requirements:
            finding = matrix.cell(requirement.id, number)
            if finding is not None and finding.standing is standing:
                section = section_of(finding, requirement, anchors[requirement.id, number])
                yield section, _verdicts_by_run(matrix, requirement.id, number)


def _verdicts_by_run(matrix: Matrix, requirement: str, number: int) -> str:
    found = matrix.judged[requirement, number]
    if len(found) == 1:
        return ""
    return "; ".join(f"{finding.standing} on {day_of(run)} (seed {run.seed})" for run, finding in found)
