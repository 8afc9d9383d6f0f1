"""Rules of the promise table (docs/promises.md): the same lost record, with different faults and settings."""

import pytest

from linearizability.anomalies.faults import Fault
from linearizability.anomalies.settings import Settings
from linearizability.check import judge
from linearizability.judgement import Verdict
from tests.linearizability.anomalies.histories import TOPIC, Tables

FULL, SHRUNK = [1, 2, 3], [1, 3]


def lost(tmp_path, *, faults=(), settings=None, cluster=None, isr=(), acks=-1, read_first=False):
    """Return the verdict of lost-write for an acknowledged record that a later poll skips.

    :param faults: (kind, target, argument, inject_ns, heal_ns) of each fault.
    :param isr: (time in ns, members) of each response with an ISR.
    :param read_first: whether an earlier poll returned the record.
    """
    topic = {"replication.factor": "3", "min.insync.replicas": "2", **(settings or {})}
    tables = Tables(topics={TOPIC: topic}, cluster=cluster or {})
    op = tables.op(1, "produce", 100, 110, acks=acks)
    tables.record(op, 0, "send", TOPIC, 0, 0, 77)
    if read_first:
        early = tables.op(2, "poll", 120, 130, isolation="read_uncommitted")
        tables.record(early, 0, "read", TOPIC, 0, 0, 77)
        tables.add("positions", op_id=early, topic=TOPIC, partition=0, before=0, after=1, cause="read")
    late = tables.op(3, "poll", 900, 910, isolation="read_uncommitted")
    tables.add("positions", op_id=late, topic=TOPIC, partition=0, before=0, after=5, cause="read")
    for number, (kind, target, argument, inject, heal) in enumerate(faults):
        tables.add(
            "faults", fault_id=number, kind=kind, target=target, argument=argument, inject_ns=inject, heal_ns=heal
        )
    for at_ns, members in isr:
        tables.add(
            "states", asked_ns=at_ns, answered_ns=at_ns + 1, source="metadata", topic=TOPIC, partition=0, isr=members
        )
    found = judge(tables.write(tmp_path / "run")).anomalies
    assert {anomaly.name for anomaly in found} <= {"lost-write", "poll-skip"}  # the poll also skips the record
    (lost,) = (anomaly for anomaly in found if anomaly.name == "lost-write")
    assert lost.count == 1
    return lost.verdict


@pytest.mark.parametrize(
    ("kind", "argument"),
    [
        ("kill", None), ("pause", None), ("cut", None), ("delay", "1s"), ("clock", "+1h"), ("disk", "EIO"),
        ("disk", "ENOSPC"), ("disk", "slow fsync"),
    ],
)  # fmt: skip
def test_faults_without_data_loss_permit_no_loss(tmp_path, kind, argument):
    faults = [(kind, str(node), argument, 200 + node, 300) for node in (1, 2, 3)]
    assert lost(tmp_path, faults=faults) is Verdict.VIOLATION


@pytest.mark.timeout(60)  # without limits, some of these texts take minutes or raise an error
@pytest.mark.parametrize(
    ("kind", "target", "argument"),
    [
        ("kill", "1" * 5_000, None),
        ("cut", "-" * 300_000, None),
        ("cut", f"1{' ' * 300_000}x", None),
        ("configuration", TOPIC, "x" * 300_000),
        ("configuration", TOPIC, f"x=1{' ' * 300_000}y"),
        ("configuration", TOPIC, "[" * 300_000),
        ("configuration", TOPIC, f"min.insync.replicas={'9' * 5_000}"),
    ],
    ids=["digits", "dashes", "spaces", "word", "blanks", "brackets", "number"],
)
def test_a_fault_with_a_long_text_is_judged(tmp_path, kind, target, argument):
    assert lost(tmp_path, faults=[(kind, target, argument, 200, 300)]) is Verdict.VIOLATION


