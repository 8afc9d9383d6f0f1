"""Reader of histories: tables are converted to the format; missing and damaged files are reported by name."""

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from linearizability.history.reader import HistoryError, NotARunError, open_history
from linearizability.history.schema import SCHEMAS
from linearizability.history.validate import validate
from tests.linearizability.history.foreign import arrow, valid_tables, write_history

EXAMPLES = sorted(path for path in (Path(__file__).parents[3] / "examples" / "histories").iterdir() if path.is_dir())


@pytest.fixture
def run_dir(tmp_path):
    return write_history(tmp_path / "run", valid_tables())


def rewrite(run_dir, name, change):
    path = run_dir / "history" / f"{name}.parquet"
    pq.write_table(change(pq.read_table(path)), path)


def with_column(name, values):
    """Return a function for `rewrite` that replaces a column by `values(column)`."""
    return lambda table: table.set_column(table.column_names.index(name), name, values(table[name]))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_examples_are_valid(example):
    assert len(EXAMPLES) == 4
    history = open_history(example)
    validate(history)
    assert history.table("operations").num_rows > 200
    for name in SCHEMAS:
        assert history.table(name).schema == SCHEMAS[name]
        assert history.dataset(name).to_table().equals(history.table(name))


def test_every_table_is_read_as_written(run_dir):
    history = open_history(run_dir)
    for name, rows in valid_tables().items():
        assert history.table(name).equals(arrow(name, rows))
        assert history.dataset(name).to_table().equals(arrow(name, rows))
    assert history.run.clients == {1: {"acks": "all"}}


def test_requested_columns_are_returned_in_the_requested_order(run_dir):
    assert open_history(run_dir).table("records", ["value", "op_id"]).column_names == ["value", "op_id"]


def test_table_may_be_a_folder_of_files_and_drafts_are_ignored(run_dir):
    history_dir = run_dir / "history"
    whole = pq.read_table(history_dir / "records.parquet")
    (history_dir / "records.parquet").unlink()
    (history_dir / "records").mkdir()
    pq.write_table(whole.slice(0, 3), history_dir / "records" / "00000.parquet")
    pq.write_table(whole.slice(3), history_dir / "records" / "00001.parquet")
    for draft in ("_x.parquet", ".y.parquet", "z.tmp"):
        (history_dir / "records" / draft).write_bytes(b"half a file")
    assert open_history(run_dir).table("records").equals(whole)
    shutil.move(history_dir / "records", history_dir / "records.parquet")
    assert open_history(run_dir).table("records").equals(whole)


def test_an_absent_table_is_empty(run_dir):
    (run_dir / "history" / "positions.parquet").unlink()
    history = open_history(run_dir)
    assert history.is_absent("positions")
    assert not history.is_absent("records")
    assert history.table("positions").equals(SCHEMAS["positions"].empty_table())
    assert history.dataset("positions").count_rows() == 0
    shutil.rmtree(run_dir / "history")
    assert open_history(run_dir).table("operations").num_rows == 0


def test_other_files_of_a_run_are_ignored(run_dir):
    (run_dir / "history" / "by_partition.parquet").write_bytes(b"an index")
    (run_dir / "history" / "sorted").mkdir()
    validate(open_history(run_dir))


def loosely(table):
    """Return the same rows with other types, another column order, and an additional column."""
    columns = {}
    for field in reversed(table.schema):
        column = table[field.name]
        if pa.types.is_string(field.type):
            column = column.cast(pa.large_string()) if field.name == "error" else column.dictionary_encode()
        elif pa.types.is_integer(field.type):
            column = column.cast(pa.int64())
        if column.null_count == len(column):
            column = pa.nulls(len(column))
        columns[field.name] = column
    return pa.table({"note": ["x"] * len(table), **columns})


def test_compatible_types_and_other_columns_are_converted(run_dir):
    for name in SCHEMAS:
        rewrite(run_dir, name, loosely)
    history = open_history(run_dir)
    validate(history)
    for name, rows in valid_tables().items():
        assert history.table(name).equals(arrow(name, rows))
        assert history.dataset(name).to_table().equals(arrow(name, rows))


@pytest.mark.parametrize("lists", [pa.large_list(pa.int64()), pa.list_(pa.field("item", pa.int16()))])
def test_isr_may_be_another_list_type(run_dir, lists):
    rewrite(run_dir, "states", with_column("isr", lambda column: column.cast(lists)))
    states = open_history(run_dir).table("states")
    assert states["isr"].to_pylist() == [[1, 2], None]
    assert states.schema == SCHEMAS["states"]


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_missing_column_is_named(run_dir, name):
    column = SCHEMAS[name].names[1]
    rewrite(run_dir, name, lambda table: table.drop_columns([column]))
    with pytest.raises(HistoryError, match=rf"{name}\.parquet: table {name} has no column {column} "):
        open_history(run_dir)


