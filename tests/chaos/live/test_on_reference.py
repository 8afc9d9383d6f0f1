"""Whole rounds on the reference cluster, and on another one with --target: results and coverage.

pytest tests/chaos/live --target apache-kafka        on Kafka itself
"""

import pytest

from chaos.live.session import remove_unsupported_faults, run_on
from chaos.live.strategies import FENCED_SOON
from conformance.trial.trial import ClusterSettings, Topic, Trial
from conformance.trial.workloads import STEADY_MS, Keyed, LeaderReader, OneByOne, Pipelined, Tail
from fixtures.faults import Kill, Pause, PowerCut, Role, ShutDown, Timed
from linearizability.judgement import Verdict
from linearizability.operation import Outcome

pytestmark = pytest.mark.sampled(2)

ALL = -1
"""The value of acks=all."""
LOAD = (Pipelined(), Pipelined(), OneByOne(idempotent=True), OneByOne(), LeaderReader(), Tail())
APART_MS = 7_000
"""Longer than a node takes to shut down, start and catch up."""
ROLLING = tuple(Timed((node - 1) * APART_MS, ShutDown(node), 2_500) for node in (1, 2, 3))


def trial(*schedule, clients=LOAD, **properties):
    topic = Topic(partitions=3, properties=tuple({"min.insync.replicas": "2", **properties}.items()))
    return Trial(
        cluster=ClusterSettings(properties=FENCED_SOON),
        topics=(topic,),
        clients=clients,
        schedule=schedule,
        steady_ms=STEADY_MS,
    )


@pytest.fixture
def run(pytestconfig, tmp_path, capsys):
    (target,) = pytestconfig.getoption("kafkatrial_target") or ["reference"]

    def run(trial_to_run):
        supported = remove_unsupported_faults(target, trial_to_run)
        if supported.unsupported:
            pytest.skip("; ".join(supported.unsupported.values()))
        report = run_on(target, trial_to_run, tmp_path / "run")
        with capsys.disabled():
            print(f"\n{target}: {report.acknowledged:,} records, {dict(report.coverage)}", end=" ", flush=True)
        assert report.violations == ()
        return report

    return run


def test_an_idempotent_producer_survives_a_rolling_restart(run):
    report = run(trial(*ROLLING, clients=(Pipelined(), Tail())))
    assert report.verdict is Verdict.OK
    assert report.produced[ALL, Outcome.OK] > 1_000
    assert report.produced[ALL, Outcome.INFO] == report.produced[ALL, Outcome.FAIL] == 0
    assert report.lost[ALL] == 0
    assert report.coverage["ISR shrunk"] > 0


def test_kills_and_pauses_lose_nothing_and_are_in_the_coverage(run):
    report = run(
        trial(
            Timed(0, Kill(Role.LEADER), 4_000),
            Timed(7_000, Pause(Role.CONTROLLER), 4_000),
            Timed(8_000, Kill(Role.LAST_FOLLOWER), 1_000),
        )
    )
    assert [each.found for each in report.facts.injected] == [True, True, True]
    assert report.lost[ALL] == 0
    assert report.acknowledged > 500
    assert {"leader elected", "ISR shrunk", "ISR grown"} <= set(report.coverage)
    assert report.facts.recovery_s < 40


def test_a_power_cut_of_one_replica_loses_nothing_of_a_compacted_topic(run):
    report = run(
        trial(
            Timed(2_000, PowerCut((Role.LEADER,)), 3_000),
            clients=(Keyed(), OneByOne(), Tail()),
            **{"cleanup.policy": "compact", "segment.ms": "1000"},
        )
    )
    assert report.acknowledged > 100
    assert report.coverage["leader elected"] > 0
