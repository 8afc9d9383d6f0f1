"""`kafkatrial synthesize`: a valid history of any size with planted anomalies, to size a machine or to test a tool."""

import sys
import time
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from kafkatrial.errors import UsageError
from kafkatrial.exit_codes import ExitCode

EXAMPLES = ("kafkatrial synthesize RUN_DIR --records 10000000 --plant lost-write",)
_PROGRESS_S = 0.5


def synthesize(
    run_dir: Annotated[Path, typer.Argument(metavar="RUN_DIR", help="Run directory to create.")],
    *,
    records: Annotated[
        int, typer.Option(min=1, metavar="N", help="Approximate number of records, each sent and read.")
    ],
    partitions: Annotated[
        int, typer.Option(min=1, max=1_000_000, metavar="P", help="Number of topic partitions.")
    ] = 200,
    skew: Annotated[
        float, typer.Option(min=0, max=1, metavar="S", help="Share of all records that one partition has.")
    ] = 0.0,
    plant: Annotated[
        list[str] | None,
        typer.Option(metavar="ANOMALY", help="Anomaly to plant, by name; may be repeated (default: none)."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed of the history.")] = 0,
    layout: Annotated[
        bool,
        typer.Option(
            "--layout", help="Also write the layout by topic partition, which otherwise the first check creates."
        ),
    ] = False,
) -> ExitCode:
    """Write a valid history of any size, with planted anomalies."""
    from linearizability.shards.running import Processes
    from linearizability.synthetic.planted_anomalies import PLANTED_ANOMALIES
    from linearizability.synthetic.writing import Request
    from linearizability.synthetic.writing import synthesize as write

    names = plant or []
    for name in names:
        if name not in PLANTED_ANOMALIES:
            raise UsageError(f"there is no anomaly {name!r} to plant; there are {', '.join(PLANTED_ANOMALIES)}")
    progress = _Progress(records)
    with Processes() as run:
        written = write(run_dir, Request(records, partitions, skew, names, seed), progress, run if layout else None)
    progress.end()
    planted = ", ".join(f"{name} ({times})" if times > 1 else name for name, times in Counter(names).items())
    typer.echo(f"{run_dir}: {written:,} records in {partitions:,} partitions; planted: {planted or 'nothing'}")
    return ExitCode.OK


class _Progress:
    """A line of progress on a terminal, overwritten by each update."""

    def __init__(self, records: int) -> None:
        self._records, self._begin_s, self._shown_s = records, time.monotonic(), 0.0

    def __call__(self, written: int) -> None:
        now_s = time.monotonic()
        if sys.stderr.isatty() and now_s - self._shown_s >= _PROGRESS_S:
            self._shown_s = now_s
            rate = written / (now_s - self._begin_s)
            left_s = max(0, self._records - written) / rate
            line = f"{written:,} of {self._records:,} records, {rate:,.0f} a second, {left_s:,.0f} s left"
            typer.echo(f"\r{line:<70}", nl=False, err=True)

    def end(self) -> None:
        """End the line."""
        if self._shown_s:
            typer.echo(err=True)
