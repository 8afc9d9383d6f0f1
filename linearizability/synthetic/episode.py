"""Episode: a few operations that plant one anomaly, written row by row between two chunks of traffic.

An episode takes place at the end of the log of one partition. It begins at the current time of the topic, and advances
the time and the log end offset. By its end, the consumer of the partition must have polled up to the new log end;
otherwise the following traffic would show another anomaly.
"""

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from linearizability.history.schema import SCHEMAS
from linearizability.synthetic.workload import FIRST_CONSUMER, TOPIC, TOPIC_ID, Tables, Topic, schema_of

OPERATION_NS: Final = 1_000_000
"""Duration of an operation of an episode, and of the pause after it."""
_FIRST_PROCESS: Final = 1_000_000


class Episode:
    """An episode that is being written. Counters of the topic make its process ids and values unique."""

    def __init__(self, topic: Topic, partition: int) -> None:
        self.topic, self.partition = topic, partition
        self.start: Final = self.end
        self._rows: dict[str, list[dict[str, Any]]] = {name: [] for name in SCHEMAS}
        self.process: Final = _FIRST_PROCESS + 10 * topic.next_op_id
        """The first of ten processes that only this episode uses."""

    @property
    def end(self) -> int:
        """The log end offset of the partition."""
        return int(self.topic.end[self.partition])

    @property
    def epoch(self) -> int:
        """The leader epoch of the partition."""
        return int(self.topic.epoch[self.partition])

    @property
    def now_ns(self) -> int:
        """The current time."""
        return self.topic.now_ns

    def new_value(self) -> int:
        """Return a value that no other operation sends."""
        self.topic.next_value += 1
        return self.topic.next_value - 1

    def reserve(self, offsets: int = 1) -> int:
        """Advance the log end offset; return the first of the reserved offsets."""
        self.topic.end[self.partition] += offsets
        return self.end - offsets

    def wait(self, nanoseconds: int) -> None:
        """Advance the time."""
        self.topic.now_ns += nanoseconds

    def op(self, process: int, f: str, outcome: str = "ok", **columns: Any) -> int:
        """Add an operation that begins after all previous ones have ended; return its id."""
        op_id, begin_ns = self.topic.next_op_id, self.now_ns
        self.wait(2 * OPERATION_NS)
        self.topic.next_op_id += 1
        row = {"op_id": op_id, "process": process, "f": f, "invoke_ns": begin_ns, "outcome": outcome, **columns}
        self.add("operations", complete_ns=begin_ns + OPERATION_NS, **row)
        return op_id

    def send(self, offset: int | None, process: int = 0, outcome: str = "ok", epoch: int | None = None,
             **columns: Any) -> int:  # fmt: skip
        """Add a produce of one record with acks=all; return the record's value.

        :param offset: the acknowledged offset; None if the record was not acknowledged.
        :param process: the process of the episode that sends, from 0 to 9.
        """
        given = {"producer_id": self.process + process, "producer_epoch": 0, "node": self.topic.node(self.partition)}
        op_id = self.op(self.process + process, "produce", outcome, **{"acks": -1, **given, **columns})
        value = self.new_value()
        self.record(op_id, 0, "send", offset, value, leader_epoch=epoch)
        return value

    def record(self, op_id: int, seq: int, direction: str, offset: int | None, value: int, **columns: Any) -> None:
        """Add a record that an operation sent or read."""
        row = {"op_id": op_id, "seq": seq, "direction": direction, "offset": offset, "value": value, "intact": True}
        self.add("records", **{**self.place, **row, **columns})

    def poll(self, before: int, after: int, returned: Mapping[int, int], process: int | None = None,
             f: str = "poll", **columns: Any) -> int:  # fmt: skip
        """Add a poll that passes [before, after); return its id.

        :param returned: values by offset.
        :param process: the process of the episode that polls, from 0 to 9; None for the consumer of the partition.
        """
        consumer = FIRST_CONSUMER + self.partition if process is None else self.process + process
        op_id = self.op(consumer, f, **{"isolation": "read_committed", **columns})
        for seq, (offset, value) in enumerate(returned.items()):
            self.record(op_id, seq, "read", offset, value, leader_epoch=self.epoch)
        self.add("positions", op_id=op_id, before=before, after=after, cause="read", log_start_offset=0, **self.place)
        return op_id

    def list_end_offset(self, end: int, **columns: Any) -> None:
        """Add a ListOffsets request to which the leader returns an end offset."""
        row = {"source": "list_offsets", "isolation": "read_uncommitted", "node": self.topic.node(self.partition)}
        times = {"asked_ns": self.now_ns, "answered_ns": self.now_ns + OPERATION_NS}
        self.wait(2 * OPERATION_NS)
        self.add(
            "states", **times, **self.place, **{**row, "leader_epoch": self.epoch, "high_watermark": end, **columns}
        )

    @property
    def place(self) -> dict[str, Any]:
        """The columns of a row that identify the partition."""
        return {"topic": TOPIC, "topic_id": TOPIC_ID, "partition": self.partition}

    def add(self, table: str, **columns: Any) -> None:
        """Add a row to a table."""
        self._rows[table].append(columns)

    def tables(self) -> Tables:
        """Return the rows as tables, like those of `workload.chunk`."""
        return {
            name: pa.Table.from_pylist(rows, schema=SCHEMAS[name]).cast(schema_of(name))
            for name, rows in self._rows.items()
            if rows
        }
