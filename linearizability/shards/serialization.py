"""Serialization of tasks and of their results: pickle, with Arrow tables as Arrow streams.

`group_by` and `filter` return tables of slices. Pickle would write the whole buffers behind each slice, which are
usually twenty times the size of the slice; an Arrow stream has only the table's rows.
"""

import io
import pickle
from typing import Any

import pyarrow as pa


def packed(result: object) -> bytes:
    """Return the bytes of a task or a result."""
    buffer = io.BytesIO()
    _Pickler(buffer, pickle.HIGHEST_PROTOCOL).dump(result)
    return buffer.getvalue()


def unpacked(data: bytes) -> Any:
    """Return the object that `packed` serialized. The bytes must come from a process of our own."""
    return pickle.loads(data)  # noqa: S301


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: object) -> Any:
        if not isinstance(value, pa.Table):
            return NotImplemented
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, value.schema) as stream:
            stream.write_table(value)
        return _table, (sink.getvalue().to_pybytes(),)


def _table(stream: bytes) -> pa.Table:
    return pa.ipc.open_stream(stream).read_all()
