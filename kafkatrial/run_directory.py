"""Directories of runs and reports, below `.kafkatrial` unless `--out` names another one."""

from datetime import datetime
from pathlib import Path

from kafkatrial.errors import UsageError

RUNS = Path(".kafkatrial") / "runs"
REPORTS = Path(".kafkatrial") / "reports"


def make_run_directory(out: Path | None, *, now: datetime, seed: int) -> Path:
    """Create the directory of a new run. It may exist, but must be empty.

    Raises:
        UsageError: it cannot be made, or is not empty.
    """
    return _make(out or RUNS / f"{now:%Y%m%dT%H%M%S}-{seed}", "run")


def make_report_directory(out: Path | None, *, now: datetime) -> Path:
    """Create the directory of a new report (default: `.kafkatrial/reports/<time>`). It may exist, but must be empty.

    Raises:
        UsageError: it cannot be made, or is not empty.
    """
    return _make(out or REPORTS / f"{now:%Y%m%dT%H%M%S}", "report")


def _make(path: Path, what: str) -> Path:
    try:
        path.mkdir(parents=True, exist_ok=True)
        occupied = next(path.iterdir(), None)
    except OSError as error:
        raise UsageError(f"cannot make the {what} directory {path}: {error.strerror}") from error
    if occupied is not None:
        raise UsageError(f"the {what} directory {path} is not empty; name another with --out")
    return path
