"""Three nodes under load, restarted again and again: nothing acknowledged is lost, and all replicas agree.

pytest tests/chaos                                       as in CI: a minute of kills, a rolling restart
pytest tests/chaos -m nightly --target apache-kafka      ten minutes of kills, on Kafka itself
pytest tests/chaos --seed 7                              the kills of a run that failed, again
"""

import secrets

import pytest

from chaos.restarts import Killing, RollingRestart, draw_kills
from chaos.under_load import run_under_load
from fixtures.targets.catalogue import parse_target

IN_SYNC_AGAIN = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "300"}
"""A dead node is missed sooner than in other trials, so that a minute has room for elections."""


@pytest.fixture
def say(capsys):
    def say(line):
        with capsys.disabled():
            print(f"\n{line}", end=" ", flush=True)

    return say


@pytest.fixture
def seed(pytestconfig):
    given = pytestconfig.getoption("kafkatrial_seed")
    return secrets.randbits(32) if given is None else int(given)


@pytest.fixture
def cluster(pytestconfig, tmp_path):
    (name,) = pytestconfig.getoption("kafkatrial_target") or ["reference"]
    with parse_target(name, nodes=3, mesh=False, work_dir=tmp_path / "work", properties=IN_SYNC_AGAIN) as cluster:
        yield cluster


@pytest.mark.parametrize(
    "minutes", [1, pytest.param(10, marks=[pytest.mark.slow, pytest.mark.nightly, pytest.mark.timeout(1500)])]
)
def test_nodes_killed_at_any_moment_lose_nothing(cluster, tmp_path, seed, say, minutes):
    say(f"seed {seed}: {cluster.name}, {minutes} min of kills")
    killing = None

    def inject(target, surroundings, await_in_sync):
        nonlocal killing
        kills = draw_kills(seed, [node.id for node in target.nodes])
        killing = Killing(target, surroundings.recorder, kills, await_in_sync, minutes * 60.0)
        return killing

    outcome = run_under_load(cluster, tmp_path / "run", seed, inject)
    say(
        f"{killing.injected} kills, {outcome.acknowledged:,} records acknowledged, "
        f"at most {outcome.silence_max_s:.1f} s without one"
    )
    assert outcome.shortcomings == ()
    assert killing.injected >= 2 * minutes
    assert outcome.acknowledged > 100 * minutes


def test_a_rolling_restart_is_not_noticed_by_an_idempotent_producer(cluster, tmp_path, seed, say):
    def inject(target, surroundings, await_in_sync):
        return RollingRestart(target, surroundings.recorder, [node.id for node in target.nodes], await_in_sync)

    outcome = run_under_load(cluster, tmp_path / "run", seed, inject)
    say(f"{outcome.acknowledged:,} records acknowledged, at most {outcome.silence_max_s:.1f} s without one")
    assert outcome.shortcomings == ()
    assert outcome.acknowledged > 100
    assert outcome.not_acknowledged == 0
