"""Unknown offsets and epochs, which are -1: they neither prove nor permit an anomaly. Lower values are invalid."""

import pytest

from linearizability.check import judge
from linearizability.history.errors import HistoryError
from tests.linearizability.anomalies.histories import TOPIC, Tables

PLACE = {"topic": TOPIC, "partition": 0}
LEADER = {"source": "list_offsets", "isolation": "read_uncommitted", "node": 1, "leader": 1, "leader_epoch": 1, **PLACE}


def found(tmp_path, tables):
    return {(anomaly.name, str(anomaly.verdict)) for anomaly in judge(tables.write(tmp_path / "run")).anomalies}


def rejection(tmp_path, tables):
    with pytest.raises(HistoryError) as caught:
        judge(tables.write(tmp_path / "run"))
    return str(caught.value)


def sent(tables, process, at_ns, offset, value, outcome="ok", **columns):
    op = tables.op(process, "produce", at_ns, at_ns + 5, outcome, acks=-1, **columns)
    tables.record(op, 0, "send", TOPIC, 0, offset, value)
    return op


def read(tables, process, at_ns, rows, *, isolation="read_uncommitted", **columns):
    """Add a poll from offset 0 that returns (offset, value) rows; `columns` are those of its position."""
    op = tables.op(process, "poll", at_ns, at_ns + 5, isolation=isolation)
    for seq, (offset, value) in enumerate(rows):
        tables.record(op, seq, "read", TOPIC, 0, offset, value)
    tables.add("positions", op_id=op, **PLACE, before=0, after=rows[-1][0] + 1, cause="read", **columns)


@pytest.mark.parametrize("isolation", ["read_committed", None])
@pytest.mark.parametrize("stable", [None, -1])
def test_an_unknown_last_stable_offset_permits_no_loss(tmp_path, isolation, stable):
    tables = Tables()
    sent(tables, 1, 10, 0, 1)
    sent(tables, 1, 20, 1, 2)
    read(tables, 2, 30, [(1, 2)], isolation=isolation, last_stable_offset=stable)
    assert ("lost-write", "violation") in found(tmp_path, tables)


def test_an_invalid_last_stable_offset_is_rejected(tmp_path):
    tables = Tables()
    sent(tables, 1, 10, 0, 1)
    read(tables, 2, 30, [(0, 1)], isolation="read_committed", last_stable_offset=-5)
    assert (
        rejection(tmp_path, tables)
        == "table positions, row 0 (op_id 1): last_stable_offset is -5; it is never below 0, except -1 for unknown"
    )


@pytest.mark.parametrize("column", ["high_watermark", "last_stable_offset", "log_start_offset", "log_end_offset"])
@pytest.mark.parametrize("source", ["list_offsets", "fetch"])
def test_an_unknown_offset_in_a_response_is_no_anomaly(tmp_path, column, source):
    tables = Tables()
    sent(tables, 1, 10, 0, 1)
    read(tables, 2, 20, [(0, 1)])
    for at_ns, offset in ((30, 5), (40, -1)):
        state = {**LEADER, "source": source, "asked_ns": at_ns, "answered_ns": at_ns + 1, column: offset}
        tables.add("states", **state)
    assert found(tmp_path, tables) == set()


def test_an_unknown_epoch_is_no_regress(tmp_path):
    tables = Tables()
    sent(tables, 1, 10, 0, 1)
    sent(tables, 1, 20, 1, 2)
    read(tables, 2, 30, [(0, 1), (1, 2)])
    tables.rows["records"][2]["leader_epoch"] = 3
    tables.rows["records"][3]["leader_epoch"] = -1
    assert found(tmp_path, tables) == set()


def test_an_invalid_epoch_is_rejected(tmp_path):
    tables = Tables()
    for value in (0, 1):
        sent(tables, 1, 10 * value, value, value, node=1 + value)
        tables.rows["records"][value]["leader_epoch"] = -2
    assert "row 0 (op_id 0, seq 0): leader_epoch is -2; it is never below 0" in rejection(tmp_path, tables)


def owners(generation):
    """Return a history of two members that own and poll one partition in the same generation."""
    tables = Tables()
    sent(tables, 3, 1, 0, 1)
    for process in (1, 2):
        assigned = {"at_ns": 5 + process, "process": process, "member_id": f"m{process}", "event": "assigned"}
        tables.add("assignments", **assigned, group="g", generation=generation, **PLACE)
    read(tables, 1, 20, [(0, 1)])
    read(tables, 2, 30, [(0, 1)])
    return tables


def test_an_unknown_generation_is_not_shared(tmp_path):
    assert found(tmp_path / "none", owners(-1)) == set()
    assert found(tmp_path / "one", owners(1)) == {("double-ownership", "violation")}
    assert "generation is -2; it is never below 0" in rejection(tmp_path / "below", owners(-2))


@pytest.mark.parametrize(
    ("producer_id", "outcome", "opened", "expected"),
    [
        # After a timeout, the client may have continued under another producer id.
        (-1, "info", False, {("producer-order", "permitted")}),
        (-1, "ok", False, {("producer-order", "violation")}),
        (-1, "ok", True, set()),
        (7, "info", False, {("producer-order", "violation")}),
        (7, "info", True, {("producer-order", "violation")}),
    ],
)
def test_producer_order_is_a_violation_unless_the_producer_id_may_have_changed(
    tmp_path, producer_id, outcome, opened, expected
):
    tables = Tables()
    first = sent(tables, 1, 10, 1 if outcome == "ok" else None, 1, outcome, producer_id=producer_id)
    tables.rows["operations"][first]["complete_ns"] = 30
    if opened:
        tables.op(1, "init_producer_id", 11, 12)
    sent(tables, 1, 20, 0, 2, producer_id=producer_id)
    read(tables, 2, 40, [(0, 2), (1, 1)])
    assert found(tmp_path, tables) == expected
