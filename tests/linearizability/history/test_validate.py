"""Validator of histories: a row that breaks a rule is rejected and named; every valid history passes."""

import copy
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from linearizability.history import reader
from linearizability.history.reader import HistoryError, history_of_tables, open_history
from linearizability.history.rows import first_repeat
from linearizability.history.schema import COLUMNS
from linearizability.history.validate import checks, validate
from tests.linearizability.history.foreign import arrow, operation, record, valid_tables, write_history
from tests.linearizability.history.oracle import is_valid

pytestmark = pytest.mark.sampled(2)

A = {"topic": "orders", "topic_id": "ID-A", "partition": 0}


def changed(name, row, **columns):
    """Return a valid history with other values in one row of a table."""
    tables = valid_tables()
    tables[name][row] = {**tables[name][row], **columns}
    return tables


def added(name, *rows):
    """Return a valid history with more rows in a table."""
    tables = valid_tables()
    tables[name] += rows
    return tables


def rejection(tmp_path, tables):
    """Return the message with which the validator rejects the tables. Assert that the oracle rejects them too."""
    with pytest.raises(HistoryError) as caught:
        validate(open_history(write_history(tmp_path / "run", tables)))
    assert not is_valid(tables)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_valid_history_passes(tmp_path):
    validate(open_history(write_history(tmp_path / "run", valid_tables())))
    assert is_valid(valid_tables())


def test_empty_history_passes(tmp_path):
    validate(open_history(write_history(tmp_path / "run", {})))


def test_row_order_does_not_matter(tmp_path):
    tables = {name: rows[::-1] for name, rows in valid_tables().items()}
    validate(open_history(write_history(tmp_path / "run", tables)))


REQUIRED = [(name, column.name) for name, columns in COLUMNS.items() for column in columns if column.required]


@pytest.mark.parametrize(("name", "column"), REQUIRED)
def test_null_in_a_required_column_is_rejected(tmp_path, name, column):
    row = len(valid_tables()[name]) - 1
    message = rejection(tmp_path, changed(name, row, **{column: None}))
    assert message.startswith(f"table {name}, row {row} (")
    assert message.endswith(f"): {column} is null; null is not allowed")


CLOSED = [(name, column.name) for name, columns in COLUMNS.items() for column in columns if column.values]


@pytest.mark.parametrize(("name", "column"), CLOSED)
def test_unknown_value_of_an_enumerated_column_is_rejected(tmp_path, name, column):
    message = rejection(tmp_path, changed(name, 0, **{column: "OK"}))
    assert message.startswith(f"table {name}, row 0 (")
    assert f"): {column} is 'OK'; known are " in message


BOUNDED = [(name, column.name) for name, columns in COLUMNS.items() for column in columns if column.minimum is not None]


@pytest.mark.parametrize(("name", "column"), BOUNDED)
def test_number_below_the_minimum_is_rejected(tmp_path, name, column):
    # -1 is valid where it means unknown.
    below = -2 if (name, column) in [*UNKNOWN, ("operations", "producer_id")] else -1
    message = rejection(tmp_path, changed(name, 0, **{column: below}))
    assert message.startswith(f"table {name}, row 0 (")
    assert f"): {column} is {below}; it is never below " in message


COUNTED = [
    (name, column.name)
    for name, columns in COLUMNS.items()
    for column in columns
    if column.minimum is not None and column.type == pa.int64() and column.name != "producer_id"
]
"""The columns of 64-bit integers that have a maximum, each with its table."""


@pytest.mark.parametrize(("name", "column"), COUNTED)
def test_number_above_the_maximum_is_rejected(tmp_path, name, column):
    message = rejection(tmp_path, changed(name, 0, **{column: 2**62 + 1}))
    assert f"): {column} is {2**62 + 1}; it is never above " in message


def test_any_producer_id_of_64_bits_is_valid(tmp_path):
    tables = changed("operations", 0, producer_id=2**63 - 1)
    validate(open_history(write_history(tmp_path / "run", tables)))
    assert is_valid(tables)


UNKNOWN = [(name, column.name) for name, columns in COLUMNS.items() for column in columns if column.unknown is not None]


@pytest.mark.parametrize(("name", "column"), UNKNOWN)
def test_minus_one_is_read_as_null(tmp_path, name, column):
    tables = changed(name, 0, **{column: -1})
    history = open_history(write_history(tmp_path / "run", tables))
    validate(history)
    assert is_valid(tables)
    assert history.table(name, [column])[column][0].as_py() is None
    arrows = {table: arrow(table, rows) for table, rows in tables.items()}
    in_memory = history_of_tables(tmp_path, history.run, arrows)
    assert all(in_memory.table(table).equals(history.table(table)) for table in tables)


def test_minus_one_means_null_in_every_nullable_offset_watermark_and_epoch():
    names = {"offset", "leader_epoch", "producer_epoch", "generation"}
    expected = {
        (name, column.name)
        for name, columns in COLUMNS.items()
        for column in columns
        if not column.required and (column.name in names or column.name.endswith(("watermark", "_offset")))
    }
    # The `offset` of an operation is a parameter of a request. In DeleteRecords, -1 means the high watermark.
    assert set(UNKNOWN) == expected - {("operations", "offset")}


