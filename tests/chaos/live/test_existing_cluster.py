"""Rounds on an existing cluster: their only faults are those of the links from clients."""

import pytest
from confluent_kafka.cimpl import NewTopic

from chaos.live.session import remove_unsupported_faults, run_on
from conformance.concurrent.trial_context import ScriptNotRunError
from conformance.trial.trial import Topic, Trial
from conformance.trial.workloads import OneByOne, Tail
from fixtures.faults import Cut, HalfOpen, HoldRequests, Isolate, Keeps, Kill, Refuse, Reset, Ring, Role, Slow, Timed
from fixtures.targets.catalogue import parse_target
from fixtures.targets.target import TargetError
from linearizability.history.reader import open_history
from linearizability.judgement import Verdict
from linearizability.operation import Outcome
from tests.admin import admin_of, topics_of

pytestmark = pytest.mark.toxiproxy

ALL = -1
"""The value of acks=all."""
CUT = Timed(300, Cut(Role.CLIENTS, Role.LEADER, keeps=Keeps.NOTHING), 1_000)
HELD = Timed(1_800, HoldRequests(Role.CLIENTS, Role.LEADER, (0,)), 500)
OF_CLIENTS = (CUT.fault, HELD.fault, Slow(1, Role.CLIENTS, 5), Reset(Role.CLIENTS, 2), Refuse(Role.CLIENTS, 3))
OF_NODES = (Cut(1, 2), Isolate(1, from_clients=True), Ring(), HalfOpen(1, 2), Kill(1))


@pytest.fixture(scope="module")
def cluster():
    with parse_target("reference", nodes=3, mesh=False) as cluster:
        yield cluster


def target_name(cluster):
    return f"bootstrap:{cluster.bootstrap_servers.partition(',')[0]}"


def test_faults_of_nodes_are_left_out(cluster):
    schedule = tuple(Timed(100, fault, 100) for fault in (*OF_CLIENTS, *OF_NODES))
    supported = remove_unsupported_faults(target_name(cluster), Trial(schedule=schedule))
    assert [timed.fault for timed in supported.trial.schedule] == list(OF_CLIENTS)
    assert supported.unsupported == dict.fromkeys(OF_NODES, "the cluster was not started by kafkatrial")


def test_a_round_breaks_links_and_leaves_nothing(cluster, tmp_path):
    trial = Trial(clients=(OneByOne(idempotent=True), Tail()), schedule=(CUT, HELD), steady_ms=300, healed_ms=300)
    report = run_on(target_name(cluster), trial, tmp_path / "run")
    assert report.verdict is Verdict.OK
    assert [each.found for each in report.facts.injected] == [True, True]
    assert report.facts.unhealed == ()
    assert report.produced[ALL, Outcome.OK] > 0
    assert report.lost[ALL] == 0
    history = open_history(tmp_path / "run")
    assert history.table("faults")["kind"].to_pylist() == ["cut", "delay"]
    assert history.run.cluster["replica.lag.time.max.ms"] == "3000", "the cluster's own settings decide"
    assert topics_of(cluster) == set()


def test_a_topic_of_the_same_name_is_not_touched(cluster, tmp_path):
    client = admin_of(cluster)
    client.create_topics([NewTopic("a", 1, 1)])["a"].result()
    try:
        with pytest.raises(ScriptNotRunError, match=r"^the cluster has topics with the names of the round: a$"):
            run_on(target_name(cluster), Trial(schedule=(CUT,)), tmp_path / "run")
        assert topics_of(cluster) == {"a"}
    finally:
        client.delete_topics(["a"])["a"].result()


def test_too_few_brokers_for_the_replicas_are_an_error(cluster, tmp_path):
    trial = Trial(topics=(Topic(replication_factor=5),), schedule=(CUT,))
    with pytest.raises(TargetError, match=r"has 3 brokers, and the topics of a round have 5 replicas$"):
        run_on(target_name(cluster), trial, tmp_path / "run")
