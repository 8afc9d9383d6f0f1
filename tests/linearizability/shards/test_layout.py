"""Layout on disk: it is created once, and again if it does not fit the history. It stores the results of shards."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from functools import partial

import pyarrow.parquet as pq
import pytest

from linearizability import check
from linearizability.check import judge
from linearizability.history.reader import HistoryError, open_history
from linearizability.history.recorder import Recorder, Sent
from linearizability.history.run import RunInfo
from linearizability.history.writer import HistoryWriter
from linearizability.judgement import Verdict
from linearizability.shards import engine
from linearizability.shards.engine import judge_in_shards
from linearizability.shards.judging import JudgeShard
from linearizability.shards.laying_out import lay_out
from linearizability.shards.manifest import VERSION, current_layout, layout_folder
from linearizability.shards.running import Processes, WorkerError, run_here
from linearizability.shards.spilling import Dealer
from linearizability.shards.writing import LargeLayout
from linearizability.synthetic import writing
from linearizability.synthetic.planted_anomalies import PLANTED_ANOMALIES
from linearizability.synthetic.writing import Request, synthesize


@pytest.fixture
def run(tmp_path):
    synthesize(tmp_path / "run", Request(6000, 4, 0.5, ["duplicate", "lost-write"]), lambda _: None)
    return tmp_path / "run"


def test_layout_is_created_once_and_public_tables_are_unchanged(run):
    before = {path: path.read_bytes() for path in (run / "history").glob("*.parquet")}
    assert current_layout(open_history(run)) is None
    expected = judge(run)
    assert judge_in_shards(open_history(run), run_here) == expected
    layout = current_layout(open_history(run))
    assert layout is not None
    created_ns = layout_folder(open_history(run)).stat().st_mtime_ns
    assert judge_in_shards(open_history(run), run_here) == expected
    assert layout_folder(open_history(run)).stat().st_mtime_ns == created_ns
    assert {path: path.read_bytes() for path in (run / "history").glob("*.parquet")} == before


def test_layout_of_other_files_or_another_version_is_created_again(run):
    history = open_history(run)
    lay_out(history, run_here)
    manifest = layout_folder(history) / "layout.json"
    for changes in ({"version": VERSION + 1}, {"fingerprint": "another"}, {"places": 7}, {"shards": [{}]}):
        content = manifest.read_text()
        manifest.write_text(json.dumps({**json.loads(content), **changes}))
        assert current_layout(history) is None
        manifest.write_text(content)
        assert current_layout(history) is not None
    manifest.write_text("{")
    assert current_layout(history) is None
    lay_out(history, run_here)
    path = run / "history" / "records.parquet"
    table = pq.read_table(path)
    pq.write_table(table.slice(0, table.num_rows - 20), path)
    changed = open_history(run)
    assert current_layout(changed) is None
    assert judge_in_shards(changed, run_here) == judge(run)


def test_layout_with_a_missing_file_is_created_again(run):
    history = open_history(run)
    expected = judge_in_shards(history, run_here)
    for path in sorted(layout_folder(history).rglob("*.parquet")):
        content = path.read_bytes()
        path.unlink()
        assert current_layout(history) is None
        path.write_bytes(content[:-1])
        assert current_layout(history) is None
        path.write_bytes(content)
    assert current_layout(history) is not None
    path.unlink()
    assert judge_in_shards(history, run_here) == expected
    assert path.exists()


def test_drafts_of_killed_processes_are_removed(run):
    history, final = open_history(run), layout_folder(open_history(run))
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    drafts = [final.with_name(f"{final.name}.{socket.gethostname()}.{pid}.00ff") for pid in (dead.pid, os.getpid())]
    drafts.append(final.with_name(f"{final.name}.of-another-machine.{dead.pid}.00ff"))
    for folder in drafts:
        folder.mkdir()
    lay_out(history, run_here)
    assert [folder.exists() for folder in drafts] == [False, True, True]


def test_judged_shard_is_not_judged_again(run, monkeypatch):
    history = open_history(run)
    expected = judge_in_shards(history, run_here)
    judged = []
    monkeypatch.setattr(JudgeShard, "__call__", lambda self: judged.append(self.shard))
    assert judge_in_shards(history, run_here) == expected
    assert judged == []
    monkeypatch.undo()
    for text in ("{", json.dumps({"key": "another"}), "[]"):
        for path in layout_folder(history).glob("*/judgement.json"):
            path.write_text(text)
        assert judge_in_shards(history, run_here) == expected
    (run / "run.json").write_text((run / "run.json").read_text().replace('"complete": true', '"complete": false'))
    assert current_layout(open_history(run)) is None


def test_large_history_is_judged_by_processes_with_the_same_result(run, monkeypatch):
    expected = judge(run)
    monkeypatch.setattr(check, "LARGE_ROWS", 1000)
    assert judge(run) == expected
    assert current_layout(open_history(run)) is not None


def test_invalid_history_is_rejected_without_a_layout(run):
    path = run / "history" / "records.parquet"
    table = pq.read_table(path)
    column = table.column_names.index("op_id")
    pq.write_table(table.set_column(column, "op_id", [[10**9] * table.num_rows]), path)
    with Processes(1) as processes, pytest.raises(HistoryError, match="there is no such operation"):
        judge_in_shards(open_history(run), processes)
    assert [path.name for path in (run / "history").iterdir() if "_shards" in path.name] == []


def test_error_of_an_ended_worker_is_reported_in_one_line(run):
    with Processes(1) as processes, pytest.raises(WorkerError, match="a worker process ended"):
        list(processes([_die]))


def test_results_of_an_abandoned_iteration_are_not_those_of_the_next():
    with Processes(2) as processes:
        abandoned = processes([partial(_after, 0, "quick"), partial(_after, 1, "slow")])
        assert next(abandoned) == "quick"
        assert list(processes([partial(_after, 0, name) for name in "abc"])) == ["a", "b", "c"]


def _after(seconds, result):
    time.sleep(seconds)
    return result


def _die():
    os._exit(1)


FULL_DISK = """
import resource
import sys
from pathlib import Path
from linearizability.history.errors import HistoryError
from linearizability.history.reader import open_history
from linearizability.shards.engine import judge_in_shards
from linearizability.shards.running import Processes, run_here

