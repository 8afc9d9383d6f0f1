"""The history of a simulated run: the tables of any run, kept in memory, with the simulation's clock."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from linearizability.history.buffer import Block, Row, Rows, TableBuffer
from linearizability.history.reader import History, history_of_tables
from linearizability.history.run import RunInfo
from linearizability.history.schema import SCHEMAS
from linearizability.history.writer import Unfinished


class HistoryInMemory:
    """What a `Recorder` writes through where nothing is to be on disk."""

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._buffers = {name: TableBuffer(name) for name in SCHEMAS}
        self._unfinished: dict[Unfinished, None] = {}
        self._topics: dict[str, Mapping[str, str]] = {}
        self._clients: dict[int, Mapping[str, str]] = {}
        self.cluster: Mapping[str, str] = {}
        """Kafka properties of the nodes."""
        self.operations = 0
        """That have ended."""

    def begin(self, unfinished: Unfinished) -> None:
        """Something began."""
        self._unfinished[unfinished] = None

    def end(self, unfinished: Unfinished, rows: Sequence[Rows | Block]) -> None:
        """It ended, and these are its rows."""
        del self._unfinished[unfinished]
        self._add(rows)

    def append_rows(self, table: str, rows: Sequence[Row]) -> None:
        """Add rows given one by one."""
        if rows:
            self._buffers[table].add(Rows(table, rows))

    def set_topic(self, name: str, properties: Mapping[str, str]) -> None:
        """Say with which properties a topic was made."""
        self._topics[name] = dict(properties)

    def set_client(self, process: int, properties: Mapping[str, str]) -> None:
        """Say with which properties a client runs."""
        self._clients[process] = dict(properties)

    def take(self, *, complete: bool) -> History:
        """The history, once. What has not ended stands as it is: an operation as info, a fault as not healed."""
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
