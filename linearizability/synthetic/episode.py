"""A few operations written row by row between two chunks of traffic: how an anomaly is planted.

An episode takes place at the end of one partition's log. It begins at the topic's present time, and whatever it does
moves the topic on: offsets are taken, and the partition's own consumer is to have polled up to the new end, or the
traffic that follows would be the next anomaly.
"""

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from linearizability.history.schema import SCHEMAS
from linearizability.synthetic.workload import FIRST_CONSUMER, TOPIC, TOPIC_ID, Tables, Topic, schema_of

TAKES_NS: Final = 1_000_000
"""What an operation of an episode takes, and what lies between two of them."""
_FIRST_PROCESS: Final = 1_000_000


class Episode:
    """One being written. `processes` and `values` of its own are drawn from the topic's counters."""

    def __init__(self, topic: Topic, partition: int) -> None:
        self.topic, self.partition = topic, partition
        self.start: Final = self.end
        self._rows: dict[str, list[dict[str, Any]]] = {name: [] for name in SCHEMAS}
        self.process: Final = _FIRST_PROCESS + 10 * topic.next_op_id
        """The first of ten processes that nobody else is."""

    @property
    def end(self) -> int:
        """The next offset of the partition."""
        return int(self.topic.end[self.partition])

    @property
    def epoch(self) -> int:
        """The partition's leader epoch."""
        return int(self.topic.epoch[self.partition])

    @property
    def now_ns(self) -> int:
        """The time."""
        return self.topic.now_ns

    def value(self) -> int:
        """A value that nobody else sends."""
        self.topic.next_value += 1
        return self.topic.next_value - 1

    def take(self, offsets: int = 1) -> int:
        """The first of some offsets, which nobody else has from now on."""
        self.topic.end[self.partition] += offsets
        return self.end - offsets

    def wait(self, nanoseconds: int) -> None:
        """Let time pass."""
        self.topic.now_ns += nanoseconds

    def op(self, process: int, f: str, outcome: str = "ok", **columns: Any) -> int:
        """An operation, after all that was before."""
        op_id, begin_ns = self.topic.next_op_id, self.now_ns
        self.wait(2 * TAKES_NS)
        self.topic.next_op_id += 1
        row = {"op_id": op_id, "process": process, "f": f, "invoke_ns": begin_ns, "outcome": outcome, **columns}
        self.add("operations", complete_ns=begin_ns + TAKES_NS, **row)
        return op_id

    def send(self, offset: int | None, process: int = 0, outcome: str = "ok", epoch: int | None = None,
             **columns: Any) -> int:  # fmt: skip
        """Produce one record with acks=all, acknowledged at an offset; its value."""
        given = {"producer_id": self.process + process, "producer_epoch": 0, "node": self.topic.node(self.partition)}
        op_id = self.op(self.process + process, "produce", outcome, **{"acks": -1, **given, **columns})
        value = self.value()
        self.record(op_id, 0, "send", offset, value, leader_epoch=epoch)
        return value

    def record(self, op_id: int, seq: int, direction: str, offset: int | None, value: int, **columns: Any) -> None:
        """A record that an operation sent or read."""
        row = {"op_id": op_id, "seq": seq, "direction": direction, "offset": offset, "value": value, "intact": True}
        self.add("records", **{**self.place, **row, **columns})

    def poll(self, before: int, after: int, found: Mapping[int, int], process: int | None = None,
             f: str = "poll", **columns: Any) -> int:  # fmt: skip
        """Read [before, after) and find values at offsets, by the partition's own consumer or a process of ours."""
        who = FIRST_CONSUMER + self.partition if process is None else self.process + process
        op_id = self.op(who, f, **{"isolation": "read_committed", **columns})
        for seq, (offset, value) in enumerate(found.items()):
            self.record(op_id, seq, "read", offset, value, leader_epoch=self.epoch)
        self.add("positions", op_id=op_id, before=before, after=after, cause="read", log_start_offset=0, **self.place)
        return op_id

    def answer_end(self, end: int, **columns: Any) -> None:
        """The leader is asked for its end."""
        row = {"source": "list_offsets", "isolation": "read_uncommitted", "node": self.topic.node(self.partition)}
        times = {"asked_ns": self.now_ns, "answered_ns": self.now_ns + TAKES_NS}
        self.wait(2 * TAKES_NS)
        self.add(
            "states", **times, **self.place, **{**row, "leader_epoch": self.epoch, "high_watermark": end, **columns}
        )

    @property
    def place(self) -> dict[str, Any]:
        """The partition, as rows name it."""
        return {"topic": TOPIC, "topic_id": TOPIC_ID, "partition": self.partition}

    def add(self, table: str, **columns: Any) -> None:
        """A row of a table."""
        self._rows[table].append(columns)

    def tables(self) -> Tables:
        """What was written, as `workload.chunk` gives it."""
        return {
            name: pa.Table.from_pylist(rows, schema=SCHEMAS[name]).cast(schema_of(name))
            for name, rows in self._rows.items()
            if rows
        }