@pytest.mark.parametrize(
    ("name", "column", "values", "message"),
    [
        ("records", "offset", lambda column: column.cast(pa.string()), "column offset is of type string, not int64"),
        ("records", "offset", lambda column: column.cast(pa.float64()), "column offset is of type double, not int64"),
        ("records", "key", lambda column: pa.array([1] * len(column)), "column key is of type int64, not string"),
        ("records", "intact", lambda column: column.cast(pa.int8()), "column intact is of type int8, not bool"),
        ("states", "isr", lambda column: pa.array(["1,2"] * len(column)), "column isr is of type string, not list"),
    ],
)
def test_a_wrong_type_is_named(run_dir, name, column, values, message):
    rewrite(run_dir, name, with_column(column, values))
    with pytest.raises(HistoryError, match=message):
        open_history(run_dir)


def test_duplicate_column_is_named(run_dir):
    rewrite(run_dir, "records", lambda table: table.append_column("offset", table["offset"]))
    with pytest.raises(HistoryError, match="column offset 2 times"):
        open_history(run_dir)


@pytest.mark.parametrize("number", [2**31, -(2**31) - 1, 2**40])
def test_a_number_that_does_not_fit_is_named_with_its_row(run_dir, number):
    numbers = lambda column: pa.array([0, 0, number, *[1] * (len(column) - 3)], pa.int64())  # noqa: E731
    rewrite(run_dir, "records", with_column("partition", numbers))
    history = open_history(run_dir)
    with pytest.raises(HistoryError, match=f"table records, row 2: column partition: {number} does not fit int32"):
        history.table("records")


def test_an_unsigned_number_that_does_not_fit_is_named_with_its_row(run_dir):
    numbers = lambda column: pa.array([0, 2**63, *[1] * (len(column) - 2)], pa.uint64())  # noqa: E731
    rewrite(run_dir, "records", with_column("value", numbers))
    with pytest.raises(HistoryError, match=f"table records, row 1: column value: {2**63} does not fit int64"):
        validate(open_history(run_dir))


@pytest.mark.parametrize("keep", [0, 3, 100, -1])
def test_a_truncated_file_is_named(run_dir, keep):
    path = run_dir / "history" / "records.parquet"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(HistoryError, match=r"records\.parquet: not a readable Parquet file") as caught:
        open_history(run_dir)
    assert "\n" not in str(caught.value)


def test_damaged_page_is_found_by_the_validator(run_dir):
    path = run_dir / "history" / "records.parquet"
    content = bytearray(path.read_bytes())
    content[4:400] = b"\xff" * 396
    path.write_bytes(content)
    with pytest.raises(HistoryError, match=r"records\.parquet: not a readable Parquet file"):
        validate(open_history(run_dir))


def test_directory_without_a_run_is_rejected(tmp_path):
    with pytest.raises(NotARunError):
        open_history(tmp_path)
    (tmp_path / "run.json").write_text(json.dumps({"format": 3}))
    with pytest.raises(NotARunError):
        open_history(tmp_path)


def test_history_must_be_a_directory(run_dir):
    shutil.rmtree(run_dir / "history")
    (run_dir / "history").touch()
    with pytest.raises(HistoryError, match="history: not a directory"):
        open_history(run_dir)


@pytest.mark.parametrize(
    ("name", "target"),
    [("records", "nowhere.parquet"), ("records", "records.parquet"), ("faults", "nowhere.parquet")],
)
def test_dangling_link_is_not_an_absent_table(run_dir, name, target):
    path = run_dir / "history" / f"{name}.parquet"
    path.unlink()
    path.symlink_to(target)
    with pytest.raises(HistoryError, match=rf"{name}\.parquet: a link to a file that does not exist"):
        open_history(run_dir)


def test_folder_without_parquet_files_is_not_a_table(run_dir):
    path = run_dir / "history" / "records.parquet"
    path.unlink()
    path.mkdir()
    with pytest.raises(HistoryError, match=r"records\.parquet: a folder without Parquet files"):
        open_history(run_dir)
    (path / "_SUCCESS").touch()
    assert open_history(run_dir).table("records").num_rows == 0


def test_table_folder_must_not_be_a_dangling_link(run_dir):
    (run_dir / "history" / "records").symlink_to("nowhere")
    with pytest.raises(HistoryError, match=r"records: neither a table's folder nor a link to one"):
        open_history(run_dir)


def test_history_must_not_be_a_dangling_link(tmp_path, run_dir):
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "run.json").write_text((run_dir / "run.json").read_text())
    (tmp_path / "linked" / "history").symlink_to("nowhere")
    with pytest.raises(HistoryError, match=r"history: not a directory"):
        open_history(tmp_path / "linked")
