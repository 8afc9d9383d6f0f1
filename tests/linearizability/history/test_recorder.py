"""Recorder: rows are read back as recorded, from any number of threads; open operations are written as info."""

import itertools
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linearizability.history import writer as writer_module
from linearizability.history.reader import HistoryError, open_history
from linearizability.history.recorder import Position, Read, Recorder, Sent
from linearizability.history.run import RunInfo
from linearizability.history.schema import SCHEMAS
from linearizability.history.validate import validate
from linearizability.history.writer import HistoryWriter

RUN = RunInfo("r", seed=3, target="none")
WHERE = {"topic": "orders", "partition": 0}


def ticking():
    return itertools.count(1000).__next__


def test_operations_of_each_kind_are_recorded(tmp_path):
    with HistoryWriter(tmp_path / "run", RUN) as writer:
        recorder = Recorder(writer, clock=ticking())
        recorder.topic("orders", {"cleanup.policy": "delete"})
        recorder.client(1, {"acks": "all"})
        produce = recorder.invoke(1, "produce", [Sent(7, "k", 5), Sent(None, "k")], **WHERE, acks=-1)
        recorder.complete(produce, "ok", base_offset=40, leader_epoch=2, node=3, topic_id="ID")
        poll = recorder.invoke(2, "poll", isolation="read_committed")
        reads = [Read("orders", "ID", 0, 40, 7, "k", 2, 5), Read("orders", "ID", 0, 41, None, "k", intact=False)]
        recorder.complete(poll, "ok", reads=reads, positions=[Position("orders", "ID", 0, 40, 42, high_watermark=42)])
        commit = recorder.invoke(2, "commit_offsets", group="g")
        recorder.group_offsets(commit, [{"group": "g", **WHERE, "offset": 42, "direction": "commit"}])
        recorder.complete(commit, "fail", "TOPIC_AUTHORIZATION_FAILED")
        recorder.inputs(produce, [{"seq": 0, **WHERE, "offset": 3}])
        recorder.state(asked_ns=1, answered_ns=2, source="metadata", **WHERE, isr=[1, 2])
        recorder.assignment(process=2, event="assigned", **WHERE)
        with recorder.fault("cut", "1->2"):
            pass
    history = open_history(tmp_path / "run")
    validate(history)
    first, second, third = history.table("operations").to_pylist()
    assert (first["op_id"], first["invoke_ns"], first["complete_ns"], first["outcome"]) == (1, 1000, 1001, "ok")
    assert (first["node"], first["acks"], first["topic"], first["topic_id"]) == (3, -1, "orders", "ID")
    assert (second["isolation"], second["error"]) == ("read_committed", None)
    assert (third["outcome"], third["error"]) == ("fail", "TOPIC_AUTHORIZATION_FAILED")
    columns = [
        "op_id",
        "seq",
        "direction",
        "topic_id",
        "offset",
        "value",
        "key",
        "leader_epoch",
        "timestamp_ms",
        "intact",
    ]
    assert list(zip(*history.table("records", columns).to_pydict().values(), strict=True)) == [
        (1, 0, "send", "ID", 40, 7, "k", 2, 5, True),
        (1, 1, "send", "ID", 41, None, "k", 2, None, True),
        (2, 0, "read", "ID", 40, 7, "k", 2, 5, True),
        (2, 1, "read", "ID", 41, None, "k", None, None, False),
    ]
    assert history.table("positions").to_pylist()[0]["cause"] == "read"
    assert history.table("offsets")["offset"].to_pylist() == [42]
    assert history.table("inputs")["offset"].to_pylist() == [3]
    assert history.table("states")["isr"].to_pylist() == [[1, 2]]
    assert history.table("assignments")["at_ns"].to_pylist() == [1006]
    assert history.table("faults").select(["inject_ns", "heal_ns"]).to_pylist() == [
        {"inject_ns": 1007, "heal_ns": 1008}
    ]
    assert history.run.complete
    assert history.run.topics == {"orders": {"cleanup.policy": "delete"}}
    assert history.run.clients == {1: {"acks": "all"}}


def test_open_operations_are_written_as_info(tmp_path):
    with HistoryWriter(tmp_path / "run", RUN) as writer:
        recorder = Recorder(writer)
        recorder.invoke(1, "produce", [Sent(1), Sent(2)], **WHERE, acks=1)
        recorder.invoke(2, "poll")
        with pytest.raises(ZeroDivisionError), recorder.fault("kill", "1"):
            raise ZeroDivisionError
    history = open_history(tmp_path / "run")
    validate(history)
    operations = history.table("operations").to_pylist()
    assert [(row["f"], row["outcome"], row["complete_ns"]) for row in operations] == [
        ("produce", "info", None),
        ("poll", "info", None),
    ]
    assert history.table("records").select(["op_id", "seq", "value", "offset"]).to_pylist() == [
        {"op_id": 1, "seq": 0, "value": 1, "offset": None},
        {"op_id": 1, "seq": 1, "value": 2, "offset": None},
    ]
    assert history.table("faults")["heal_ns"].to_pylist() == [None]


def test_run_that_ended_with_an_exception_is_not_complete(tmp_path):
    def run():
        with HistoryWriter(tmp_path / "run", RUN) as writer:
            Recorder(writer).invoke(1, "poll")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run()
    history = open_history(tmp_path / "run")
    assert not history.run.complete
    assert history.table("operations").num_rows == 1


