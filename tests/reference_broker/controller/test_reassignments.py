"""Partition reassignments (KIP-455), and random sequences of them, compared with a model of the final replicas.

Replicas are digits: `123` is brokers 1, 2 and 3.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from tests.reference_broker.controller.scripted_controller import ScriptedController

BROKERS = "12345"


@pytest.fixture
def controller():
    controller = ScriptedController()
    controller.serve(*map(int, BROKERS))
    return controller


def reassign(controller, replicas, topic="orders", index=0, **fields):
    """Reassign a partition, or cancel its reassignment with null replicas; return error and message."""
    partition = {"partition_index": index, "replicas": replicas and [int(digit) for digit in replicas]}
    response = controller.request(
        "AlterPartitionReassignments", 1, topics=[{"name": topic, "partitions": [partition]}], **fields
    )
    [result] = response.responses[0].partitions
    return result.error_code, result.error_message


def moving(controller, topics=None):
    """Return the listed reassignments by topic, as `replicas +adding -removing`."""
    response = controller.request("ListPartitionReassignments", 0, topics=topics)
    return {
        topic.name: "{} +{} -{}".format(
            *("".join(map(str, nodes)) for nodes in (part.replicas, part.adding_replicas, part.removing_replicas))
        )
        for topic in response.topics
        for part in topic.partitions
    }


DONE = (ErrorCode.none, None)


def test_a_reassignment_completes_once_the_new_replicas_are_in_sync(controller):
    controller.create("orders", "12")
    assert reassign(controller, "34") == DONE
    assert controller.state("orders") == "3412/12/1"
    assert moving(controller) == {"orders": "3412 +34 -12"}
    controller.propose("orders", "123")
    assert moving(controller) == {"orders": "3412 +34 -12"}
    controller.propose("orders", "1234")
    assert controller.state("orders") == "34/34/3"
    assert moving(controller) == {}


def test_removing_replicas_completes_at_once(controller):
    controller.create("orders", "123")
    assert reassign(controller, "2") == DONE
    assert controller.state("orders") == "2/2/2"
    assert controller.partition("orders").leader_epoch == 1


def test_reordering_replicas_completes_at_once_and_keeps_the_leader(controller):
    controller.create("orders", "123")
    assert reassign(controller, "312") == DONE
    assert controller.state("orders") == "312/123/1"
    assert controller.partition("orders").leader_epoch == 0


def test_the_same_replicas_again_change_nothing(controller):
    controller.create("orders", "123")
    written = len(controller.log.records)
    assert reassign(controller, "123") == DONE
    assert len(controller.log.records) == written


def test_cancelling_removes_the_added_replicas(controller):
    controller.create("orders", "12")
    reassign(controller, "34")
    controller.propose("orders", "123")
    assert reassign(controller, None) == DONE
    assert controller.state("orders") == "12/12/1"
    assert reassign(controller, None) == (ErrorCode.no_reassignment_in_progress, None)


def test_a_reassignment_replaces_another(controller):
    controller.create("orders", "12")
    reassign(controller, "34")
    reassign(controller, "15")
    assert moving(controller) == {"orders": "15234 +5 -234"}
    controller.propose("orders", "125")
    assert controller.state("orders") == "15/15/1"


def test_a_reassignment_without_removals_keeps_the_ongoing_removals(controller):
    """Kafka's `changePartitionReassignment` does not change the removing replicas if the new reassignment has none."""
    controller.create("orders", "12")
    reassign(controller, "34")
    assert reassign(controller, "12345") == DONE
    assert moving(controller) == {"orders": "12345 +5 -12"}


@pytest.mark.parametrize("unclean", ["false", "true"])
def test_cancelling_is_an_unclean_election_if_only_new_replicas_are_in_sync(unclean):
    controller = ScriptedController(unclean_leader_election_enable=unclean)
    controller.serve(*map(int, BROKERS))
    controller.create("orders", "12")
    reassign(controller, "345")
    controller.propose("orders", "13")
    controller.kill(1)
    assert controller.state("orders") == "34512/3/3"
    error, message = reassign(controller, None)
    if unclean == "true":
        assert error == ErrorCode.none
        assert controller.state("orders") == "12/2/2"
    else:
        assert error == ErrorCode.invalid_replica_assignment
        assert message.endswith("for orders:0 because it would require an unclean leader election.")


@pytest.mark.parametrize(
    ("replicas", "fields", "error"),
    [
        ("12", {"topic": "nowhere"}, ErrorCode.unknown_topic_or_partition),
        ("12", {"index": 1}, ErrorCode.unknown_topic_or_partition),
        (None, {"index": 1}, ErrorCode.unknown_topic_or_partition),
        ("", {}, ErrorCode.invalid_replica_assignment),
        ("11", {}, ErrorCode.invalid_replica_assignment),
        ("19", {}, ErrorCode.invalid_replica_assignment),
        ("123", {"allow_replication_factor_change": False}, ErrorCode.invalid_replication_factor),
    ],
)
def test_invalid_reassignments_are_rejected(controller, replicas, fields, error):
    controller.create("orders", "12")
    written = len(controller.log.records)
    assert reassign(controller, replicas, **fields)[0] == error
    assert len(controller.log.records) == written


def test_the_replication_factor_is_that_after_the_ongoing_reassignment(controller):
    """During a reassignment from two replicas to three, three counts as the current replication factor (KIP-860)."""
    controller.create("orders", "12")
    reassign(controller, "345")
    fields = {"allow_replication_factor_change": False}
    assert reassign(controller, "34", **fields)[0] == ErrorCode.invalid_replication_factor
    assert reassign(controller, "134", **fields) == DONE


def test_only_requested_partitions_are_listed(controller):
    for name in ("orders", "returns"):
        controller.create(name, "12")
        reassign(controller, "34", topic=name)
    assert set(moving(controller)) == {"orders", "returns"}
    only = [{"name": "returns", "partition_indexes": [0, 7]}, {"name": "nowhere", "partition_indexes": [0]}]
    assert set(moving(controller, only)) == {"returns"}


replica_lists = st.permutations(BROKERS).flatmap(lambda order: st.integers(1, 4).map(lambda size: order[:size]))


@settings(max_examples=50)
@given(st.lists(st.one_of(st.none(), replica_lists), max_size=6))
def test_any_sequence_of_reassignments_ends_with_the_last_target(moves):
    """The model is the list of target replicas: a reassignment sets it, and a cancellation restores the previous one.

    A reassignment that removes no replica keeps the ongoing removals. The target lacks these replicas.
    """
    controller = ScriptedController()
    controller.serve(*map(int, BROKERS))
    controller.create("orders", "12")
    target = "12"
    for move in moves:
        before = controller.partition("orders")
        is_ongoing = before.adding_replicas or before.removing_replicas
        error, _ = reassign(controller, None if move is None else "".join(move))
        now = controller.partition("orders")
        if move is not None:
            assert error == ErrorCode.none
            removing = {*map(str, before.replicas)} - {*move} or {*map(str, before.removing_replicas)}
            target = "".join(node for node in move if node not in removing)
        elif is_ongoing:
            assert error == ErrorCode.none
            target = "".join(str(node) for node in before.replicas if node not in before.adding_replicas)
        else:
            assert error == ErrorCode.no_reassignment_in_progress
        assert set(now.isr) <= set(now.replicas)
        assert now.leader in now.isr
    controller.propose("orders", "".join(map(str, controller.partition("orders").replicas)))
    assert "".join(map(str, controller.partition("orders").replicas)) == target
    assert moving(controller) == {}
