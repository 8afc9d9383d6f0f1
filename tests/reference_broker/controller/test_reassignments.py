"""Moving partitions, told as KIP-455 does; and any sequence of moves, against what it comes to in the end.

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
    """Error and message; replicas null to give up."""
    partition = {"partition_index": index, "replicas": replicas and [int(digit) for digit in replicas]}
    response = controller.ask(
        "AlterPartitionReassignments", 1, topics=[{"name": topic, "partitions": [partition]}], **fields
    )
    [answer] = response.responses[0].partitions
    return answer.error_code, answer.error_message


def moving(controller, topics=None):
    """What ListPartitionReassignments tells: by topic, `replicas +adding -removing`."""
    answer = controller.ask("ListPartitionReassignments", 0, topics=topics)
    return {
        topic.name: "{} +{} -{}".format(
            *("".join(map(str, nodes)) for nodes in (part.replicas, part.adding_replicas, part.removing_replicas))
        )
        for topic in answer.topics
        for part in topic.partitions
    }


DONE = (ErrorCode.none, None)


def test_a_partition_moves_once_the_new_replicas_are_in_sync(controller):
    controller.create("orders", "12")
    assert reassign(controller, "34") == DONE
    assert controller.told("orders") == "3412/12/1"
    assert moving(controller) == {"orders": "3412 +34 -12"}
    controller.propose("orders", "123")
    assert moving(controller) == {"orders": "3412 +34 -12"}
    controller.propose("orders", "1234")
    assert controller.told("orders") == "34/34/3"
    assert moving(controller) == {}


def test_taking_replicas_away_is_done_at_once(controller):
    controller.create("orders", "123")
    assert reassign(controller, "2") == DONE
    assert controller.told("orders") == "2/2/2"
    assert controller.partition("orders").leader_epoch == 1


def test_another_order_is_done_at_once_and_moves_no_leader(controller):
    controller.create("orders", "123")
    assert reassign(controller, "312") == DONE
    assert controller.told("orders") == "312/123/1"
    assert controller.partition("orders").leader_epoch == 0


def test_the_same_replicas_again_change_nothing(controller):
    controller.create("orders", "123")
    written = len(controller.log.records)
    assert reassign(controller, "123") == DONE
    assert len(controller.log.records) == written


def test_giving_up_takes_out_what_was_added(controller):
    controller.create("orders", "12")
    reassign(controller, "34")
    controller.propose("orders", "123")
    assert reassign(controller, None) == DONE
    assert controller.told("orders") == "12/12/1"
    assert reassign(controller, None) == (ErrorCode.no_reassignment_in_progress, None)


def test_one_move_takes_the_place_of_another(controller):
    controller.create("orders", "12")
    reassign(controller, "34")
    reassign(controller, "15")
    assert moving(controller) == {"orders": "15234 +5 -234"}
    controller.propose("orders", "125")
    assert controller.told("orders") == "15/15/1"


def test_a_move_that_takes_nothing_away_leaves_to_go_what_was_going(controller):
    """What Kafka's `changePartitionReassignment` does where nothing is to be removed: it does not say so."""
    controller.create("orders", "12")
    reassign(controller, "34")
    assert reassign(controller, "12345") == DONE
    assert moving(controller) == {"orders": "12345 +5 -12"}


@pytest.mark.parametrize("unclean", ["false", "true"])
def test_giving_up_what_only_new_replicas_have_is_an_unclean_election(unclean):
    controller = ScriptedController(unclean_leader_election_enable=unclean)
    controller.serve(*map(int, BROKERS))
    controller.create("orders", "12")
    reassign(controller, "345")
    controller.propose("orders", "13")
    controller.kill(1)
    assert controller.told("orders") == "34512/3/3"
    error, message = reassign(controller, None)
    if unclean == "true":
        assert error == ErrorCode.none
        assert controller.told("orders") == "12/2/2"
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
def test_what_is_refused(controller, replicas, fields, error):
    controller.create("orders", "12")
    written = len(controller.log.records)
    assert reassign(controller, replicas, **fields)[0] == error
    assert len(controller.log.records) == written


def test_the_replication_factor_is_that_of_the_move_under_way(controller):
    """KIP-860: of a partition that is moving from two replicas to three, three is no change."""
    controller.create("orders", "12")
    reassign(controller, "345")
    fields = {"allow_replication_factor_change": False}
    assert reassign(controller, "34", **fields)[0] == ErrorCode.invalid_replication_factor
    assert reassign(controller, "134", **fields) == DONE


def test_only_what_is_asked_for_is_listed(controller):
    for name in ("orders", "returns"):
        controller.create(name, "12")
        reassign(controller, "34", topic=name)
    assert set(moving(controller)) == {"orders", "returns"}
    only = [{"name": "returns", "partition_indexes": [0, 7]}, {"name": "nowhere", "partition_indexes": [0]}]
    assert set(moving(controller, only)) == {"returns"}


replica_lists = st.permutations(BROKERS).flatmap(lambda order: st.integers(1, 4).map(lambda size: order[:size]))


@settings(max_examples=50)
@given(st.lists(st.one_of(st.none(), replica_lists), max_size=6))
def test_any_moves_come_to_the_last_one(moves):
    """The oracle follows the target alone: a move sets it, giving up sets it back to what was there before."""
    controller = ScriptedController()
    controller.serve(*map(int, BROKERS))
    controller.create("orders", "12")
    target = "12"
    for move in moves:
        before = controller.partition("orders")
        under_way = before.adding_replicas or before.removing_replicas
        error, _ = reassign(controller, None if move is None else "".join(move))
        now = controller.partition("orders")
        if move is not None:
            assert error == ErrorCode.none
            going = {*map(str, before.replicas)} - {*move} or {*map(str, before.removing_replicas)}
            target = "".join(node for node in move if node not in going)
        elif under_way:
            assert error == ErrorCode.none
            target = "".join(str(node) for node in before.replicas if node not in before.adding_replicas)
        else:
            assert error == ErrorCode.no_reassignment_in_progress
        assert set(now.isr) <= set(now.replicas)
        assert now.leader in now.isr
    controller.propose("orders", "".join(map(str, controller.partition("orders").replicas)))
    assert "".join(map(str, controller.partition("orders").replicas)) == target
    assert moving(controller) == {}
