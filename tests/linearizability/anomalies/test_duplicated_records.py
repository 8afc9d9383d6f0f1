"""Records that may be in the log twice: the verdict if the second copy would explain an anomaly."""

import pytest

from linearizability.check import judge
from tests.linearizability.anomalies.histories import TOPIC, Tables


def found(tmp_path, tables):
    return {(anomaly.name, str(anomaly.verdict)) for anomaly in judge(tables.write(tmp_path / "run")).anomalies}


def read(tables, at_ns, rows, *, upto, key=None):
    """Add a poll from offset 0 to `upto` that returns (offset, value) rows."""
    op = tables.op(at_ns, "poll", at_ns, at_ns + 5, isolation="read_uncommitted")
    for seq, (offset, value) in enumerate(rows):
        tables.record(op, seq, "read", TOPIC, 0, offset, value, key=key)
    tables.add("positions", op_id=op, topic=TOPIC, partition=0, before=0, after=upto, cause="read")


def test_a_second_copy_supersedes_records_before_it_in_a_compacted_topic(tmp_path):
    tables = Tables(topics={TOPIC: {"cleanup.policy": "compact"}})
    for process, value, offset in ((1, 10, 2), (2, 11, 1)):
        op = tables.op(process, "produce", 10 * process, 50, acks=-1)
        tables.record(op, 0, "send", TOPIC, 0, offset, value, key="k")
    read(tables, 60, [(0, 10), (1, 11)], upto=2, key="k")
    read(tables, 70, [(2, 10)], upto=3, key="k")
    assert found(tmp_path, tables) == {("duplicate", "permitted")}


@pytest.mark.parametrize(
    ("acks", "faulty", "verdict"),
    [(1, True, "permitted"), (1, False, "violation"), (-1, True, "violation"), (-1, False, "violation")],
)
def test_a_copy_that_only_the_leader_acknowledged_may_be_truncated(tmp_path, acks, faulty, verdict):
    tables = Tables(topics={TOPIC: {"replication.factor": "3", "min.insync.replicas": "2"}})
    op = tables.op(1, "produce", 10, 20, acks=acks, attempts=2)
    tables.record(op, 0, "send", TOPIC, 0, 3, 10)
    if faulty:
        tables.add("faults", fault_id=0, kind="kill", target="1", inject_ns=40, heal_ns=50)
    read(tables, 60, [(0, 10)], upto=4)
    assert ("offset-mismatch", verdict) in found(tmp_path, tables)


def test_a_tombstone_is_distinct_from_a_lost_one_with_its_key_and_offset(tmp_path):
    """The first tombstone was read. An unclean election truncated it, and then the second one got its offset."""
    tables = Tables(topics={TOPIC: {"unclean.leader.election.enable": "true"}})
    lost = tables.op(1, "produce", 10, 15, "info", acks=-1)
    tables.record(lost, 0, "send", TOPIC, 0, None, None, key="b")
    op = tables.op(2, "produce", 20, 25, acks=-1)
    tables.record(op, 0, "send", TOPIC, 0, 1, 10)
    early = tables.op(4, "poll", 30, 35, isolation="read_uncommitted")
    tables.record(early, 0, "read", TOPIC, 0, 0, None, key="b")
    tables.record(early, 1, "read", TOPIC, 0, 1, 10)
    tables.add("faults", fault_id=0, kind="kill", target="1", inject_ns=40, heal_ns=50)
    again = tables.op(3, "produce", 60, 65, acks=-1)
    tables.record(again, 0, "send", TOPIC, 0, 0, None, key="b")
    read(tables, 70, [(0, None)], upto=1, key="b")
    assert {verdict for _, verdict in found(tmp_path, tables)} <= {"permitted"}
