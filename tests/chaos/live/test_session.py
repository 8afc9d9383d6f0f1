"""Error of a round that could not be run, with the processes that it left behind."""

import subprocess
import sys

import pytest

from chaos.live import session
from conformance.trial.trial import Trial
from fixtures.targets.target import TargetError


@pytest.fixture
def leftover():
    """Yield a list of processes, which are killed after the test."""
    processes = []
    yield processes
    for process in processes:
        process.kill()
        process.wait()


class Failing:
    """Cluster that does not start. If `leaves` is a list, it leaves a process behind and adds it to the list."""

    def __init__(self, work_dir, leaves):
        self._work_dir, self._leaves = work_dir, leaves
        self.logs = []

    def __enter__(self):
        if self._leaves is not None:
            command = (sys.executable, "-c", "import time; time.sleep(600)", str(self._work_dir))
            self._leaves.append(subprocess.Popen(command))
        raise TargetError("node 1 did not start")

    def __exit__(self, *exc_info):
        """Do nothing: `__enter__` always fails."""

    def collect_logs(self, directory):
        self.logs.append(directory)


def fail(monkeypatch, tmp_path, leaves):
    """Run a round whose cluster does not start; return the error."""
    clusters = []

    def target(name, trial, work_dir, disk):
        clusters.append(Failing(work_dir, leaves))
        return clusters[-1]

    monkeypatch.setattr(session, "_target", target)
    with pytest.raises(TargetError) as raised:
        session.run_on("reference", Trial(), tmp_path)
    assert clusters[0].logs == [tmp_path / "brokers"]
    return str(raised.value)


def test_a_round_that_cannot_be_run_has_a_reason(monkeypatch, tmp_path):
    assert fail(monkeypatch, tmp_path, None) == "node 1 did not start"


def test_leftover_processes_are_in_the_error(monkeypatch, tmp_path, leftover):
    error = fail(monkeypatch, tmp_path, leftover)
    assert error.startswith("node 1 did not start; and it left behind: process ")
    assert str(leftover[0].pid) in error
