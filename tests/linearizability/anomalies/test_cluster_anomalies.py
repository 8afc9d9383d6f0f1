"""The anomalies not-converged and unavailable: one small history for each condition of their definitions."""

from itertools import permutations
from pathlib import Path

import pytest

from linearizability.check import judge_history
from tests.linearizability.anomalies.faulty_cluster import ALLOWED_S, CLUSTER, SECOND
from tests.linearizability.anomalies.histories import TOPIC, Tables

PLACE = {"topic": TOPIC, "partition": 0}
LONG = ALLOWED_S + 10
"""Seconds after which the cluster must have recovered."""
FULL = (1, 2, 3)
"""The full ISR, and the voters."""


def found(tables):
    """Return which of the two anomalies the history has."""
    anomalies = judge_history(tables.in_memory(Path("made-up"))).anomalies
    return {anomaly.name for anomaly in anomalies} & {"unavailable", "not-converged"}


def cluster(**properties):
    return Tables(topics={TOPIC: {"min.insync.replicas": "2", **properties}}, cluster=CLUSTER)


def fault(tables, begin_s, end_s, target="1", kind="kill"):
    heal_ns = None if end_s is None else end_s * SECOND
    columns = {"fault_id": len(tables.rows["faults"]), "kind": kind, "target": target}
    tables.add("faults", inject_ns=begin_s * SECOND, heal_ns=heal_ns, **columns)


def report_isr(tables, at_s, isr=FULL):
    at_ns = at_s * SECOND
    tables.add("states", asked_ns=at_ns, answered_ns=at_ns + 1, source="metadata", isr=list(isr), **PLACE)


def report_quorum(tables, at_s):
    place = {"topic": "__cluster_metadata", "partition": 0, "isr": list(FULL)}
    tables.add("states", asked_ns=at_s * SECOND, answered_ns=at_s * SECOND, source="describe_quorum", **place)


def fail_produces(tables, begin_s, end_s, every_s=4, **columns):
    """Add produces that each time out after three seconds."""
    for at_s in range(begin_s, end_s, every_s):
        times = at_s * SECOND, (at_s + 3) * SECOND
        op = tables.op(1, "produce", *times, "info", error="REQUEST_TIMED_OUT", acks=-1, **columns)
        tables.record(op, 0, "send", TOPIC, 0, None, op)


def cluster_with_a_killed_node(isr_s=0, quorum_s=0):
    """Return a history in which node 1 is killed at 10 s, and all produces fail for LONG seconds from then on.

    :param isr_s: when the ISR was returned.
    :param quorum_s: when the voters were returned; None if they were not.
    """
    tables = cluster()
    report_isr(tables, isr_s)
    if quorum_s is not None:
        report_quorum(tables, quorum_s)
    fault(tables, 10, 500)
    fail_produces(tables, 10, 10 + LONG)
    return tables


def test_two_of_three_nodes_must_be_available():
    assert found(cluster_with_a_killed_node()) == {"unavailable"}


def test_unavailability_without_a_reported_quorum_is_no_anomaly():
    assert found(cluster_with_a_killed_node(quorum_s=None)) == set()


def test_unavailability_after_a_possible_isr_shrink_is_no_anomaly():
    tables = cluster_with_a_killed_node(isr_s=5)
    assert found(tables) == {"unavailable"}
    fault(tables, 1, 2, target="3")  # the ISR may have shrunk after the response at 5 s
    assert found(tables) == set()


def test_unavailability_without_a_quorum_is_no_anomaly():
    tables = cluster_with_a_killed_node()
    fault(tables, 9, 500, target="2")
    assert found(tables) == set()


@pytest.mark.parametrize(("deleted_s", "is_deleted"), [(1, True), (-2, False)])
def test_unavailability_after_a_deletion_by_name_is_no_anomaly(deleted_s, is_deleted):
    """A response shows the topic at 0 s. An earlier deletion was of another topic with this name."""
    tables = cluster_with_a_killed_node()
    tables.op(2, "delete_topic", deleted_s * SECOND, (deleted_s + 1) * SECOND, topic=TOPIC)
    for row in (*tables.rows["states"], *tables.rows["records"]):
        if row["topic"] == TOPIC:
            row["topic_id"] = "AAAAAAAAAAAAAAAAAAAAAQ"
    assert found(tables) == (set() if is_deleted else {"unavailable"})


def anomalies_with_cut_links(target, argument=None):
    tables = cluster_with_a_killed_node()
    tables.rows["faults"][0].update(kind="cut", target=target, argument=argument)
    return found(tables)


