"""Page of the deviations of other brokers: `python -m tools.deviations RUN_DIR... > docs/deviations.md`.

Each entry is a requirement that a run found violated, with the reason from the shipped expectations, the shortest
script up to the step that shows it, and what the broker returned. Violations without a reason there are left out.
"""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Final

from conformance.expectations import ExpectedViolation
from conformance.failures import STEPS_FILE
from kafkatrial.expected import expectations_of_target
from linearizability.finding import Finding
from linearizability.judgement import Verdict
from reports.results import Results, read_results

STEPS_MAX: Final = 5
"""Maximum number of steps that an entry shows before the decisive one."""
_WIDTH: Final = 118
_HEAD: Final = """# Deviations of other brokers

Requirements that other implementations of the protocol violate, each with the shortest script that the suite found.
Apache Kafka 4.3.1 satisfies all of them: what is *expected* is what it returns to the same script. The page is made by
`python -m tools.deviations RUN_DIR...` from the runs of [the matrix](matrix.md); reasons are those of the
[expectations](comparing.md#known-violations). The command at the head of a section shows an entry again, with each
request and response.
"""
_STEP: Final = re.compile(r"^(\d+)\. ")
_DECISIVE: Final = re.compile(r"^step (\d+), \w+: ")


def page(runs: Sequence[Path], options: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines of the page. `options` has options of the command of a target, such as its file of tables."""
    yield _HEAD
    for directory in runs:
        results = read_results(directory)
        for target in results.targets:
            yield from _section(directory, results, target.name, options.get(target.name, ""))


def _section(directory: Path, results: Results, target: str, option: str) -> Iterator[str]:
    known = expectations_of_target(target.partition(":")[0])
    found = [each for each in results.outcomes if each.target == target and each.verdict is Verdict.VIOLATION]
    listed = [each for each in found if each.requirement in known]
    yield f"## {target}: {len(listed)} requirements\n"
    command = f"kafkatrial run {option}--target {target} --seed {results.seed} REQUIREMENT"
    yield f"`{command}`, run on {results.started_at[:10]}.\n"
    for finding in listed:
        level = results.requirement(finding.requirement).level
        yield from _entry(directory, finding, known[finding.requirement], level)


def _entry(directory: Path, finding: Finding, known: ExpectedViolation, level: str) -> Iterator[str]:
    yield f"### `{finding.requirement}`\n"
    yield f"**{level}**: {known.reason}.\n"
    steps = directory / "failures" / Path(finding.failure_dir).name / STEPS_FILE
    decisive = _DECISIVE.match(finding.expected)
    if not steps.is_file() or decisive is None:
        yield f"> {_cut(finding.reason.partition(' (expected: ')[0])}\n"
        return
    yield "```"
    yield from _script(steps.read_text(encoding="utf-8").splitlines(), int(decisive[1]))
    yield f"   expected: {_cut(finding.expected[decisive.end() :])}"
    yield f"   returned: {_cut(finding.actual[decisive.end() :])}"
    yield "```\n"


def _script(lines: Sequence[str], decisive: int) -> Iterator[str]:
    """Yield the requests up to the decisive one; of many only the last ones."""
    starts = [place for place, line in enumerate(lines) if _STEP.match(line)][:decisive]
    if decisive > STEPS_MAX:
        yield f"… {decisive - STEPS_MAX} steps"
    for start in starts[-STEPS_MAX:]:
        yield _cut(lines[start])
        yield from map(_cut, takewhile(_is_request, lines[start + 1 :]))


def _is_request(line: str) -> bool:
    """Whether a line continues a request: responses are indented by three spaces, requests by a multiple of four."""
    return not _STEP.match(line) and line.startswith(("    ", ")"))


def _cut(line: str) -> str:
    return line if len(line) <= _WIDTH else line[: _WIDTH - 1] + "…"


if __name__ == "__main__":
    print(  # noqa: T201
        "\n".join(
            page([*map(Path, sys.argv[1:])], {"kfake": "--targets docs/examples/kfake/kafkatrial.toml "})
        ).rstrip()
    )
