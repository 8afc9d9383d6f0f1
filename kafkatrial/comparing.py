"""Comparison of two targets for `kafkatrial compare`: plan, run, result files and summary.

`comparison.json` contains all results, and `differences/<n>.py` the shortest script for each cause. These files are
written with everything that was found, however the comparison ends.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.text import Text

from chaos.campaign.interruption import interruptible
from conformance.differential import Comparer, Comparison, GroupedDifference
from conformance.profiles import PROFILES, Profile
from conformance.requirements.requirement import Requirement
from conformance.sequential.judging import Rank
from conformance.targets import target_of_requirements
from fixtures.targets.target import Target, UnknownTargetError
from kafkatrial.console import show, stdout_console
from kafkatrial.difference_baseline import read_baseline, updated_baseline, write_baseline
from kafkatrial.errors import CommandError, UsageError, print_error
from kafkatrial.exit_codes import ExitCode
from kafkatrial.live_line import LiveLine
from kafkatrial.run_directory import make_run_directory
from kafkatrial.seeds import generate_seed
from kafkatrial.selection import select_requirements
from kafkatrial.versions import own_version
from linearizability.printable import counted, one_line

_VALUE_MAX = 200
_STYLES = {Rank.FATAL: "bold red", Rank.SEMANTIC: "red", Rank.ERROR_CODE: "yellow", Rank.COSMETIC: "dim"}


@dataclass(frozen=True, slots=True)
class ComparisonPlan:
    """The checked choices of a comparison; nothing has started."""

    here: Target
    there: Target
    requirements: tuple[Requirement, ...]
    is_whole: bool
    """Whether all requirements were selected."""
    seed: int
    profile: Profile
    baseline: Path | None
    known: Mapping[str, str]
    """Reasons of the known differences, by the id of their cause."""
    update_baseline: bool


def plan_comparison(
    names: Sequence[str],
    wanted: tuple[str, ...],
    *,
    nodes: int | None,
    seed: int | None,
    profile: str,
    baseline: Path | None,
    update_baseline: bool,
) -> ComparisonPlan:
    """Check all options before anything starts.

    Raises:
        UsageError, UnknownTargetError: an option is invalid.
    """
    if len(names) != 2 or names[0] == names[1]:
        raise UsageError("two different targets are compared; give --target twice")
    if profile not in PROFILES:
        raise UsageError(f"--profile: no profile {profile}; there are {', '.join(PROFILES)}")
    if update_baseline and baseline is None:
        raise UsageError("--update-baseline needs --baseline FILE")
    here, there = _targets(names, nodes)
    exists = baseline is not None and baseline.exists()
    if not exists and baseline is not None and not update_baseline:
        raise UsageError(f"{baseline}: there is no such baseline; --update-baseline writes it")
    return ComparisonPlan(
        here=here,
        there=there,
        requirements=select_requirements(wanted, "may"),
        is_whole=not wanted,
        seed=generate_seed() if seed is None else seed,
        profile=PROFILES[profile],
        baseline=baseline,
        known=read_baseline(baseline) if baseline is not None and exists else {},
        update_baseline=update_baseline,
    )


def _targets(names: Sequence[str], nodes: int | None) -> tuple[Target, Target]:
    """Return both targets with `nodes` brokers each.

    Without `nodes`, both get the smaller of their defaults, or keep their own if one of them cannot have that number.
    """
    here, there = (target_of_requirements(name, nodes) for name in names)
    counts = (here.node_count, there.node_count)
    if nodes is None and counts[0] and counts[1] and counts[0] != counts[1]:
        with suppress(UnknownTargetError):  # one target cannot have the smaller number: both keep their defaults
            here, there = (target_of_requirements(name, min(filter(None, counts))) for name in names)
    return here, there


def compare_targets(plan: ComparisonPlan, out: Path | None) -> ExitCode:
    """Compare two targets, write the files, and show the differences by cause.

    Raises TargetError, and CommandError if the files cannot be written.
    """
    now = datetime.now(UTC)
    run_dir = make_run_directory(out, now=now, seed=plan.seed)
    comparer = Comparer(plan.here, plan.there, plan.seed, plan.profile)
    code = ExitCode.INTERNAL
    is_complete = False
    with interruptible():
        try:
            _run(plan, comparer, run_dir)
            code = exit_code_of_comparison(comparer.result, plan.known)
            if plan.update_baseline:
                code = _update(plan, comparer.result)
            is_complete = True
        except KeyboardInterrupt:
            code = _exit_code_of_interruption(plan, comparer.result)
            print_error("interrupted; the clusters are stopped")
        finally:
            _write(plan, comparer.result, run_dir, now, code, is_complete=is_complete)
        _show(plan, comparer.result, run_dir, code, is_complete=is_complete)
    return code


class _Progress(LiveLine):
    """Live line with the target that is starting, or the requirement whose scripts are running."""

    def on_requirement(self, name: str) -> None:
        """Show the name of the requirement, or another activity."""
        self._doing = Text(one_line(name))


def _run(plan: ComparisonPlan, comparer: Comparer, run_dir: Path) -> None:
    targets = (plan.here, plan.there)
    console = stdout_console()
    scripts_of = (
        f"scripts of {counted(len(plan.requirements), 'requirement')} on {plan.here.name} and {plan.there.name}"
    )
    show(console, Text(f"seed {plan.seed}, profile {plan.profile.name}, {scripts_of}\nrun {run_dir}"))
    try:
        with _Progress(console) as progress:
            for target in targets:
                progress.on_requirement(f"starting {target.name}")
                target.start()
            for requirement in comparer.run(plan.requirements):
                progress.on_requirement(requirement)
    finally:
        for target in targets:
            target.stop()


def exit_code_of_comparison(result: Comparison, known: Mapping[str, str]) -> ExitCode:
    """Return the exit code of a complete comparison: a difference that is neither known nor cosmetic is a violation."""
    if _new_differences(result, known):
        return ExitCode.VIOLATION
    if result.unknown:
        return ExitCode.INCONCLUSIVE
    return ExitCode.OK if any(result.compared.values()) else ExitCode.NOTHING_RAN


def _exit_code_of_interruption(plan: ComparisonPlan, result: Comparison) -> ExitCode:
    """Return the exit code of an interruption. Without `--update-baseline`, a new difference is a violation."""
    is_violation = not plan.update_baseline and _new_differences(result, plan.known)
    return ExitCode.VIOLATION if is_violation else ExitCode.INTERRUPTED


def _new_differences(result: Comparison, known: Mapping[str, str]) -> list[GroupedDifference]:
    return [difference for difference in result.differences.values() if _is_new(difference, known)]


def _is_new(difference: GroupedDifference, known: Mapping[str, str]) -> bool:
    return difference.cause.rank is not Rank.COSMETIC and difference.cause.id not in known


def _has_all_results(plan: ComparisonPlan, result: Comparison) -> bool:
    """Whether the scripts of all requirements have results. A known difference that was not found is then fixed."""
    return plan.is_whole and not result.skipped and not result.unknown


def _update(plan: ComparisonPlan, result: Comparison) -> ExitCode:
    if plan.baseline is not None:
        write_baseline(plan.baseline, _updated(plan, result))
    return ExitCode.OK


def _updated(plan: ComparisonPlan, result: Comparison) -> dict[str, str]:
    found = {each.cause.id for each in result.differences.values() if each.cause.rank is not Rank.COSMETIC}
    return updated_baseline(plan.known, found, is_whole=_has_all_results(plan, result))


def _write(
    plan: ComparisonPlan, result: Comparison, run_dir: Path, now: datetime, code: ExitCode, *, is_complete: bool
) -> None:
    document = _document(plan, result) | {
        "started_at": now.isoformat(timespec="seconds"),
        "complete": is_complete,
        "exit_code": int(code),
    }
    try:
        (run_dir / "differences").mkdir()
        for number, difference in enumerate(result.in_order(), start=1):
            (run_dir / "differences" / f"{number}.py").write_text(difference.program, encoding="utf-8")
        (run_dir / "comparison.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise CommandError(f"{run_dir}: the comparison cannot be written: {error.strerror or error}") from error


def _document(plan: ComparisonPlan, result: Comparison) -> dict[str, Any]:
    targets = (plan.here, plan.there)
    return {
        "format": 1,
        "kafkatrial": own_version(),
        "targets": [{"name": each.name, "versions": dict(each.versions)} for each in targets],
        "seed": plan.seed,
        "profile": plan.profile.name,
        "compared": result.compared,
        "skipped": result.skipped,
        "unknown": result.unknown,
        "differences": [
            {
                "id": each.cause.id,
                "kind": each.cause.kind,
                "request": each.cause.request,
                "field": each.cause.field,
                "known": each.cause.id in plan.known,
                "step": each.shown.step,
                "here": each.shown.here,
                "there": each.shown.there,
                "requirements": each.requirements,
                "scripts": each.scripts,
                "after": each.after,
                "flaky": each.is_flaky,
                "program": f"differences/{number}.py",
            }
            for number, each in enumerate(result.in_order(), start=1)
        ],
    }


def _show(plan: ComparisonPlan, result: Comparison, run_dir: Path, code: ExitCode, *, is_complete: bool) -> None:
    console = stdout_console()
    for number, difference in enumerate(result.in_order(), start=1):
        show(console, Text("\n").join(_lines(plan, difference, run_dir / "differences" / f"{number}.py")))
    for title, reasons in (("not compared", result.skipped), ("unknown", result.unknown)):
        for reason in dict.fromkeys(reasons.values()):
            names = [name for name, text in reasons.items() if text == reason]
            show(console, Text(f"{title}: {one_line(reason, _VALUE_MAX)}: {', '.join(names)}", "dim"))
    fixed = plan.known.keys() - {each.cause.id for each in result.differences.values()}
    for name in sorted(fixed) if is_complete and _has_all_results(plan, result) else ():
        show(console, Text(f"no longer found: {one_line(name)}", "dim"))
    scripts = sum(result.compared.values())
    causes = f"{counted(len(result.differences), 'cause')} of differences"
    new = len(_new_differences(result, plan.known))
    show(console, Text(f"\n{counted(scripts, 'script')}, {causes}, {new} new"))
    show(console, Text(f"Run        {run_dir}"))
    meaning = _MEANINGS.get(code, code.meaning)
    if plan.update_baseline and is_complete:
        updated = _updated(plan, result).keys()
        added, removed = len(updated - plan.known.keys()), len(plan.known.keys() - updated)
        show(console, Text(f"Baseline   {plan.baseline}: {added} added, {removed} removed"))
        meaning = "the baseline was updated"
    show(console, Text(f"Exit code  {int(code)}: {meaning}"))
    show(console, Text(f"Seed       {plan.seed}"))


_MEANINGS = {
    ExitCode.OK: "no new difference",
    ExitCode.VIOLATION: "a new difference",
    ExitCode.INCONCLUSIVE: "inconclusive: some scripts have no result",
}


def _lines(plan: ComparisonPlan, difference: GroupedDifference, file: Path) -> Iterator[Text]:
    cause, shown = difference.cause, difference.shown
    known = plan.known.get(cause.id)
    marks = [
        *([] if known is None else [f"known{': ' if known else ''}{one_line(known)}"]),
        *(["flaky"] if difference.is_flaky else []),
    ]
    yield Text.assemble(
        (f"\n{cause.kind}", _STYLES[cause.rank]),
        (f"  {cause.request} {cause.field}", "bold"),
        f"  in {counted(difference.scripts, 'script')} of {counted(len(difference.requirements), 'requirement')}",
        (f"  {', '.join(marks)}" if marks else "", "yellow"),
    )
    width = max(len(plan.here.name), len(plan.there.name))
    for target, value in ((plan.here, shown.here), (plan.there, shown.there)):
        yield Text(f"  {target.name:{width}}  step {shown.step}: {one_line(value, _VALUE_MAX)}")
    for other in difference.after:
        yield Text(f"  after {one_line(other, _VALUE_MAX)}", "dim")
    yield Text(f"  {difference.requirements[0]}: {file}", "dim")
