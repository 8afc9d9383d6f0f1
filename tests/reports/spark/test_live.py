"""Live view of a run: its last progress has the judgement of the run, even if an earlier live view was killed."""

import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from contextlib import nullcontext
from pathlib import Path

import pyarrow as pa
import pytest

from linearizability.check import judge
from linearizability.history.reader import open_history
from linearizability.history.recorder import Read, Recorder, Sent
from linearizability.history.run import RunInfo
from linearizability.history.writer import HistoryWriter
from reports.spark.live import Counts, LiveProgress, LiveRun
from reports.spark.session import spark_session
from tests.linearizability.anomalies.simulated_partition import SimulatedPartition

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::ResourceWarning"), pytest.mark.sampled(3)]


@pytest.fixture(scope="module")
def spark():
    with spark_session("local[2]") as session:
        yield session


def produce(recorder, values):
    for value in values:
        op = recorder.invoke(1, "produce", [Sent(value)], topic="t", partition=0, acks=-1)
        recorder.complete(op, "ok", base_offset=value)


def counted(run):
    """Return the expected counts, computed from the tables."""
    history = open_history(run)
    operations, records = (history.table(name).to_pylist() for name in ("operations", "records"))
    return {
        "operations": Counter((row["f"], row["outcome"]) for row in operations),
        "records": Counter((row["direction"],) for row in records),
    }


def test_last_progress_equals_the_verdict_of_the_run_and_earlier_ones_have_fewer_rows(spark, tmp_path):
    reported: list[LiveProgress] = []
    run = tmp_path / "run"
    with (
        LiveRun(run, lambda: nullcontext(spark), reported.append, 0.3),
        HistoryWriter(run, RunInfo("r", topics={"t": {}})) as writer,
    ):
        recorder = Recorder(writer)
        for number in range(400):
            produce(recorder, [number])
            while number in {99, 299} and (not reported or reported[-1].total("operations") <= number):
                time.sleep(0.05)
        op = recorder.invoke(2, "poll")
        reads = [Read("t", None, 0, number, number, None, 0, 0) for number in range(400) if number != 7]
        recorder.complete(op, "ok", reads=reads)
    assert reported[-1].counts == counted(run)
    assert reported[-1].judgement == judge(run)
    assert "lost-write x1" in str(reported[-1])
    totals = [progress.total("operations") for progress in reported]
    assert totals == sorted(totals)
    assert {100, 300, 401} <= set(totals)
    assert not (run / "live").exists()


KILLED = """
    import sys, time
    from pathlib import Path
    from reports.spark.live import LiveRun
    from reports.spark.session import spark_session
    with LiveRun(Path(sys.argv[1]), lambda: spark_session("local[1]"), lambda each: print(each, flush=True), 0.3):
        time.sleep(100)
"""


def test_killed_live_run_continues_from_its_checkpoint_and_counts_nothing_twice(spark, tmp_path):
    run = tmp_path / "run"
    command = [sys.executable, "-c", textwrap.dedent(KILLED), str(run)]
    with HistoryWriter(run, RunInfo("r", topics={"t": {}})) as writer:
        recorder = Recorder(writer)
        produce(recorder, range(300))
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as child:
            has_counted_300 = any(line.startswith("300 operations") for line in child.stdout)
            produce(recorder, range(300, 600))
            time.sleep(1.0)  # in this time, some of the new rows are copied, and perhaps counted
            os.killpg(child.pid, signal.SIGKILL)
        assert has_counted_300
        produce(recorder, range(600, 700))
    reported: list[LiveProgress] = []
    with LiveRun(run, lambda: nullcontext(spark), reported.append, 0.3):
        pass
    assert reported[-1].counts == counted(run)
    assert reported[-1].judgement == judge(run)


def test_repeated_micro_batch_is_counted_once(spark, tmp_path):
    rows = spark.createDataFrame(pa.table({"f": ["poll"] * 3, "outcome": ["ok"] * 3, "complete_ns": [1, 2, 3]}))
    for batch in (0, 1, 1):
        counts = Counts(tmp_path)
        counts.add("operations", rows, batch)
    assert Counts(tmp_path)._counted["operations"]["counts"] == {("poll", "ok"): 6}


def test_unreadable_file_ends_the_live_run_with_one_line(spark, tmp_path):
    run = SimulatedPartition(random.Random(5)).run(30).write(tmp_path / "run", files=2)
    next(Path(run / "history/records").glob("*.parquet")).write_bytes(b"no")
    with (
        pytest.raises(Exception, match=r"^[^\n]*records[^\n]*cannot be read[^\n]*$"),
        LiveRun(run, lambda: nullcontext(spark), lambda _: None, 0.1),
    ):
        pass
