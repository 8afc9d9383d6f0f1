"""Follower of a history that is being written: it returns each row once and in order."""

import random
import time

import pyarrow as pa
import pytest

from linearizability.history import layout
from linearizability.history.compaction import compact
from linearizability.history.errors import HistoryError
from linearizability.history.following import Follower
from linearizability.history.reader import open_history
from linearizability.history.recorder import Read, Recorder, Sent
from linearizability.history.run import RunInfo
from linearizability.history.schema import SCHEMAS
from linearizability.history.writer import HistoryWriter
from tests.linearizability.anomalies.simulated_partition import SimulatedPartition


def add_new_rows(tables, new_rows):
    for name, table in new_rows.items():
        tables.setdefault(name, []).append(table)


def assert_is_consistent_prefix(tables):
    op_ids = {op for table in tables.get("operations", ()) for op in table["op_id"].to_pylist()}
    for name in ("records", "positions"):
        assert {op for table in tables.get(name, ()) for op in table["op_id"].to_pylist()} <= op_ids


def assert_complete(tables, run):
    history = open_history(run)
    for name in SCHEMAS:
        expected = history.table(name)
        assert pa.concat_tables(tables.get(name, [expected.slice(0, 0)])).equals(expected), name


def test_rows_of_a_running_run_are_returned_once_and_in_order(tmp_path):
    follower, tables = Follower(tmp_path / "run"), {}
    add_new_rows(tables, follower.poll())
    with HistoryWriter(tmp_path / "run", RunInfo("r")) as writer:
        recorder = Recorder(writer)
        for number in range(300):
            op = recorder.invoke(1, "produce", [Sent(number)], topic="t", partition=0, acks=-1)
            recorder.complete(op, "ok", base_offset=number)
            op = recorder.invoke(2, "poll")
            recorder.complete(op, "ok", reads=[Read("t", None, 0, number, number, None, 0, 0)])
            if number % 100 == 0:
                time.sleep(0.5)
            if number % 10 == 0:
                add_new_rows(tables, follower.poll())
                assert_is_consistent_prefix(tables)
    assert sum(table.num_rows for table in tables["operations"]) > 100, "too few rows while the run was being written"
    add_new_rows(tables, follower.poll())
    assert follower.poll() == {}
    assert_complete(tables, tmp_path / "run")


@pytest.mark.parametrize("parts_before", range(5))
def test_rows_of_compacted_files_are_not_returned_again(tmp_path, parts_before):
    """The first poll reads `parts_before` files of each table, the second poll the file into which all were merged."""
    run = SimulatedPartition(random.Random(parts_before)).run(60).write(tmp_path / "run", files=4)
    folder = run / layout.HISTORY_FOLDER
    follower, tables = Follower(run), {}
    later_parts = [path for name in SCHEMAS for path in sorted((folder / name).glob("*"))[parts_before:]]
    hidden = {path: path.with_suffix(".later") for path in later_parts}
    for path, later in hidden.items():
        path.rename(later)
    add_new_rows(tables, follower.poll())
    for path, later in hidden.items():
        later.rename(path)
    (folder / layout.JOURNAL_FOLDER).mkdir()
    compact(folder)
    add_new_rows(tables, follower.poll())
    assert_complete(tables, run)


@pytest.mark.parametrize("compacted", [False, True])
def test_known_rows_are_not_returned_again(tmp_path, compacted):
    """The caller already has the first `count` rows of each table. The follower returns only the rows after these."""
    run = SimulatedPartition(random.Random(2)).run(60).write(tmp_path / "run", files=4)
    for count in (0, 1, 7, 30, 10_000):
        history = open_history(run)
        tables = {name: [history.table(name).slice(0, count)] for name in SCHEMAS}
        follower = Follower(run, {name: parts[0].num_rows for name, parts in tables.items()})
        for _ in range(2):
            add_new_rows(tables, follower.poll())
        assert_complete(tables, run)
        if compacted and count == 1:
            (run / layout.HISTORY_FOLDER / layout.JOURNAL_FOLDER).mkdir()
            compact(run / layout.HISTORY_FOLDER)
            (run / layout.HISTORY_FOLDER / layout.JOURNAL_FOLDER).rmdir()


def test_incomplete_flush_is_not_returned(tmp_path):
    """A flush is incomplete until its file of `operations` exists, because the writer writes that file last."""
    run = SimulatedPartition(random.Random(1)).run(60).write(tmp_path / "run", files=2)
    folder = run / layout.HISTORY_FOLDER
    (folder / layout.JOURNAL_FOLDER).mkdir()
    last = max((folder / "operations").glob("*.parquet"))
    last.rename(tmp_path / "last")
    follower, tables = Follower(run), {}
    add_new_rows(tables, follower.poll())
    assert len(tables["records"]) == 1
    (tmp_path / "last").rename(last)
    add_new_rows(tables, follower.poll())
    assert_complete(tables, run)


def test_unreadable_file_is_reported_in_one_line(tmp_path):
    run = SimulatedPartition(random.Random(1)).run(60).write(tmp_path / "run", files=2)
    next((run / layout.HISTORY_FOLDER / "records").glob("*.parquet")).write_bytes(b"PAR1 no")
    with pytest.raises(HistoryError, match=r"^[^\n]*records[^\n]*cannot be read[^\n]*$"):
        Follower(run).poll()
