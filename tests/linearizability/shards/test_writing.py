"""Layout created while a history is written: the memory of rows that are not yet distributed is bounded."""

import pyarrow as pa

from linearizability.history.schema import SCHEMAS
from linearizability.shards.writing import LayoutWriter
from tests.linearizability.history.foreign import arrow, operation, position

WHERE = {"topic": "t", "topic_id": "ID", "partition": 0}


def empty_polls(number):
    """Return the rows of one flush of an idle consumer: ten polls without records."""
    polls = range(10 * number, 10 * number + 10)
    return {
        **{name: schema.empty_table() for name, schema in SCHEMAS.items()},
        "operations": arrow("operations", [operation(op, 1, "poll", op, op + 1) for op in polls]),
        "positions": arrow("positions", [position(op, WHERE, 0, 0, "read") for op in polls]),
    }


def test_memory_is_bounded_without_records(tmp_path):
    (tmp_path / "history").mkdir()
    layout = LayoutWriter(tmp_path, 5_000)
    before_bytes, peak_bytes = pa.total_allocated_bytes(), 0
    for number in range(400):
        layout.add(empty_polls(number))
        peak_bytes = max(peak_bytes, pa.total_allocated_bytes() - before_bytes)
    layout.discard()
    assert peak_bytes < 500_000
