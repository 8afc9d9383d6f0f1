"""Reads from a leader of an older epoch after healing: its log may still be truncated."""

import pytest

from linearizability.check import judge
from linearizability.judgement import Verdict
from tests.linearizability.anomalies.histories import TOPIC, Tables

OLD, NEW = 0, 1


def judged(tmp_path, *, late_epoch, unclean="true"):
    """Return the verdicts of producer-order on two acks=1 records: 6601, read in the old epoch, and the later 6600."""
    settings = {"replication.factor": "3", "min.insync.replicas": "1", "unclean.leader.election.enable": unclean}
    tables = Tables(topics={TOPIC: settings}, cluster={})
    tables.add("faults", fault_id=0, kind="starve", target="1", argument=None, inject_ns=100, heal_ns=300)
    early = tables.op(1, "produce", 110, 120, acks=1)
    tables.record(early, 0, "send", TOPIC, 0, 6601, 22)
    read(tables, early, 310, 6601, 22, OLD)
    late = tables.op(1, "produce", 400, 410, acks=1)
    tables.record(late, 0, "send", TOPIC, 0, 6600, 43)
    read(tables, late, 500, 6600, 43, late_epoch)
    return {
        anomaly.verdict
        for anomaly in judge(tables.write(tmp_path / "run")).anomalies
        if anomaly.name == "producer-order"
    }


def read(tables, process, at_ns, offset, value, epoch):
    op = tables.op(process + 10, "fetch", at_ns, at_ns + 5, isolation="read_uncommitted")
    tables.record(op, 0, "read", TOPIC, 0, offset, value, leader_epoch=epoch)
    tables.add("positions", op_id=op, topic=TOPIC, partition=0, before=offset, after=offset + 1, cause="read")


@pytest.mark.parametrize(
    ("late_epoch", "unclean", "verdict"),
    [
        (NEW, "true", Verdict.PERMITTED),  # no single log can contain both: the first record was truncated
        (OLD, "true", Verdict.VIOLATION),  # one log may contain both
        (NEW, "false", Verdict.VIOLATION),  # no record that was read may be truncated
    ],
)
def test_records_read_from_a_deposed_leader_may_be_truncated(tmp_path, late_epoch, unclean, verdict):
    assert judged(tmp_path, late_epoch=late_epoch, unclean=unclean) == {verdict}
