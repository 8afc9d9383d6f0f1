"""What a task tells the driver, as bytes: pickled, but for Arrow tables.

A table made of slices, as `group_by` and `filter` make them, is pickled with the whole of what each slice is cut from:
twenty times its size is usual. So tables go as Arrow streams, which hold their rows and nothing else.
"""

import io
import pickle
from typing import Any

import pyarrow as pa


def packed(answer: object) -> bytes:
    """The bytes of an answer."""
    buffer = io.BytesIO()
    _Pickler(buffer, pickle.HIGHEST_PROTOCOL).dump(answer)
    return buffer.getvalue()


def unpacked(data: bytes) -> Any:
    """The answer of some bytes, which one of our own tasks has packed."""
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
