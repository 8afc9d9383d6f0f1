"""History of a killed run: it is valid, lacks at most the last second, and has the operations that were open."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from linearizability.history import writer as writer_module
from linearizability.history.reader import HistoryError, open_history
from linearizability.history.recorder import Position, Read, Recorder, Sent
from linearizability.history.run import RunInfo
from linearizability.history.validate import validate
from linearizability.history.writer import HistoryWriter

pytestmark = pytest.mark.sampled(2)

RUN = RunInfo("r")

CHILD = """
import sys, time
from pathlib import Path
from linearizability.history.recorder import Read, Recorder, Sent
from linearizability.history.run import RunInfo
from linearizability.history.writer import HistoryWriter

writer = HistoryWriter(Path(sys.argv[1]), RunInfo("r"))
recorder = Recorder(writer)
opened = recorder.invoke(9, "produce", [Sent(-1, "k"), Sent(-2)], topic="t", partition=9)
recorder.fault("cut", "1->2").__enter__()
for number in range(10**9):
    op = recorder.invoke(1, "produce", [Sent(number)], topic="t", partition=0)
    recorder.complete(op, "ok", base_offset=number)
    op = recorder.invoke(2, "poll")
    recorder.complete(op, "ok", reads=[Read("t", None, 0, number, number)])
    print(writer._flusher._number, flush=True)
    time.sleep(0.001)
"""


def test_after_sigkill_at_most_the_last_second_is_missing(tmp_path):
    """A flush contains all operations that completed before the flush began; two flush intervals are under a second."""
    assert 2 * writer_module.FLUSH_INTERVAL_S < 1
    command = [sys.executable, "-c", CHILD, str(tmp_path / "run")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[3]) as child:
        flushes = [int(child.stdout.readline())]
        while flushes[-1] < 4:
            flushes.append(int(child.stdout.readline()))
        child.send_signal(signal.SIGKILL)
        flushes += map(int, child.stdout.read().split())
    history = open_history(tmp_path / "run")
    validate(history)
    assert not history.run.complete

    operations = history.table("operations").to_pylist()
    completed = [row for row in operations if row["complete_ns"] is not None]
    # After each produce and poll, the child prints the number of the current flush. The two operations before a printed
    # n are written by flush n + 1 at the latest. That flush has ended when n + 2 is printed.
    assert len(completed) >= 2 * sum(1 for flush in flushes if flush + 2 <= flushes[-1]) > 0

    opened = next(row for row in operations if row["process"] == 9)
    assert (opened["op_id"], opened["outcome"], opened["complete_ns"]) == (1, "info", None)
    sends = [row for row in history.table("records").to_pylist() if row["op_id"] == 1]
    assert [(row["seq"], row["value"], row["key"]) for row in sends] == [(0, -1, "k"), (1, -2, None)]
    assert history.table("faults").select(["kind", "heal_ns"]).to_pylist() == [{"kind": "cut", "heal_ns": None}]


INTERRUPTED = """
import sys, time
from pathlib import Path
from linearizability.history.recorder import Recorder, Sent
from linearizability.history.run import RunInfo
from linearizability.history.writer import HistoryWriter

with HistoryWriter(Path(sys.argv[1]), RunInfo("r")) as writer:
    recorder = Recorder(writer)
    for number in range(10**9):
        op = recorder.invoke(1, "produce", [Sent(number)], topic="t", partition=0)
        recorder.complete(op, "ok", base_offset=number)
        print(number, flush=True)
