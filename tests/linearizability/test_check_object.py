"""Linearizability of Kafka's objects in a history: partition logs and committed offsets."""

import random

import pytest

from linearizability.check import judge_history
from linearizability.check_object import KAFKA_OBJECTS, judge_kafka_object, judge_object
from linearizability.history.errors import NotARunError
from linearizability.judgement import Evidence, Verdict
from linearizability.verify import Budget
from tests.linearizability.anomalies.histories import TOPIC, Tables
from tests.linearizability.anomalies.pipeline import Pipeline
from tests.linearizability.test_partition_log import two_in_turn

PLACE = {"topic": TOPIC, "partition": 0}


def judged(tables, name, **budget):
    return judge_kafka_object(tables.in_memory("made-up"), name, Budget(**budget))


def commits(*steps):
    """Return a history of successive commits and fetches of a group. A step is (f, offset) or (f, offset, outcome)."""
    tables = Tables(topics={TOPIC: {}})
    for at, (f, offset, *outcome) in enumerate(steps):
        op = tables.op(at, f, 10 * at, 10 * at + 5, *outcome, group="g")
        direction = "commit" if f == "commit_offsets" else "fetched"
        tables.add(
            "offsets", op_id=op, group="g", offset=offset, direction=direction, topic_id="A" if at else None, **PLACE
        )
    return tables


def test_log_against_real_time_is_a_violation():
    assert judged(two_in_turn(0, 1, 2), "append-log").verdict is Verdict.OK
    judgement = judged(two_in_turn(1, 0, 2), "append-log")
    (anomaly,) = judgement.anomalies
    text = "send 0 was acknowledged before send 1 was invoked, but has the higher offset: 1, above 0"
    assert (judgement.operations, judgement.records) == (3, 3)
    assert anomaly == type(anomaly)(
        "not-linearizable", Verdict.VIOLATION, 1, (Evidence((0, 1), TOPIC, 0, 1, None, text),)
    )


def test_watermark_is_the_end_of_the_log_only_for_the_linearizable_log():
    stale = two_in_turn(0, 1, 1)
    assert judged(stale, "append-log").verdict is Verdict.OK
    assert judged(stale, "linearizable-log").verdict is Verdict.VIOLATION


def test_unjudged_partition_makes_the_verdict_unknown():
    tables = two_in_turn(0, 1, 2)
    tables.rows["records"][0]["value"] = None
    judgement = judged(tables, "append-log")
    assert judgement.verdict is Verdict.UNKNOWN
    assert judgement.reasons == ("t-0 is not judged: operation 0 has a tombstone, which has no value to identify it",)
    assert judged(two_in_turn(0, 1, 2), "append-log", time_s=0).reasons == ("t-0: the time budget of 0 s was used up",)
    assert judged(two_in_turn(0, 1, 2), "committed-offset").verdict is Verdict.UNKNOWN


@pytest.mark.parametrize(
    ("steps", "verdict"),
    [
        ([("commit_offsets", 5), ("fetch_offsets", 5)], Verdict.OK),
        ([("commit_offsets", 5), ("fetch_offsets", None)], Verdict.VIOLATION),
        ([("fetch_offsets", None), ("commit_offsets", 5), ("commit_offsets", 3), ("fetch_offsets", 3)], Verdict.OK),
        ([("commit_offsets", 5), ("commit_offsets", 3), ("fetch_offsets", 5)], Verdict.VIOLATION),
        ([("commit_offsets", 5), ("commit_offsets", 3, "info"), ("fetch_offsets", 5)], Verdict.OK),
        ([("commit_offsets", 5), ("commit_offsets", 3, "info"), ("fetch_offsets", 3)], Verdict.OK),
        ([("commit_offsets", 5), ("commit_offsets", 3, "fail"), ("fetch_offsets", 3)], Verdict.VIOLATION),
    ],
)
def test_committed_offsets_are_judged(steps, verdict):
    judgement = judged(commits(*steps), "committed-offset")
    assert judgement.verdict is verdict
    for anomaly in judgement.anomalies:
        assert anomaly.evidence[0].op_ids[-1] == len(steps) - 1
        assert (anomaly.evidence[0].topic, anomaly.evidence[0].partition) == (TOPIC, 0)


def test_commits_inside_transactions_are_not_judged():
    tables = commits(("commit_offsets", 5), ("fetch_offsets", None))
    tables.rows["operations"][0].update(txn_id="x", txn_seq=1)
    (reason,) = judged(tables, "committed-offset").reasons
    assert reason == "group g, t-0: operation 0 commits inside a transaction and takes effect with it"


@pytest.mark.parametrize(
    "f", ["delete_groups", "delete_consumer_groups", "delete_consumer_group_offsets", "offset_delete", "delete_topics"]
)
def test_offsets_that_were_deleted_are_not_judged(f):
    tables = commits(("commit_offsets", 5), ("fetch_offsets", None))
    op_id = tables.op(7, f, 6, 9, group="g")
    (reason,) = judged(tables, "committed-offset").reasons
    assert reason == f"group g, t-0: operation {op_id} may have deleted the offset"


def test_offset_without_topic_id_is_not_judged_if_the_name_has_several_ids():
    tables = commits(("commit_offsets", 5), ("fetch_offsets", 5), ("fetch_offsets", None))
    tables.rows["offsets"][2]["topic_id"] = "B"
    judgement = judged(tables, "committed-offset")
    reason = "group g, t-0: topic t has several ids, and a commit or fetch of it has none"
    assert (judgement.anomalies, judgement.reasons) == ((), (reason,))
    tables.rows["offsets"][0]["topic_id"] = "A"
    assert judged(tables, "committed-offset").verdict is Verdict.OK


@pytest.mark.parametrize("f", ["delete_groups", "offset_delete", "delete_topics"])
def test_failed_deletion_excludes_no_offset(f):
    tables = commits(("commit_offsets", 5), ("fetch_offsets", None))
    tables.op(7, f, 6, 9, "fail", group="g")
    assert judged(tables, "committed-offset").verdict is Verdict.VIOLATION


@pytest.mark.parametrize("f", ["delete_groups", "delete_consumer_group_offsets", "offset_delete", "describe_groups"])
def test_offsets_that_were_deleted_are_not_reported_as_lost(f):
    tables = commits(("commit_offsets", 5), ("fetch_offsets", None), ("fetch_offsets", None))
    for row in tables.rows["offsets"]:
        row["topic_id"] = "A"
    tables.op(7, f, 6, 9, group="g")
    names = [anomaly.name for anomaly in judge_history(tables.in_memory("made-up")).anomalies]
    assert ("commit-lost" in names) is (f == "describe_groups")


@pytest.mark.parametrize("seed", range(5))
def test_valid_application_is_linearizable(seed):
    judgement = judged(Pipeline(random.Random(seed)).run(40), "committed-offset")
    assert not judgement.anomalies
    assert all("group g, " in reason for reason in judgement.reasons)
    assert judged(Pipeline(random.Random(seed)).run(40), "append-log").verdict is Verdict.OK


def test_kafka_history_contains_only_kafka_objects(tmp_path):
    run_dir = two_in_turn(0, 1, 2).write(tmp_path / "run")
    assert {name: judge_object(run_dir, name).verdict for name in KAFKA_OBJECTS} == {
        "append-log": Verdict.OK,
        "linearizable-log": Verdict.OK,
        "committed-offset": Verdict.UNKNOWN,
    }
    with pytest.raises(NotARunError, match="has no register; use append-log, linearizable-log, committed-off"):
        judge_object(run_dir, "register")
