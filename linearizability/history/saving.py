"""Saving of a complete history as a run directory with one file per table.

The history may be imported, or its tables may consist of many files. `writer` writes the history of a run in progress.
"""

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from linearizability.history import layout
from linearizability.history.errors import HistoryError, HistoryNotWrittenError, one_line
from linearizability.history.reader import History
from linearizability.history.run import RUN_FILE
from linearizability.history.schema import SCHEMAS


def save(history: History, run_dir: Path) -> None:
    """Write a file for each present table, and then `run.json`.

    Raises HistoryError if the directory holds a history already, or for disk errors.
    """
    folder = run_dir / layout.HISTORY_FOLDER
    if (run_dir / RUN_FILE).exists() or folder.exists():
        raise HistoryError(f"{run_dir}: already contains a run; name another directory")
    try:
        folder.mkdir(parents=True)
        for name, schema in SCHEMAS.items():
            if not history.is_absent(name):
                with pq.ParquetWriter(layout.table_file(folder, name), schema) as file:
                    for batch in history.batches(name):
                        file.write_table(batch)
        history.run.write(run_dir)
    except OSError as error:
        raise HistoryNotWrittenError(f"{run_dir}: cannot be written: {os.strerror(error.errno or 0)}") from None
    except pa.ArrowException as error:
        raise HistoryNotWrittenError(f"{run_dir}: cannot be written: {one_line(error)}") from None
