"""Which directions a network fault means, and that the simulation means the same."""

import pytest

from chaos.faults import Cut, Isolate, Ring, Role, Slow, Split
from chaos.links import CLIENT, pairs_of

NODES = (1, 2, 3)


def find(name):
    return {Role.LEADER: 2, Role.FOLLOWER: 1}.get(name, name if isinstance(name, int) else None)


@pytest.mark.parametrize(
    ("fault", "pairs"),
    [
        (Cut(Role.LEADER, 3), {(2, 3)}),
        (Cut(Role.LEADER, 3, both_ways=True), {(2, 3), (3, 2)}),
        (Cut(Role.CLIENTS, Role.LEADER), {(CLIENT, 2)}),
        (Cut(Role.LEADER, 2), set()),
        (Cut(Role.CONTROLLER, 2), set()),
        (Slow(Role.LEADER, Role.FOLLOWER), {(2, 1), (1, 2)}),
        (Isolate(Role.LEADER), {(2, 1), (1, 2), (2, 3), (3, 2)}),
        (Isolate(1, from_clients=True), {(1, 2), (2, 1), (1, 3), (3, 1), (1, CLIENT), (CLIENT, 1)}),
        (Isolate(Role.CONTROLLER), set()),
        (Split((Role.LEADER,)), {(2, 1), (1, 2), (2, 3), (3, 2)}),
        (Ring(), {(3, 1), (1, 2), (2, 3)}),
    ],
)
def test_the_directions_of_a_fault(fault, pairs):
    assert set(pairs_of(fault, NODES, find)) == pairs


def test_in_a_ring_of_five_each_node_hears_from_two_others():
    cut = pairs_of(Ring(), (1, 2, 3, 4, 5), find)
    heard = {node: {1, 2, 3, 4, 5} - {node} - {source for source, to in cut if to == node} for node in range(1, 6)}
    assert heard == {1: {2, 3}, 2: {3, 4}, 3: {4, 5}, 4: {5, 1}, 5: {1, 2}}
