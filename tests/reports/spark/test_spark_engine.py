"""Judgements of Spark: equal to the judgements of the local engine for every kind of history.

Errors are reported in one line, and the driver does not receive the records of a large history.
"""

import contextlib
import os
import random
import shutil
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from linearizability.check import judge
from linearizability.history.reader import HistoryError, open_history
from linearizability.history.schema import SCHEMAS
from reports.spark.check import judge_with_spark
from reports.spark.session import EngineUnavailableError, spark_session
from tests.linearizability.anomalies.arbitrary_histories import arbitrary_history, well_formed
from tests.linearizability.anomalies.dense_transactions import dense_transactions
from tests.linearizability.anomalies.faulty_cluster import PLANTED_CLUSTER_ANOMALIES, FaultyCluster
from tests.linearizability.anomalies.histories import Tables
from tests.linearizability.anomalies.interleavings import PLANTED_CYCLES
from tests.linearizability.anomalies.pipeline import Pipeline
from tests.linearizability.anomalies.planted_anomalies import PLANTED_ANOMALIES
from tests.linearizability.anomalies.planted_group_anomalies import PLANTED_GROUP_ANOMALIES
from tests.linearizability.anomalies.simulated_partition import SimulatedPartition

pytestmark = [
    pytest.mark.spark,
    # PySpark emits ResourceWarnings at its shutdown.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.sampled(3),
]


@pytest.fixture(scope="module")
def spark():
    if shutil.which("java") is None and os.environ.get("CI") != "true":
        pytest.skip("no Java on PATH")
    with spark_session("local[2]") as session:
        yield session


def in_small_parts(monkeypatch):
    """Use many tasks, and many ranges of offsets for each log, as for a large history."""
    monkeypatch.setattr("linearizability.shards.laying_out.PART_ROWS", 40)
    monkeypatch.setattr("linearizability.shards.laying_out._TASK_ROWS", 50)


def union(histories):
    """Merge all histories into the first one.

    The other histories get their own topics, processes and op_ids; their run settings and faults are dropped.
    """
    whole = histories[0]
    for number, other in enumerate(histories[1:], 1):
        shift = len(whole.rows["operations"])
        whole.run["topics"][f"t{number}"] = other.run["topics"]["t"]
        for name, rows in other.rows.items():
            for row in rows if name != "faults" else ():
                for column, new in (("topic", f"t{number}"), ("topic_id", f"{row.get('topic_id')}{number}")):
                    if row.get(column) is not None:
                        row[column] = new
                if row.get("op_id") is not None:
                    row["op_id"] += shift
                if row.get("process") is not None:
                    row["process"] += 1000 * number
                whole.rows[name].append(row)
    _number_by_time(whole.rows)
    return whole


def _number_by_time(rows):
    """Number the operations in the order of their invocations."""
    rows["operations"].sort(key=lambda row: (row["invoke_ns"], row["op_id"]))
    new = {row["op_id"]: number for number, row in enumerate(rows["operations"])}
    for own in rows.values():
        for row in own:
            if row.get("op_id") is not None:
                row["op_id"] = new[row["op_id"]]


@pytest.mark.parametrize("files", [1, 4])
def test_spark_judges_many_small_histories_as_the_local_engine_does(spark, tmp_path, monkeypatch, files):
    histories = [well_formed(arbitrary_history(random.Random(seed))) for seed in range(100 * files, 100 * files + 60)]
    run = union(histories).write(tmp_path / "run", files)
    expected = judge(run)
    assert len(expected.anomalies) > 8
    if files > 1:
        in_small_parts(monkeypatch)
    assert judge_with_spark(run) == expected


def test_broken_history_is_rejected_with_the_message_of_the_local_engine(spark, tmp_path):
    for number, (table, row, column, value) in enumerate(
        [
            ("operations", 9, "op_id", 8),
            ("records", 7, "op_id", 10_000),
            ("records", 7, "direction", "sideways"),
            ("records", 7, "leader_epoch", -2),
        ]
    ):
        tables = SimulatedPartition(random.Random(1)).run(30)
        tables.rows[table][row][column] = value
        run = tables.write(tmp_path / f"run-{number}")
        with pytest.raises(HistoryError) as local:
            judge(run)
        with pytest.raises(HistoryError) as remote:
            judge_with_spark(run)
        assert str(remote.value) == str(local.value)
        assert f"table {table}, row {row} " in str(local.value)


