"""Garbage collections of a node: most of them visit only new objects."""

import gc
import weakref

import pytest

from reference_broker.server.garbage_collection import COMPLETE_EVERY, GarbageCollection

_OBJECTS = 200_000


class Cycle:
    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def garbage():
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

    def collected(phase, info):
        if phase == "start" and info["generation"] == 2:
            visited.append(len(gc.get_objects()))

    gc.callbacks.append(collected)
    yield visited
    gc.callbacks.remove(collected)


def test_objects_are_visited_once_after_they_have_survived(garbage, full_collections):
    assert not garbage.is_due
    kept = [[] for _ in range(_OBJECTS)]
    assert full_collections == [], "Python has visited all objects by itself"
    assert garbage.is_due
    garbage.collect()
    assert not garbage.is_due
    garbage.collect()
    first, second = full_collections
    assert first > len(kept)
    assert second < _OBJECTS / 10


def test_a_cycle_that_ends_before_its_objects_are_frozen_is_collected(garbage):
    cycle = weakref.ref(Cycle())
    garbage.collect()
    assert cycle() is None


def test_a_cycle_that_ends_later_is_collected_with_all_objects(garbage):
    kept = Cycle()
    cycle = weakref.ref(kept)
    garbage.collect()
    del kept
    garbage.collect()
    assert cycle() is not None, "it is frozen"
    for _ in range(COMPLETE_EVERY):
        garbage.collect()
    assert cycle() is None