judge_in_shards(open_history(Path(sys.argv[3])), Processes(2))  # the workers write their bytecode before the limit
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
history = open_history(Path(sys.argv[1]))
for run_tasks in (Processes(2), run_here):
    try:
        judge_in_shards(history, run_tasks)
    except HistoryError as error:
        print(error)
"""


@pytest.mark.parametrize("limit", [100, 30_000])
def test_error_of_a_full_disk_names_the_folder(run, limit, tmp_path):
    """The disk is simulated by a limit on the size of a file, in bytes."""
    copy = shutil.copytree(run, tmp_path / "copy")
    command = [sys.executable, "-c", FULL_DISK, str(run), str(limit), str(copy)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    line = (
        re.escape(f"{run}/history/_shards.") + r"\S+: cannot sort the history by topic partition: .*File too large.*\n"
    )
    assert re.fullmatch(line * 2, done.stdout), (done.stdout, done.stderr)
    assert not list((run / "history").glob("_shards*"))


def test_program_without_a_main_guard_can_judge_a_large_history(run):
    program = f"""
from pathlib import Path
from linearizability import check
check.LARGE_ROWS = 1000
print(check.judge(Path({str(run)!r})).verdict)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == (f"{Verdict.VIOLATION}\n", "")


def test_layout_of_a_read_only_run_is_temporary(run, monkeypatch, tmp_path):
    """The layout cannot be written because its parent does not exist. TMPDIR has the draft of a process that ended."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "elsewhere"))
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    (tmp_path / "elsewhere" / f"kafkatrial-shards.{socket.gethostname()}.{dead.pid}.00ff").mkdir(parents=True)
    expected, history = judge(run), open_history(run)
    monkeypatch.setattr("linearizability.shards.laying_out.layout_folder", lambda _: tmp_path / "absent" / "_shards")
    assert engine.judge_in_shards(history, run_here) == expected
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("large_rows", [100, 10**6])
def test_layout_is_created_while_a_large_history_is_recorded(tmp_path, large_rows):
    run_dir = tmp_path / "run"
    layout_writer = LargeLayout(run_dir, large_rows, chunk_rows=20)
    with HistoryWriter(run_dir, RunInfo("r", topics={"t": {}}), layout_writer) as writer:
        recorder = Recorder(writer)
        recorder.invoke(9, "poll")  # never completes
        for number in range(100):
            where = {"topic": "t", "partition": number % 3}
            sent = recorder.invoke(1, "produce", [Sent(number)], **where, acks=-1)
            recorder.complete(sent, "ok", base_offset=number // 3)
            commit = recorder.invoke(2, "commit_offsets", group="g")
            recorder.group_offsets(commit, [{"group": "g", **where, "offset": 1, "direction": "commit"}])
            recorder.complete(commit, "ok")
    history = open_history(run_dir)
    layout = current_layout(history)
    assert (layout is not None) == (large_rows == 100)
    assert {path.name for path in (run_dir / "history").iterdir() if path.is_dir()} <= {"_shards"}
    if layout is not None:
        assert judge_in_shards(history, run_here) == judge(run_dir)


def test_history_is_complete_after_an_error_of_its_layout(tmp_path, monkeypatch):
    monkeypatch.setattr(Dealer, "deal", lambda *_: 1 / 0)
    run_dir = tmp_path / "run"
    with HistoryWriter(run_dir, RunInfo("r"), LargeLayout(run_dir, 1, chunk_rows=0)) as writer:
        Recorder(writer).invoke(1, "poll")
    assert open_history(run_dir).count("operations") == 1
    assert not list((run_dir / "history").glob("_shards*"))


def test_layout_is_created_while_a_synthetic_history_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(writing, "CHUNK_STEPS", 500)
    run_dir = tmp_path / "run"
    synthesize(run_dir, Request(60_000, 30, 0.5, sorted(PLANTED_ANOMALIES)), lambda _: None, run_here)
    history = open_history(run_dir)
    written = current_layout(history)
    assert written is not None
    rows = _rows(written)
    assert judge_in_shards(history, run_here) == judge(run_dir)
    assert _rows(lay_out(history, run_here)) == rows


def _rows(layout):
    """Return the sorted rows of each file of a layout, by the path of the file."""
    files = sorted(layout.folder.rglob("*.parquet"))
    return {
        str(path.relative_to(layout.folder)): sorted(map(repr, pq.read_table(path, partitioning=None).to_pylist()))
        for path in files
    }
