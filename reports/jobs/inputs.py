"""Input runs of a report: their public tables as Parquet files with exactly the format's types.

Tables with other types, and rows that are in no file (unfinished operations of a killed run), are written to a scratch
directory first. A run with a journal (its recording is in progress, or was killed) is read from hard links to its
current files, so that the report is not affected if the writer removes or adds files meanwhile.
"""

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from linearizability.history import layout
from linearizability.history.conform import has_types_of
from linearizability.history.errors import HistoryError, NotARunError
from linearizability.history.reader import History, open_history
from linearizability.history.run import RUN_FILE, RunInfo
from linearizability.history.schema import SCHEMAS
from linearizability.printable import cut

_COMPARED: Final = 2
"""The maximum number of runs that a report compares in the given order; more runs are sorted by time."""
_ATTEMPTS: Final = 5
"""Attempts to read a run. A writer may end meanwhile and replace its files."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a report."""

    number: int
    """Its place among the runs, from 0."""
    run_dir: Path
    """The resolved path of the run directory."""
    name: str
    """The run id in the rows of the report's tables."""
    history: History
    """A snapshot if the run has a journal."""
    files: dict[str, tuple[Path, ...]]
    """The Parquet files of each table, with the types of the format; none for an empty table."""
    started_ms: int
    """The earliest timestamp of a record according to the footers; else when `run.json` was written."""

    @property
    def info(self) -> RunInfo:
        """Its `run.json`."""
        return self.history.run


def open_runs(run_dirs: Mapping[Path, str], scratch: Path) -> list[Run]:
    """Open runs. One or two runs keep the given order; more are sorted, oldest first. An empty name means the run_id.

    Raises HistoryError or NotARunError, in one line with the directory.
    """
    runs = [
        _open(number, run_dir, name, scratch / f"run-{number}")
        for number, (run_dir, name) in enumerate(run_dirs.items())
    ]
    _require_unique_ids(runs)
    if len(runs) > _COMPARED:
        runs.sort(key=lambda run: (run.started_ms, run.name))
    return [replace(run, number=number) for number, run in enumerate(runs)]


def _require_unique_ids(runs: Sequence[Run]) -> None:
    seen: dict[str, Path] = {}
    for run in runs:
        if run.name in seen:
            same = f"its id is {run.name}, like that of {seen[run.name]}"
            raise NotARunError(f"{run.run_dir}: {same}; run ids in a report must be unique")
        seen[run.name] = run.run_dir


def _open(number: int, run_dir: Path, name: str, scratch: Path) -> Run:
    run_dir = run_dir.resolve()
    history = _open_at_one_moment(run_dir, scratch / "snapshot")
    if history.is_absent("operations"):
        raise HistoryError(f"{run_dir}: nothing to report: its history has no operations (yet)")
    files = {table: tuple(_files_with_exact_types(history, table, scratch)) for table in SCHEMAS}
    name = cut(name or history.run.run_id)  # every row of the report's tables has it
    return Run(number, run_dir, name, history, files, _started_ms(run_dir, files["records"]))


def _started_ms(run_dir: Path, records: Sequence[Path]) -> int:
    lowest = [low for path in records for low in _lowest(pq.read_metadata(path), "timestamp_ms")]
    if lowest and min(lowest) > 0:
        return min(lowest)
    return (run_dir / RUN_FILE).stat().st_mtime_ns // 1_000_000


def _lowest(footer: pq.FileMetaData, column: str) -> Iterator[int]:
    """Yield the lowest value of a column in each row group with statistics."""
    for group in range(footer.num_row_groups):
        for number in range(footer.num_columns):
            chunk = footer.row_group(group).column(number)
            if chunk.path_in_schema == column and chunk.is_stats_set and chunk.statistics.has_min_max:
                yield chunk.statistics.min


def _open_at_one_moment(run_dir: Path, snapshot: Path) -> History:
    """Return the history as it is at one moment. For a run with a journal, this is a snapshot."""
    if not layout.has_journal(run_dir / layout.HISTORY_FOLDER):
        return open_history(run_dir)
    for attempt in range(1, _ATTEMPTS + 1):
        shutil.rmtree(snapshot, ignore_errors=True)
        try:
            _link(run_dir, snapshot)
            return open_history(snapshot)
        except FileNotFoundError:
            if not layout.has_journal(run_dir / layout.HISTORY_FOLDER):
                return open_history(run_dir)
            if attempt == _ATTEMPTS:
                raise HistoryError(f"{run_dir}: changes too fast to be read; wait until the run has ended") from None
        except HistoryError as error:
            raise type(error)(str(error).replace(str(snapshot), str(run_dir))) from None
    raise AssertionError


def _link(run_dir: Path, snapshot: Path) -> None:
    """Link the current files, `operations` first.

    A flush writes its file of `operations` last. So if that file is linked first, all other files of the flush exist
    and are linked afterwards. Readers ignore a flush without a file of `operations`.
    """
    source, target = run_dir / layout.HISTORY_FOLDER, snapshot / layout.HISTORY_FOLDER
    (target / layout.JOURNAL_FOLDER).mkdir(parents=True)
    shutil.copyfile(run_dir / RUN_FILE, snapshot / RUN_FILE)
    for name in ("operations", *(name for name in SCHEMAS if name != "operations"), layout.JOURNAL_FOLDER):
        for path in [*source.glob(f"{name}.parquet"), *sorted((source / name).rglob("*.parquet"))]:
            link = target / path.relative_to(source)
            link.parent.mkdir(parents=True, exist_ok=True)
            _link_or_copy(path, link)
    whole = layout.table_file(source, "operations")
    if whole.exists() and not layout.table_file(target, "operations").exists():
        raise FileNotFoundError(f"{whole}: has replaced files that were linked")


def _link_or_copy(path: Path, link: Path) -> None:
    try:
        os.link(path, link)
    except FileNotFoundError:
        raise
    except OSError:  # another file system, or one without links
        shutil.copyfile(path, link)


def _files_with_exact_types(history: History, name: str, scratch: Path) -> Iterator[Path]:
    """Yield the files of a table that have the format's types, and one file with all other rows if there are any."""
    schema = SCHEMAS[name]
    others: list[Path] = []
    for path in history.files(name):
        if has_types_of(schema, pq.read_schema(path)):
            yield path
        else:
            others.append(path)
    if not others and not history.unfinished(name).num_rows:
        return
    scratch.mkdir(parents=True, exist_ok=True)
    rest = scratch / f"{name}.parquet"
    with pq.ParquetWriter(rest, schema) as writer:
        for table in _converted(history, name, others):
            writer.write_table(table)
    yield rest


def _converted(history: History, name: str, paths: Sequence[Path]) -> Iterator[pa.Table]:
    if paths:
        only = History(history.run_dir, history.run, {name: tuple(paths)})
        yield from only.batches(name)
    yield history.unfinished(name)