BROKEN = [
    (
        changed("operations", 0, complete_ns=9),
        "table operations, row 0 (op_id 1, process 1): complete_ns is 9; that is before its invoke_ns",
    ),
    (
        changed("operations", 0, complete_ns=None),
        "table operations, row 0 (op_id 1, process 1): complete_ns is null; an operation that is ok has returned",
    ),
    (
        changed("operations", 0, invoke_ns=-9 * 10**18),
        (
            "table operations, row 0 (op_id 1, process 1): invoke_ns is -9000000000000000000; times lie within "
            "4611686018427387904 of 0, a century and a half"
        ),
    ),
    (
        changed("faults", 1, heal_ns=9 * 10**18),
        (
            "table faults, row 1 (fault_id 2): heal_ns is 9000000000000000000; times lie within "
            "4611686018427387904 of 0, a century and a half"
        ),
    ),
    (
        changed("states", 1, answered_ns=89),
        "table states, row 1 (asked_ns 90): answered_ns is 89; that is before its asked_ns",
    ),
    (
        changed("faults", 0, heal_ns=19),
        "table faults, row 0 (fault_id 1): heal_ns is 19; that is before its inject_ns",
    ),
    (
        added("operations", operation(3, 9, "poll", 99, 99)),
        "table operations, row 7 (op_id 3, process 9): row 2 has the same op_id",
    ),
    (
        added("operations", operation(8, 9, "poll", 69, 99)),
        (
            "table operations, row 7 (op_id 8, process 9): invoke_ns is 69, before op_id 7 at 70; "
            "op_ids must ascend in the order of invoke_ns"
        ),
    ),
    (
        added("operations", operation(8, 3, "poll", 79, 99)),
        (
            "table operations, row 7 (op_id 8, process 3): invoke_ns is 79, but op_id 7 of its process returned "
            "at 80; operations other than produce do not overlap"
        ),
    ),
    *(
        (
            changed(name, 0, op_id=99),
            f"table {name}, row 0 (op_id 99{seq}): op_id is 99; there is no such operation",
        )
        for name, seq in {"records": ", seq 0", "positions": "", "offsets": "", "inputs": ", seq 0"}.items()
    ),
    (
        changed("records", 1, seq=0),
        "table records, row 1 (op_id 1, seq 0): row 0 has the same op_id, direction and seq",
    ),
    (
        changed("records", 1, topic_id=None, partition=1),
        (
            "table records, row 1 (op_id 1, seq 1): sent to orders partition 1, unlike the record before it in its "
            "operation"
        ),
    ),
    (
        changed("records", 3, value=101),
        "table records, row 3 (op_id 3, seq 0): value is 101, which row 1 sends to the same partition",
    ),
    (
        changed("records", 3, value=101, topic_id=None),
        "table records, row 3 (op_id 3, seq 0): value is 101, which row 1 sends to the same partition",
    ),
    (
        changed("records", 6, intact=None),
        "table records, row 6 (op_id 5, seq 1): intact is null; a read has true or false",
    ),
    (
        changed("positions", 0, before=4),
        "table positions, row 0 (op_id 4): after is 0; a move without reading has before = after, the new position",
    ),
    (
        changed("assignments", 0, topic_id="ID-B"),
        (
            "table records, row 2 (op_id 2, seq 0): topic_id is null; a topic of that name was created again, "
            "so the id is required"
        ),
    ),
]


@pytest.mark.parametrize(("tables", "message"), BROKEN)
def test_broken_rule_is_reported(tmp_path, tables, message):
    assert rejection(tmp_path, tables) == message


@pytest.mark.parametrize(
    "tables",
    [
        changed("records", 0, intact=None, timestamp_ms=None),  # both are optional for sends
        changed("records", 5, offset=None),
        changed("records", 7, seq=5),  # gaps are permitted
        changed("operations", 5, complete_ns=70),  # ends when the next begins
        changed("operations", 0, complete_ns=10_000),  # produces are pipelined
        changed("operations", 0, complete_ns=None, outcome="info"),
        changed("operations", 0, invoke_ns=-(2**62)),
        changed("operations", 2, complete_ns=2**62),
        changed("operations", 0, f="share_fetch_of_tomorrow", invoke_ns=1, complete_ns=2),
        changed("operations", 0, invoke_ns=-5),
        changed("operations", 0, partition=-1, offset=-1),
        changed("operations", 3, f="produce", complete_ns=10_000),
        changed("positions", 1, before=3, after=1, log_start_offset=-1),  # the client moved back
        changed("offsets", 0, offset=None, direction="fetched"),
        changed("assignments", 0, group=None, member_id=None),
        changed("states", 0, topic=None, topic_id=None, partition=None, isr=None, source="describe_topic_partitions"),
        added("records", record(5, 3, "read", A, 2, 102), record(5, 4, "read", {**A, "partition": 1}, 0, 999)),
        added("records", record(2, 1, "send", {**A, "topic": "orders", "topic_id": "ID-A", "partition": 1}, 9, 102)),
    ],
)
def test_unusual_but_valid_history_passes(tmp_path, tables):
    assert is_valid(tables)
    validate(open_history(write_history(tmp_path / "run", tables)))