def test_unknown_values_and_invalid_text_are_the_same_for_both_engines(spark, tmp_path):
    tables = Tables()
    for process, offset in ((1, 0), (2, 1)):
        op = tables.op(process, "produce", 10 * process, 10 * process + 5, acks=-1, producer_id=-1)
        tables.record(op, 0, "send", "t", 0, offset, offset, leader_epoch=-1)
    op = tables.op(3, "poll", 30, 35, isolation="read_committed")
    tables.record(op, 0, "read", "t", 0, 1, 1, leader_epoch=-1)
    position = {"before": 0, "after": 2, "cause": "read", "last_stable_offset": -1, "high_watermark": -1}
    tables.add("positions", op_id=op, topic="t", partition=0, **position)
    run = tables.write(tmp_path / "run")
    expected = judge(run)
    assert [anomaly.name for anomaly in expected.anomalies] == ["lost-write"]
    assert judge_with_spark(run) == expected
    path = run / "history" / "records.parquet"
    table = pq.read_table(path)
    topics = pa.chunked_array([pa.array([b"t", b"t", b"\xff"], pa.binary()).view(pa.string())])
    pq.write_table(table.set_column(table.column_names.index("topic"), "topic", topics), path)
    for engine in (judge, judge_with_spark):
        with pytest.raises(HistoryError, match=r"^table records, row 2: topic is not UTF-8$"):
            engine(run)


def test_killed_run_is_judged_as_the_local_engine_does(spark, tmp_path):
    program = f"""
        import signal
        from pathlib import Path
        from linearizability.history.recorder import Read, Recorder, Sent
        from linearizability.history.run import RunInfo
        from linearizability.history.writer import HistoryWriter

        recorder = Recorder(HistoryWriter(Path({str(tmp_path / "run")!r}), RunInfo("r")))
        for number in range(4000):
            op = recorder.invoke(1, "produce", [Sent(number)], topic="t", partition=number % 3, acks=-1)
            recorder.complete(op, "ok", base_offset=number // 3)
            op = recorder.invoke(2, "poll")
            recorder.complete(op, "ok", reads=[Read("t", None, number % 3, number // 3, number, None, 0, 0)])
        recorder.invoke(1, "produce", [Sent(4000)], topic="t", partition=1, acks=-1)
        signal.pause()
    """
    deadline = time.monotonic() + 60
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)]) as child:
        while _operations_on_disk(tmp_path / "run") < 8001 and time.monotonic() < deadline:
            time.sleep(0.05)
        child.kill()
    judgement = judge_with_spark(tmp_path / "run")
    assert judgement == judge(tmp_path / "run")
    assert (judgement.operations, judgement.records) == (8001, 8001)


def _operations_on_disk(run):
    """Return the number of operations on disk, or 0 if the run cannot be read while its files are replaced."""
    try:
        return open_history(run).table("operations").num_rows
    except HistoryError:
        return 0


@pytest.mark.parametrize("name", PLANTED_CLUSTER_ANOMALIES)
def test_spark_judges_a_cluster_that_does_not_converge_as_the_local_engine_does(spark, tmp_path, name):
    rng = random.Random(8)
    tables = FaultyCluster(rng).run(30)
    assert PLANTED_CLUSTER_ANOMALIES[name](tables, rng)
    run = tables.write(tmp_path / "run", files=4)
    expected = judge(run)
    assert name in {anomaly.name for anomaly in expected.anomalies}
    assert judge_with_spark(run) == expected


def test_spark_derives_positions_and_decides_transactions_as_the_local_engine_does(spark, tmp_path):
    histories = [SimulatedPartition(random.Random(seed), positions=False).run(50) for seed in range(20)]
    for number, history in enumerate(histories):
        list(PLANTED_ANOMALIES.values())[number % 8](history, random.Random(number))
    run = union(histories).write(tmp_path / "run")
    expected = judge(run)
    assert len(expected.anomalies) > 4
    assert judge_with_spark(run) == expected


def test_spark_judges_groups_and_transactions_as_the_local_engine_does(spark, tmp_path, monkeypatch):
    tables = Pipeline(random.Random(4)).run(60)
    assert all(plant(tables, random.Random(4)) for plant in PLANTED_GROUP_ANOMALIES.values())
    run = tables.write(tmp_path / "run", files=3)
    in_small_parts(monkeypatch)
    expected = judge(run)
    assert set(PLANTED_GROUP_ANOMALIES) <= {anomaly.name for anomaly in expected.anomalies}
    assert judge_with_spark(run) == expected


def test_spark_finds_cycles_as_the_local_engine_does(spark, tmp_path, monkeypatch):
    histories = [Tables(topics={"t": {}}) for _ in PLANTED_CYCLES]
    for plant, history in zip(PLANTED_CYCLES.values(), histories, strict=True):
        plant(history, None)
    histories += [well_formed(dense_transactions(random.Random(seed))) for seed in range(10)]
    run = union(histories).write(tmp_path / "run", files=3)
    in_small_parts(monkeypatch)
    expected = judge(run)
    assert set(PLANTED_CYCLES) <= {anomaly.name for anomaly in expected.anomalies}
    assert judge_with_spark(run) == expected


def test_empty_history_is_unknown_with_a_reason(spark, tmp_path):
    run = SimulatedPartition(random.Random(1)).tables.write(tmp_path / "run")
    assert judge_with_spark(run) == judge(run)
    assert judge(run).as_json()["verdict"] == "unknown"
    assert judge(run).reasons == ("the history has no operations",)


