"""`kafkatrial synthesize`: a lawful history of any size, with anomalies planted, to size a machine or to try a tool."""

import sys
import time
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from kafkatrial.errors import UsageError
from kafkatrial.exit_codes import ExitCode

_PROGRESS_S = 0.5


def synthesize(
    run_dir: Annotated[Path, typer.Argument(help="A run directory that is not there yet.")],
    *,
    records: Annotated[int, typer.Option(min=1, metavar="N", help="About so many, sent and read.")],
    partitions: Annotated[int, typer.Option(min=1, max=1_000_000, metavar="P")] = 200,
    skew: Annotated[
        float, typer.Option(min=0, max=1, metavar="S", help="The share of all records that one partition has.")
    ] = 0.0,
    plant: Annotated[
        list[str] | None, typer.Option(metavar="ANOMALY", help="An anomaly to plant, by name; may be given again.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, metavar="N")] = 0,
    layout: Annotated[
        bool,
        typer.Option("--layout", help="Lay it out for the engines in passing, which they do themselves otherwise."),
    ] = False,
) -> ExitCode:
    """Write a history of any size, with anomalies planted."""
    from linearizability.shards.running import Processes
    from linearizability.synthetic.plants import PLANTS
    from linearizability.synthetic.writing import Request
    from linearizability.synthetic.writing import synthesize as write

    names = plant or []
    for name in names:
        if name not in PLANTS:
            raise UsageError(f"there is no anomaly {name!r} to plant; there are {', '.join(PLANTS)}")
    progress = _Progress(records)
    with Processes() as run:
        written = write(run_dir, Request(records, partitions, skew, names, seed), progress, run if layout else None)
    progress.end()
    planted = ", ".join(f"{name} ({times})" if times > 1 else name for name, times in Counter(names).items())
    typer.echo(f"{run_dir}: {written:,} records in {partitions:,} partitions; planted: {planted or 'nothing'}")
    return ExitCode.OK


class _Progress:
    """One line on a terminal, written again and again."""

    def __init__(self, records: int) -> None:
        self._records, self._begin_s, self._told_s = records, time.monotonic(), 0.0

    def __call__(self, written: int) -> None:
        now_s = time.monotonic()
        if sys.stderr.isatty() and now_s - self._told_s >= _PROGRESS_S:
            self._told_s = now_s
            rate = written / (now_s - self._begin_s)
            left_s = max(0, self._records - written) / rate
            line = f"{written:,} of {self._records:,} records, {rate:,.0f} a second, {left_s:,.0f} s left"
            typer.echo(f"\r{line:<70}", nl=False, err=True)

    def end(self) -> None:
        """Leave the line."""
        if self._told_s:
            typer.echo(err=True)
