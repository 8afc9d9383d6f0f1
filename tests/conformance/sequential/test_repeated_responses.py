"""Comparison of responses to equal requests: what differs, and what may."""

import uuid
from dataclasses import dataclass
from typing import Any

import pytest

from conformance.sequential.repeated_responses import Returned, decreased, differing
from conformance.sequential.symbols import ScriptSymbols


@dataclass(frozen=True)
class Partition:
    partition_index: int
    leader_epoch: int = 0
    replica_nodes: tuple[int, ...] = (1, 2)
    isr_nodes: tuple[int, ...] = (1, 2)


@dataclass(frozen=True)
class Topic:
    name: str | None
    partitions: tuple[Partition, ...]
    topic_id: Any = None


@dataclass(frozen=True)
class New:
    """A response in a version with more fields than that of `Old`."""

    topics: tuple[Any, ...]
    throttle_time: int = 0
    added: int = 7


@dataclass(frozen=True)
class Old:
    topics: tuple[Any, ...]


@dataclass(frozen=True)
class OldTopic:
    name: str
    partitions: tuple[Partition, ...]


ID = uuid.UUID(int=5)
ONE = Topic("trial-x", (Partition(0), Partition(1)), ID)
ANOTHER_EPOCH = "topics[trial].partitions[0].leader_epoch was 0 in v2 of broker 1, 1 in v2 of broker 2"


def compared(first: Any, second: Any, *varying: str) -> tuple[str, ...]:
    symbols = ScriptSymbols("x")
    symbols.saw_topic_id("trial", ID)
    return differing([Returned(2, 1, first), Returned(2, 2, second)], varying, symbols)


@pytest.mark.parametrize(
    ("second", "found"),
    [
        (New((ONE,)), ()),
        (New((ONE,), throttle_time=5), ()),
        (New((Topic("trial-x", (Partition(1), Partition(0)), ID),)), ()),
        (New((Topic("trial-x", (Partition(0, isr_nodes=(2, 1)), Partition(1)), ID),)), ()),
        (Old((OldTopic("trial-x", (Partition(0), Partition(1))),)), ()),
        (New((Topic("trial-x", (Partition(0, 1), Partition(1)), ID),)), (ANOTHER_EPOCH,)),
        (Old((OldTopic("trial-x", (Partition(0, 1), Partition(1))),)), (ANOTHER_EPOCH,)),
        (
            New((Topic("trial-x", (Partition(0),), ID),)),
            ("topics[trial].partitions was ('0', '1') in v2 of broker 1, ('0',) in v2 of broker 2",),
        ),
        (
            New((Topic("trial-x", (Partition(0, replica_nodes=(2, 1)), Partition(1)), ID),)),
            ("topics[trial].partitions[0].replica_nodes was (1, 2) in v2 of broker 1, (2, 1) in v2 of broker 2",),
        ),
        (New((ONE,), added=8), ("added was 7 in v2 of broker 1, 8 in v2 of broker 2",)),
    ],
)
def test_fields_that_both_versions_have_are_compared(second, found):
    assert compared(New((ONE,)), second) == found


@dataclass(frozen=True)
class Listed:
    group_id: str
    group_state: str = "Empty"


def test_groups_of_other_clients_are_not_compared():
    mine, stable = Listed("trial-x"), Listed("trial-x", "Stable")
    assert compared(Old((mine, Listed("other"))), Old((mine, Listed("another"), Listed("third")))) == ()
    assert compared(Old((mine,)), Old((stable,))) == (
        "topics[trial].group_state was 'Empty' in v2 of broker 1, 'Stable' in v2 of broker 2",
    )


def test_a_field_that_may_vary_is_not_compared():
    assert compared(New((ONE,)), New((ONE,), added=8), "added") == ()


def test_a_topic_without_a_name_is_matched_by_its_id():
    first, second = (Topic(None, (Partition(0, epoch),), ID) for epoch in (0, 1))
    assert compared(first := Old((first,)), first) == ()
    assert compared(first, Old((second,))) == (ANOTHER_EPOCH,)


def test_elements_with_the_same_name_are_matched_by_their_position():
    twice = (Partition(0, 3), Partition(0, 4))
    assert compared(Old(twice), Old(twice)) == ()
    assert compared(Old(twice), Old(twice[:1]))[0].startswith("topics was ('0 0', '0 1') in ")


@pytest.mark.parametrize(
    ("epochs", "found"),
    [
        ((0, 0, 1, 3), ()),
        (
            (0, 2, 1),
            ("topics[trial].partitions[0].leader_epoch was 2 in v1 of broker 1, and then 1 in v2 of broker 1",),
        ),
        (
            (2, 1, 0),
            ("topics[trial].partitions[0].leader_epoch was 2 in v0 of broker 1, and then 1 in v1 of broker 1",),
        ),
    ],
)
def test_a_rising_field_that_decreases_is_found(epochs, found):
    returned = [Returned(version, 1, _with_epoch(epoch)) for version, epoch in enumerate(epochs)]
    assert decreased(returned, {"leader_epoch"}, ScriptSymbols("x")) == found
    assert decreased(returned, {"partition_index"}, ScriptSymbols("x")) == ()


def test_a_rising_field_may_be_lower_on_another_broker():
    returned = [Returned(0, 1, _with_epoch(5)), Returned(0, 2, _with_epoch(3)), Returned(1, 1, _with_epoch(5))]
    assert decreased(returned, {"leader_epoch"}, ScriptSymbols("x")) == ()


def _with_epoch(epoch: int) -> Any:
    return New((Topic("trial", (Partition(0, epoch),), ID),))
