"""Inputs of a report: foreign column types, unfinished runs, the order of runs, and rejected runs."""

import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from linearizability.history import layout
from linearizability.history.errors import HistoryError, NotARunError
from linearizability.history.schema import SCHEMAS
from reports.jobs.inputs import open_runs
from tests.linearizability.anomalies.histories import Tables
from tests.reports.jobs.test_jobs import computed


def some_run(run_id="r", timestamp_ms=None):
    tables = Tables(run_id=run_id)
    for number in range(3):
        op = tables.op(1, "produce", number * 10, number * 10 + 5, acks=-1)
        tables.record(op, 0, "send", "t", 0, number, number, timestamp_ms=timestamp_ms)
    op = tables.op(2, "poll", 100, 120)
    for number in range(3):
        tables.record(op, number, "read", "t", 0, number, number, timestamp_ms=timestamp_ms)
    tables.add("positions", op_id=op, topic="t", partition=0, before=0, after=3, cause="read", high_watermark=3)
    tables.add("states", asked_ns=0, answered_ns=5, source="metadata", topic="t", partition=0, leader=1, isr=[2, 1])
    return tables


def rewrite(path, change):
    pq.write_table(change(pq.read_table(path)), path)


def tables_of(run_dir, scratch):
    return computed([run_dir], scratch)[1].tables


def test_foreign_types_give_the_same_tables(tmp_path):
    ours = some_run().write(tmp_path / "ours")
    theirs = some_run().write(tmp_path / "theirs")

    def foreign(table):
        names = [*reversed(table.column_names), "more"]
        columns = {name: table[name] for name in table.column_names} | {"more": pa.array([1] * table.num_rows)}
        for name, column in columns.items():
            if pa.types.is_string(column.type):
                columns[name] = column.dictionary_encode()
            elif pa.types.is_int32(column.type):
                columns[name] = column.cast(pa.int64())
        return pa.table({name: columns[name] for name in names})

    for path in (theirs / "history").glob("*.parquet"):
        rewrite(path, foreign)
    assert tables_of(theirs, tmp_path / "2") == tables_of(ours, tmp_path / "1")


def test_minus_one_is_null(tmp_path):
    run_dir = some_run().write(tmp_path / "run")
    path = run_dir / "history" / "positions.parquet"
    index = SCHEMAS["positions"].names.index("last_stable_offset")
    rewrite(path, lambda table: table.set_column(index, table.schema.field(index), pa.array([-1], pa.int64())))
    (row,) = [row for row in tables_of(run_dir, tmp_path / "x")["progress"].to_pylist() if row["high_watermark"]]
    assert row["last_stable_offset"] is None


def unfinished(tmp_path):
    """Write the files of a killed run: closed files, and a journal with a produce that never returned."""
    run_dir = some_run().write(tmp_path / "run", files=2)
    history = run_dir / "history"
    (history / layout.JOURNAL_FOLDER).mkdir()
    for folder in (path for path in history.iterdir() if path.name != layout.JOURNAL_FOLDER):
        for number, path in enumerate(sorted(folder.iterdir())):
            path.rename(path.with_name(f"{number:06}.parquet"))
    tables = Tables()
    tables.rows["operations"] = [None] * 50
    op = tables.op(1, "produce", 130, None, "info", acks=-1)
    tables.record(op, 0, "send", "t", 0, None, 77)
    for name, rows in (("operations", tables.rows["operations"][50:]), ("records", tables.rows["records"])):
        table = pa.Table.from_pylist(rows, schema=SCHEMAS[name])
        pq.write_table(table, layout.journal_file(history, name, 1))
    return run_dir


def test_open_operations_of_the_journal_count(tmp_path):
    (row,) = tables_of(unfinished(tmp_path), tmp_path / "scratch")["delivery"].to_pylist()
    assert (row["sent"], row["acknowledged"], row["unknown"], row["read"]) == (4, 3, 1, 3)


def test_run_that_is_being_written_is_read_as_a_snapshot(tmp_path, monkeypatch):
    """A file disappears before it is linked, as when the writer closes the run. All files are then linked again."""
    run_dir, link, seen = unfinished(tmp_path), os.link, []

    def ending(source, target):
        seen.append(source)
        if len(seen) == 3:
            source.unlink()
        link(source, target)

    gone = sorted((run_dir / "history" / "records").iterdir())
    monkeypatch.setattr(os, "link", ending)
    (run,) = open_runs({run_dir: ""}, tmp_path / "scratch")
    assert len(seen) > 3
    assert run.run_dir == run_dir
    assert run.history.run_dir != run_dir
    for path in gone:
        path.unlink(missing_ok=True)
    assert run.history.table("operations").num_rows == 5


def test_more_than_two_runs_are_sorted_oldest_first(tmp_path):
    dirs = [some_run(name, at).write(tmp_path / name) for name, at in (("b", 2000), ("c", 3000), ("a", 1000))]
    assert [run.name for run in open_runs(dict.fromkeys(dirs, ""), tmp_path / "x")] == ["a", "b", "c"]
    assert [run.name for run in open_runs(dict.fromkeys(dirs[:2][::-1], ""), tmp_path / "y")] == ["c", "b"]


def test_a_long_run_id_is_truncated_in_the_rows(tmp_path):
    run_dir = some_run("r" * 1_000_000).write(tmp_path / "run")
    for table in tables_of(run_dir, tmp_path / "1").values():
        assert all(len(run_id) < 5_000 for run_id in table["run_id"].to_pylist())


def test_two_runs_with_the_same_id_are_rejected(tmp_path):
    dirs = [some_run().write(tmp_path / name) for name in ("one", "two")]
    with pytest.raises(NotARunError, match=r"two: its id is r, like that of .*one"):
        open_runs(dict.fromkeys(dirs, ""), tmp_path / "scratch")


@pytest.mark.parametrize("damage", ["truncated file", "missing column", "foreign type", "no operations"])
def test_broken_history_is_reported_in_one_line(tmp_path, damage):
    run_dir = some_run().write(tmp_path / "run")
    path = run_dir / "history" / "records.parquet"
    message = "records.parquet"
    if damage == "truncated file":
        path.write_bytes(path.read_bytes()[:-20])
    elif damage == "missing column":
        rewrite(path, lambda table: table.drop_columns("intact"))
    elif damage == "foreign type":
        rewrite(path, lambda table: table.set_column(0, "op_id", pa.array(["x"] * table.num_rows)))
    else:
        (run_dir / "history" / "operations.parquet").unlink()
        message = "nothing to report"
    with pytest.raises(HistoryError, match=message) as raised:
        open_runs({run_dir: ""}, tmp_path / "scratch")
    assert "\n" not in str(raised.value)