@pytest.mark.parametrize(
    ("argument", "values"),
    [
        ("min.insync.replicas=1", ["1"]),
        ("a=b=c, min.insync.replicas = 1 ;b=2", ["1"]),
        ("set min.insync.replicas=1,,b=2", ["1,"]),
        ("min.insync.replicas=1 min.insync.replicas=2", ["2"]),
        ("min.insync.replicas= b=2", ["b=2"]),
        ("other.min.insync.replicas=1", []),
        ('{"min.insync.replicas": 1}', ["1"]),
    ],
)
def test_settings_are_read_from_a_configuration_fault(argument, values):
    fault = Fault("configuration", TOPIC, argument, 200, 300)
    found = Settings({TOPIC: {}}, {}, (fault,)).in_force(TOPIC, "min.insync.replicas")
    assert [setting.value for setting in found] == values


@pytest.mark.parametrize(
    ("kind", "argument"), [("power", None), ("wipe", None), ("disk", "torn write"), ("disk", "bit flip")]
)
def test_acks_all_is_kept_if_fewer_than_min_insync_replicas_lost_content(tmp_path, kind, argument):
    one = [(kind, "1", argument, 200, 210)]
    two = [*one, (kind, "2", argument, 400, 410)]
    assert lost(tmp_path / "one", faults=one) is Verdict.VIOLATION
    assert lost(tmp_path / "two", faults=two) is Verdict.PERMITTED
    assert lost(tmp_path / "full", faults=two, isr=[(300, FULL)]) is Verdict.VIOLATION
    assert lost(tmp_path / "shrunk", faults=two, isr=[(300, SHRUNK)]) is Verdict.PERMITTED
    assert lost(tmp_path / "early", faults=two, isr=[(205, FULL)]) is Verdict.PERMITTED
    assert lost(tmp_path / "same", faults=[*one, (kind, "1", argument, 400, 410)]) is Verdict.VIOLATION
    assert (
        lost(tmp_path / "after", faults=[(kind, "1", argument, 920, 930), (kind, "2", argument, 920, 930)])
        is Verdict.VIOLATION
    )


def test_lowest_min_insync_replicas_of_the_topic_applies(tmp_path):
    wipe = ("wipe", "1", None, 200, 210)
    changed = ("configuration", TOPIC, "min.insync.replicas=1", 50, 60)
    cluster = ("configuration", None, "min.insync.replicas=1", 50, 60)
    assert lost(tmp_path / "topic", faults=[changed, wipe]) is Verdict.PERMITTED
    assert lost(tmp_path / "cluster", faults=[cluster, wipe]) is Verdict.VIOLATION


def test_records_flushed_one_by_one_survive_a_power_cut(tmp_path):
    faults = [("power", "1", None, 200, 210), ("power", "2", None, 200, 210)]
    assert lost(tmp_path / "topic", faults=faults, settings={"flush.messages": "1"}) is Verdict.VIOLATION
    assert lost(tmp_path / "cluster", faults=faults, cluster={"log.flush.interval.messages": "1"}) is Verdict.VIOLATION
    assert lost(tmp_path / "seldom", faults=faults, settings={"flush.messages": "2"}) is Verdict.PERMITTED


def test_read_record_is_promised_whatever_its_acks_while_no_replica_lost_content(tmp_path):
    assert lost(tmp_path / "unread", acks=1) is Verdict.PERMITTED
    assert lost(tmp_path / "read", acks=1, read_first=True) is Verdict.VIOLATION
    faults = [("wipe", "1", None, 200, 210)]
    assert lost(tmp_path / "wiped", acks=1, read_first=True, faults=faults) is Verdict.PERMITTED


def test_unclean_election_permits_loss_once_a_replica_had_a_fault(tmp_path):
    unclean = {"unclean.leader.election.enable": "true"}
    assert lost(tmp_path / "calm", settings=unclean) is Verdict.VIOLATION
    assert lost(tmp_path / "killed", settings=unclean, faults=[("kill", "1", None, 200, 300)]) is Verdict.PERMITTED
    requested = [("election", TOPIC, "unclean", 210, 211), ("kill", "1", None, 200, 300)]
    assert lost(tmp_path / "requested", faults=requested) is Verdict.PERMITTED
    assert lost(tmp_path / "late", settings=unclean, faults=[("kill", "1", None, 920, 930)]) is Verdict.VIOLATION
