"""One partition of a history as a linearizable log."""

import random

import pytest

from linearizability.history.errors import HistoryError
from linearizability.history.reader import open_history
from linearizability.partition_log import partition_columns
from tests.linearizability.anomalies.faulty_cluster import FaultyCluster
from tests.linearizability.anomalies.histories import TOPIC, Tables
from tests.linearizability.anomalies.simulated_partition import SimulatedPartition


def conflict_of(tables, folder, **options):
    return partition_columns(open_history(tables.write(folder)), TOPIC, 0).find_conflict(**options)


def two_in_turn(first, second, watermark):
    """Return a history of two acknowledged produces, one after the other, and a later poll that returns offset 0.

    :param first: the acknowledged offset of the first produce. The value of a record is 100 + its offset.
    :param watermark: the high watermark in the response to the poll.
    """
    tables = Tables(topics={TOPIC: {}})
    for op_id, offset in enumerate((first, second)):
        tables.op(op_id, "produce", 10 * op_id, 10 * op_id + 5, acks=-1)
        tables.record(op_id, 0, "send", TOPIC, 0, offset, 100 + offset)
    op = tables.op(9, "poll", 30, 40)
    tables.record(op, 0, "read", TOPIC, 0, 0, 100)
    columns = {"topic": TOPIC, "partition": 0, "before": 0, "after": 1, "cause": "read"}
    tables.add("positions", op_id=op, high_watermark=watermark, **columns)
    return tables


@pytest.mark.parametrize("seed", range(8))
def test_valid_cluster_under_faults_is_linearizable_until_a_record_is_lost(tmp_path, seed):
    tables = FaultyCluster(random.Random(seed)).run(20)
    assert conflict_of(tables, tmp_path / "valid") is None
    final_poll = tables.rows["operations"][-1]["op_id"]
    lost = next(row for row in tables.rows["records"] if row["op_id"] == final_poll)
    is_acked = any(row["offset"] == lost["offset"] and row["direction"] == "send" for row in tables.rows["records"])
    tables.rows["records"].remove(lost)
    conflict = conflict_of(tables, tmp_path / "lost")
    assert conflict is None or conflict.fetches == (final_poll,)
    assert (conflict is not None) is is_acked


def test_extreme_op_ids_are_accepted(tmp_path):
    tables = two_in_turn(0, 1, 2)
    for name in ("operations", "records", "positions"):
        for row in tables.rows[name]:
            row["op_id"] = (-(2**63), 0, 2**63 - 2)[row["op_id"]]
    assert conflict_of(tables, tmp_path / "run") is None


def test_offsets_against_real_time_are_a_conflict_of_two_operations(tmp_path):
    conflict = conflict_of(two_in_turn(1, 0, 2), tmp_path)
    assert conflict is not None
    assert set(conflict.sends) == {0, 1}
    assert "acknowledged before" in conflict.text


def test_end_of_the_log_is_checked_only_with_the_option(tmp_path):
    tables = two_in_turn(0, 1, 1)
    assert conflict_of(tables, tmp_path / "default") is None
    conflict = conflict_of(tables, tmp_path / "option", linearizable=True)
    assert conflict is not None
    assert (conflict.sends, conflict.fetches) == ((1,), (2,))


@pytest.mark.parametrize("seed", range(30))
def test_valid_transactions_are_linearizable(seed):
    rng = random.Random(seed)
    tables = SimulatedPartition(rng, weak=False, positions=seed % 3 > 0).run(rng.randrange(5, 60))
    tombstones = {row["op_id"] for row in tables.rows["records"] if row["value"] is None}
    history = tables.in_memory("made-up")
    if tombstones:
        with pytest.raises(HistoryError, match="has a tombstone"):
            partition_columns(history, TOPIC, 0)
    else:
        assert partition_columns(history, TOPIC, 0).find_conflict(linearizable=seed % 2 > 0) is None


@pytest.mark.parametrize("end", ["commit_txn", "abort_txn"])
@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted", None])
def test_read_committed_may_skip_only_aborted_records(end, isolation):
    """The poll skips the second record, which belongs to a transaction."""
    tables = two_in_turn(0, 1, 2)
    tables.rows["operations"][1].update(txn_id="x", txn_seq=7)
    tables.rows["operations"][2]["isolation"] = isolation
    tables.rows["positions"][0]["after"] = 2
    tables.op(1, end, 16, 20, txn_id="x", txn_seq=7)
    conflict = partition_columns(tables.in_memory("made-up"), TOPIC, 0).find_conflict()
    assert (conflict is None) is (end == "abort_txn" and isolation != "read_uncommitted")
    if conflict is not None:
        assert conflict.text == "fetch 2 passed offset 1 without returning the record of send 1"


