"""Placement of replicas: properties that hold for any cluster, and the stripes of Kafka's own example."""

import random
from collections import Counter

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from reference_broker.core.controller.errors import ControllerError
from reference_broker.core.controller.placement import UsableBroker, place_replicas
from reference_broker.protocol.errors import ErrorCode

racks = st.sampled_from([None, "a", "b", "c"])
brokers = st.lists(st.tuples(racks, st.booleans()), min_size=1, max_size=9).map(
    lambda drawn: [UsableBroker(node_id, rack, fenced) for node_id, (rack, fenced) in enumerate(drawn, 1)]
)


@st.composite
def placements(draw, of=brokers):
    """Draw a cluster with an unfenced broker, and the placement of partitions on it."""
    cluster = draw(of)
    assume(not all(broker.fenced for broker in cluster))
    factor = draw(st.integers(1, len(cluster)))
    random_below = random.Random(draw(st.integers(0, 2**32))).randrange
    return cluster, place_replicas(cluster, draw(st.integers(1, 25)), factor, random_below)


def most_even(sizes, count):
    """Return the sorted numbers of replicas per rack if all racks that have an unused broker take turns."""
    given = [0] * len(sizes)
    while sum(given) < count:
        least = min(
            (rack for rack, size in enumerate(sizes) if given[rack] < size), key=lambda rack: (given[rack], rack)
        )
        given[least] += 1
    return sorted(given)


@given(placements())
def test_replicas_are_distinct_and_start_with_an_unfenced_broker(placed):
    cluster, partitions = placed
    unfenced = {broker.node_id for broker in cluster if not broker.fenced}
    for replicas in partitions:
        assert len(set(replicas)) == len(replicas) == len(partitions[0])
        assert set(replicas) <= {broker.node_id for broker in cluster}
        assert replicas[0] in unfenced


@given(placements(brokers.map(lambda cluster: [UsableBroker(broker.node_id, broker.rack) for broker in cluster])))
def test_replicas_are_spread_evenly_over_racks(placed):
    cluster, partitions = placed
    rack_of = {broker.node_id: broker.rack for broker in cluster}
    sizes = Counter(rack_of.values())
    for replicas in partitions:
        used = Counter(rack_of[replica] for replica in replicas)
        assert sorted(used[rack] for rack in sizes) == most_even(list(sizes.values()), len(replicas))


@given(placements())
def test_fenced_brokers_are_used_last_in_their_rack(placed):
    cluster, partitions = placed
    for replicas in partitions:
        for broker in cluster:
            if broker.fenced and broker.node_id in replicas:
                others = {other.node_id for other in cluster if other.rack == broker.rack and not other.fenced}
                assert others <= set(replicas)


@given(placements(st.integers(1, 7).map(lambda size: [UsableBroker(node_id) for node_id in range(1, size + 1)])))
def test_leaders_are_spread_evenly(placed):
    cluster, partitions = placed
    led = Counter(replicas[0] for replicas in partitions)
    assert max(led.values()) - min(led[broker.node_id] for broker in cluster) <= 1


def test_replicas_are_placed_in_stripes():
    """This is the example in the documentation of `StripedReplicaPlacer`: three racks of three brokers."""
    cluster = [UsableBroker(10 * rack + broker, "abc"[rack]) for rack in range(3) for broker in range(3)]
    placed = place_replicas(cluster, 3, 3, lambda below: below - 1)
    leaders, followers = zip(*((replicas[0], replicas[1:]) for replicas in placed), strict=True)
    assert leaders == (20, 1, 12)
    assert followers == ((0, 10), (11, 21), (22, 2))


@pytest.mark.parametrize(
    ("cluster", "factor", "message"),
    [
        ([UsableBroker(1)], 0, "Invalid replication factor 0: the replication factor must be positive."),
        ([UsableBroker(1, fenced=True)], 1, "All brokers are currently fenced, or have all their log directories"),
        ([UsableBroker(1), UsableBroker(2, fenced=True)], 3, "because only 2 broker(s) are registered or some"),
    ],
)
def test_impossible_placements_are_rejected(cluster, factor, message):
    with pytest.raises(ControllerError) as raised:
        place_replicas(cluster, 1, factor, lambda _: 0)
    assert raised.value.code is ErrorCode.invalid_replication_factor
    assert message in str(raised.value)
