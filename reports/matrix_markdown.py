"""matrix.md and badges: the matrix as Markdown for GitHub, and as JSON for the endpoint badge of shields.io.

Text that may come from a broker is in a code span, where Markdown and HTML have no meaning.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Final

from linearizability.finding import Finding, Standing
from linearizability.printable import one_line
from reports.html import SIGNS
from reports.matrix import WORST_FIRST, Matrix, day_of
from reports.results import RequirementInfo

FILE_NAME: Final = "matrix.md"
REASON_MAX: Final = 300
"""The maximum number of characters of a reason. The HTML page has the whole reason."""
_LEGEND: Final = {
    Standing.OK: ("ok", "no script found a violation"),
    Standing.VIOLATION: ("**✗**", "violation"),
    Standing.EXPECTED: ("✗", "expected violation: the target's expectations file names it, with the reason"),
    Standing.FIXED: ("!", "unexpectedly ok: a violation was expected and did not happen"),
    Standing.UNKNOWN: ("?", "unknown: no verdict, with the reason below"),
    Standing.NOT_APPLICABLE: ("n/a", "not applicable: the target lacks what the requirement needs"),
}
_NOT_JUDGED: Final = "·"


def render_markdown(matrix: Matrix, command: str) -> str:
    """Return the matrix as Markdown. `command` is the command line that makes it again."""
    parts = [
        "# Matrix of requirements and targets",
        "\n".join(_head(matrix, command)),
        "\n".join(_targets(matrix)),
        "\n".join(_legend(matrix)),
        *("\n".join(_table(matrix, level)) for level in matrix.levels),
        *("\n".join(_reasons(matrix, number)) for number in range(len(matrix.columns))),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def code(text: object, length_max: int | None = REASON_MAX) -> str:
    """Return text of any origin as a code span in one line."""
    shown = one_line(text, length_max)
    longest = max(map(len, re.findall("`+", shown)), default=0)
    fence = "`" * (longest + 1)
    space = " " if longest else ""
    return f"{fence}{space}{shown}{space}{fence}" if shown else ""


def _in_table(text: str) -> str:
    """Escape `|`, which ends a cell even in a code span. Remove backslashes before it, which would undo the escape."""
    return re.sub(r"\\*\|", r"\\|", text)


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(_in_table, cells)) + " |"


def _head(matrix: Matrix, command: str) -> Iterator[str]:
    runs = {id(run): run for column in matrix.columns for run in column.runs}.values()
    first, last = min(map(day_of, runs)), max(map(day_of, runs))
    several = f"{len(runs)} runs" if len(runs) > 1 else "one run"
    when = f"on {code(first)}" if first == last else f"from {code(first)} to {code(last)}"
    rule = "the latest finding decides" if matrix.latest else "the worst finding decides"
    targets = f"{len(matrix.columns)} targets" if len(matrix.columns) > 1 else "one target"
    yield f"{len(matrix.requirements)} requirements, {targets}, {several} {when}."
    if any(len(column.runs) > 1 for column in matrix.columns):
        yield f"Of several runs of a target, {rule}."
    yield from ("Made by:", "", "```", one_line(command, None).replace("`", "'"), "```")


def _targets(matrix: Matrix) -> Iterator[str]:
    yield _row(["Target", "Versions", "Nodes", "Date", "kafkatrial", "Seed", *matrix.levels])
    yield _row(["---"] * (6 + len(matrix.levels)))
    for number, column in enumerate(matrix.columns):
        yield _row(
            [
                code(column.name),
                ", ".join(map(code, column.versions)),
                ", ".join(map(str, column.nodes)),
                code(column.dates),
                ", ".join(dict.fromkeys(code(run.kafkatrial) for run in column.runs)),
                ", ".join(dict.fromkeys(str(run.seed) for run in column.runs)),
                *(_counts(matrix, number, level) for level in matrix.levels),
            ]
        )
    unfinished = [(column, run) for column in matrix.columns for run in column.runs if not run.complete]
    for column, run in unfinished:
        yield f"\nThe run of {code(column.name)} on {code(day_of(run))} is {code(run.unfinished)}."


def _counts(matrix: Matrix, number: int, level: str) -> str:
    return ", ".join(f"{count} {standing or 'not run'}" for standing, count in matrix.counts(number, level).items())


def _legend(matrix: Matrix) -> Iterator[str]:
    cells = [matrix.cell(info.id, number) for info in matrix.requirements for number in range(len(matrix.columns))]
    present = {finding and finding.standing for finding in cells}
    for standing in WORST_FIRST:
        if standing in present:
            sign, meaning = _LEGEND[standing]
            yield f"- {sign}: {meaning}"
    if None in present:
        yield f"- {_NOT_JUDGED}: no run has judged it"


def _table(matrix: Matrix, level: str) -> Iterator[str]:
    yield f"## {level}\n"
    yield _row(["Requirement", *(code(column.title) for column in matrix.columns)])
    yield _row(["---", *[":-:"] * len(matrix.columns)])
    for requirement in matrix.at_level(level):
        found = [matrix.cell(requirement.id, number) for number in range(len(matrix.columns))]
        yield _row([code(requirement.id), *map(_sign, found)])


def _sign(finding: Finding | None) -> str:
    return _NOT_JUDGED if finding is None else _LEGEND[finding.standing][0]


def _reasons(matrix: Matrix, number: int) -> Iterator[str]:
    """Yield the reasons of a column's cells: violations and unexpected successes one by one, others by reason."""
    found = [(info, matrix.cell(info.id, number)) for info in matrix.requirements]
    wrong = [(info, finding) for info, finding in found if finding and _is_wrong(finding)]
    others = _by_reason([(info, finding) for info, finding in found if finding and not _is_wrong(finding)])
    if not wrong and not others:
        return
    yield f"## {code(matrix.columns[number].title)}\n"
    for info, finding in wrong:
        flaky = ", flaky" if finding.flaky else ""
        yield f"- {SIGNS[finding.standing]} {finding.standing}{flaky}: {code(info.id)} ({info.level}): {_text(finding)}"
    for (standing, reason), names in others.items():
        yield f"- {standing}: {code(reason) or 'no reason is recorded'}: {', '.join(names)}"