def test_a_cut_of_all_links_of_a_node_affects_only_this_node():
    assert anomalies_with_cut_links("1->2,2->1,1->3,3->1,1->client,client->1") == {"unavailable"}


@pytest.mark.parametrize(
    "target",
    [
        "client->1",
        "1->2,2->1,1->client,client->1",
        "1->2,1->3,1->client",
        "2->1,3->1,client->1",
        "1->2,3->2,client->3",
        "1->2,1->3,2->client",
        "1->2,2->1,1->3,3->1,1->client,client->1,2->3",
    ],
)
def test_a_cut_of_some_links_may_leave_a_leader_unreachable(target):
    assert anomalies_with_cut_links(target) == set()


def test_unavailability_after_an_earlier_cut_is_no_anomaly():
    """The cut leaves the links to node 3, and therefore affects every node. So each node may have left the ISR."""
    tables = cluster_with_a_killed_node()
    fault(tables, 6, 8, kind="cut", target="1->2,2->1,1->client,client->1")
    assert found(tables) == set()


def test_a_cut_from_the_voters_isolates_a_broker_that_is_no_voter():
    tables = cluster_with_a_killed_node()
    links = (f"{one}->{other}" for one, other in permutations((4, 1, 2, 3, "client"), 2) if 4 in (one, other))
    tables.rows["faults"][0].update(kind="cut", target=",".join(links))
    assert found(tables) == {"unavailable"}


def test_a_cut_on_one_listener_affects_all_nodes():
    assert anomalies_with_cut_links("1->2,1->3,1->client", "keeps nothing, listener REPLICATION alone") == set()


def test_a_single_attempt_counts_only_if_a_healthy_node_responded():
    def with_one_attempt(**columns):
        tables = cluster()
        report_isr(tables, 0)
        fail_produces(tables, 10, 10 + LONG, attempts=1, **columns)
        return found(tables)

    assert with_one_attempt() == set()
    assert with_one_attempt(node=2) == {"unavailable"}


def test_attempts_far_apart_are_no_outage():
    tables = cluster()
    report_isr(tables, 0)
    fail_produces(tables, 10, 10 + 5 * LONG, every_s=20)
    assert found(tables) == set()


@pytest.mark.parametrize(("after_s", "expected"), [(ALLOWED_S - 1, set()), (ALLOWED_S + 1, {"not-converged"})])
def test_the_isr_may_be_incomplete_for_the_allowed_time(after_s, expected):
    tables = cluster()
    report_isr(tables, 0)
    fault(tables, 10, 20)
    report_isr(tables, 20 + after_s, isr=(2, 3))
    assert found(tables) == expected
    tables.op(9, "reassign", 1, 2, topic=TOPIC)
    assert found(tables) == set()


def read_replicas(tables, *logs, at_s=0):
    """Write reads of the logs of nodes 1, 2, …, each a list of (offset, value, key)."""
    end = 1 + max(offset for log in logs for offset, _, _ in log)
    for node, log in enumerate(logs, 1):
        op = tables.op(8, "read_replica", at_s * SECOND, at_s * SECOND, node=node, isolation="read_uncommitted")
        for seq, (offset, value, key) in enumerate(log):
            tables.record(op, seq, "read", TOPIC, 0, offset, value, key=key, leader_epoch=0)
        tables.add("positions", op_id=op, before=0, after=end, cause="read", **PLACE)


def test_after_compaction_replicas_must_share_only_the_last_value_of_a_key():
    def compacted(missing):
        tables = cluster(**{"cleanup.policy": "compact"})
        log = [(0, 10, "a"), (1, 11, "a"), (2, 12, "b"), (3, None, "c"), (4, 13, "d")]
        read_replicas(tables, log, [row for row in log if row[0] != missing])
        return found(tables)

    assert [compacted(offset) for offset in (0, 1, 2, 3)] == [set(), {"not-converged"}, {"not-converged"}, set()]


def test_a_restarted_replica_may_differ_until_the_isr_is_full():
    def differing(at_s, isr_s=None):
        tables = cluster()
        report_isr(tables, 0)
        fault(tables, 10, 20)
        if isr_s is not None:
            report_isr(tables, isr_s)
        read_replicas(tables, [(0, 10, None)], [(0, 11, None)], at_s=at_s)
        return found(tables)

    assert differing(25) == set()
    assert differing(25, isr_s=22) == {"not-converged"}
    assert differing(20 + LONG) == {"not-converged"}
