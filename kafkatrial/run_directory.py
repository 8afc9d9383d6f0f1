"""Where a run is kept: `.kafkatrial/runs/<time>-<seed>` unless `--out` says otherwise."""

from datetime import datetime
from pathlib import Path

from kafkatrial.errors import UsageError

RUNS = Path(".kafkatrial") / "runs"


def make_run_directory(out: Path | None, *, now: datetime, seed: int) -> Path:
    """Create the directory of a new run, which must not hold anything yet.

    Raises:
        UsageError: it cannot be made, or is not empty.
    """
    path = out or RUNS / f"{now:%Y%m%dT%H%M%S}-{seed}"
    try:
        path.mkdir(parents=True, exist_ok=True)
        occupied = next(path.iterdir(), None)
    except OSError as error:
        raise UsageError(f"cannot make the run directory {path}: {error.strerror}") from error
    if occupied is not None:
        raise UsageError(f"the run directory {path} is not empty; name another with --out")
    return path
