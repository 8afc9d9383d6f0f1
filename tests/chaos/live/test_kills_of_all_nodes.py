"""All nodes killed within a second, again and again: no duplicate but those that idempotence does not cover."""

from random import Random

import pytest

from chaos.faults import Kill, Timed
from chaos.live.report import Kept
from chaos.live.session import run_on
from chaos.live.strategies import SOON_MISSED
from chaos.trial import Cluster, Retrying, Tail, Topic, Trial

ALL = -1
ROUNDS = 20
KILLS = 15
"""Of all nodes, in each round: three hundred in all."""
APART_MS = {"reference": 6_000, "apache-kafka": 20_000}
"""Long enough to start, elect and write something."""
NODES = (1, 2, 3)


def trial(seed: int, apart_ms: int) -> Trial:
    random = Random(seed)
    kills = [
        Timed(number * apart_ms + random.randrange(1_000), Kill(node), 1_000 + random.randrange(500))
        for number in range(KILLS)
        for node in NODES
    ]
    topic = Topic(partitions=3, properties=(("min.insync.replicas", "2"), ("segment.ms", "1500")))
    return Trial(
        seed=seed,
        cluster=Cluster(properties=SOON_MISSED),
        topics=(topic,),
        clients=(Retrying(pause_ms=20), Retrying(pause_ms=5, records=10), Tail()),
        schedule=tuple(sorted(kills, key=lambda timed: timed.at_ms)),
        steady_ms=2_000,
    )


@pytest.mark.nightly
@pytest.mark.timeout(0)
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_no_record_is_written_twice_but_where_a_restarted_leader_forgot_the_retry(seed, pytestconfig, tmp_path, capsys):
    (target,) = pytestconfig.getoption("kafkatrial_target") or ["reference"]
    wanted = trial(seed, APART_MS[target.split(":", maxsplit=1)[0]])
    report = run_on(target, wanted, tmp_path / "run")
    assert report.violations == ()
    killed = sum(each.found and not each.refused for each in report.worked.injected)
    with capsys.disabled():
        acknowledged = report.produced[ALL, Kept.ACKNOWLEDGED]
        print(
            f"\n{target}: {killed} kills, {acknowledged:,} records, permitted {report.permitted}", end=" ", flush=True
        )
    assert killed == KILLS * len(NODES)
    assert report.lost[ALL] == 0
    assert report.produced[ALL, Kept.ACKNOWLEDGED] > 0