"""


@pytest.mark.parametrize("delay_s", [0.0, 0.011, 0.1, 0.37])
def test_after_ctrl_c_the_history_has_all_completed_operations(tmp_path, delay_s):
    command = [sys.executable, "-c", INTERRUPTED, str(tmp_path / "run")]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, cwd=Path(__file__).parents[3]) as child:
        child.stdout.readline()
        time.sleep(delay_s)
        child.send_signal(signal.SIGINT)
        output, trace = child.communicate()
    assert trace.endswith("KeyboardInterrupt\n")
    history = open_history(tmp_path / "run")
    validate(history)
    assert not history.run.complete
    assert history.table("operations").num_rows >= len(output.split())
    assert not (tmp_path / "run" / "history" / "_journal").exists()


def test_kill_at_any_step_of_the_writer_leaves_a_valid_history(tmp_path, monkeypatch):
    """A copy of the directory after each rename or removal has the state that a kill at that step leaves."""
    run_dir, copies = tmp_path / "run", []

    def copying(change):
        def changed(*args, **kwargs):
            result = change(*args, **kwargs)
            copies.append(shutil.copytree(run_dir, tmp_path / f"copy-{len(copies)}"))
            return result

        return changed

    monkeypatch.setattr(writer_module, "FLUSH_INTERVAL_S", 0.005)
    writer = HistoryWriter(run_dir, RUN)
    with monkeypatch.context() as patch:
        for name in ("replace", "unlink", "rmdir"):
            patch.setattr(os, name, copying(getattr(os, name)))
        recorder = Recorder(writer)
        opened = recorder.invoke(9, "produce", [Sent(-1)], topic="t", partition=9)
        for number in range(4):
            with recorder.fault("cut", "1->2"), flushed(writer):
                record_step(recorder, writer, number)
        recorder.complete(opened, "ok", base_offset=0)
        recorder.invoke(9, "poll")
        writer.close()

    assert len(copies) > 30
    operations = 0
    for copy in copies:
        operations = max(operations, check_prefix(copy, operations))
    assert operations == 10


@contextlib.contextmanager
def flushed(writer):
    """After the block, wait until a flush that began in it or later has ended."""
    before = writer._flusher._number
    yield
    while writer._flusher._number == before:
        time.sleep(0.001)


def record_step(recorder, writer, number):
    with flushed(writer):
        produce = recorder.invoke(1, "produce", [Sent(number)], topic="t", partition=0)
        poll = recorder.invoke(2, "poll")
    recorder.complete(produce, "ok", base_offset=number)
    recorder.complete(poll, "ok", reads=[Read("t", None, 0, number, number)], positions=[Position("t", None, 0, 0, 1)])
    recorder.group_offsets(poll, [{"group": "g", "topic": "t", "partition": 0, "offset": 0, "direction": "commit"}])
    recorder.state(asked_ns=0, answered_ns=0, source="metadata")


def check_prefix(run_dir, at_least):
    """Return the number of operations in a prefix of the run: `at_least` or more.

    Assert that the prefix is valid and has all rows of its completed operations.
    """
    history = open_history(run_dir)
    validate(history)
    operations = history.table("operations").to_pylist()
    records = history.table("records").to_pylist()
    assert sorted(row["op_id"] for row in operations) == list(range(1, len(operations) + 1))
    sent = {row["op_id"] for row in records if row["direction"] == "send"}
    assert sent == {row["op_id"] for row in operations if row["f"] == "produce"}
    read = {row["op_id"] for row in records if row["direction"] == "read"}
    returned = {row["op_id"] for row in operations if row["f"] == "poll" and row["outcome"] == "ok"}
    assert read == returned == set(history.table("positions")["op_id"].to_pylist())
    values = {way: {row["value"] for row in records if row["direction"] == way} for way in ("send", "read")}
    assert values["read"] <= values["send"]
    fault_ids = history.table("faults")["fault_id"].to_pylist()
    assert len(set(fault_ids)) == len(fault_ids)
    assert len(operations) >= at_least
    for name in ("operations", "records", "faults"):
        assert history.dataset(name).count_rows() == history.table(name).num_rows
    return len(operations)


def test_full_disk_is_reported_in_one_line_for_every_caller(tmp_path, monkeypatch):
    monkeypatch.setattr(writer_module, "FLUSH_INTERVAL_S", 0.005)
    writer = HistoryWriter(tmp_path / "run", RUN)
    (tmp_path / "run" / "history" / "_journal" / "part.tmp").symlink_to("/dev/full")
    recorder = Recorder(writer)
    with pytest.raises(HistoryError, match="run: cannot write the history: No space left on device"):
        poll_until_rejected(recorder)
    with pytest.raises(HistoryError, match="No space left on device"):
        writer.close()
    assert not open_history(tmp_path / "run").run.complete


def poll_until_rejected(recorder):
    for _ in range(2000):
        recorder.invoke(1, "poll")
        time.sleep(0.005)


def test_waiting_caller_gets_an_error_if_the_directory_is_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(writer_module, "QUEUE_ROWS_MAX", 10)
    writer = HistoryWriter(tmp_path / "run", RUN)
    shutil.rmtree(tmp_path / "run" / "history")
    recorder = Recorder(writer)
    with pytest.raises(HistoryError, match="cannot write the history: No such file or directory"):
        poll_until_rejected(recorder)
    with pytest.raises(HistoryError):
        writer.close()


def test_value_of_a_wrong_type_is_named(tmp_path):
    writer = HistoryWriter(tmp_path / "run", RUN)
    writer.append_rows("operations", [{"op_id": "one"}])
    with pytest.raises(HistoryError, match=r"operations: column op_id: .*'one'"):
        writer.close()


def test_directory_with_a_run_is_not_overwritten(tmp_path):
    HistoryWriter(tmp_path / "run", RUN).close()
    with pytest.raises(HistoryError, match="already contains a run"):
        HistoryWriter(tmp_path / "run", RUN)
    assert open_history(tmp_path / "run").run.complete


def test_directory_that_cannot_be_created_is_reported_in_one_line(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(HistoryError, match="file/run: cannot write the history: Not a directory"):
        HistoryWriter(tmp_path / "file" / "run", RUN)


def test_flusher_ends_with_the_writer(tmp_path):
    writer = HistoryWriter(tmp_path / "run", RUN)
    thread = writer._thread
    assert thread.is_alive()
    assert thread.daemon
    writer.close()
    assert not thread.is_alive()
