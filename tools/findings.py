"""Generator of the second part of docs/findings.md: findings in other brokers.

    python -m tools.findings apache-kafka:4.3.1 RUN_DIR...

Each entry is a cause: a reason from the expectations of a broker. It has the requirements that the broker violated in
the runs for this reason, the shortest script up to the step that shows the violation, and what the broker returned.
Violations that the expectations do not name are left out.

The first argument is a target that satisfies all requirements. The scripts run on it first. The page is written only if
the response to the decisive step of each script is as expected.
"""

import re
import runpy
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Final

from conformance.expectations import ExpectedViolation
from conformance.failures import STEPS_FILE
from conformance.sequential.expectation import mismatches
from conformance.sequential.model import expected
from conformance.sequential.response import NO_RESPONSE_FIELDS
from conformance.sequential.session import Session
from conformance.sequential.steps import Script
from conformance.targets import target_of_requirements
from fixtures.targets.target import Target
from kafkatrial.expected import expectations_of_target
from linearizability.finding import Finding
from linearizability.judgement import Verdict
from reports.results import read_results

PAGE: Final = Path(__file__).parents[1] / "docs" / "findings.md"
MARKER: Final = "<!-- The rest is written by tools.findings. -->\n"
LEVELS: Final = ("MUST", "SHOULD", "MAY")
STEPS_MAX: Final = 5
"""Maximum number of steps that an entry shows; the last of them is the decisive one."""
_WIDTH: Final = 118
_PROGRAM_FILE: Final = "repro.py"
_OPTIONS: Final = {"kfake": "--targets docs/examples/kfake/kafkatrial.toml "}
"""Options that a command needs for a target, such as `--targets` with its file."""
_VERSIONS: Final = {
    "kfake": "franz-go's `pkg/kfake`, the version of `docs/examples/kfake/go.mod`",
    "tansu": "0.6.0",
    "librdkafka-mock": "librdkafka 2.16.0",
}
_HEAD: Final = """
## Other brokers

Each entry is one cause: the requirements that the broker violates, the shortest script that the suite found, and the
first response that differs. `{target}` ran the scripts of these entries on {date}, and returned what is *expected* in
each. The part is written by `python -m tools.findings {target} RUN_DIR...` from the runs of [the matrix](matrix.md);
the causes are the reasons of the [expectations](comparing.md#known-violations). Requirements of level SHOULD are
deviations that few clients notice, such as an offset beside an error.
"""
_STEP: Final = re.compile(r"^(\d+)\. ")
_DECISIVE: Final = re.compile(r"^step (?P<step>\d+), \w+: (?P<field>\w*)")


@dataclass(frozen=True, slots=True)
class Violation:
    """A finding with the level of its requirement, the directory of its failure, and the target's number of nodes."""

    finding: Finding
    level: str
    directory: Path
    nodes: int

    @property
    def decisive(self) -> re.Match[str] | None:
        """The step and field that show the violation; None if a history shows it."""
        return _DECISIVE.match(self.finding.expected)


@dataclass(frozen=True, slots=True)
class ShownScript:
    """Script of an entry, with the decisive step and field of its violation and the number of nodes that it ran on."""

    script: Script
    step: int
    field: str
    nodes: int


@dataclass(frozen=True, slots=True)
class Cause:
    """The violations of one target with one reason, in the order of the runs."""

    reason: str
    violations: tuple[Violation, ...]

    @property
    def level(self) -> str:
        """The strongest level of the requirements."""
        return min((each.level for each in self.violations), key=LEVELS.index)

    @property
    def shown(self) -> Violation:
        """The first violation with a script, or the first one if none has a script."""
        return next((each for each in self.violations if each.decisive), self.violations[0])


def causes(runs: Sequence[Path], known: Mapping[str, ExpectedViolation], target: str) -> list[Cause]:
    """Return the known violations that runs found for a target, by cause, those of level MUST first.

    Of several violations of a requirement, the one of the first run counts.
    """
    found: dict[str, Violation] = {}
    for run in runs:
        results = read_results(run)
        for each in results.outcomes:
            if each.target == target and each.verdict is Verdict.VIOLATION and each.requirement in known:
                directory = run / "failures" / Path(each.failure_dir).name
                level = results.requirement(each.requirement).level
                [nodes] = (info.nodes or 1 for info in results.targets if info.name == target)
                found.setdefault(each.requirement, Violation(each, level, directory, nodes))
    by_reason: dict[str, list[Violation]] = {}
    for name, violation in found.items():
        by_reason.setdefault(known[name].reason, []).append(violation)
    entries = [Cause(reason, tuple(violations)) for reason, violations in by_reason.items()]
    return sorted(entries, key=lambda each: LEVELS.index(each.level))


def differing(target: Target, scripts: Mapping[str, ShownScript]) -> Iterator[str]:
    """Describe each script for which this target does not return the expected value in the decisive step."""
    for name, shown in scripts.items():
        with Session(target, f"findings-{time.time_ns():x}") as session:
            responses, wanted = session.run(shown.script), expected(session.pinned(shown.script))
        found = mismatches(wanted[shown.step - 1], responses[shown.step - 1])
        wrong = [each for each in found if each.field == shown.field or each.field in NO_RESPONSE_FIELDS]
        if wrong:
            yield f"{name}: {wrong[0]}"


