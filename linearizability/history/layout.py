"""Where the tables of a history lie, finished or not.

A table is `history/NAME.parquet` or closed files `history/NAME/*.parquet`; where a foreign tool left both, both count.
One that is absent is empty; anything else in `history/` is derived and not looked at.

While our writer runs, and after it was killed, there is also `history/_journal/`, and with it three rules:

- Every flush has a number. Its files are renamed into place one by one: the journal's, `NAME/NUMBER.parquet` for each
  table with rows, and last, with or without rows, that of `operations`. A flush that lacks it was cut short, and none
  of its files count.
- `_journal/NAME-NUMBER.parquet` holds what had begun but not ended at that flush: operations (complete_ns null,
  outcome info) with their sends, and faults (heal_ns null). A row counts unless the closed files have its operation
  or fault.
- At the end each table, `operations` first, is rewritten as `NAME.parquet` and then its folder removed. With a journal
  the file alone counts where both are there, and an `operations.parquet` says that every flush was whole.

A run that ended has no journal.
"""

import os
from pathlib import Path
from typing import Final

from linearizability.history.errors import HistoryError

HISTORY_FOLDER: Final = "history"
JOURNAL_FOLDER: Final = "_journal"
JOURNAL_TABLES: Final = ("records", "faults", "operations")
"""What a journal holds, in the order in which its files are written."""


def table_file(history_dir: Path, name: str) -> Path:
    """The one file of a finished table."""
    return history_dir / f"{name}.parquet"


def part_file(history_dir: Path, name: str, number: int) -> Path:
    """The file of one flush of a table."""
    return history_dir / name / f"{number:06d}.parquet"


def journal_file(history_dir: Path, name: str, number: int) -> Path:
    """What had begun but not ended at one flush."""
    return history_dir / JOURNAL_FOLDER / f"{name}-{number:06d}.parquet"


def has_journal(history_dir: Path) -> bool:
    """Whether a writer is at work here, or was killed at it."""
    return (history_dir / JOURNAL_FOLDER).is_dir()


def journal_files(history_dir: Path, name: str) -> list[Path]:
    """The journal's files of one table, oldest first."""
    last = last_whole_flush(history_dir)
    files = sorted((history_dir / JOURNAL_FOLDER).glob(f"{name}-*.parquet"))
    return [path for path in files if last is None or path.stem <= f"{name}-{last}"]


def table_files(history_dir: Path, name: str) -> list[Path]:
    """The closed files of a table that count, in the order they were written.

    Raises HistoryError for what stands in a table's place and is none.
    """
    single = table_file(history_dir, name)
    # A folder `NAME.parquet` is what Spark writes; its closed files are the table's just as well.
    # A link that leads nowhere is a table that cannot be read, not one that is absent: hence lexists.
    whole = _of_spark(single) if single.is_dir() else [single] if os.path.lexists(single) else []
    folder = history_dir / name
    if os.path.lexists(folder) and not folder.is_dir():
        raise HistoryError(
            f"{folder}: neither a table's folder nor a link to one; a table in one file is {single.name}"
        )
    parts = _closed(folder)
    if not has_journal(history_dir):
        return whole + parts
    if whole:
        return whole
    last = last_whole_flush(history_dir)
    return [path for path in parts if last is None or path.stem <= last]


def _of_spark(folder: Path) -> list[Path]:
    """The files in a folder `NAME.parquet`; Spark leaves a mark where it wrote none."""
    files = _closed(folder)
    if not files and not (folder / "_SUCCESS").exists():
        raise HistoryError(f"{folder}: a folder without Parquet files; a table without rows is left out")
    return files


def last_whole_flush(history_dir: Path) -> str | None:
    """The number of the last flush that was not cut short, as it stands in file names; None if all were whole."""
    if table_file(history_dir, "operations").exists():
        return None
    return max((path.stem for path in _closed(history_dir / "operations")), default="")


def _closed(folder: Path) -> list[Path]:
    """The Parquet files of a folder; names with a dot or an underscore in front are drafts of whatever writes there."""
    return sorted(path for path in folder.glob("*.parquet") if path.name[0] not in "._")
