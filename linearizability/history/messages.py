"""Encoding of a history as messages of a topic, which any program that reads Kafka and Arrow can decode.

A run's messages have its `run_id` as key, so that they stay in order in one partition. The value is an Arrow IPC stream
with some rows of one table, in the table's order, with LZ4 buffers. The metadata of its schema has:

- `kafkatrial.run_id`: the run;
- `kafkatrial.number`: 0, 1, 2, … in the run, without a gap; a message that comes twice counts once;
- `kafkatrial.table`: a table of the history, or `run`: one row, whose column `document` is `run.json`.

The first and the last message have the table `run`. If the run ended on its own, `complete` is true in the last one.
Without such a message, the run is in progress or was cut short; the rows of its messages are a valid history.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from linearizability.history.errors import HistoryError
from linearizability.history.run import RunInfo
from linearizability.history.schema import SCHEMAS

VALUE_BYTES_MAX: Final = 900_000
"""The size above which the rows of a message are divided; a broker accepts about a million bytes by default."""
RUN: Final = "run"
"""The table name of a message with `run.json`."""
_RUN_SCHEMA: Final = pa.schema([pa.field("document", pa.string())])
_OPTIONS: Final = pa.ipc.IpcWriteOptions(compression="lz4")
_RUN_ID, _NUMBER, _TABLE = b"kafkatrial.run_id", b"kafkatrial.number", b"kafkatrial.table"


@dataclass(frozen=True, slots=True)
class Message:
    """Some rows of a table, or of `run`."""

    run_id: str
    number: int
    table: str
    rows: pa.Table

    def encoded(self) -> bytes:
        """Return the value of the message."""
        tags = {_RUN_ID: self.run_id, _NUMBER: str(self.number), _TABLE: self.table}
        sink = pa.BufferOutputStream()
        tagged = self.rows.replace_schema_metadata(tags)
        with pa.ipc.new_stream(sink, tagged.schema, options=_OPTIONS) as writer:
            writer.write_table(tagged)
        value: bytes = sink.getvalue().to_pybytes()
        return value

    @property
    def document(self) -> dict[str, Any]:
        """The content of `run.json`. Raises HistoryError if the message has none."""
        try:
            found = json.loads(self.rows["document"][0].as_py())
        except (KeyError, IndexError, TypeError, ValueError):
            found = None
        if not isinstance(found, dict):
            raise HistoryError(f"message {self.number} of run {self.run_id}: holds no run.json")
        return found


def decoded(value: bytes | None) -> Message:
    """Decode the value of a message. Raises HistoryError for a value that is not such a message."""
    try:
        rows = pa.ipc.open_stream(value or b"").read_all()
        tags = rows.schema.metadata or {}
        message = Message(tags[_RUN_ID].decode(), int(tags[_NUMBER]), tags[_TABLE].decode(), rows)
    except (pa.ArrowException, KeyError, ValueError, TypeError):
        raise HistoryError(
            "the topic holds messages that are not a history of kafkatrial: name a topic for histories only"
        ) from None
    expected = _RUN_SCHEMA if message.table == RUN else SCHEMAS.get(message.table)
    if expected is None or not rows.schema.equals(expected):
        raise HistoryError(
            f"message {message.number} of run {message.run_id}: table {message.table} of another version of the format"
        )
    return message


def run_message(info: RunInfo, number: int) -> Message:
    """Return the message with a run's `run.json`."""
    rows = pa.table({"document": [json.dumps(info.document())]}, schema=_RUN_SCHEMA)
    return Message(info.run_id, number, RUN, rows)


def table_messages(run_id: str, first: int, table: str, rows: pa.Table) -> Iterator[tuple[Message, bytes]]:
    """Yield rows as messages, numbered from `first` on, with their encoded values.

    Messages are within a broker's limit, except one whose only row is larger than the limit.
    """
    parts = [rows]
    while parts:
        part = parts.pop()
        message = Message(run_id, first, table, part)
        value = message.encoded()
        if len(value) > VALUE_BYTES_MAX and part.num_rows > 1:
            half = part.num_rows // 2
            parts += [part.slice(half), part.slice(0, half)]
            continue
        yield message, value
        first += 1
