"""History checks of the requirements under faults.

A story (`stories.py`) is a valid history and satisfies all requirements of its family. Each change of a story violates
one requirement. The anomalies of the checkers (lost and divergent records) have their own tests.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.concurrent.cluster_checks import _decreases
from conformance.concurrent.fault_requirements import ROWS
from linearizability.judgement import Verdict
from tests.conformance.concurrent import stories
from tests.conformance.concurrent.stories import Story, ns

BY_ID = {row.id: row for row in ROWS}
STORIES = {
    "followers-cut-off": stories.followers_cut_off,
    "leaders-fail-over": stories.leaders_fail_over,
    "rolling-bounce": stories.rolling_bounce,
    "last-replica-lost": stories.last_replica_lost,
    "unclean-enabled": stories.unclean_enabled,
    "leader-paused": stories.leader_paused,
    "reassigned": stories.reassigned,
}


class Target:
    def __init__(self):
        self.cluster_properties = {"replica.lag.time.max.ms": "3000", "broker.session.timeout.ms": "6000"}


def findings(row, story):
    return [found for check in row.history_checks(Target()) for found in check(story)]


def valid_story(row):
    return STORIES[row.family.name]()


# --- planted violations

PLANTS = {
    "replication/isr-shrinks-and-expands": [
        (lambda s: s.change("states", {"partition": 0}, isr=[1, 2, 3]), "node 2 was in every ISR while it was cut"),
        (lambda s: s.change_states(14, isr=[1, 3]), "node 2 is not in the ISR"),
    ],
    "produce/acks-all-holds-for-isr": [
        (lambda s: s.change("operations", {"invoke_ns": ns(1.5)}, complete_ns=ns(1.6)), "0.60 s after node 2 was cut"),
    ],
    "replication/idle-follower-stays-in-isr": [
        (
            lambda s: s.change_states(9, {"partition": 1}, isr=[1, 3]),
            "node 2 was removed from the ISR of t-1",
        ),
    ],
    "produce/min-insync-replicas-is-enforced": [
        (
            lambda s: s.change("operations", {"error": "NOT_ENOUGH_REPLICAS"}, error=None, outcome="ok"),
            "was acknowledged by an ISR below 2 members",
        ),
        (
            lambda s: s.change("operations", {"error": "NOT_ENOUGH_REPLICAS"}, error="UNKNOWN_SERVER_ERROR"),
            "failed with UNKNOWN_SERVER_ERROR at an ISR below 2 members",
        ),
    ],
    "replication/high-watermark-waits-for-min-isr": [
        (
            lambda s: s.change_states(10, high_watermark=4),
            "the high watermark was 4, above offset 3",
        ),
        (lambda s: s.change_states(15, high_watermark=2), "offset 3 did not become visible"),
    ],
    "leadership/clean-election-loses-nothing": [
        (
            lambda s: s.change("states", {"source": "metadata", "topic": "t"}, leader=1),
            "no leader was elected after node 1",
        ),
        (
            lambda s: s.change_states(0.2, isr=[1, 3]),
            "node 2 was elected, which was not in the ISR",
        ),
        (lambda s: s.drop("operations", invoke_ns=ns(7.4)), "node 2 was elected and acknowledged nothing"),
    ],
    "leadership/one-leader-per-epoch": [
        (lambda s: s.change_states(11.5, leader_epoch=1), "nodes 2 and 3 both led t-0 in epoch 1"),
    ],
    "leadership/preferred-election-requires-an-isr-member": [
        (
            lambda s: s.change("operations", {"invoke_ns": ns(7.2)}, error=None),
            "returned no error instead of PREFERRED_LEADER_NOT_AVAILABLE",
        ),
        (
            lambda s: s.change("operations", {"invoke_ns": ns(17)}, error="PREFERRED_LEADER_NOT_AVAILABLE"),
            "returned PREFERRED_LEADER_NOT_AVAILABLE instead of no error",
        ),
        (
            lambda s: s.change("operations", {"invoke_ns": ns(19)}, error=None),
            "returned no error instead of ELECTION_NOT_NEEDED",
        ),
    ],
    "epochs/replicas-truncate-where-epochs-diverge": [
        (lambda s: s.change("records", {"op_id": _replica(s, 2), "offset": 1}, value=1), "differ at offset 1"),
        (lambda s: s.change("records", {"op_id": _replica(s, 2), "offset": 1}, leader_epoch=0), "differ at offset 1"),
        (lambda s: s.drop("records", op_id=_replica(s, 3), offset=1), "replicas of t-0 end at [0, 1]"),
    ],
    "epochs/end-offset-of-an-old-epoch-is-returned": [
        (
            lambda s: s.change("states", {"source": "offset_for_leader_epoch"}, log_end_offset=2),
            "OffsetForLeaderEpoch returned the end 2 of epoch 0, and offset 1 is of epoch 1",
        ),
        (
            lambda s: s.change("states", {"source": "offset_for_leader_epoch"}, log_end_offset=0),
            "OffsetForLeaderEpoch returned the end 0 of epoch 0, and offset 0 is of epoch 0",
        ),
    ],
    "epochs/fetch-returns-diverging-epoch": [
        (
            lambda s: s.change("states", {"source": "diverging_epoch"}, leader_epoch=None, log_end_offset=None),
            "end offset (None, None)",
        ),
        (lambda s: s.change("states", {"source": "diverging_epoch"}, log_end_offset=2), "end offset (0, 2)"),
    ],
    "storage/crashed-log-is-recovered": [
        (lambda s: s.change("faults", {"kind": "disk"}, heal_ns=None), "node 1 did not start again"),
        (lambda s: s.drop("records", op_id=_replica(s, 1), offset=0), "replica 1 of t-0 lacks offset 0"),
    ],
    "membership/dead-broker-leaves-and-returns": [
        (
            lambda s: (
                s.change("faults", {"kind": "kill"}, heal_ns=ns(40)),
                s.change("states", {"source": "describe_cluster"}, isr=[1, 2, 3]),
                s.brokers(30, 1, 2, 3),
            ),
            "node 1 was still a broker of the cluster 26 s after it was killed",
        ),
        (lambda s: s.change_states(21, isr=[2, 3]), "node 1 did not rejoin"),
    ],
    "quorum/created-topics-outlive-the-controller": [
        (lambda s: s.change("states", {"topic": "t-1", "node": 3}, topic="t-2"), "node 3 does not know it"),
    ],
    "quorum/partitions-are-served-without-the-controller": [
        (
            lambda s: s.change_states(6.5, {"partition": 1}, leader=3),
            "t-1 changed its leader from 2 to 3 while node 1, the controller, was down",
        ),
        (lambda s: s.drop("operations", partition=1), "nothing was acknowledged in t-1 while the controller was down"),
    ],
    "quorum/epoch-and-high-watermark-only-grow": [
        (
            lambda s: s.change("states", {"leader": 3, "leader_epoch": 3}, leader_epoch=2),
            "both led the quorum in epoch 2",
        ),
        (lambda s: s.change("states", {"high_watermark": 80}, high_watermark=55), "high watermark fell from 60 to 55"),
        (lambda s: s.change("states", {"high_watermark": 80}, leader_epoch=0), "epoch fell from 2 to 0"),
    ],
    "leadership/controlled-shutdown-moves-leaders-first": [
        (
            lambda s: s.change_states(5.5, leader=1, leader_epoch=0),
            "node 1 was still the leader 3.0 s after its shutdown",
        ),
        (
            lambda s: s.change("states", {"leader": 2}, leader=None),
            "node 1 was shut down, and no other leader was elected before it restarted",
        ),
        (
            lambda s: s.change("operations", {"invoke_ns": ns(2.5)}, error="NETWORK_EXCEPTION", outcome="info"),
            "of an idempotent producer: NETWORK_EXCEPTION",
        ),
    ],
    "metadata/rolling-restart-never-lowers-leader-epochs": [
        (
            lambda s: s.change_states(10, leader_epoch=0),
            "node 2 returned epoch 0 of t-0 after epoch 1",
        ),
    ],
    "storage/emptied-replica-is-restored": [
        (lambda s: s.change("faults", {"kind": "wipe"}, heal_ns=None), "node 1 did not start again"),
        (lambda s: s.drop("records", op_id=_replica(s, 1), offset=1), "replica 1 of t-0 lacks offset 1"),
    ],
    "leadership/no-unclean-election-by-itself": [
        (
            lambda s: s.change_states(6.5, leader=2),
            "node 2 was elected, which was not in the ISR [1]",
        ),
        (
            lambda s: s.change_states(6.5, leader=1),
            "node 1 was reported as the leader all the time",
        ),
        (
            lambda s: (s.drop_states(9.5), s.drop_states(11)),
            "node 1, the only ISR member, restarted and did not lead again",
        ),
    ],
    "leadership/unclean-election-on-request": [
        (
            lambda s: s.change("operations", {"f": "elect_unclean_leader"}, error="ELIGIBLE_LEADERS_NOT_AVAILABLE"),
            "an unclean election failed with ELIGIBLE_LEADERS_NOT_AVAILABLE",
        ),
        (
            lambda s: (s.drop_states(14.5), s.drop_states(20)),
            "no leader was elected by an unclean election",
        ),
        (lambda s: s.change_states(14.5, leader_epoch=3), "the leader epoch stayed 3"),
        (
            lambda s: s.change("records", {"direction": "read", "value": 3}, value=4),
            "value 3, acknowledged after the unclean election, is lost",
        ),
        (lambda s: s.change("records", {"direction": "read", "value": 0}, value=2), "offset 0 is lost, but offset 2"),
    ],
    "leadership/unclean-election-when-enabled": [
        (
            lambda s: s.change("states", {"leader": 2}, leader=None),
            "no leader was elected after node 1, the only ISR member, had stopped",
        ),
        (lambda s: s.change("states", {"leader": 2}, leader_epoch=0), "the leader epoch stayed 0"),
        (
            lambda s: s.change("records", {"direction": "read", "value": 2}, value=4),
            "value 2, acknowledged after the unclean election, is lost",
        ),
        (lambda s: s.change("records", {"direction": "read", "value": 0}, value=1), "offset 0 is lost, but offset 1"),
    ],
    "epochs/deposed-leader-acknowledges-nothing": [
        (
            lambda s: s.change("operations", {"invoke_ns": ns(2)}, error=None, outcome="ok"),
            "was acknowledged by node 1 after node 2 was elected",
        ),
    ],
    "epochs/client-behind-leader-is-fenced": [
        (lambda s: s.change("operations", {"f": "fetch_in_old_epoch"}, error=None), "not FENCED_LEADER_EPOCH"),
        (
            lambda s: s.change("operations", {"f": "list_offsets_in_epoch_to_come"}, error=None),
            "not UNKNOWN_LEADER_EPOCH",
        ),
    ],
    "membership/broker-joins-and-leaves": [
        (
            lambda s: s.change_states(0.9, isr=[1, 2, 3]),
            "the broker that joined was not listed as a broker of the cluster",
        ),
        (lambda s: s.change_states(2, isr=[2, 3]), "node 4, which joined, was never in the ISR"),
        (lambda s: s.change_states(5, isr=[1, 2, 3, 4]), "node 4, which left, is still listed"),
        (
            lambda s: s.change("operations", {"error": "BROKER_ID_NOT_REGISTERED"}, error=None),
            "with the errors [None, None]",
        ),
    ],
    "reassignment/nothing-is-lost-under-load": [
        (
            lambda s: s.change("operations", {"invoke_ns": ns(1)}, error="INVALID_REPLICA_ASSIGNMENT"),
            "failed with INVALID",
        ),
        (lambda s: s.change_states(2, isr=[1, 2]), "left the ISR [1, 2]"),
    ],
}


def _replica(story, node):
    return next(row["op_id"] for row in story.table("operations") if row["f"] == "read_replica" and row["node"] == node)


CASES = [
    pytest.param(BY_ID[id_], plant, message, id=f"{id_} {number}")
    for id_, plants in PLANTS.items()
    for number, (plant, message) in enumerate(plants, start=1)
]


# --- the tests


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_the_valid_story_is_ok(row):
    assert findings(row, valid_story(row)) == []


@pytest.mark.parametrize(("row", "plant", "message"), CASES)
def test_a_planted_change_is_a_violation(row, plant, message):
    story = valid_story(row)
    plant(story)
    found = findings(row, story)
    assert {each.verdict for each in found} == {Verdict.VIOLATION}
    assert any(message in each.text for each in found), [each.text for each in found]
    assert all(each.topic == "t" for each in found)


def test_the_isr_may_have_grown_shortly_before_the_end_of_the_cut_is_recorded():
    """Offset 3 is visible at 12.5 s, although the cut is recorded until 13 s and only the leader is in the ISR at 12 s.

    That is valid: a link is healed before the end of its cut is recorded, and Metadata may lag behind the leader.
    """
    story = stories.followers_cut_off()
    story.end(12.5, 4)
    story.produce(12.6, 12.7, 9, 4)
    waits = BY_ID["replication/high-watermark-waits-for-min-isr"]
    enforced = BY_ID["produce/min-insync-replicas-is-enforced"]
    assert [found.text for row in (waits, enforced) for found in findings(row, story)] == []


def test_a_slow_follower_may_return_until_its_own_link_is_cut():
    """Node 3 is out of the ISR at 5.0 s, and back before its link is cut at 6 s. Offset 2 is then visible at 5.5 s."""
    story = stories.followers_cut_off()
    story.metadata(5.0, 1, 0, (1,))
    story.produce(5.1, 5.2, 9, 2, acks=1)
    story.end(5.5, 3)
    story.metadata(5.6, 1, 0, (1, 3))
    waits = BY_ID["replication/high-watermark-waits-for-min-isr"]
    enforced = BY_ID["produce/min-insync-replicas-is-enforced"]
    assert [found.text for row in (waits, enforced) for found in findings(row, story)] == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_without_its_faults_a_requirement_is_unknown(row):
    story = Story()
    story.call("create_topic", 0, 0.1)
    story.metadata(0.2, 1, 0, (1, 2, 3))
    story.produce(0.3, 0.4, 0, 0)
    story.metadata(0.5, 1, 0, (1, 2, 3))
    found = findings(row, story)
    assert found
    assert {each.verdict for each in found} == {Verdict.UNKNOWN}


def test_records_of_another_partition_show_nothing_about_a_deposed_leader():
    story = stories.leader_paused()
    story.change("operations", {"invoke_ns": ns(2)}, partition=1)
    (found,) = findings(BY_ID["epochs/deposed-leader-acknowledges-nothing"], story)
    assert found.verdict is Verdict.UNKNOWN


def test_the_active_controller_may_have_id_0():
    story = stories.leaders_fail_over()
    story.change("states", {"source": "describe_quorum", "leader": 1}, leader=0)
    story.change_states(0.2, {"partition": 0}, leader=0)
    story.change("faults", {"kind": "kill"}, target="0")
    assert findings(BY_ID["quorum/partitions-are-served-without-the-controller"], story) == []


def test_every_requirement_has_a_plant():
    assert PLANTS.keys() == BY_ID.keys()


def test_a_record_need_not_be_visible_if_no_high_watermark_was_requested_after_the_isr_grew():
    row = BY_ID["replication/high-watermark-waits-for-min-isr"]
    story = valid_story(row)
    story.drop_states(15)
    assert findings(row, story) == []


def test_replicas_of_a_topic_without_damage_are_not_compared():
    row = BY_ID["storage/crashed-log-is-recovered"]
    story = valid_story(row)
    story.replica(1, (0, 0), topic="u")
    story.replica(2, topic="u")
    assert findings(row, story) == []


_INTERVALS = st.tuples(st.integers(0, 20), st.integers(0, 5), st.none() | st.integers(0, 9))


@given(st.lists(_INTERVALS))
def test_a_decrease_is_a_lower_value_than_the_highest_of_all_responses_received_before(intervals):
    rows = [{"asked_ns": at, "answered_ns": at + took, "value": value} for at, took, value in intervals]
    expected = []
    for row in (row for row in rows if row["value"] is not None):
        before = [other["value"] or 0 for other in rows if other["answered_ns"] < row["asked_ns"]]
        if row["value"] < max(before, default=0):
            expected.append((max(before), row["value"]))
    assert sorted(_decreases(rows, "value")) == sorted(expected)


_ALL, _LEADER, _FAILED = (-1, None), (1, None), (-1, "REQUEST_TIMED_OUT")


@pytest.mark.parametrize(
    ("produces", "is_judged"),
    [
        ([_ALL], True),
        ([_LEADER], False),
        ([_FAILED], False),
        ([_LEADER, _ALL], True),
        ([_ALL, _LEADER], False),
    ],
)
def test_a_partition_with_records_that_may_not_be_replicated_is_not_idle(produces, is_judged):
    story = stories.followers_cut_off()
    for number, (acks, error) in enumerate(produces, start=1):
        begin = 0.4 + number / 10
        story.produce(begin, begin + 0.05, 10 + number, number, error, partition=1, acks=acks)
    story.change_states(9, {"partition": 1}, isr=[1])
    found = findings(BY_ID["replication/idle-follower-stays-in-isr"], story)
    assert {each.verdict for each in found} == {Verdict.VIOLATION if is_judged else Verdict.UNKNOWN}
