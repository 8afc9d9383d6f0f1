"""Who follows a history while it is written sees each row once and in order, whenever he looks."""

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
from tests.linearizability.anomalies.simulation import Simulation


def gathered(tables, news):
    for name, table in news.items():
        tables.setdefault(name, []).append(table)


def assert_could_have_ended_there(tables):
    known = {op for table in tables.get("operations", ()) for op in table["op_id"].to_pylist()}
    for name in ("records", "positions"):
        assert {op for table in tables.get(name, ()) for op in table["op_id"].to_pylist()} <= known


def assert_whole(tables, run):
    history = open_history(run)
    for name in SCHEMAS:
        expected = history.table(name)
        assert pa.concat_tables(tables.get(name, [expected.slice(0, 0)])).equals(expected), name


def test_rows_of_a_run_that_is_being_written_come_once_and_in_order(tmp_path):
    follower, tables = Follower(tmp_path / "run"), {}
    gathered(tables, follower.news())
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
                gathered(tables, follower.news())
                assert_could_have_ended_there(tables)
    assert sum(table.num_rows for table in tables["operations"]) > 100, "some of it was seen while it was written"
    gathered(tables, follower.news())
    assert follower.news() == {}
    assert_whole(tables, tmp_path / "run")


@pytest.mark.parametrize("looks", range(5))
def test_files_that_make_way_for_one_are_not_told_again(tmp_path, looks):
    """Parts are put into one table by table; the follower looks after each."""
    run = Simulation(random.Random(looks)).run(60).write(tmp_path / "run", files=4)
    folder = run / layout.HISTORY_FOLDER
    follower, tables = Follower(run), {}
    hidden = {
        path: path.with_suffix(".later") for name in SCHEMAS for path in sorted((folder / name).glob("*"))[looks:]
    }
    for path, later in hidden.items():
        path.rename(later)
    gathered(tables, follower.news())
    for path, later in hidden.items():
        later.rename(path)
    (folder / layout.JOURNAL_FOLDER).mkdir()
    compact(folder)
    gathered(tables, follower.news())
    assert_whole(tables, run)


@pytest.mark.parametrize("compacted", [False, True])
def test_rows_that_are_known_are_not_told_again(tmp_path, compacted):
    """One follower tells some rows; another, that only knows how many they were, tells the others."""
    run = Simulation(random.Random(2)).run(60).write(tmp_path / "run", files=4)
    for count in (0, 1, 7, 30, 10_000):
        history = open_history(run)
        tables = {name: [history.table(name).slice(0, count)] for name in SCHEMAS}
        follower = Follower(run, {name: parts[0].num_rows for name, parts in tables.items()})
        for _ in range(2):
            gathered(tables, follower.news())
        assert_whole(tables, run)
        if compacted and count == 1:
            (run / layout.HISTORY_FOLDER / layout.JOURNAL_FOLDER).mkdir()
            compact(run / layout.HISTORY_FOLDER)
            (run / layout.HISTORY_FOLDER / layout.JOURNAL_FOLDER).rmdir()


def test_flush_that_is_not_whole_is_not_told(tmp_path):
    run = Simulation(random.Random(1)).run(60).write(tmp_path / "run", files=2)
    folder = run / layout.HISTORY_FOLDER
    (folder / layout.JOURNAL_FOLDER).mkdir()
    last = max((folder / "operations").glob("*.parquet"))
    last.rename(tmp_path / "last")
    follower, tables = Follower(run), {}
    gathered(tables, follower.news())
    assert len(tables["records"]) == 1
    (tmp_path / "last").rename(last)
    gathered(tables, follower.news())
    assert_whole(tables, run)


def test_broken_file_is_one_line(tmp_path):
    run = Simulation(random.Random(1)).run(60).write(tmp_path / "run", files=2)
    next((run / layout.HISTORY_FOLDER / "records").glob("*.parquet")).write_bytes(b"PAR1 no")
    with pytest.raises(HistoryError, match=r"^[^\n]*records[^\n]*cannot be read[^\n]*$"):
        Follower(run).news()
