"""The simulated network: under any fault a connection keeps its order, and loses only what is permitted."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reference_broker.simulation.links import Condition, Cut, Link
from reference_broker.simulation.network import CONNECT_TIMEOUT_MS, Network
from reference_broker.simulation.pipe import End, Pipe
from reference_broker.simulation.scheduler import Scheduler
from reference_broker.simulation.trace import Trace

A, B, C = "a", "b", "c"
LISTENER, OTHER_LISTENER = "PLAINTEXT", "REPLICATION"
LONG_MS = 200_000


@dataclass
class Side:
    """One end of a connection: the data that it has received, at which times, and when it was closed."""

    received: list[bytes] = field(default_factory=list)
    closed_at_ms: int | None = None
    at_ms: list[int] = field(default_factory=list)
    """Times at which `received` arrived."""


class World:
    """A network, and connections whose ends record their data."""

    def __init__(self, seed: int = 0, **network: Any) -> None:
        self.scheduler = Scheduler()
        self.network = Network(self.scheduler, Trace(), Random(seed), **network)
        self.listening = {A, B, C}

    def end(self, place: str, side: Side) -> End:
        def received(data: bytes) -> None:
            assert side.closed_at_ms is None, "data after the close"
            side.received.append(data)
            side.at_ms.append(self.scheduler.now_ms)

        def closed() -> None:
            assert side.closed_at_ms is None, "closed twice"
            side.closed_at_ms = self.scheduler.now_ms

        return End(place, received, closed)

    def connect(self, place: str = A, to: str = B, listener: str = LISTENER) -> tuple[Pipe, Side, Side]:
        """Open a connection; return its pipe, and the sides of the opener and the acceptor."""
        opener, acceptor = Side(), Side()

        def accept(_pipe: Pipe) -> End | None:
            return self.end(to, acceptor) if to in self.listening else None

        return self.network.connect(self.end(place, opener), to, listener, accept), opener, acceptor

    def run(self, for_ms: int = 100) -> None:
        self.scheduler.run(for_ms)

    def cut(self, cut: Cut, *link: Any) -> Callable[[], None]:
        """Cut a link, and return the function that heals it."""
        where = Link(*link)
        self.network.set(where, Condition(cut=cut))
        return lambda: self.network.heal(where)


# Connections


def test_data_arrive_in_order_in_both_directions():
    world = World()
    pipe, opener, acceptor = world.connect()
    world.network.send(pipe, b"1", from_opener=True)  # delivered when the connection is established
    world.run()
    assert pipe.is_established
    world.network.send(pipe, b"2", from_opener=True)
    world.network.send(pipe, b"response", from_opener=False)
    world.run()
    assert (acceptor.received, opener.received) == ([b"1", b"2"], [b"response"])


def test_a_connection_without_a_listener_is_reset_at_once():
    world = World()
    world.listening.remove(B)
    _, opener, _ = world.connect()
    world.run()
    assert opener.closed_at_ms == 2


def test_a_close_arrives_after_the_data_and_a_closed_end_receives_nothing():
    world = World(delay_ms=10)
    pipe, opener, acceptor = world.connect()
    world.run()
    world.network.send(pipe, b"on its way", from_opener=False)
    world.network.send(pipe, b"last data", from_opener=True)
    world.network.close(pipe, by_opener=True)
    world.network.send(pipe, b"too late", from_opener=True)
    world.run()
    assert (opener.received, opener.closed_at_ms) == ([], None)
    assert (acceptor.received, acceptor.closed_at_ms) == ([b"last data"], 110)


def test_a_connection_closed_before_it_is_established_reaches_no_acceptor():
    world = World()
    pipe, opener, acceptor = world.connect()
    world.network.send(pipe, b"1", from_opener=True)
    world.network.close(pipe, by_opener=True)
    world.run()
    assert (opener, acceptor) == (Side(), Side())


def test_a_killed_process_closes_its_connections_after_its_data():
    world = World(delay_ms=10)
    pipe, opener, acceptor = world.connect()
    world.run()
    world.network.send(pipe, b"last data", from_opener=False)
    world.network.close_place(B)
    world.run()
    assert (opener.received, opener.closed_at_ms) == ([b"last data"], 110)
    assert acceptor == Side()


def test_a_connection_to_a_machine_without_power_is_reset_when_the_power_is_back_and_data_arrive():
    world = World()
    busy, opener, _ = world.connect()
    idle, idle_opener, _ = world.connect()
    world.run()
    world.network.power_off(B)
    world.network.send(busy, b"1", from_opener=True)
    world.run(60_000)
    assert (opener.closed_at_ms, idle_opener.closed_at_ms) == (None, None)
    world.network.power_on(B)
    world.run()
    assert opener.closed_at_ms is not None, "the data are retransmitted to a machine that no longer has the connection"
    assert idle_opener.closed_at_ms is None
    world.network.send(idle, b"1", from_opener=True)
    world.run()
    assert idle_opener.closed_at_ms is not None


def test_a_machine_accepts_connections_once_its_power_is_back():
    world = World()
    world.network.power_off(B)
    early, late = world.connect(), None
    world.run(6_500)
    assert (early[0].is_established, early[1].closed_at_ms) == (False, None)
    world.network.power_on(B)
    late = world.connect()
    world.run(1_000)
    assert early[0].is_established
    assert late[0].is_established


def test_a_reset_loses_data_in_flight_and_notifies_both_ends():
    world = World(delay_ms=10)
    pipe, opener, acceptor = world.connect()
    world.run()
    world.network.send(pipe, b"lost", from_opener=True)
    world.network.reset(A, B)
    world.run()
    assert (opener.closed_at_ms, acceptor.closed_at_ms, acceptor.received) == (110, 110, [])


@pytest.mark.parametrize("notified", [0, 1])
def test_the_other_end_of_a_half_open_connection_detects_the_reset_when_it_sends(notified):
    world = World()
    pipe, *sides = world.connect()
    world.run()
    world.network.reset(A, B, notifies=(notified == 0, notified == 1))
    world.run(60_000)
    assert sides[notified].closed_at_ms is not None
    assert sides[1 - notified].closed_at_ms is None
    world.network.send(pipe, b"lost", from_opener=notified == 1)
    world.run()
    assert sides[notified].received == []
    assert sides[1 - notified].closed_at_ms is not None


@pytest.mark.parametrize("notifies", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("from_opener", [True, False])
def test_nothing_arrives_after_bytes_that_a_reset_lost(notifies, from_opener):
    """The sender sends again before it is notified of the reset. In some cases neither end is ever notified."""
    world = World(delay_ms=10)
    pipe, *sides = world.connect()
    world.run()
    world.network.send(pipe, b"lost", from_opener=from_opener)
    world.network.reset(A, B, notifies=notifies)
    world.network.send(pipe, b"after it", from_opener=from_opener)
    world.run()
    assert [side.received for side in sides] == [[], []]
    assert sides[0 if from_opener else 1].closed_at_ms is not None, "the sender detects the reset"


# Cuts


@pytest.mark.parametrize("in_flight", [True, False])
def test_held_data_arrive_in_order_once_the_cut_is_healed(in_flight):
    world = World(delay_ms=10)
    pipe, opener, acceptor = world.connect()
    world.run()
    if in_flight:
        world.network.send(pipe, b"1", from_opener=True)
    heal = world.cut(Cut.HOLD, A, B)
    if not in_flight:
        world.network.send(pipe, b"1", from_opener=True)
    world.network.send(pipe, b"2", from_opener=True)
    world.network.send(pipe, b"the other way", from_opener=False)
    world.run(5_000)
    assert (acceptor.received, opener.received) == ([], [b"the other way"]), "only one direction is cut"
    heal()
    world.network.send(pipe, b"3", from_opener=True)
    world.run()
    assert acceptor.received == [b"1", b"2", b"3"]
    assert opener.closed_at_ms is None


def test_a_connection_that_lost_data_is_closed_once_both_directions_are_healed():
    world = World()
    pipe, opener, acceptor = world.connect()
    untouched, *others = world.connect()
    world.run()
    heal, heal_back = world.cut(Cut.LOSE, A, B), world.cut(Cut.HOLD, B, A)
    world.network.send(pipe, b"lost", from_opener=True)
    world.run()
    heal()
    world.network.send(pipe, b"lost too", from_opener=True)
    world.run()
    assert (opener.closed_at_ms, acceptor.closed_at_ms) == (None, None)
    heal_back()
    world.run()
    assert None not in {opener.closed_at_ms, acceptor.closed_at_ms}
    assert acceptor.received == []
    world.network.send(untouched, b"1", from_opener=True)
    world.run()
    assert others[1].received == [b"1"], "this connection has lost nothing"


def test_a_close_waits_for_a_cut_to_heal():
    world = World()
    _, _, acceptor = world.connect()
    world.run()
    heal = world.cut(Cut.HOLD, A, B)
    world.network.close_place(A)
    world.run(50_000)
    assert acceptor.closed_at_ms is None
    heal()
    world.run()
    assert acceptor.closed_at_ms is not None


def test_an_attempt_to_connect_over_a_cut_is_repeated_until_its_timeout():
    world = World()
    heal = world.cut(Cut.LOSE, B, A)  # a cut of the responses is enough
    repeated, opener, _ = world.connect()
    world.run(2_000)
    heal()
    world.run(2_000)
    assert repeated.is_established
    world.cut(Cut.HOLD, A, B)
    _, opener, _ = world.connect()
    world.run(LONG_MS)
    assert opener.closed_at_ms == 4_000 + CONNECT_TIMEOUT_MS


def test_a_link_may_be_limited_to_one_listener_or_one_opener():
    world = World()
    connections = {
        (A, LISTENER): world.connect(A, B, LISTENER),
        (A, OTHER_LISTENER): world.connect(A, B, OTHER_LISTENER),
        (C, LISTENER): world.connect(C, B, LISTENER),
    }
    world.run()

    def reached() -> set[tuple[str, str]]:
        for _, _, acceptor in connections.values():
            acceptor.received.clear()
        for pipe, _, _ in connections.values():
            world.network.send(pipe, b"1", from_opener=True)
        world.run()
        return {key for key, (_, _, acceptor) in connections.items() if acceptor.received}

    assert reached() == set(connections)
    heal = world.cut(Cut.HOLD, A, B, LISTENER)
    assert reached() == {(A, OTHER_LISTENER), (C, LISTENER)}
    heal()
    world.run()
    heal = world.cut(Cut.HOLD, None, B, None, C)
    assert reached() == {(A, LISTENER), (A, OTHER_LISTENER)}


def test_equal_conditions_of_a_link_are_healed_one_by_one():
    world = World()
    pipe, _, acceptor = world.connect()
    world.run()
    link, held = Link(A, B), Condition(cut=Cut.HOLD)
    world.network.set(link, held)
    world.network.set(link, held)
    world.network.send(pipe, b"1", from_opener=True)
    world.network.heal(link, held)
    world.run()
    assert acceptor.received == []
    world.network.heal(link, held)
    world.run()
    assert acceptor.received == [b"1"]


# Speed of a link


def test_delay_and_bandwidth():
    world = World()
    pipe, _, acceptor = world.connect()
    world.run()
    world.network.set(Link(A, B), Condition(delay_ms=20, bytes_per_ms=10))
    world.network.send(pipe, bytes(100), from_opener=True)
    world.network.send(pipe, bytes(50), from_opener=True)
    world.run()
    assert acceptor.at_ms == [100 + 10 + 21, 100 + 10 + 5 + 21], (
        "the second message waits until the first is transmitted"
    )


# Random actions

PLACES = st.sampled_from([A, B])
CONDITIONS = st.one_of(
    st.builds(Condition, cut=st.just(Cut.HOLD)),
    st.builds(Condition, delay_ms=st.integers(0, 50), jitter_ms=st.integers(0, 80)),
    st.builds(Condition, bytes_per_ms=st.integers(1, 20)),
)
LINKS = st.builds(Link, PLACES | st.none(), PLACES | st.none(), st.sampled_from([LISTENER, OTHER_LISTENER, None]))
ACTIONS = st.one_of(
    st.tuples(st.just("send"), st.integers(0, 2), st.booleans(), st.integers(1, 60)),
    st.tuples(st.just("set"), LINKS, CONDITIONS),
    st.tuples(st.just("heal"), st.integers(0, 3)),
    st.tuples(st.just("run"), st.integers(0, 90)),
)


@settings(max_examples=200)
@given(st.lists(ACTIONS, max_size=40), st.integers(0, 2**32))
def test_nothing_is_lost_or_reordered_without_a_fault_that_permits_it(actions, seed):
    world = World(seed, jitter_ms=3)
    connections = [world.connect(listener=LISTENER) for _ in range(2)] + [world.connect(B, A, OTHER_LISTENER)]
    world.run()
    sent: dict[tuple[int, bool], list[bytes]] = {}
    in_force: list[tuple[Link, Condition]] = []
    for number, action in enumerate(actions):
        match action:
            case "send", index, from_opener, size:
                data = number.to_bytes(2, "big") * size
                sent.setdefault((index, from_opener), []).append(data)
                world.network.send(connections[index][0], data, from_opener=from_opener)
            case "set", link, condition:
                world.network.set(link, condition)
                in_force.append((link, condition))
            case "heal", index if in_force:
                world.network.heal(*in_force.pop(index % len(in_force)))
            case "run", for_ms:
                world.run(for_ms)
        for index, (_, opener, acceptor) in enumerate(connections):
            for from_opener, side in ((True, acceptor), (False, opener)):
                so_far = sent.get((index, from_opener), [])
                assert side.received == so_far[: len(side.received)]
    world.network.heal_all()
    world.run(LONG_MS)
    for index, (_, opener, acceptor) in enumerate(connections):
        assert acceptor.received == sent.get((index, True), [])
        assert opener.received == sent.get((index, False), [])
        assert (opener.closed_at_ms, acceptor.closed_at_ms) == (None, None)


FAULTY_ACTIONS = st.one_of(
    ACTIONS,
    st.tuples(st.just("set"), LINKS, st.just(Condition(cut=Cut.LOSE))),
    st.tuples(st.just("close"), st.integers(0, 2), st.booleans()),
    st.tuples(st.just("reset"), st.booleans(), st.booleans()),
    st.tuples(st.sampled_from(["close_place", "power_off", "power_on"]), PLACES),
)


def inject(world: World, pipes: list[Pipe], action: tuple[Any, ...]) -> None:
    network = world.network
    match action:
        case "set", link, condition:
            network.set(link, condition)
        case "heal", _:
            network.heal_all()
        case "close", index, by_opener if by_opener or pipes[index].acceptor.end is not None:
            network.close(pipes[index], by_opener=by_opener)
        case "reset", *notifies:
            network.reset(A, B, notifies=(notifies[0], notifies[1]))
        case ("close_place" | "power_off" | "power_on") as name, place:
            getattr(network, name)(place)
        case "run", for_ms:
            world.run(for_ms)


@settings(max_examples=300)
@given(st.lists(FAULTY_ACTIONS, max_size=40), st.integers(0, 2**32))
@example([("run", 8), ("send", 0, False, 1), ("reset", False, False), ("send", 0, False, 1)], 0)
@example([("run", 20), ("send", 0, True, 1), ("reset", True, False), ("send", 0, True, 1)], 0)
def test_under_any_fault_an_end_receives_a_prefix_of_the_data_and_at_most_one_close(actions, seed):
    """The callbacks of `World.end` assert that no data follow a close. Finally, both ends or neither are closed."""
    world = World(seed, jitter_ms=3)
    connections = [world.connect(listener=LISTENER) for _ in range(2)] + [world.connect(B, A, OTHER_LISTENER)]
    pipes = [pipe for pipe, _, _ in connections]
    sent: dict[tuple[int, bool], list[bytes]] = {}
    for number, action in enumerate(actions):
        if action[0] == "send":
            _, index, from_opener, size = action
            if not from_opener and pipes[index].acceptor.end is None:
                continue  # not accepted yet
            sent.setdefault((index, from_opener), []).append(number.to_bytes(2, "big") * size)
            world.network.send(pipes[index], sent[index, from_opener][-1], from_opener=from_opener)
        else:
            inject(world, pipes, action)
    world.network.heal_all()
    for place in (A, B):
        world.network.power_on(place)
    world.run(LONG_MS)
    for index, (pipe, opener, acceptor) in enumerate(connections):
        for from_opener, side in ((True, acceptor), (False, opener)):
            assert side.received == sent.get((index, from_opener), [])[: len(side.received)]
            world.network.send(pipe, b"still there?", from_opener=from_opener)
    world.run(LONG_MS)
    for pipe in pipes:
        assert pipe.opener.is_gone == (pipe.acceptor.is_gone or pipe.acceptor.end is None)
        assert pipe.opener.is_gone != (pipe in world.network._pipes)