def test_record_read_at_an_unknown_offset_was_not_skipped():
    tables = two_in_turn(0, 1, 2)
    tables.rows["positions"][0]["after"] = 2
    tables.record(2, 1, "read", TOPIC, 0, None, 101)
    assert partition_columns(tables.in_memory("made-up"), TOPIC, 0).find_conflict() is None
    tables.rows["records"].pop()
    assert partition_columns(tables.in_memory("made-up"), TOPIC, 0).find_conflict() is not None


@pytest.mark.parametrize("row", [1, 2])
def test_operation_that_never_returned_may_take_effect_at_any_later_time(row):
    tables = two_in_turn(0, 1, 2)
    tables.rows["operations"][row]["complete_ns"] = None
    assert partition_columns(tables.in_memory("made-up"), TOPIC, 0).find_conflict(linearizable=True) is None
    wrong_order = two_in_turn(1, 0, 2)
    assert partition_columns(wrong_order.in_memory("made-up"), TOPIC, 0).find_conflict() is not None
    wrong_order.rows["operations"][0]["complete_ns"] = None
    assert partition_columns(wrong_order.in_memory("made-up"), TOPIC, 0).find_conflict() is None


def test_tombstones_and_recreated_topics_are_rejected(tmp_path):
    tables = two_in_turn(0, 1, 1)
    tables.rows["records"][0]["value"] = None
    with pytest.raises(HistoryError, match="operation 0 has a tombstone"):
        conflict_of(tables, tmp_path / "tombstone")
    tables = two_in_turn(0, 1, 1)
    for row, topic_id in zip(tables.rows["records"], "ABB", strict=True):
        row["topic_id"] = topic_id
    with pytest.raises(HistoryError, match="created more than once"):
        conflict_of(tables, tmp_path / "twice")


@pytest.mark.parametrize(
    ("deletion", "is_rejected"),
    [
        (("delete_topic", 6, 8, "ok", TOPIC), True),
        (("delete_topic", 6, 8, "info", None), True),
        (("delete_topics", 6, 8, "ok", TOPIC), True),
        (("delete_topic", 6, 8, "fail", TOPIC), False),
        (("delete_topic", 6, 8, "ok", "another"), False),
        (("delete_topic", 50, 60, "ok", TOPIC), False),
    ],
)
def test_topic_that_may_have_been_recreated_is_rejected_without_a_topic_id(deletion, is_rejected):
    """Two records have offset 0, which is valid for a topic that was deleted and created again."""
    f, begin_ns, end_ns, outcome, topic = deletion
    tables = two_in_turn(0, 0, 1)
    tables.rows["positions"].clear()
    tables.rows["records"].pop()
    tables.rows["records"][1]["value"] = 101
    op_id = tables.op(5, f, begin_ns, end_ns, outcome, topic=topic)
    if is_rejected:
        with pytest.raises(HistoryError, match=f"operation {op_id} may have deleted topic {TOPIC}, and no topic id"):
            partition_columns(tables.in_memory("made-up"), TOPIC, 0)
        tables.rows["records"][0]["topic_id"] = "A"
    assert partition_columns(tables.in_memory("made-up"), TOPIC, 0).find_conflict() is not None


@pytest.mark.parametrize("f", ["delete_records", "delete_topics"])
@pytest.mark.parametrize(("outcome", "is_lost"), [("ok", False), ("info", False), ("fail", True)])
def test_only_a_deletion_that_may_have_taken_effect_explains_a_skipped_record(f, outcome, is_lost):
    tables = two_in_turn(0, 1, 2)
    for row in tables.rows["records"]:
        row["topic_id"] = "A"
    tables.rows["records"].pop()  # now the poll moves from offset 0 to 1 without returning a record
    tables.op(5, f, 16, 18, outcome, topic=TOPIC)
    conflict = partition_columns(tables.in_memory("made-up"), TOPIC, 0).find_conflict()
    assert (conflict is not None) is is_lost


def test_highest_offset_is_rejected_and_extreme_op_ids_are_judged():
    tables = two_in_turn(0, 1, 1)
    tables.rows["records"][1]["offset"] = 2**63 - 1
    with pytest.raises(HistoryError, match="operation 1 has the offset 9223372036854775807"):
        partition_columns(tables.in_memory("made-up"), TOPIC, 0)
    tables = two_in_turn(1, 0, 2)
    for table in tables.rows.values():
        for row in table:
            row["op_id"] = {0: -(2**63), 1: 5, 2: 2**63 - 2}[row["op_id"]]
    assert partition_columns(tables.in_memory("made-up"), TOPIC, 0).find_conflict() is not None
