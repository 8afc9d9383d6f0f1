"""Files of expected violations: selection of the file that a run reads for a target, and update of files from a run."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.text import Text

from conformance.expectations import (
    ExpectationsError,
    ExpectedViolation,
    expectations_file,
    load_expectations,
    parse_expectations,
    read_expectations,
)
from conformance.expectations_update import Update, update
from fixtures.targets.catalogue import target_kinds
from fixtures.targets.recipe_file import command_tables
from kafkatrial.console import show, stdout_console
from kafkatrial.errors import CommandError, UsageError
from kafkatrial.exit_codes import ExitCode
from kafkatrial.selection import did_you_mean, ids
from linearizability.drafts import draft_of
from linearizability.printable import counted, printable
from reports.results import Results, read_results

DIRECTORY = Path("expectations")


def file_of_target(target: str) -> Path | None:
    """Return the file of expected violations of a target: beside its recipe, or else the suite's; None without one."""
    file = _beside_recipe(target)
    return file if file and file.is_file() else expectations_file(target)


def expectations_of_target(target: str) -> dict[str, ExpectedViolation]:
    """Return the expected violations of a target, from its file.

    Raises ExpectationsError and UsageError: the file is invalid.
    """
    file = file_of_target(target)
    return load_known(file) if file else {}


def load_known(file: Path) -> dict[str, ExpectedViolation]:
    """Return the expected violations of a user's file. Raises ExpectationsError; UsageError for an unknown id."""
    expected = load_expectations(file)
    for requirement in expected:
        if any(each.startswith(f"{requirement}/") for each in ids()):
            raise UsageError(f"{file}: {requirement} is an area; name each of its requirements that is violated")
        if requirement not in ids():
            raise UsageError(f"{file}: {did_you_mean(requirement, ids())}")
    return dict(expected)


def update_expectations(run_dir: Path, target: str | None, file: Path | None) -> ExitCode:
    """Update the file of one target of a run, or of each, and show the changes.

    Raises ResultsError, UsageError, ExpectationsError and CommandError, each in one line.
    """
    results = read_results(run_dir)
    names = [info.name for info in results.targets]
    if target is not None and target not in names:
        raise UsageError(f"{run_dir}: the run has no target {target}; it has {', '.join(names)}")
    chosen = names if target is None else [target]
    if file is None:
        _check_recipes(chosen)
    if file is not None and len(chosen) > 1:
        raise UsageError(f"{run_dir}: --file is for one target; name it with --target: {', '.join(names)}")
    # All files are read before the first is written.
    updates = [(name, _file_of(name, file), *_read(name, _file_of(name, file), results)) for name in chosen]
    for name, path, text, result in updates:
        if result.text != text:
            _write(path, result.text)
        for line in _lines(name, path, result, is_written=result.text != text):
            show(stdout_console(), Text(printable(line)))
    return ExitCode.OK


def _beside_recipe(target: str) -> Path | None:
    kind = target.partition(":")[0]
    table = command_tables().get(kind)
    return None if table is None else table.file.parent / DIRECTORY / f"{kind}.toml"


def _file_of(target: str, file: Path | None) -> Path:
    return file or _beside_recipe(target) or DIRECTORY / f"{re.sub(r'[^A-Za-z0-9._-]', '-', target)}.toml"


def _check_recipes(targets: Sequence[str]) -> None:
    """Raise UsageError for a target of an unknown kind. With its recipe, a run reads the file beside that recipe."""
    kinds = {row.kind for row in target_kinds()}
    for target in targets:
        if target.partition(":")[0] not in kinds:
            raise UsageError(
                f"{target}: its recipe is not known; name the file of the recipe with --targets, "
                "or the file of expectations with --file"
            )


def _read(target: str, file: Path, results: Results) -> tuple[str, Update]:
    """Return the text of a file, empty if there is none, and its update."""
    text = read_expectations(file) if file.exists() else ""
    entries = parse_expectations(text, file)
    findings = [finding for finding in results.outcomes if finding.target == target]
    result = update(text, entries, findings, ids(), title=f"Known violations of {target}.")
    if set(parse_expectations(result.text, file)) != {*result.kept, *result.added}:
        raise ExpectationsError(f"{file}: cannot be updated; its layout is not understood")
    return text, result


def _write(file: Path, text: str) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with draft_of(file) as draft:
            draft.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CommandError(f"{file}: cannot be written: {error.strerror or error}") from error


def _lines(target: str, file: Path, result: Update, *, is_written: bool) -> Iterator[str]:
    yield f"{target}: {file}{'' if is_written else ' is up to date'}"
    yield from (f"  + {name}: {reason}" for name, reason in result.added.items())
    yield from (f"  - {name}: {reason}" for name, reason in result.removed.items())
    yield from (f"  ? {name}: flaky, not added" for name in result.flaky)
    kept = counted(len(result.kept), "expected violation")
    yield f"  {kept} kept, {len(result.added)} added, {len(result.removed)} removed"