def test_recreated_topic_may_contain_the_same_values(tmp_path):
    tables = valid_tables()
    for name in ("records", "positions"):
        tables[name] = [{**row, "topic_id": "ID-A"} for row in tables[name]]
    tables["records"] += [record(2, 1, "send", {"topic": "orders", "topic_id": "ID-A", "partition": 1}, 1, 7)]
    tables["operations"] += [operation(8, 1, "produce", 90, 91)]
    tables["records"] += [record(8, 0, "send", {"topic": "orders", "topic_id": "ID-B", "partition": 0}, 0, 100)]
    assert is_valid(tables)
    validate(open_history(write_history(tmp_path / "run", tables)))


CELLS = {name: [column.name for column in columns] for name, columns in COLUMNS.items()}
NUMBERS = st.integers(-1, 12) | st.sampled_from([30, 40, 60, 80, 100, 101, 102, -(2**15), 2**15 - 1])
TEXTS = st.sampled_from(["ok", "produce", "poll", "send", "read", "orders", "ID-A", "ID-B", "commit", "lost", "?"])


@st.composite
def mutations(draw):
    """Generate a valid history in which a few cells are changed and a few rows duplicated."""
    tables = copy.deepcopy(valid_tables())
    for _ in range(draw(st.integers(1, 3))):
        name = draw(st.sampled_from(sorted(tables)))
        row = dict(draw(st.sampled_from(tables[name])))
        column = draw(st.sampled_from(COLUMNS[name]))
        kind = str(column.type)
        value = NUMBERS if kind.startswith("int") else TEXTS if kind == "string" else st.none()
        if kind == "bool":
            value = st.booleans()
        row[column.name] = draw(st.none() | value)
        if draw(st.booleans()):
            tables[name].append(row)
        else:
            tables[name][draw(st.integers(0, len(tables[name]) - 1))] = row
    return tables


@settings(max_examples=75)
@given(tables=mutations(), batch_rows=st.sampled_from([1, 2, 100]))
@example(tables=valid_tables(), batch_rows=1)
def test_validator_agrees_with_the_oracle(tables, batch_rows, tmp_path_factory):
    history = open_history(write_history(tmp_path_factory.mktemp("mutated") / "run", tables))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "BATCH_ROWS", batch_rows)
        patch.setattr("linearizability.history.validate.SHARE_ROWS", batch_rows)
        if is_valid(tables):
            validate(history)
        else:
            with pytest.raises(HistoryError, match=r"^table \w+, row \d+ \(") as caught:
                validate(history)
            name, row = re.match(r"table (\w+), row (\d+)", str(caught.value)).groups()
            assert int(row) < len(tables[name])


@pytest.mark.parametrize(("tables", "message"), BROKEN)
def test_reported_row_does_not_depend_on_the_batch_size(tmp_path, monkeypatch, tables, message):
    monkeypatch.setattr(reader, "BATCH_ROWS", 2)
    monkeypatch.setattr("linearizability.history.validate.SHARE_ROWS", 3)
    assert rejection(tmp_path, tables) == message


def test_text_that_is_not_utf8_is_rejected(tmp_path):
    run_dir = write_history(tmp_path / "run", valid_tables())
    path = run_dir / "history" / "records.parquet"
    table = pq.read_table(path)
    keys = pa.chunked_array([pa.array([b"k", None, b"\xff", *[b"k"] * 5], pa.binary()).view(pa.string())])
    pq.write_table(table.set_column(table.column_names.index("key"), "key", keys), path)
    with pytest.raises(HistoryError, match=r"^table records, row 2: key is not UTF-8$"):
        validate(open_history(run_dir))


@pytest.mark.parametrize("column", ["topic", "topic_id"])
def test_topic_that_is_not_utf8_is_reported_by_every_check(tmp_path, column):
    run_dir = write_history(tmp_path / "run", valid_tables())
    path = run_dir / "history" / "records.parquet"
    table = pq.read_table(path)
    topics = pa.chunked_array([pa.array([*[b"orders"] * 7, b"\xff"], pa.binary()).view(pa.string())])
    pq.write_table(table.set_column(table.column_names.index(column), column, topics), path)
    history = open_history(run_dir)
    messages = []
    for check in checks(history):
        try:
            check()
        except HistoryError as error:
            messages.append(str(error))
    assert set(messages) == {f"table records, row 7: {column} is not UTF-8"}
    assert len(messages) > 1


edges = st.sampled_from([-(2**63), -(2**62), -1, 0, 1, 2**31, 2**62, 2**63 - 1])


@given(rows=st.lists(st.tuples(edges, edges, edges), max_size=30))
def test_first_repeat_is_found_for_any_numbers(rows):
    seen, expected = {}, None
    for index, row in enumerate(rows):
        if expected is None and row in seen:
            expected = (seen[row], index)
        seen[row] = index
    columns = np.array(rows, np.int64).reshape(len(rows), 3).T
    assert first_repeat(*columns) == expected
