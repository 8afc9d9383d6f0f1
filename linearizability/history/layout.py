"""File layout of a history, finished or not.

A table is the file `history/NAME.parquet` or the files `history/NAME/*.parquet`. If another tool wrote both, the table
consists of both. An absent table is empty. Anything else in `history/` is derived and ignored.

While our writer runs, and after it was killed, there is also `history/_journal/`. Then three rules apply:

- Every flush has a number. Its files are renamed into place one by one: first those of the journal, then
  `NAME/NUMBER.parquet` for each table with rows, and last the file of `operations`, even if it has no rows. A flush
  without its `operations` file was cut short, and none of its files count.
- `_journal/NAME-NUMBER.parquet` holds what had begun since the flush before and had not ended at this one: operations
  (complete_ns null, outcome info) with their sends, and faults (heal_ns null). A row counts unless a flush has written
  its operation or fault.
- At the end each table, `operations` first, is rewritten as `NAME.parquet`, and then its folder is removed. With a
  journal, the file takes precedence over the folder, and an `operations.parquet` means that every flush is whole.

A run that ended has no journal.
"""

import os
from pathlib import Path
from typing import Final

from linearizability.history.errors import HistoryError

HISTORY_FOLDER: Final = "history"
JOURNAL_FOLDER: Final = "_journal"
JOURNAL_TABLES: Final = ("records", "faults", "operations")
"""The tables of a journal, in the order in which their files are written."""


def table_file(history_dir: Path, name: str) -> Path:
    """Return the file of a finished table."""
    return history_dir / f"{name}.parquet"


def part_file(history_dir: Path, name: str, number: int) -> Path:
    """Return the file of one flush of a table."""
    return history_dir / name / f"{number:06d}.parquet"


def journal_file(history_dir: Path, name: str, number: int) -> Path:
    """Return the file of a table's unfinished rows at one flush."""
    return history_dir / JOURNAL_FOLDER / f"{name}-{number:06d}.parquet"


def has_journal(history_dir: Path) -> bool:
    """Whether a writer is working here, or was killed."""
    return (history_dir / JOURNAL_FOLDER).is_dir()


def journal_files(history_dir: Path, name: str) -> list[Path]:
    """Return the journal's files of one table up to the last whole flush, oldest first."""
    last = last_whole_flush(history_dir)
    files = sorted((history_dir / JOURNAL_FOLDER).glob(f"{name}-*.parquet"))
    return [path for path in files if last is None or path.stem <= f"{name}-{last}"]


def table_files(history_dir: Path, name: str) -> list[Path]:
    """Return the files of a table that count, in the order they were written.

    Raises HistoryError for something else in the place of a table.
    """
    single = table_file(history_dir, name)
    # Spark writes a folder `NAME.parquet`. A dangling link is an unreadable table, not an absent one: hence lexists.
    whole = _files_of_spark_table(single) if single.is_dir() else [single] if os.path.lexists(single) else []
    folder = history_dir / name
    if os.path.lexists(folder) and not folder.is_dir():
        raise HistoryError(
            f"{folder}: neither a table's folder nor a link to one; name the file of a table {single.name}"
        )
    parts = _closed(folder)
    if not has_journal(history_dir):
        return whole + parts
    if whole:
        return whole
    last = last_whole_flush(history_dir)
    return [path for path in parts if last is None or path.stem <= last]


def _files_of_spark_table(folder: Path) -> list[Path]:
    """Return the files in a folder `NAME.parquet` that Spark wrote.

    Raises HistoryError if there are none, unless Spark's marker `_SUCCESS` shows that the table has no rows.
    """
    files = _closed(folder)
    if not files and not (folder / "_SUCCESS").exists():
        raise HistoryError(f"{folder}: a folder without Parquet files; leave out a table without rows")
    return files


def last_whole_flush(history_dir: Path) -> str | None:
    """Return the number of the last whole flush, with leading zeros as in file names.

    Return an empty string if no flush was whole, and None if `operations.parquet` exists: then all flushes were whole.
    """
    if table_file(history_dir, "operations").exists():
        return None
    return max((path.stem for path in _closed(history_dir / "operations")), default="")


def _closed(folder: Path) -> list[Path]:
    """Return the Parquet files of a folder without drafts, whose names begin with a dot or an underscore."""
    return sorted(path for path in folder.glob("*.parquet") if path.name[0] not in "._")
