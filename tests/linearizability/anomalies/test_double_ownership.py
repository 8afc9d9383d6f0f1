"""The anomaly double-ownership: it is found from assignment events alone, and never in a valid rebalance."""

import pytest

from linearizability.check import judge
from linearizability.history.reader import open_history
from linearizability.shards.engine import judge_in_shards
from linearizability.shards.running import run_here
from tests.linearizability.anomalies.histories import TOPIC, Tables

MS = 1_000_000
ENGINES = [judge, lambda path: judge_in_shards(open_history(path), run_here)]


def add_event(tables, process, event, at_ms, generation=4, partition=0, **columns):
    columns = {"group": "g", "member_id": f"m{process}", "generation": generation, **columns}
    tables.add(
        "assignments", process=process, event=event, at_ns=at_ms * MS, topic=TOPIC, partition=partition, **columns
    )


def verdicts(tables, path, engine):
    """Return the verdicts of double-ownership, after adding operations of other processes."""
    op = tables.op(90, "produce", 500 * MS, 501 * MS)
    tables.record(op, 0, "send", TOPIC, 0, 0, 7)
    op = tables.op(91, "poll", 502 * MS, 503 * MS)
    tables.record(op, 0, "read", TOPIC, 0, 0, 7)
    judgement = engine(tables.write(path))
    assert {anomaly.name for anomaly in judgement.anomalies} <= {"double-ownership"}
    return [str(anomaly.verdict) for anomaly in judgement.anomalies]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "events",
    [
        [(1, "assigned", 100), (2, "assigned", 110), (1, "revoked", 120), (2, "revoked", 130)],
        [(1, "assigned", 100), (2, "assigned", 100), (1, "revoked", 110), (2, "lost", 110)],
        [(1, "assigned", 100), (2, "assigned", 110), (2, "revoked", 115), (1, "lost", 120)],
        # The second owner has no event after its assignment.
        [(1, "assigned", 100), (2, "assigned", 110), (1, "revoked", 120)],
    ],
)
def test_two_owners_without_operations_are_found(tmp_path, engine, events):
    tables = Tables(topics={TOPIC: {}})
    for one in events:
        add_event(tables, *one)
    assert verdicts(tables, tmp_path / "run", engine) == ["violation"]


@pytest.mark.parametrize("engine", ENGINES)
def test_an_event_of_another_partition_shows_that_the_member_is_alive(tmp_path, engine):
    tables = Tables(topics={TOPIC: {}})
    add_event(tables, 1, "assigned", 100)
    add_event(tables, 2, "assigned", 110)
    add_event(tables, 1, "assigned", 120, partition=1)
    assert verdicts(tables, tmp_path / "run", engine) == ["violation"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "events",
    [
        # Eager: everything is revoked before anything is assigned in the next generation.
        [(1, "assigned", 100), (1, "revoked", 110), (1, "assigned", 120, 5, 1), (2, "assigned", 120, 5)],
        # Cooperative: the partition is assigned one generation after its revocation; the other partition is kept.
        [(1, "assigned", 100), (1, "assigned", 100, 4, 1), (1, "revoked", 110, 5), (2, "assigned", 120, 6)],
        # The session timed out: the member loses the partition after another member owns it in the next generation.
        [(1, "assigned", 100), (2, "assigned", 200, 5), (1, "lost", 300)],
        # Revoked from one member and assigned to another at the same time, in one generation.
        [(1, "assigned", 100), (1, "revoked", 110), (2, "assigned", 110), (2, "revoked", 120)],
        # The first owner may have left: it has no later event. At equal times, either owner may be the first.
        [(1, "assigned", 100), (2, "assigned", 110), (2, "revoked", 120)],
        [(1, "assigned", 100), (2, "assigned", 100), (1, "revoked", 110)],
        # Assigned and revoked at the same time.
        [(1, "assigned", 100), (2, "assigned", 110), (2, "revoked", 110), (1, "revoked", 120)],
    ],
)
def test_valid_rebalances_have_no_anomaly(tmp_path, engine, events):
    tables = Tables(topics={TOPIC: {}})
    for one in events:
        add_event(tables, *one)
    assert verdicts(tables, tmp_path / "run", engine) == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("f", "error"), [("close", None), ("poll", "FENCED_MEMBER_EPOCH")])
def test_a_member_that_left_or_was_fenced_owns_nothing(tmp_path, engine, f, error):
    """The client of that member runs the callback for the lost partition only after the next assignment."""
    tables = Tables(topics={TOPIC: {}})
    add_event(tables, 1, "assigned", 100)
    tables.op(1, f, 105 * MS, 106 * MS, "fail" if error else "ok", group="g", error=error)
    add_event(tables, 2, "assigned", 110)
    add_event(tables, 1, "lost", 120)
    add_event(tables, 2, "revoked", 130)
    assert verdicts(tables, tmp_path / "run", engine) == []


@pytest.mark.parametrize("engine", ENGINES)
def test_a_static_member_is_replaced_without_a_revocation(tmp_path, engine):
    tables = Tables(topics={TOPIC: {}})
    add_event(tables, 1, "assigned", 100, instance_id="i")
    add_event(tables, 2, "assigned", 110, instance_id="i")
    add_event(tables, 1, "lost", 120, instance_id="i")
    assert verdicts(tables, tmp_path / "run", engine) == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("f", "begin_ms", "end_ms", "outcome", "expected"),
    [
        # The session of the first member timed out, and the empty group was deleted.
        ("delete_groups", 103, 107, "ok", []),
        ("delete_consumer_groups", 103, 107, "ok", []),
        ("delete_groups", 103, None, "info", []),
        # The deletion completes at the time of the second assignment, which may belong to the new group.
        ("delete_groups", 103, 110, "ok", []),
        ("delete_groups", 90, 95, "ok", ["violation"]),
        # A request that timed out may take effect at any later time.
        ("delete_groups", 90, 95, "info", []),
        ("delete_groups", 111, 115, "ok", ["violation"]),
        ("delete_groups", 103, 107, "fail", ["violation"]),
        ("delete_consumer_group_offsets", 103, 107, "ok", ["violation"]),
    ],
)
def test_generations_of_a_deleted_group_begin_again(tmp_path, engine, f, begin_ms, end_ms, outcome, expected):
    tables = Tables(topics={TOPIC: {}})
    add_event(tables, 1, "assigned", 100)
    tables.op(3, f, begin_ms * MS, end_ms and end_ms * MS, outcome, group="g", error="X" if outcome == "fail" else None)
    add_event(tables, 2, "assigned", 110)
    add_event(tables, 1, "lost", 120)
    add_event(tables, 2, "revoked", 130)
    assert verdicts(tables, tmp_path / "run", engine) == expected
