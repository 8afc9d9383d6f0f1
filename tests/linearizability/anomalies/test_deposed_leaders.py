"""Leaders of an older epoch: their logs may be truncated, and they may return end offsets below newer records."""

import pytest

from linearizability.check import judge
from linearizability.judgement import Verdict
from tests.linearizability.anomalies.histories import TOPIC, Tables

OLD, NEW = 0, 1


def judged(tmp_path, *, late_epoch, unclean="true"):
    """Return the verdicts of producer-order for two records with acks=1, the first at offset 6601, the second at 6600.

    :param late_epoch: the epoch of the second record when it was read. That of the first is OLD.
    """
    properties = {"replication.factor": "3", "min.insync.replicas": "1", "unclean.leader.election.enable": unclean}
    tables = Tables(topics={TOPIC: properties}, cluster={})
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


SAFE = {"replication.factor": "3", "min.insync.replicas": "2"}


def ends_after(tmp_path, *, acknowledged_by, end_from, end_epoch):
    """Return the violations that an end offset of 0 shows after a record at offset 0 was acknowledged and read.

    The batch of the record has the old epoch. Its producer may have sent it again to the leader of the new epoch.

    :param acknowledged_by: the node that acknowledged the batch, and from which it was read; None if it is unknown.
    :param end_from: the node that returned the end offset.
    """
    tables = Tables(topics={TOPIC: SAFE}, cluster={})
    sent = tables.op(1, "produce", 100, 200, acks=-1, node=acknowledged_by)
    tables.record(sent, 0, "send", TOPIC, 0, 0, 7)
    read_by = tables.op(2, "fetch", 210, 220, isolation="read_uncommitted", node=acknowledged_by)
    tables.record(read_by, 0, "read", TOPIC, 0, 0, 7, leader_epoch=OLD)
    columns = {"topic": TOPIC, "partition": 0, "source": "list_offsets", "isolation": "read_uncommitted"}
    tables.add("states", asked_ns=150, answered_ns=160, node=2, leader_epoch=NEW, high_watermark=1, **columns)
    tables.add(
        "states", asked_ns=300, answered_ns=310, node=end_from, leader_epoch=end_epoch, high_watermark=0, **columns
    )
    names = ("stale-end-offset", "read-above-watermark")
    found = judge(tables.write(tmp_path / "run")).anomalies
    return {each.name for each in found if each.name in names and each.verdict is Verdict.VIOLATION}


@pytest.mark.parametrize(
    ("acknowledged_by", "end_from", "end_epoch", "is_stale"),
    [
        (None, 1, OLD, False),  # the leader of the new epoch may have acknowledged the batch
        (2, 1, OLD, False),
        (2, 2, OLD, True),  # the node that acknowledged the batch
        (None, 1, NEW, True),
        (2, 1, NEW, True),
    ],
)
def test_only_the_node_that_acknowledged_or_a_leader_of_the_newest_epoch_must_include_a_record(
    tmp_path, acknowledged_by, end_from, end_epoch, is_stale
):
    found = ends_after(tmp_path, acknowledged_by=acknowledged_by, end_from=end_from, end_epoch=end_epoch)
    assert found == ({"stale-end-offset", "read-above-watermark"} if is_stale else set())
