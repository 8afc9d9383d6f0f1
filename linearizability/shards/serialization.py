"""Serialization of a task's result for the driver: pickle, with Arrow tables as Arrow streams.

`group_by` and `filter` return tables of slices. Pickle would write the whole buffers behind each slice, usually twenty
times its size; an Arrow stream has only the table's rows.
"""

import io
import pickle
from typing import Any

import pyarrow as pa


def packed(result: object) -> bytes:
    """Return the bytes of a result."""
    buffer = io.BytesIO()
    _Pickler(buffer, pickle.HIGHEST_PROTOCOL).dump(result)
    return buffer.getvalue()


def unpacked(data: bytes) -> Any:
    """Return the result of some bytes that one of our own tasks has packed."""
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
