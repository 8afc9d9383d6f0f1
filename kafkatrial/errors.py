"""Errors that a user can cause or fix: one line on standard error, and the exit code.

Any other error is a bug of kafkatrial. Its traceback is saved to a file that the line names, so that the terminal stays
readable.
"""

import errno
import os
import re
import resource
import shutil
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from kafkatrial.exit_codes import ExitCode
from kafkatrial.suite import directory
from linearizability.cache import cache_directory
from linearizability.printable import one_line

_FIRST_LINE_MAX: Final = 1_000


class CommandError(Exception):
    """Error after which a command cannot continue. The message is one line: the error, its place, and what to do."""

    exit_code = ExitCode.INTERNAL


class UsageError(CommandError):
    """Error in the command line, in a setting or in an argument."""

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
    "conformance.fuzz.finding.NotAFindingError": ExitCode.USAGE,
    "chaos.replay.TrialNotApplicableError": ExitCode.USAGE,
    "conformance.trial.saved.NotATrialError": ExitCode.USAGE,
    "chaos.campaign.saved.SavedFailureError": ExitCode.USAGE,
    "conformance.concurrent.trial_context.ScriptNotRunError": ExitCode.INTERNAL,
    "chaos.campaign.workers.WorkerError": ExitCode.INTERNAL,
    "reports.results.ResultsError": ExitCode.USAGE,
    "reports.local.engine.LocalEngineError": ExitCode.INTERNAL,
    "reports.spark.errors.EngineUnavailableError": ExitCode.USAGE,
    "reports.spark.errors.EngineFailedError": ExitCode.INTERNAL,
}
"""Exit codes by the qualified names of errors, so that no module is imported for them. A subclass has the exit code of
its nearest base class in this table."""

_DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
_NO_PATH = (errno.ENAMETOOLONG, errno.ELOOP)
"""Error numbers for a path that is too long or has a loop of symbolic links; even a check for existence raises them."""
_OUT_OF_MEMORY = {"builtins.MemoryError", "duckdb.OutOfMemoryException", "_duckdb.OutOfMemoryException"}
"""Errors by package and name. PyArrow raises a subclass of MemoryError."""
_NO_TEMPORARY_DIRECTORY = "No usable temporary directory"
"""Start of the message that `tempfile` raises if every directory that it knows is full or not writable."""
_NO_THREAD = re.compile("can't start new thread|Failed to launch worker thread")
"""Message of Python and PyArrow if there is no memory for the stack of another thread."""
_MEMORY_MIN = 512 << 20
_NO_ROOM = 1 << 16
"""A directory with fewer free bytes counts as full."""


def exit_code_of(error: BaseException) -> ExitCode | None:
    """Return the exit code of a known error, None for an unexpected one."""
    if isinstance(error, CommandError):
        return error.exit_code
    names = (f"{cls.__module__}.{cls.__qualname__}" for cls in type(error).__mro__)
    return next((KNOWN_ERRORS[name] for name in names if name in KNOWN_ERRORS), None)


def report(error: Exception, run_dir: Path | None = None) -> ExitCode:
    """Print one line about the error, save the traceback if the error is unexpected, and return the exit code."""
    if not isinstance(error, CommandError) and (exhausted := describe_exhausted_resource(error, run_dir)):
        print_error(exhausted)  # checked first: without memory, an intact history may look damaged
        return ExitCode.INTERNAL
    code = exit_code_of(error)
    if code is not None:
        print_error(str(error))
        return code
    if isinstance(error, OSError) and error.errno in _NO_PATH:
        print_error(f"{one_line(str(error.filename), _FIRST_LINE_MAX)}: {error.strerror}")
        return ExitCode.USAGE
    if isinstance(error, ModuleNotFoundError) and (package := _missing_package(error)):
        python = sys.executable  # noqa: TID251  printed, not started
        print_error(
            f"Python package '{package}' is not installed for {python}; in a checkout, run `make .venv/.synced` "
            f"and use .venv/bin/kafkatrial; else `{python} -m pip install PATH` with the path of a checkout"
        )
        return ExitCode.INTERNAL
    first_line = one_line((str(error).splitlines() or [""])[0], _FIRST_LINE_MAX)
    print_error(f"internal error: {type(error).__name__}: {first_line} (traceback {_save_traceback(error, run_dir)})")
    return ExitCode.INTERNAL


