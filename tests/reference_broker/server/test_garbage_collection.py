"""Garbage collections of a node: most of them visit only new objects, and every nth visits all objects."""

import gc
import weakref

import pytest

from reference_broker.server.garbage_collection import COMPLETE_EVERY, GarbageCollection

_OBJECTS = 200_000


class Cycle:
    """A reference cycle of one object."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def collector():
    """Start a `GarbageCollection`; afterwards, restore the settings of Python's collector."""
    thresholds = gc.get_threshold()
    collection = GarbageCollection()
    collection.start()
    yield collection
    gc.set_threshold(*thresholds)
    gc.unfreeze()


@pytest.fixture
def full_collections():
    """Yield a list to which each full collection adds the number of visited objects."""
    visited = []

    def on_collection(phase, info):
        if phase == "start" and info["generation"] == 2:
            visited.append(len(gc.get_objects()))  # all objects but frozen ones

    gc.callbacks.append(on_collection)
    yield visited
    gc.callbacks.remove(on_collection)


def test_an_object_is_visited_by_one_full_collection(collector, full_collections):
    assert not collector.is_due
    kept = [[] for _ in range(_OBJECTS)]
    assert full_collections == [], "Python has visited all objects by itself"
    assert collector.is_due
    collector.collect()
    assert not collector.is_due
    collector.collect()
    first, second = full_collections
    assert first > len(kept)
    assert second < _OBJECTS / 10


def test_a_cycle_that_is_unreachable_at_the_next_collection_is_freed(collector):
    cycle = weakref.ref(Cycle())
    collector.collect()
    assert cycle() is None


def test_a_cycle_that_becomes_unreachable_later_is_freed_by_a_collection_of_all_objects(collector):
    kept = Cycle()
    cycle = weakref.ref(kept)
    collector.collect()
    del kept
    collector.collect()
    assert cycle() is not None, "it is frozen"
    for _ in range(COMPLETE_EVERY):
        collector.collect()
    assert cycle() is None