def test_finished_history_is_one_file_per_table(tmp_path, monkeypatch):
    monkeypatch.setattr(writer_module, "FLUSH_INTERVAL_S", 0.001)
    with HistoryWriter(tmp_path / "run", RUN) as writer:
        recorder = Recorder(writer)
        for _ in range(10):
            recorder.complete(recorder.invoke(1, "poll"), "ok")
            time.sleep(0.005)
    files = sorted(path.name for path in (tmp_path / "run" / "history").iterdir())
    assert files == ["operations.parquet"]
    assert open_history(tmp_path / "run").table("operations").num_rows == 10


steps = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 4), st.sampled_from(["ok", "fail", "info", None])), max_size=40
)


@settings(max_examples=40)
@given(steps=steps, rows_max=st.integers(1, 20))
def test_recorded_rows_are_read_back(steps, rows_max, tmp_path_factory):
    """Each step is a process, a number of records, and an outcome; None leaves the operation open."""
    run_dir = tmp_path_factory.mktemp("recorded") / "run"
    expected_operations, expected_records = [], []
    with pytest.MonkeyPatch.context() as patch, HistoryWriter(run_dir, RUN) as writer:
        patch.setattr(writer_module, "QUEUE_ROWS_MAX", rows_max)
        recorder = Recorder(writer, clock=ticking())
        for number, (process, count, outcome) in enumerate(steps):
            values = [number * 10 + seq for seq in range(count)]
            op = recorder.invoke(process, "produce", [Sent(value) for value in values], topic="t", partition=process)
            if outcome is not None:
                recorder.complete(op, outcome, base_offset=number * 10)
            expected_operations.append((op, process, outcome or "info", outcome is None))
            offsets = [None] * count if outcome is None else values
            expected_records += [(op, seq, offsets[seq], value) for seq, value in enumerate(values)]
    history = open_history(run_dir)
    validate(history)
    operations = history.table("operations").sort_by("op_id").to_pylist()
    records = history.table("records").sort_by([("op_id", "ascending"), ("seq", "ascending")]).to_pylist()
    assert expected_operations == [
        (row["op_id"], row["process"], row["outcome"], row["complete_ns"] is None) for row in operations
    ]
    assert expected_records == [(row["op_id"], row["seq"], row["offset"], row["value"]) for row in records]


def test_threads_lose_nothing_and_ids_ascend_by_invocation(tmp_path, monkeypatch):
    monkeypatch.setattr(writer_module, "FLUSH_INTERVAL_S", 0.01)
    monkeypatch.setattr(writer_module, "QUEUE_ROWS_MAX", 500)
    calls, threads = 300, 8

    def client(process, recorder):
        for call in range(calls):
            op = recorder.invoke(process, "produce", [Sent(call)], topic="t", partition=process)
            recorder.complete(op, "ok", base_offset=call)

    with HistoryWriter(tmp_path / "run", RUN) as writer:
        recorder = Recorder(writer)
        with ThreadPoolExecutor(threads) as pool:
            for future in [pool.submit(client, process, recorder) for process in range(threads)]:
                future.result()
    history = open_history(tmp_path / "run")
    validate(history)
    assert sorted(history.table("operations")["op_id"].to_pylist()) == list(range(1, calls * threads + 1))
    assert history.table("records").num_rows == calls * threads
    assert len({(row["partition"], row["value"]) for row in history.table("records").to_pylist()}) == calls * threads


def test_unknown_column_is_named(tmp_path):
    with HistoryWriter(tmp_path / "run", RUN) as writer:
        recorder = Recorder(writer)
        with pytest.raises(TypeError, match="operations has no column ack "):
            recorder.invoke(1, "produce", ack=1)
        with pytest.raises(TypeError, match="operations has no column complete_ns that a caller may set"):
            recorder.invoke(1, "produce", complete_ns=1)
        with pytest.raises(TypeError, match="states has no column leeder"):
            recorder.state(leeder=1)
        with pytest.raises(TypeError, match="names its topic and its partition"):
            recorder.invoke(1, "produce", [Sent(1)], topic="t")
        op = recorder.invoke(1, "produce", [Sent(1)], **WHERE)
        with pytest.raises(ValueError, match="outcome 'OK' is not one of ok, fail, info"):
            recorder.complete(op, "OK")
        with pytest.raises(ValueError, match="operation 1: 2 offsets for 1 sends"):
            recorder.complete(op, "ok", offsets=[1, 2])
        recorder.complete(op, "ok", offsets=[1])
    assert open_history(tmp_path / "run").table("operations")["outcome"].to_pylist() == ["ok"]


def test_operation_completes_once(tmp_path):
    with HistoryWriter(tmp_path / "run", RUN) as writer:
        recorder = Recorder(writer)
        op = recorder.invoke(1, "poll")
        recorder.complete(op, "ok")
        with pytest.raises(HistoryError, match="operation 1 was not invoked, or has completed already"):
            recorder.complete(op, "ok")


def test_closed_history_accepts_no_rows(tmp_path):
    writer = HistoryWriter(tmp_path / "run", RUN)
    recorder = Recorder(writer)
    op = recorder.invoke(1, "poll")
    writer.close()
    writer.close()
    with pytest.raises(HistoryError, match="the history is closed"):
        recorder.complete(op, "ok")
    assert open_history(tmp_path / "run").table("operations")["outcome"].to_pylist() == ["info"]


def test_written_schema_is_that_of_the_format(tmp_path):
    with HistoryWriter(tmp_path / "run", RUN) as writer:
        for name in SCHEMAS:
            writer.append_rows(name, [{}])
    history = open_history(tmp_path / "run")
    for name, schema in SCHEMAS.items():
        assert history.dataset(name).schema == schema
        assert history.files(name)