def _is_wrong(finding: Finding) -> bool:
    return finding.standing in {Standing.VIOLATION, Standing.EXPECTED, Standing.FIXED}


def _text(finding: Finding) -> str:
    return code(finding.reason or finding.actual) or "no reason is recorded"


def _by_reason(
    found: Sequence[tuple[RequirementInfo, Finding]],
) -> dict[tuple[Standing, str], list[str]]:
    names: dict[tuple[Standing, str], list[str]] = {}
    for info, finding in found:
        if finding.standing is not Standing.OK:
            names.setdefault((finding.standing, finding.reason), []).append(code(info.id))
    return names


def badges(matrix: Matrix) -> dict[str, str]:
    """Return a badge (shields.io endpoint) for each column, by file name.

    A badge shows how many of the MUST requirements are ok. Requirements that are not applicable do not count.
    Expected violations are violations.
    """
    found: dict[str, str] = {}
    for number, column in enumerate(matrix.columns):
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", column.title)
        file_name = f"badge-{name}.json"
        if file_name in found:
            file_name = f"badge-{name}-{number + 1}.json"
        found[file_name] = json.dumps(_badge(matrix, number), ensure_ascii=False, indent=1) + "\n"
    return found


def _badge(matrix: Matrix, number: int) -> dict[str, object]:
    counts = matrix.counts(number, "MUST")
    ok = counts[Standing.OK] + counts[Standing.FIXED]
    wrong = counts[Standing.VIOLATION] + counts[Standing.EXPECTED]
    applicable = counts.total() - counts[Standing.NOT_APPLICABLE]
    colour = "red" if wrong else "brightgreen" if applicable and ok == applicable else "yellow"
    return {"schemaVersion": 1, "label": "kafkatrial", "message": f"{ok} of {applicable} MUST", "color": colour}
