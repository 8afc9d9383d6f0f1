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
        unknown = set(columns) - set(SCHEMAS[table].names)
        assert not unknown, unknown
        row = {name: columns.get(name) for name in SCHEMAS[table].names}
        self.rows[table].append(row)
        return row

    def op(self, process, f, invoke_ns, complete_ns, outcome="ok", **columns):
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
        """Return the history that `write` would write."""
        tables = {name: pa.Table.from_pylist(rows, schema=SCHEMAS[name]) for name, rows in self.rows.items() if rows}
        return history_of_tables(source, RunInfo.of(source, self.run), tables)

    def write(self, folder, files=1):
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
                step = -(-len(rows) // files)
                for at in range(0, len(rows), step):
                    pq.write_table(table.slice(at, step), history / name / f"{at:05}.parquet")
        return folder


TOPIC = "t"
