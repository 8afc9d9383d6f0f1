"""Small histories in the public format, written by tests row by row."""

import json

import pyarrow as pa
import pyarrow.parquet as pq

from linearizability.history.reader import history_of_tables
from linearizability.history.run import RunInfo
from linearizability.history.schema import SCHEMAS


class Tables:
    """A history under construction."""

    def __init__(self, **run):
        self.run = {"format": 1, "run_id": "r", "topics": {}, "cluster": {}, "clients": {}, "complete": True, **run}
        self.rows = {name: [] for name in SCHEMAS}

    def add(self, table, **columns):
        """Add a row, with null in all other columns; return it."""
        unknown = set(columns) - set(SCHEMAS[table].names)
        assert not unknown, unknown
        row = {name: columns.get(name) for name in SCHEMAS[table].names}
        self.rows[table].append(row)
        return row

    def op(self, process, f, invoke_ns, complete_ns, outcome="ok", **columns):
        """Add an operation; return its op_id."""
        op_id = len(self.rows["operations"])
        self.add(
            "operations",
            op_id=op_id,
            process=process,
            f=f,
            invoke_ns=invoke_ns,
            complete_ns=complete_ns,
            outcome=outcome,
            **columns,
        )
        return op_id

    def record(self, op_id, seq, direction, topic, partition, offset, value, **columns):
        """Add a row of `records`, which is intact by default; return it."""
        columns = {"intact": True, **columns}
        return self.add(
            "records",
            op_id=op_id,
            seq=seq,
            direction=direction,
            topic=topic,
            partition=partition,
            offset=offset,
            value=value,
            **columns,
        )

    def in_memory(self, source):
        """Return the history without writing it. `source` names it in messages."""
        tables = {name: pa.Table.from_pylist(rows, schema=SCHEMAS[name]) for name, rows in self.rows.items() if rows}
        return history_of_tables(source, RunInfo.of(source, self.run), tables)

    def write(self, folder, files=1):
        """Write the history into a folder, each table into up to `files` files; return the folder."""
        history = folder / "history"
        history.mkdir(parents=True)
        (folder / "run.json").write_text(json.dumps(self.run))
        for name, rows in self.rows.items():
            if not rows:
                continue
            table = pa.Table.from_pylist(rows, schema=SCHEMAS[name])
            if files == 1:
                pq.write_table(table, history / f"{name}.parquet")
            else:
                (history / name).mkdir()
                rows_per_file = -(-len(rows) // files)
                for first in range(0, len(rows), rows_per_file):
                    pq.write_table(table.slice(first, rows_per_file), history / name / f"{first:05}.parquet")
        return folder


TOPIC = "t"