def describe_exhausted_resource(error: BaseException, run_dir: Path | None = None) -> str | None:
    """Return in one line which resource of the machine is exhausted; None for an error of another kind.

    The causes and contexts of an error are searched as well.
    """
    for each in _chain(error):
        if isinstance(each, FileNotFoundError) and str(each.strerror).startswith(_NO_TEMPORARY_DIRECTORY):
            return f"{each.strerror}; free some space, or name another directory in TMPDIR"
        if isinstance(each, OSError) and each.errno in _DISK_FULL:
            if place := full_directory(each, run_dir):
                return f"no space is left in {place}; free some, or name another directory"
            if exit_code_of(error) is None:
                return "no space is left on a device; free some, or name another directory"
        names = {f"{cls.__module__.partition('.')[0]}.{cls.__name__}" for cls in type(each).__mro__}
        if names & _OUT_OF_MEMORY or getattr(each, "errno", 0) == errno.ENOMEM or _NO_THREAD.search(str(each)):
            return f"out of memory{_memory_limit()}: {(str(each).splitlines() or ['an allocation failed'])[0][:200]}"
    return None


def _missing_package(error: ModuleNotFoundError) -> str | None:
    """Return the name of a missing package; None if the missing module is a submodule, or one of kafkatrial's."""
    name = error.name or ""
    return None if not name or "." in name or (directory() / name).exists() else name


def require_memory() -> None:
    """Raise CommandError if the limit of this process's address space is too low to import NumPy.

    Without this check, that import would end the process with exit code 1.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < _MEMORY_MIN:
        raise CommandError(f"out of memory{_memory_limit()}: at least {_MEMORY_MIN >> 20} MiB are needed")


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def full_directory(error: OSError, run_dir: Path | None) -> Path | None:
    """Return the directory of the path that an error names; if it names none, the first full directory in use.

    The directories in use are the run directory, the temporary one, the cache and the working directory. Return None if
    none of them is full.
    """
    if isinstance(error.filename, str):
        named = Path(error.filename).absolute()
        return named if named.is_dir() else named.parent
    temporary = Path(os.environ.get("TMPDIR", "/tmp"))  # noqa: S108 - `tempfile` would skip a full directory
    places = [place.absolute() for place in (run_dir, temporary, cache_directory(), Path()) if place]
    existing = [next(each for each in (place, *place.parents) if each.exists()) for place in places]
    return next((place for place in existing if shutil.disk_usage(place).free < _NO_ROOM), None)


def _memory_limit() -> str:
    """Return a text with the limit of the address space of this process; empty if there is no limit."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return "" if limit == resource.RLIM_INFINITY else f" (this process may use {limit >> 20:,} MiB, by ulimit -v)"


def print_error(line: str) -> None:
    """Print a text on standard error as one line, with unprintable characters escaped.

    Nothing is printed if the reader of standard error has ended.
    """
    if sys.stderr is not None:
        with suppress(BrokenPipeError):
            sys.stderr.write(f"kafkatrial: {one_line(line)}\n")


def _save_traceback(error: Exception, run_dir: Path | None) -> str:
    """Save the traceback to a file; return a phrase with its path, or with the reason why it is not saved."""
    text = "".join(traceback.format_exception(error))
    try:
        path = _traceback_path(run_dir)
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as reason:
        return f"not saved: {reason.strerror}"
    return f"in {path}"


def _traceback_path(run_dir: Path | None) -> Path:
    if run_dir is not None and run_dir.is_dir():
        return run_dir / "internal-error.txt"
    with tempfile.NamedTemporaryFile(prefix="kafkatrial-", suffix=".txt", delete=False) as file:
        return Path(file.name)
