"""The simulated cluster: a seed determines the run, and every message is valid for its schema."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from reference_broker.protocol import messages
from reference_broker.simulation.cluster import SimulatedCluster
from reference_broker.simulation.links import Condition, Cut, Link
from reference_broker.simulation.wire_check import WireCheck, WireError

ROOT = Path(__file__).parents[3]
PROGRAM = """
from tests.reference_broker.simulation.test_cluster import cluster_after_faults
print(cluster_after_faults(seed={seed}).trace.digest)
"""


def cluster_after_faults(seed: int) -> SimulatedCluster:
    """Return a cluster after a minute of faults."""
    properties = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}
    cluster = SimulatedCluster(3, seed=seed, properties=properties, jitter_ms=2)
    assert cluster.await_ready()
    run = cluster.scheduler.run
    cluster.kill(1)
    run(5_000)
    cluster.start(1)
    for other in ("1", "3"):
        cluster.network.set(Link("2", other), Condition(cut=Cut.LOSE))
    run(7_000)
    cluster.network.heal_all()
    cluster.machines[3].pause()
    run(4_000)
    cluster.machines[3].resume()
    run(2_000)
    cluster.cut_power(2)
    cluster.machines[1].drift_clock(100_000)
    run(3_000)
    cluster.start(2)
    cluster.network.reset("1", "3")
    cluster.shut_down(3)
    run(10_000)
    cluster.start(3)
    assert cluster.await_ready()
    return cluster


def digest_in_process(seed: int, hash_seed: str) -> str:
    """Return the trace digest of `cluster_after_faults` in another process with a hash seed."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(seed=seed)],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return done.stdout.strip()


def test_seed_gives_the_same_run_in_any_process():
    digests = {digest_in_process(7, hash_seed) for hash_seed in ("1", "2")}
    assert digests == {cluster_after_faults(7).trace.digest}


def test_another_seed_gives_another_run():
    assert cluster_after_faults(1).trace.digest != cluster_after_faults(2).trace.digest


def test_every_message_is_valid_for_its_schema():
    cluster = SimulatedCluster(3)
    check = WireCheck(cluster.network)
    assert cluster.await_ready()
    cluster.kill(1)
    cluster.scheduler.run(10_000)
    cluster.start(1)
    assert cluster.await_ready()
    assert check.checked > 200


def test_invalid_message_is_detected(monkeypatch):
    write = messages.MessageCodec.write
    monkeypatch.setattr(
        messages.MessageCodec, "write", lambda codec, number, response: write(codec, number, response) + b"\x00"
    )
    cluster = SimulatedCluster(3)
    WireCheck(cluster.network)
    with pytest.raises(WireError):
        cluster.await_ready()
