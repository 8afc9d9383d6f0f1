"""Clusters that do not come to order, one story each: what is told of them, and what is not."""

from itertools import permutations
from pathlib import Path

import pytest

from linearizability.check import judge_history
from tests.linearizability.anomalies.histories import TOPIC, Tables
from tests.linearizability.anomalies.trouble import ALLOWED_S, CLUSTER, SECOND

PLACE = {"topic": TOPIC, "partition": 0}
LONG = ALLOWED_S + 10
FULL = (1, 2, 3)


def found(tables):
    anomalies = judge_history(tables.in_memory(Path("made-up"))).anomalies
    return {anomaly.name for anomaly in anomalies} & {"unavailable", "not-converged"}


def cluster(**properties):
    return Tables(topics={TOPIC: {"min.insync.replicas": "2", **properties}}, cluster=CLUSTER)


def fault(tables, begin_s, end_s, target="1", kind="kill"):
    heal_ns = None if end_s is None else end_s * SECOND
    columns = {"fault_id": len(tables.rows["faults"]), "kind": kind, "target": target}
    tables.add("faults", inject_ns=begin_s * SECOND, heal_ns=heal_ns, **columns)


def told(tables, at_s, isr=FULL):
    at_ns = at_s * SECOND
    tables.add("states", asked_ns=at_ns, answered_ns=at_ns + 1, source="metadata", isr=list(isr), **PLACE)


def quorum(tables, at_s):
    of = {"topic": "__cluster_metadata", "partition": 0, "isr": list(FULL)}
    tables.add("states", asked_ns=at_s * SECOND, answered_ns=at_s * SECOND, source="describe_quorum", **of)


def in_vain(tables, begin_s, end_s, every_s=4, **columns):
    for at_s in range(begin_s, end_s, every_s):
        times = at_s * SECOND, (at_s + 3) * SECOND
        op = tables.op(1, "produce", *times, "info", error="REQUEST_TIMED_OUT", acks=-1, **columns)
        tables.record(op, 0, "send", TOPIC, 0, None, op)


def one_of_three_is_killed(told_s=0, quorum_s=0):
    tables = cluster()
    told(tables, told_s)
    if quorum_s is not None:
        quorum(tables, quorum_s)
    fault(tables, 10, 500)
    in_vain(tables, 10, 10 + LONG)
    return tables


def test_two_of_three_nodes_serve():
    assert found(one_of_three_is_killed()) == {"unavailable"}


def test_nothing_is_said_where_nobody_told_of_the_quorum():
    assert found(one_of_three_is_killed(quorum_s=None)) == set()


def test_nothing_is_said_where_the_isr_may_have_shrunk_before():
    tables = one_of_three_is_killed(told_s=5)
    assert found(tables) == {"unavailable"}
    fault(tables, 1, 2, target="3")  # and what was answered at 5 s may be older
    assert found(tables) == set()


def test_without_a_quorum_nobody_serves():
    tables = one_of_three_is_killed()
    fault(tables, 9, 500, target="2")
    assert found(tables) == set()


def one_of_three_is_cut_off(target, argument=None):
    tables = one_of_three_is_killed()
    tables.rows["faults"][0].update(kind="cut", target=target, argument=argument)
    return found(tables)


def test_whom_nobody_reaches_is_alone_struck():
    assert one_of_three_is_cut_off("1->2,2->1,1->3,3->1,1->client,client->1") == {"unavailable"}


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
def test_nothing_is_said_where_clients_may_not_reach_a_leader_that_stays(target):
    assert one_of_three_is_cut_off(target) == set()


def test_nothing_is_said_where_a_leader_reached_a_controller_before():
    """Cut off from one of the other two and from clients, it may have shrunk the ISR to itself by then."""
    tables = one_of_three_is_killed()
    fault(tables, 6, 8, kind="cut", target="1->2,2->1,1->client,client->1")
    assert found(tables) == set()


def test_who_is_no_voter_is_cut_off_by_a_cut_from_the_voters():
    tables = one_of_three_is_killed()
    links = (f"{one}->{other}" for one, other in permutations((4, 1, 2, 3, "client"), 2) if 4 in (one, other))
    tables.rows["faults"][0].update(kind="cut", target=",".join(links))
    assert found(tables) == {"unavailable"}


def test_a_cut_on_one_listener_deposes_nobody():
    assert one_of_three_is_cut_off("1->2,1->3,1->client", "keeps nothing, listener REPLICATION alone") == set()


def test_a_client_that_asks_one_node_only_needs_its_answer():
    def alone(**columns):
        tables = cluster()
        told(tables, 0)
        in_vain(tables, 10, 10 + LONG, attempts=1, **columns)
        return found(tables)

    assert alone() == set()
    assert alone(node=2) == {"unavailable"}


def test_attempts_far_apart_are_no_outage():
    tables = cluster()
    told(tables, 0)
    in_vain(tables, 10, 10 + 5 * LONG, every_s=20)
    assert found(tables) == set()


@pytest.mark.parametrize(("after_s", "expected"), [(ALLOWED_S - 1, set()), (ALLOWED_S + 1, {"not-converged"})])
def test_the_isr_has_its_time(after_s, expected):
    tables = cluster()
    told(tables, 0)
    fault(tables, 10, 20)
    told(tables, 20 + after_s, isr=(2, 3))
    assert found(tables) == expected
    tables.op(9, "reassign", 1, 2, topic=TOPIC)
    assert found(tables) == set()


def replicas(tables, *logs, at_s=0):
    """What lies on the disks of nodes 1, 2, …: (offset, value, key) each."""
    end = 1 + max(offset for log in logs for offset, _, _ in log)
    for node, log in enumerate(logs, 1):
        op = tables.op(8, "read_replica", at_s * SECOND, at_s * SECOND, node=node, isolation="read_uncommitted")
        for seq, (offset, value, key) in enumerate(log):
            tables.record(op, seq, "read", TOPIC, 0, offset, value, key=key, leader_epoch=0)
        tables.add("positions", op_id=op, before=0, after=end, cause="read", **PLACE)


def test_of_a_key_only_the_last_value_must_be_in_all_replicas():
    def compacted(lacks):
        tables = cluster(**{"cleanup.policy": "compact"})
        log = [(0, 10, "a"), (1, 11, "a"), (2, 12, "b"), (3, None, "c"), (4, 13, "d")]
        replicas(tables, log, [row for row in log if row[0] != lacks])
        return found(tables)

    assert [compacted(offset) for offset in (0, 1, 2, 3)] == [set(), {"not-converged"}, {"not-converged"}, set()]


def test_a_node_that_came_back_may_hold_what_it_will_give_up():
    def differing(at_s, isr_s=None):
        tables = cluster()
        told(tables, 0)
        fault(tables, 10, 20)
        if isr_s is not None:
            told(tables, isr_s)
        replicas(tables, [(0, 10, None)], [(0, 11, None)], at_s=at_s)
        return found(tables)

    assert differing(25) == set()
    assert differing(25, isr_s=22) == {"not-converged"}
    assert differing(20 + LONG) == {"not-converged"}