def scripts_of(entries: Sequence[Cause]) -> dict[str, ShownScript]:
    """Return the script of each entry that has one, by the path of its program."""
    scripts = {}
    for shown in (each.shown for each in entries):
        program = shown.directory / _PROGRAM_FILE
        if (decisive := shown.decisive) and program.is_file():
            script = runpy.run_path(str(program))["SCRIPT"]
            scripts[str(program)] = ShownScript(script, int(decisive["step"]), decisive["field"], shown.nodes)
    return scripts


def page(found: Mapping[str, Sequence[Cause]], confirmed_by: str, seed: int, date: str) -> Iterator[str]:
    """Yield the lines of the second part of the page.

    :param found: the causes by target.
    :param confirmed_by: target that returned the expected responses.
    :param seed: seed of the runs.
    :param date: day on which that target ran the scripts.
    """
    yield _HEAD.format(target=confirmed_by, date=date)
    yield "| broker | version | causes with a MUST | others | requirements |"
    yield "|---|---|---:|---:|---:|"
    for target, entries in found.items():
        must = sum(each.level == "MUST" for each in entries)
        cells = (
            _VERSIONS.get(target, target.partition(":")[2]),
            must,
            len(entries) - must,
            sum(len(each.violations) for each in entries),
        )
        yield f"| [{target}](#{_anchor(target)}) | {' | '.join(map(str, cells))} |"
    number = 0
    for target, entries in found.items():
        yield f"\n## {target}\n"
        command = f"kafkatrial run {_OPTIONS.get(target, '')}--target {target} --seed {seed} REQUIREMENT"
        yield f"`{command}` shows an entry again.\n"
        for each in entries:
            number += 1
            yield from _entry(number, each)


def _anchor(heading: str) -> str:
    """Return the anchor that GitHub gives to a heading of one word."""
    return re.sub(r"[^\w-]", "", heading)


def _entry(number: int, cause: Cause) -> Iterator[str]:
    shown = cause.shown
    finding = shown.finding
    yield f"### {number}. {cause.reason}\n"
    others = ", ".join(f"`{each.finding.requirement}`" for each in cause.violations if each is not shown)
    same = f" The cause also violates {others}." if others else ""
    yield f"**{shown.level}** `{finding.requirement}`.{same}\n"
    steps = shown.directory / STEPS_FILE
    decisive = shown.decisive
    if not steps.is_file() or decisive is None:
        yield f"> {_cut(finding.reason.partition(' (expected: ')[0])}\n"
        return
    yield "```"
    yield from _script(steps.read_text(encoding="utf-8").splitlines(), int(decisive["step"]))
    yield f"   expected: {_cut(finding.expected[decisive.start('field') :])}"
    yield f"   returned: {_cut(finding.actual[decisive.start('field') :])}"
    yield "```\n"


def _script(lines: Sequence[str], decisive: int) -> Iterator[str]:
    """Yield the requests up to the decisive one, without the first ones if there are many."""
    starts = [place for place, line in enumerate(lines) if _STEP.match(line)][:decisive]
    if decisive > STEPS_MAX:
        left_out = decisive - STEPS_MAX
        yield "… step 1" if left_out == 1 else f"… steps 1 to {left_out}"
    for start in starts[-STEPS_MAX:]:
        yield _cut(lines[start])
        yield from map(_cut, takewhile(_is_request, lines[start + 1 :]))


def _is_request(line: str) -> bool:
    """Whether a line continues a request: responses are indented by three spaces, requests by a multiple of four."""
    return not _STEP.match(line) and line.startswith(("    ", ")"))


def _cut(line: str) -> str:
    return line if len(line) <= _WIDTH else line[: _WIDTH - 1] + "…"


def main(confirming: str, runs: Sequence[Path]) -> int:
    """Run the scripts on the confirming target, and write the page if all decisive responses are as expected."""
    results = [read_results(run) for run in runs]
    targets = dict.fromkeys(info.name for each in results for info in each.targets)
    found = {name: causes(runs, expectations_of_target(name), name) for name in targets}
    found = {name: entries for name, entries in found.items() if entries}
    scripts = scripts_of([each for entries in found.values() for each in entries])
    wrong: list[str] = []
    for nodes in sorted({shown.nodes for shown in scripts.values()}):
        with target_of_requirements(confirming, nodes=nodes) as target:
            wrong += differing(target, {name: shown for name, shown in scripts.items() if shown.nodes == nodes})
    for line in wrong:
        print(f"{confirming} differs too: {line}")  # noqa: T201
    if wrong:
        return 1
    written = PAGE.read_text(encoding="utf-8").partition(MARKER)[0]
    lines = "\n".join(page(found, confirming, results[0].seed, time.strftime("%Y-%m-%d", time.gmtime())))
    PAGE.write_text(f"{written}{MARKER}{lines.rstrip()}\n", encoding="utf-8")
    print(f"{PAGE}: {sum(map(len, found.values()))} entries, {len(scripts)} with a script")  # noqa: T201
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1], [*map(Path, sys.argv[2:])]))
