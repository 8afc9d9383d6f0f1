"""Rounds generated from seeds, the properties of their topics during the whole round, and their shrinking."""

from dataclasses import replace

import pytest

from chaos.live.fault_kinds import KINDS, LASTING
from chaos.live.shrinking import smallest
from chaos.live.strategies import round_of
from chaos.simulation.fault_strategies import FAULT_KINDS
from chaos.simulation.run import run
from conformance.trial.source import imports_of
from conformance.trial.trial import ClusterSettings, Topic, Trial
from conformance.trial.workloads import Keyed, LeaderReader, OneByOne, Pipelined, Tail
from fixtures.clients.steps import AlterTopicConfig, CreateTopic, DeleteRecords, RequestClient
from fixtures.faults import Configure, Isolate, Kill, Pause, RestartWith, Role, Timed
from fixtures.targets.trial_properties import trial_properties
from linearizability.anomalies import faults as rows
from linearizability.anomalies.healing import Schedule
from linearizability.anomalies.settings import Settings

pytestmark = pytest.mark.sampled(2)


def test_a_seed_generates_one_round_which_prints_as_python():
    for seed in range(20):
        generated = round_of(seed)
        assert generated == round_of(seed)
        assert generated.seed == seed
        names: dict[str, object] = {}
        exec(imports_of(generated), names)
        assert eval(repr(generated), names) == generated
    assert len({round_of(seed) for seed in range(20)}) > 15


def test_a_round_under_load_is_the_same_round_with_larger_batches():
    generated = Trial(clients=(OneByOne(records=3), Pipelined(records=10), Keyed(), Tail()))
    expected = (OneByOne(records=12), Pipelined(records=40), Keyed(), Tail())
    assert generated.under_load(4) == replace(generated, clients=expected)
    assert generated.under_load(1) == generated


def test_every_kind_of_fault_is_generated():
    generated = {type(timed.fault) for seed in range(600) for timed in round_of(seed).schedule}
    each_kind = {type(timed.fault) for kind in KINDS for timed in round_of(0, (kind,)).schedule}
    assert each_kind <= generated
    assert set(FAULT_KINDS) < set(KINDS)
    assert {type(timed.fault) for timed in round_of(3, ("kill",)).schedule} == {Kill}


def test_a_long_fault_is_alone_and_exceeds_the_recovery_time():
    for seed in range(20):
        lasting = round_of(seed, (LASTING,))
        (timed,) = lasting.schedule
        properties = trial_properties(lasting.cluster.nodes) | dict(lasting.cluster.properties)
        allowed_ms = Schedule(Settings({}, properties, ())).allowed_ns // 10**6
        assert timed.for_ms > allowed_ms + 10_000
        assert Pipelined() in lasting.workloads


@pytest.mark.parametrize("kind", sorted(set(KINDS) - set(FAULT_KINDS)))
def test_a_schedule_with_faults_of_real_clusters_runs_in_the_simulation(kind):
    schedule = tuple(timed for seed in range(3) for timed in round_of(seed, (kind,)).schedule)
    assert run(Trial(schedule=schedule)).violation is None


@pytest.mark.parametrize(
    ("kind", "loses"),
    [
        *((kind, False) for kind in ("kill", "pause", "disk-error", "clock", "starve", "memory", "refuse", "slice")),
        *((kind, True) for kind in ("wipe", "bit-flip", "cut-file", "stale-copy")),
    ],
)
def test_the_history_records_whether_a_fault_loses_content(kind, loses):
    for timed in round_of(1, (kind,)).schedule:
        assert rows.Fault(timed.fault.row[0], "1", timed.fault.row[1], 0, 1).loses_content is loses


EACH = (("flush.messages", "1"),)


