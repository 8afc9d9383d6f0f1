"""Spark servers of the pip package on loopback: standalone clusters, and servers of Spark Connect.

A guard process ends each server when this process ends.
"""

import contextlib
import re
import sys
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pyspark

from fixtures.targets.processes import GuardedProcess
from reports.spark.archive import archive_options

HOME = Path(pyspark.__path__[0])
JVM = " ".join(["-XX:TieredStopAtLevel=1", *archive_options()])
ENVIRONMENT = {
    "SPARK_HOME": str(HOME),
    "SPARK_LOCAL_IP": "127.0.0.1",
    "SPARK_DAEMON_MEMORY": "256m",
    "SPARK_DAEMON_JAVA_OPTS": JVM,
    "SPARK_SUBMIT_OPTS": JVM,
    "PYSPARK_PYTHON": sys.executable,
    # Executors import only the code that is shipped to them.
    "PYTHONPATH": "",
}
SETTINGS = {
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": JVM,
    "spark.cores.max": "2",
    "spark.executor.cores": "1",
}
START_TIMEOUT_S = 60


@contextmanager
def standalone(folder, worker_count=2):
    """Yield the URL of a master, and the processes of its workers. Each worker has one core."""
    with ExitStack() as stack:
        master = _started(stack, folder, "master", "org.apache.spark.deploy.master.Master", *_listening())
        url = _logged(master, r"Starting Spark master at (spark://\S+)")
        workers = []
        for number in range(worker_count):
            options = ["--cores", "1", "--memory", "640m", "--work-dir", str(folder / f"work-{number}")]
            name = "org.apache.spark.deploy.worker.Worker"
            workers.append(_started(stack, folder, f"worker-{number}", name, *_listening(), *options, url))
        for worker in workers:
            _logged(worker, r"Successfully registered with master")
        yield url, workers


@contextmanager
def connect_server(folder):
    """Yield the URL of a Spark Connect server on `local[2]`."""
    folder.mkdir(exist_ok=True)
    settings = {
        "spark.connect.grpc.binding.port": "0",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.artifact.isolation.enabled": "true",
    }
    options = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    name = "org.apache.spark.sql.connect.service.SparkConnectServer"
    with ExitStack() as stack:
        command = [
            str(HOME / "bin" / "spark-submit"),
            "--class",
            name,
            "--master",
            "local[2]",
            *options,
            "spark-internal",
        ]
        server = GuardedProcess(
            command,
            folder / "connect.log",
            {**ENVIRONMENT, "SPARK_DAEMON_MEMORY": "1g"},
        )
        stack.callback(server.kill)
        port = _logged(server, r"Spark Connect server started at: \S*?:(\d+)")
        yield f"sc://127.0.0.1:{port}"


def executors_of(worker):
    """Return the JVMs that a worker has started for applications."""
    found = []
    for child in psutil.Process(worker.pid).children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if "CoarseGrainedExecutorBackend" in " ".join(child.cmdline()):
                found.append(child)
    return found


def _listening():
    return ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]


def _started(stack, folder, name, java_class, *arguments):
    folder.mkdir(exist_ok=True)
    command = [str(HOME / "bin" / "spark-class"), java_class, *arguments]
    process = GuardedProcess(command, folder / f"{name}.log", ENVIRONMENT)
    stack.callback(process.kill)
    return process


def _logged(process, pattern):
    """Wait until the log of a process matches a pattern. Return the text of its group, or the match if it has none."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline and process.running:
        found = re.search(pattern, process.log.read_text(errors="replace"))
        if found is not None:
            return found[1] if found.groups() else found[0]
        time.sleep(0.1)
    raise AssertionError(f"{pattern} is not in {process.log}: {process.log.read_text(errors='replace')[-2000:]}")
