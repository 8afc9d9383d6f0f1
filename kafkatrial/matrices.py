"""Files of `kafkatrial matrix`: one page, one Markdown file, and one badge for each target.

Runs may come from several machines: only their results.json is needed, and `failures/<n>/steps.txt` is read if it was
kept. All input is read before anything is written.
"""

import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from rich.text import Text

from conformance.failures import STEPS_FILE
from kafkatrial.console import show, stdout_console
from kafkatrial.errors import CommandError, UsageError
from kafkatrial.exit_codes import ExitCode
from kafkatrial.run_directory import make_report_directory
from linearizability.drafts import draft_of
from linearizability.finding import Finding
from linearizability.history.errors import HistoryError
from linearizability.history.files import read_bounded
from linearizability.printable import printable
from reports import matrix_markdown, matrix_page
from reports.matrix import Matrix, merge
from reports.results import FILE_NAME as RESULTS_FILE
from reports.results import Results, read_results


def make_matrix(directories: Sequence[Path], out: Path | None = None, *, latest: bool = False) -> ExitCode:
    """Write the matrix of all runs in some directories, and show the number of verdicts of each target.

    Raises UsageError, ResultsError and CommandError, each in one line.
    """
    matrix = merge([_results(run_dir) for run_dir in _runs_in(directories)], latest=latest)
    if not matrix.columns or not matrix.requirements:
        raise UsageError(f"{directories[0]}: nothing to show: the runs have no targets or no requirements")
    command = _command(directories, out, latest=latest)
    contents = {
        matrix_page.FILE_NAME: matrix_page.render_matrix(matrix, command),
        matrix_markdown.FILE_NAME: matrix_markdown.render_markdown(matrix, command),
        **matrix_markdown.badges(matrix),
    }
    place = _write(contents, out)
    console = stdout_console()
    for line in _summary(matrix):
        show(console, Text(printable(line)))
    show(console, Text(f"Matrix     {place / matrix_page.FILE_NAME}"))
    return ExitCode.OK


def _results(run_dir: Path) -> Results:
    """Read the results of a run, with the requests and responses of each failure whose file was kept."""
    results = read_results(run_dir)
    return replace(results, outcomes=tuple(replace(each, steps=_steps(run_dir, each)) for each in results.outcomes))


def _steps(run_dir: Path, finding: Finding) -> str:
    if not finding.failure_dir:
        return ""
    file = run_dir / "failures" / Path(finding.failure_dir).name / STEPS_FILE
    with suppress(HistoryError):  # a copied run may have only results.json
        return read_bounded(file).decode(errors="replace").rstrip("\n")
    return ""


def _runs_in(directories: Sequence[Path]) -> list[Path]:
    """Return every run directory once: those that were given, and those inside the other given directories."""
    found: dict[Path, Path] = {}
    for directory in directories:
        if not directory.exists():
            raise UsageError(f"{directory}: no such file or directory")
        if not directory.is_dir():
            raise UsageError(f"{directory}: not a run directory")
        run_dirs = list(_below(directory))
        if not run_dirs:
            raise UsageError(f"{directory}: not a run directory: it holds no {RESULTS_FILE} of `kafkatrial run`")
        for run_dir in run_dirs:
            found.setdefault(run_dir.resolve(), run_dir)
    return list(found.values())


def _below(directory: Path) -> Iterator[Path]:
    """Yield each directory that contains results. Its own subdirectories are not searched."""
    for path, names, files in os.walk(directory):
        if RESULTS_FILE in files or RESULTS_FILE in names:  # `read_results` rejects a directory of that name
            names.clear()
            yield Path(path)
        names.sort()


def _command(directories: Sequence[Path], out: Path | None, *, latest: bool) -> str:
    words = ["kafkatrial", "matrix", *map(str, directories)]
    return shlex.join([*words, *(["--latest"] if latest else []), *(["--out", str(out)] if out else [])])


def _write(contents: dict[str, str], out: Path | None) -> Path:
    """Write each file atomically; return their directory."""
    place = make_report_directory(None, now=datetime.now(UTC)) if out is None else out
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot make the directory {place}: {error.strerror}") from error
    try:
        for name, content in contents.items():
            with draft_of(place / name) as draft:
                draft.write_text(content, encoding="utf-8")
    except OSError as error:
        raise CommandError(f"{place}: the matrix cannot be written: {error.strerror or error}") from error
    return place


def _summary(matrix: Matrix) -> Iterator[str]:
    width = max(len(column.name) for column in matrix.columns)
    for number, column in enumerate(matrix.columns):
        for level in matrix.levels:
            counts = matrix.counts(number, level).items()
            parts = [f"{count} {standing}" for standing, count in counts if standing is not None]
            yield f"{column.name:{width}}  {level}: {', '.join(parts) or 'not run'}"