@pytest.mark.parametrize(
    ("trial", "flushed"),
    [
        (Trial(), set()),
        (Trial(topics=(Topic(properties=EACH),)), {"a"}),
        (Trial(topics=(Topic(properties=EACH), Topic("b"))), {"a"}),
        (Trial(topics=(Topic(), Topic("b", properties=EACH))), {"b"}),
        (Trial(topics=(Topic(properties=(("flush.messages", "2"),)),)), set()),
        (Trial(cluster=ClusterSettings(properties=(("log.flush.interval.messages", "1"),))), {"a"}),
        (Trial(topics=(Topic(properties=EACH),), schedule=(Timed(0, Configure("flush.messages", "1"), 9),)), set()),
        (
            Trial(
                topics=(Topic(properties=EACH),), clients=(RequestClient((AlterTopicConfig("flush.messages", "9"),)),)
            ),
            set(),
        ),
        (Trial(clients=(RequestClient((CreateTopic("new", properties=EACH),)),)), {"new"}),
    ],
)
def test_a_topic_counts_as_flushed_if_it_flushes_each_message_during_the_whole_trial(trial, flushed):
    assert trial.flushed_topics == flushed


STAMPED = (("message.timestamp.type", "LogAppendTime"),)


@pytest.mark.parametrize(
    ("trial", "replaces"),
    [
        (Trial(topics=(Topic(name="LogAppendTime"),)), False),
        (Trial(topics=(Topic(properties=(("max.message.bytes", "LogAppendTime"),)),)), False),
        (Trial(topics=(Topic(), Topic("b", properties=STAMPED))), True),
        (Trial(schedule=(Timed(0, Configure(*STAMPED[0]), 9),)), True),
        (Trial(schedule=(Timed(0, RestartWith(1, "log.message.timestamp.type", "LogAppendTime"), 9),)), True),
        (Trial(cluster=ClusterSettings(properties=(("log.message.timestamp.type", "LogAppendTime"),))), True),
        (Trial(clients=(RequestClient((AlterTopicConfig(*STAMPED[0]),)),)), True),
        (Trial(clients=(RequestClient((CreateTopic("new", properties=STAMPED),)),)), True),
    ],
)
def test_timestamps_may_be_replaced_if_a_topic_has_log_append_time_at_any_time(trial, replaces):
    assert trial.may_replace_timestamps is replaces


def test_a_topic_counts_as_compacted_if_its_policy_is_compact_at_any_time():
    compacted = (("cleanup.policy", "compact,delete"),)
    trial = Trial(topics=(Topic(properties=compacted), Topic("b"), Topic("c")))
    trial = replace(trial, clients=(RequestClient((AlterTopicConfig("cleanup.policy", "compact", "b"),)),))
    assert trial.compacted_topics == {"a", "b"}


def test_records_of_a_topic_may_be_deleted_by_compaction_by_retention_or_on_request():
    properties = {"a": (), "b": (("retention.bytes", "500"),), "c": (("retention.ms", "-1"),), "d": (), "e": ()}
    steps = (DeleteRecords(topic="d"), AlterTopicConfig("cleanup.policy", "compact", "e"))
    topics = tuple(Topic(name, properties=own) for name, own in properties.items())
    assert Trial(topics=topics, clients=(RequestClient(steps),)).shortened_topics == {"b", "d", "e"}


FAULTS = (
    Timed(2_000, Pause(Role.LEADER), 400),
    Timed(3_000, Kill(Role.LEADER), 8_000),
    Timed(3_500, Isolate(Role.FOLLOWER), 1_000),
    Timed(9_000, Kill(Role.FOLLOWER), 300),
)
LARGE = Trial(topics=(Topic(partitions=3),), clients=(Tail(), OneByOne(acks=1), LeaderReader()), schedule=FAULTS)


def kills_a_leader_of_acks_1(candidate):
    kills = [timed for timed in candidate.schedule if timed.fault == Kill(Role.LEADER)]
    return OneByOne(acks=1) in candidate.workloads and any(timed.for_ms >= 2_000 for timed in kills)


def test_shrinking_keeps_the_clients_and_faults_that_the_violation_needs():
    found = smallest(LARGE, kills_a_leader_of_acks_1, lambda runs: runs < 60)
    assert found.trial == Trial(
        clients=(OneByOne(acks=1),), schedule=(Timed(0, Kill(Role.LEADER), 2_000),), topics=(Topic(),)
    )
    assert 4 < found.runs < 30


def test_shrinking_stops_when_its_time_is_over():
    assert smallest(LARGE, kills_a_leader_of_acks_1, lambda runs: runs < 1).runs == 1
    assert smallest(LARGE, lambda _: False, lambda _: True).trial == LARGE
