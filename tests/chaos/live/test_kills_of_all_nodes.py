"""Repeated kills of all nodes within a second: the only duplicates are those that idempotence does not prevent."""

import itertools
from pathlib import Path
from random import Random

import pyarrow.parquet as parquet
import pytest

from chaos.live.session import run_on
from chaos.live.strategies import FENCED_SOON
from conformance.trial.trial import ClusterSettings, Topic, Trial
from conformance.trial.workloads import Retrying, Tail
from fixtures.faults import Kill, Timed
from linearizability.operation import Outcome

ALL = -1
"""The value of acks=all."""
ROUNDS = 20
KILLS = 15
"""Kills of all nodes in each round: three hundred in total."""
APART_MS = 4_000
"""Time from one kill of all nodes to the next, not counting the recovery."""
NODES = (1, 2, 3)


def trial(seed: int) -> Trial:
    random = Random(seed)
    kills = [
        Timed(number * APART_MS + random.randrange(1_000), Kill(node), 1_000 + random.randrange(500))
        for number in range(KILLS)
        for node in NODES
    ]
    topic = Topic(partitions=3, properties=(("min.insync.replicas", "2"), ("segment.ms", "1500")))
    return Trial(
        seed=seed,
        cluster=ClusterSettings(properties=FENCED_SOON),
        topics=(topic,),
        clients=(Retrying(pause_ms=20), Retrying(pause_ms=5, records=10), Tail()),
        schedule=tuple(sorted(kills, key=lambda timed: timed.at_ms)),
        steady_ms=2_000,
        waits_for_recovery=True,
    )


def kills_while_written(run_dir: Path) -> int:
    """Return the number of kills of all nodes with an acknowledged batch between the previous kill and this one."""
    faults = parquet.read_table(run_dir / "history" / "faults.parquet").to_pylist()
    calls = parquet.read_table(run_dir / "history" / "operations.parquet").select(["f", "outcome", "complete_ns"])
    acknowledged = [
        each["complete_ns"] for each in calls.to_pylist() if (each["f"], each["outcome"]) == ("produce", "ok")
    ]
    begins = [0, *sorted(each["inject_ns"] for each in faults if each["kind"] == "kill")[:: len(NODES)]]
    return sum(any(before < at < kill for at in acknowledged) for before, kill in itertools.pairwise(begins))


@pytest.mark.nightly
@pytest.mark.timeout(0)
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_a_record_is_written_twice_only_if_a_restarted_leader_lacks_its_producer_state(
    seed, pytestconfig, tmp_path, capsys
):
    (target,) = pytestconfig.getoption("kafkatrial_target") or ["reference"]
    report = run_on(target, trial(seed), tmp_path / "run")
    killed = sum(each.found and not each.rejection for each in report.facts.injected)
    while_written = kills_while_written(tmp_path / "run")
    with capsys.disabled():
        acknowledged = report.produced[ALL, Outcome.OK]
        print(
            f"\n{target}: {killed} kills, {acknowledged:,} records, all nodes killed {while_written} times after a"
            f" batch was acknowledged, permitted {report.permitted}",
            end=" ",
            flush=True,
        )
    assert report.violations == ()
    assert killed == KILLS * len(NODES)
    assert while_written == KILLS
    assert report.lost[ALL] == 0
