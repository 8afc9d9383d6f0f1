"""Compaction of the many small files of a finished run into one per table, a row group at a time."""

import shutil
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from linearizability.history import layout
from linearizability.history.schema import SCHEMAS

ROW_GROUP_ROWS: Final = 131_072
"""Rows in a row group: enough for a fast scan, and so few that a dozen row groups fit in memory easily."""


def compact(history_dir: Path) -> None:
    """Rewrite `NAME/*.parquet` as `NAME.parquet`, table by table. A kill at any moment loses no row.

    `operations` is rewritten first: to a reader, `operations.parquet` means that every flush was complete (`layout`).
    """
    for name in SCHEMAS:
        parts = layout.table_files(history_dir, name)
        if not parts:
            continue
        draft = history_dir / layout.JOURNAL_FOLDER / "table.tmp"
        _rewrite(name, parts, draft)
        draft.replace(layout.table_file(history_dir, name))
        shutil.rmtree(history_dir / name)


def _rewrite(name: str, parts: list[Path], draft: Path) -> None:
    with pq.ParquetWriter(draft, SCHEMAS[name]) as writer:
        waiting: list[pa.Table] = []
        rows = 0
        for path in parts:
            part = pq.read_table(path, partitioning=None)
            waiting.append(part)
            rows += part.num_rows
            if rows >= ROW_GROUP_ROWS:
                writer.write_table(pa.concat_tables(waiting), row_group_size=ROW_GROUP_ROWS)
                waiting, rows = [], 0
        if rows:
            writer.write_table(pa.concat_tables(waiting))
