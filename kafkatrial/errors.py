"""Every error that a person can cause or mend: one clear line on standard error, and the exit code it means.

An error of another kind is a mistake of ours. Its traceback goes to a file, so that the line can say where it is and
the terminal stays readable.
"""

import sys
import tempfile
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Final

from kafkatrial.exit_codes import ExitCode
from linearizability.printable import one_line

_FIRST_LINE_MAX: Final = 1_000


class CommandError(Exception):
    """A command cannot go on. The message is one line: what was wrong, where, what to do."""

    exit_code = ExitCode.INTERNAL


class UsageError(CommandError):
    """The command line, a setting or an argument is wrong."""

    exit_code = ExitCode.USAGE


KNOWN_ERRORS = {
    "fixtures.targets.target.NotInstalledError": ExitCode.USAGE,
    "fixtures.targets.target.UnknownTargetError": ExitCode.USAGE,
    "fixtures.targets.target.TargetError": ExitCode.INTERNAL,
    "fixtures.clients.history_topic.HistoryTopicError": ExitCode.INTERNAL,
    "linearizability.history.errors.NotARunError": ExitCode.USAGE,
    "linearizability.history.errors.HistoryError": ExitCode.USAGE,
    "linearizability.history.errors.HistoryNotWrittenError": ExitCode.INTERNAL,
    "linearizability.shards.running.WorkerError": ExitCode.INTERNAL,
    "conformance.expectations.ExpectationsError": ExitCode.USAGE,
    "chaos.defects.registry.UnknownDefectError": ExitCode.USAGE,
    "chaos.live.findings.UnknownFindingError": ExitCode.USAGE,
    "chaos.live.failure.NotAFailureError": ExitCode.USAGE,
    "conformance.fuzz.finding.NotAFindingError": ExitCode.USAGE,
    "chaos.simulation.saved.SavedFailureError": ExitCode.USAGE,
    "conformance.concurrent.surroundings.ScriptNotRunError": ExitCode.INTERNAL,
    "chaos.simulation.workers.WorkerError": ExitCode.INTERNAL,
    "reports.results.ResultsError": ExitCode.USAGE,
    "reports.local.engine.LocalEngineError": ExitCode.INTERNAL,
    "reports.spark.errors.EngineUnavailableError": ExitCode.USAGE,
    "reports.spark.errors.EngineFailedError": ExitCode.INTERNAL,
}
"""By qualified name, so that naming an error costs no import; a subclass counts as its nearest base in this table."""


def exit_code_of(error: BaseException) -> ExitCode | None:
    """The exit code of a known error, None for one that nobody foresaw."""
    if isinstance(error, CommandError):
        return error.exit_code
    names = (f"{cls.__module__}.{cls.__qualname__}" for cls in type(error).__mro__)
    return next((KNOWN_ERRORS[name] for name in names if name in KNOWN_ERRORS), None)


def report(error: Exception, run_dir: Path | None = None) -> ExitCode:
    """Print the error's one line, save the traceback of an unforeseen one, and return the exit code."""
    code = exit_code_of(error)
    if code is not None:
        complain(str(error))
        return code
    path = _traceback_path(run_dir)
    path.write_text("".join(traceback.format_exception(error)), encoding="utf-8", errors="backslashreplace")
    first_line = one_line((str(error).splitlines() or [""])[0], _FIRST_LINE_MAX)
    complain(f"internal error: {type(error).__name__}: {first_line} (traceback in {path})")
    return ExitCode.INTERNAL


def complain(line: str) -> None:
    """Print one line on standard error, whatever the text holds. Nothing is printed where nothing reads it."""
    if sys.stderr is not None:
        with suppress(BrokenPipeError):
            sys.stderr.write(f"kafkatrial: {one_line(line)}\n")


def _traceback_path(run_dir: Path | None) -> Path:
    if run_dir is not None and run_dir.is_dir():
        return run_dir / "internal-error.txt"
    with tempfile.NamedTemporaryFile(prefix="kafkatrial-", suffix=".txt", delete=False) as file:
        return Path(file.name)
