"""History of a simulated run in memory: the same tables as for a real cluster, with times of the simulated clock."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from linearizability.history.buffer import Block, Row, Rows, TableBuffer
from linearizability.history.reader import History, history_of_tables
from linearizability.history.run import RunInfo
from linearizability.history.schema import SCHEMAS
from linearizability.history.writer import Unfinished


class HistoryInMemory:
    """Writer of a `Recorder` that keeps all rows in memory."""

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._buffers = {name: TableBuffer(name) for name in SCHEMAS}
        self._unfinished: dict[Unfinished, None] = {}
        self._topics: dict[str, Mapping[str, str]] = {}
        self._clients: dict[int, Mapping[str, str]] = {}
        self.cluster: Mapping[str, str] = {}
        """Kafka properties of the nodes."""
        self.operations = 0
        """Number of operations recorded so far."""

    def begin(self, unfinished: Unfinished) -> None:
        """Note the start of an operation or a fault."""
        self._unfinished[unfinished] = None

    def end(self, unfinished: Unfinished, rows: Sequence[Rows | Block]) -> None:
        """Note the end of an operation or a fault, and add its rows."""
        del self._unfinished[unfinished]
        self._add(rows)

    def append_rows(self, table: str, rows: Sequence[Row]) -> None:
        """Add rows, each a mapping of columns."""
        if rows:
            self._buffers[table].add(Rows(table, rows))

    def set_topic(self, name: str, properties: Mapping[str, str]) -> None:
        """Record the properties of a new topic."""
        self._topics[name] = dict(properties)

    def set_client(self, process: int, properties: Mapping[str, str]) -> None:
        """Record the properties of a client."""
        self._clients[process] = dict(properties)

    def take(self, *, complete: bool) -> History:
        """Return the history; call it once. Open operations get outcome `info`; open faults have no end."""
        for unfinished in self._unfinished:
            self._add(unfinished.rows())
        tables: dict[str, pa.Table] = {name: buffer.take() for name, buffer in self._buffers.items()}
        run = RunInfo(
            self._run_id,
            target="simulation",
            topics=self._topics,
            cluster=self.cluster,
            clients=self._clients,
            complete=complete,
        )
        return history_of_tables(Path(self._run_id), run, tables)

    def _add(self, rows: Sequence[Rows | Block]) -> None:
        for part in rows:
            if part.table == "operations":
                self.operations += 1
            self._buffers[part.table].add(part)
