"""Histories as Kafka messages: decoded messages have the rows of the tables."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linearizability.history import messages
from linearizability.history.errors import HistoryError
from linearizability.history.messages import Message, decoded, run_message, table_messages
from linearizability.history.run import RunInfo
from linearizability.history.schema import SCHEMAS


def inputs(count):
    rows = [{"op_id": n, "seq": 0, "topic": f"t{n}", "partition": n % 3, "offset": n} for n in range(count)]
    return pa.Table.from_pylist(rows, schema=SCHEMAS["inputs"])


@given(count=st.integers(1, 300), limit=st.integers(900, 4000), first=st.integers(0, 9))
def test_rows_split_into_small_messages_are_unchanged(count, limit, first):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(messages, "VALUE_BYTES_MAX", limit)
        sent = list(table_messages("r", first, "inputs", inputs(count)))
    read = [decoded(value) for _, value in sent]
    assert [message.number for message in read] == list(range(first, first + len(sent)))
    assert {(message.run_id, message.table) for message in read} == {("r", "inputs")}
    assert all(len(value) <= limit or message.rows.num_rows == 1 for message, value in sent)
    assert pa.concat_tables([message.rows for message in read]).equals(inputs(count))


def test_run_json_is_a_message():
    info = RunInfo("r", seed=3, topics={"t": {"a": "b"}}, complete=True)
    message = decoded(run_message(info, 7).encoded())
    assert (message.run_id, message.number, message.table) == ("r", 7, "run")
    assert message.document == info.document()


@pytest.mark.parametrize("value", [None, b"", b"{}", pa.BufferOutputStream().getvalue().to_pybytes()])
def test_value_in_another_format_is_rejected(value):
    with pytest.raises(HistoryError, match="not a history of kafkatrial"):
        decoded(value)


def test_unknown_table_or_other_columns_are_rejected():
    for name, rows in (("nonsense", inputs(1)), ("records", inputs(1))):
        with pytest.raises(HistoryError, match=f"table {name} of another version"):
            decoded(Message("r", 0, name, rows).encoded())
    with pytest.raises(HistoryError, match=r"message 0 of run r: holds no run\.json"):
        _ = decoded(Message("r", 0, "run", pa.table({"document": ["[]"]})).encoded()).document