def test_broken_file_is_reported_in_one_line(spark, tmp_path):
    run = SimulatedPartition(random.Random(1)).run(30).write(tmp_path / "run")
    path = run / "history" / "records.parquet"
    content = bytearray(path.read_bytes())
    content[100:400] = bytes(300)
    path.write_bytes(content)
    with pytest.raises(HistoryError, match=r"records\.parquet") as local:
        judge(run)
    with pytest.raises(HistoryError, match=r"records\.parquet") as remote:
        judge_with_spark(run)
    assert "\n" not in str(local.value)
    assert "\n" not in str(remote.value)


def test_missing_java_is_reported_in_one_line(tmp_path, monkeypatch):
    run = SimulatedPartition(random.Random(1)).run(5).write(tmp_path / "run")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(EngineUnavailableError, match="Java 17"), spark_session("local[1]"):
        pass
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    program = f"""
        from pathlib import Path
        from reports.spark.check import EngineUnavailableError, judge_with_spark
        try:
            judge_with_spark(Path({str(run)!r}))
        except EngineUnavailableError as error:
            print(error)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=60, check=False
    )
    assert "install" in done.stdout
    assert done.stdout.count("\n") == 1


STEP = 10
"""Number of records in one produce of a large run, and in the poll that reads them."""


def _large_run(folder, records, partitions):
    """Write a valid history, in row groups of 5,000 produces. Each produce is read by one poll.

    :param records: number of sent and read records together.
    """
    history = folder / "history"
    history.mkdir(parents=True)
    (folder / "run.json").write_text('{"format": 1, "run_id": "large", "complete": true}')
    with contextlib.ExitStack() as stack:
        writers = {
            name: stack.enter_context(pq.ParquetWriter(history / f"{name}.parquet", SCHEMAS[name]))
            for name in ("operations", "records", "positions")
        }
        for begin in range(0, records // (2 * STEP), 5000):
            batch = np.arange(begin, min(begin + 5000, records // (2 * STEP)))
            for name, columns in _large_tables(batch, partitions).items():
                count = len(columns["op_id"])
                whole = [columns.get(field.name, pa.nulls(count, field.type)) for field in SCHEMAS[name]]
                writers[name].write_table(pa.table(whole, schema=SCHEMAS[name]))
    return folder


def _large_tables(batch, partitions):
    """Return the columns of each table for the produces with the numbers in `batch`, and for their polls.

    Produces are distributed over the partitions round-robin. A produce has an even op_id, and its poll the next op_id.
    """
    partition, base = batch % partitions, batch // partitions * STEP
    op_id = np.arange(2 * batch[0], 2 * batch[-1] + 2)
    is_poll = op_id % 2 == 1
    rows = np.repeat(op_id, STEP)
    offset = np.repeat(base, 2 * STEP) + np.tile(np.arange(STEP), len(op_id))
    return {
        "operations": {
            "op_id": op_id,
            "process": op_id % 2,
            "f": np.where(is_poll, "poll", "produce"),
            "invoke_ns": op_id * 10,
            "complete_ns": op_id * 10 + 5,
            "outcome": ["ok"] * len(op_id),
            "isolation": pa.array(np.where(is_poll, "read_committed", ""), mask=~is_poll),
            "acks": pa.array(np.full(len(op_id), -1), mask=is_poll),
        },
        "records": {
            "op_id": rows,
            "seq": np.tile(np.arange(STEP), len(op_id)),
            "direction": np.where(rows % 2 == 1, "read", "send"),
            "topic": ["t"] * len(rows),
            "partition": np.repeat(partition, 2 * STEP),
            "offset": offset,
            "value": offset,
            "intact": np.ones(len(rows), np.bool_),
        },
        "positions": {
            "op_id": 2 * batch + 1,
            "topic": ["t"] * len(batch),
            "partition": partition,
            "before": base,
            "after": base + STEP,
            "cause": ["read"] * len(batch),
        },
    }


@pytest.mark.slow
def test_two_million_records_with_a_driver_of_512_megabytes(tmp_path):
    if shutil.which("java") is None and os.environ.get("CI") != "true":
        pytest.skip("no Java on PATH")
    run = _large_run(tmp_path / "run", 2_000_000, 16)
    program = f"""
        from pathlib import Path
        from reports.spark.check import judge_with_spark
        from tests.peak_memory import peak_memory_mb
        judgement = judge_with_spark(Path({str(run)!r}), "local[2]")
        print(judgement.verdict, judgement.records, peak_memory_mb())
    """
    environment = {**os.environ, "PYSPARK_SUBMIT_ARGS": "--driver-memory 512m pyspark-shell"}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
        cwd=Path(__file__).parents[3],
    )
    assert done.returncode == 0, done.stderr
    verdict, records, peak_mb = done.stdout.split()
    assert (verdict, records) == ("ok", "2000000")
    assert int(peak_mb) < 256, "the driver received records"
    assert done.stderr == ""
