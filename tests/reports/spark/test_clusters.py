"""Judgements on a standalone cluster that loses an executor, and on Spark Connect: equal to those of `judge`."""

import json
import os
import random
import subprocess
import sys
import threading
import time

import psutil
import pytest

from linearizability.check import judge
from reports.spark.check import judge_with_spark
from reports.spark.errors import EngineUnavailableError
from reports.spark.session import spark_session
from reports.spark.shipping import write_job
from tests.linearizability.anomalies.planted_anomalies import PLANTED_ANOMALIES
from tests.linearizability.anomalies.simulated_partition import SimulatedPartition
from tests.reports.spark.clusters import ENVIRONMENT, HOME, SETTINGS, connect_server, executors_of, standalone

pytestmark = [
    pytest.mark.spark,
    # PySpark emits ResourceWarnings at its shutdown.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.sampled(3),
]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with standalone(tmp_path_factory.mktemp("standalone")) as (url, workers):
        yield url, workers
        executors = [process for worker in workers for process in executors_of(worker)]
    psutil.wait_procs(executors, timeout=10)
    assert not [process for process in executors if process.is_running()], "an executor runs without its worker"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    simulation = SimulatedPartition(random.Random(3)).run(200)
    assert PLANTED_ANOMALIES["lost-write"](simulation, random.Random(3))
    return simulation.write(tmp_path_factory.mktemp("history") / "run", files=8)


def _where_our_code_is(batches):
    """Yield the path from which the executor imports the package `reports`, once for each row."""
    import pyarrow as pa

    import reports

    for batch in batches:
        yield pa.RecordBatch.from_pydict({"path": [reports.__path__[0]] * batch.num_rows})


def _kill_an_executor_at_work(spark, workers, killed):
    """SIGKILL an executor of the first worker as soon as a stage is active, and add its pid to `killed`."""
    tracker = spark.sparkContext.statusTracker()
    deadline = time.monotonic() + 60
    while not killed and time.monotonic() < deadline:
        if tracker.getActiveStageIds():
            executor = executors_of(workers[0])[0]
            executor.kill()
            killed.append(executor.pid)
        time.sleep(0.01)


def test_cluster_judges_with_the_shipped_code_although_an_executor_is_killed(cluster, run):
    url, workers = cluster
    killed = []
    with spark_session(url, SETTINGS) as spark:
        tasks = spark.range(0, 4, 1, 4).mapInArrow(_where_our_code_is, "path string")
        assert all("kafkatrial.zip" in row.path for row in tasks.collect())
        assert all(os.getpgid(process.pid) == worker.pid for worker in workers for process in executors_of(worker))
        killer = threading.Thread(target=_kill_an_executor_at_work, args=(spark, workers, killed))
        killer.start()
        judgement = judge_with_spark(run)
        killer.join()
    assert killed
    assert judgement == judge(run)
    assert "lost-write" in {anomaly.name for anomaly in judgement.anomalies}


def test_submitted_job_prints_the_judgement_and_exits_as_check_does(cluster, run, tmp_path):
    url, _ = cluster
    code, program = write_job(tmp_path / "job")
    options = [word for name, value in SETTINGS.items() for word in ("--conf", f"{name}={value}")]
    command = [HOME / "bin" / "spark-submit", "--master", url, "--py-files", code, *options, program, run]
    environment = {**os.environ, **ENVIRONMENT, "PYSPARK_DRIVER_PYTHON": sys.executable}
    done = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 1, done.stderr[-2000:]
    assert json.loads(done.stdout) == {"run": str(run), **judge(run).as_json()}


def test_spark_connect_judges_with_the_shipped_code(run, tmp_path):
    program = """
        import json, sys
        from pathlib import Path
        from reports.spark.check import judge_with_spark
        from reports.spark.session import spark_session
        with spark_session(sys.argv[2]) as spark:
            assert type(spark).__module__.startswith("pyspark.sql.connect")
            print(json.dumps(judge_with_spark(Path(sys.argv[1])).as_json()))
    """
    with connect_server(tmp_path / "server") as url:
        command = [sys.executable, "-c", "\n".join(line[8:] for line in program.splitlines()), run, url]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout) == judge(run).as_json()


def test_workers_without_the_required_memory_are_reported(cluster, monkeypatch):
    url, _ = cluster
    monkeypatch.setattr("reports.spark.session._EXECUTOR_TIMEOUT_S", 1.0)
    with (
        pytest.raises(EngineUnavailableError, match=f"{url}: no executor in 1 s: a worker needs the memory"),
        spark_session(url, {**SETTINGS, "spark.executor.memory": "900g"}),
    ):
        pass
