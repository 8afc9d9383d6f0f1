"""Faults of the machines of a simulated cluster, and their effects on other nodes and clients."""

from itertools import pairwise
from typing import Any

import pytest

from reference_broker.core.broker_lifecycle_manager import BrokerState
from reference_broker.simulation.clock import WALL_START_MS
from reference_broker.simulation.cluster import REPLICATION, SimulatedCluster
from reference_broker.simulation.disk import Failure
from reference_broker.simulation.links import Condition, Cut, Link
from reference_broker.simulation.machine import Machine

SESSION_MS = 3_000
PROPERTIES = {
    "broker.session.timeout.ms": str(SESSION_MS),
    "broker.heartbeat.interval.ms": "500",
    "replica.lag.time.max.ms": "2000",
}
API_VERSIONS_0 = bytes.fromhex("0012000000000007ffff")


def ready(**arguments: Any) -> SimulatedCluster:
    cluster = SimulatedCluster(3, properties=PROPERTIES, **arguments)
    assert cluster.await_ready()
    return cluster


@pytest.fixture
def cluster() -> SimulatedCluster:
    return ready()


class Caller:
    """A client that sends ApiVersions to one node."""

    def __init__(self, cluster: SimulatedCluster, node_id: int = 1, place: str = "client") -> None:
        self.responses: list[int] = []
        self.is_closed = False
        self._scheduler = cluster.scheduler
        self._connection = cluster.connect(place, node_id, self._received, self._closed)

    def send(self) -> None:
        self._connection.send(len(API_VERSIONS_0).to_bytes(4, "big") + API_VERSIONS_0)

    def _received(self, _data: bytes) -> None:
        self.responses.append(self._scheduler.now_ms)

    def _closed(self) -> None:
        self.is_closed = True


def active_controller(cluster: SimulatedCluster) -> int:
    return next(number for number, node in cluster.nodes.items() if node.controller and node.controller.is_active)


def fenced(cluster: SimulatedCluster) -> set[int]:
    brokers = cluster.nodes[active_controller(cluster)].metadata.image.brokers
    return {number for number, broker in brokers.items() if broker.fenced}


# Process


def test_a_killed_process_closes_its_connections_and_starts_again_on_its_disk(cluster):
    caller = Caller(cluster)
    cluster.scheduler.run(100)
    cluster.kill(1)
    cluster.scheduler.run(100)
    assert caller.is_closed
    assert (cluster.machines[1].ended_by, cluster.machines[1].failed) == ("kill", "")
    rejected = Caller(cluster)
    cluster.scheduler.run(10)
    assert rejected.is_closed
    cluster.start(1)
    assert cluster.await_ready()


def test_a_node_that_shuts_down_ends_by_itself(cluster):
    cluster.shut_down(3)
    assert not cluster.has_stopped(3)
    cluster.scheduler.run(2_000)
    assert cluster.has_stopped(3)
    assert cluster.machines[3].ended_by == "stop"
    cluster.start(3)
    assert cluster.await_ready()


def test_a_paused_machine_processes_requests_later_and_in_order(cluster):
    caller, machine = Caller(cluster), cluster.machines[1]
    cluster.scheduler.run(100)
    seen: list[int] = []
    machine.settled.append(lambda settled: seen.append(settled.incarnation))
    machine.pause()
    for _ in range(3):
        caller.send()
    cluster.scheduler.run(1_000)
    assert (caller.responses, seen, caller.is_closed) == ([], [], False)
    resumed_ms = cluster.scheduler.now_ms
    machine.resume()
    cluster.scheduler.run(10)
    assert [at_ms - resumed_ms for at_ms in caller.responses] == [1, 1, 1]


def test_a_machine_that_is_paused_for_long_is_fenced_and_comes_back(cluster):
    victim = next(number for number in cluster.nodes if number != active_controller(cluster))
    cluster.machines[victim].pause()
    cluster.scheduler.run(2 * SESSION_MS)
    assert fenced(cluster) == {victim}
    cluster.machines[victim].resume()
    cluster.scheduler.run(2 * SESSION_MS)
    assert fenced(cluster) == set()


def test_a_wiped_disk_is_another_directory(cluster):
    before = cluster.nodes[3].runtime.identity.directory_id
    cluster.kill(3)
    cluster.wipe(3)
    cluster.start(3)
    cluster.scheduler.run(2 * SESSION_MS)
    assert cluster.nodes[3].runtime.identity.directory_id != before


# Power and disk


def test_a_power_cut_notifies_no_peer(cluster):
    caller = Caller(cluster)
    cluster.scheduler.run(100)
    cluster.cut_power(1)
    caller.send()
    cluster.scheduler.run(30_000)
    assert (caller.is_closed, caller.responses) == (False, [])
    cluster.start(1)
    cluster.scheduler.run(100)
    assert caller.is_closed
    assert cluster.await_ready()


def test_a_power_cut_during_a_write_ends_the_machine(cluster):
    machine = cluster.machines[active_controller(cluster)]
    machine.disk.crashes_after = 1
    cluster.scheduler.run(2_000)
    assert (machine.node, machine.ended_by) == (None, "power")
    assert machine.disk.crashes_after is None
    cluster.start(machine.node_id)
    assert cluster.await_ready()


def test_a_node_ends_when_its_disk_fails_and_cannot_start_before_the_disk_is_repaired(cluster):
    machine = cluster.machines[active_controller(cluster)]
    failure = Failure(operation="append")
    machine.disk.failures.append(failure)
    cluster.scheduler.run(2_000)
    assert machine.node is None
    assert machine.failed.startswith("OSError")
    machine.disk.failures[:] = [Failure()]
    cluster.start(machine.node_id)
    assert (machine.node, machine.ended_by) == (None, "failed")
    machine.disk.failures.clear()
    cluster.start(machine.node_id)
    assert cluster.await_ready()


def test_responses_are_sent_after_a_slow_flush_and_requests_wait_meanwhile(cluster):
    leader = active_controller(cluster)
    machine, caller = cluster.machines[leader], Caller(cluster, leader)
    cluster.scheduler.run(100)
    machine.disk.flush_ms = 200
    events: list[int] = []
    machine.settled.append(lambda _: events.append(cluster.scheduler.now_ms))
    for _ in range(40):
        caller.send()
        cluster.scheduler.run(50)
    assert len(caller.responses) > 20, "it is slow, and continues"
    early_ms = [at_ms for at_ms in caller.responses if at_ms - 1 not in events]
    assert early_ms == [], "a response is sent at the end of an event, or of a flush"
    gaps = {later - earlier for earlier, later in pairwise(events)}
    assert max(gaps) >= 200, "while the disk works nothing happens"
    assert cluster.await_ready()


# Clocks


def test_timers_follow_the_machines_own_clock_and_jumps_of_the_wall_clock_do_not_matter():
    fires: dict[int, int] = {}
    cluster = ready()

    def count(machine: Machine) -> None:
        fires[machine.node_id] = fires.get(machine.node_id, 0) + 1

    followers = [number for number in cluster.nodes if number != active_controller(cluster)]
    for number in followers:
        cluster.machines[number].settled.append(count)
    cluster.scheduler.run(20_000)
    usual = dict(fires)
    fires.clear()
    cluster.machines[followers[0]].drift_clock(500_000)
    cluster.machines[followers[1]].jump_clock(-3_600_000)
    cluster.scheduler.run(20_000)
    assert fires[followers[0]] > 1.1 * usual[followers[0]], "its timers fire half as often again"
    assert 0.9 < fires[followers[1]] / usual[followers[1]] < 1.1
    assert cluster.machines[followers[1]].now.wall_ms == WALL_START_MS + cluster.scheduler.now_ms - 3_600_000
    cluster.machines[followers[0]].drift_clock(0)
    assert cluster.await_ready()


# Network and shape of the cluster


def test_one_client_or_one_listener_can_be_cut_off(cluster):
    near, far = Caller(cluster, place="near"), Caller(cluster, place="far")
    cluster.scheduler.run(100)
    cluster.network.set(Link("far", "1"), Condition(cut=Cut.HOLD))
    near.send()
    far.send()
    cluster.scheduler.run(100)
    assert (len(near.responses), len(far.responses)) == (1, 0)
    for other in ("2", "3"):
        cluster.network.set(Link("1", other, REPLICATION), Condition(cut=Cut.LOSE))
        cluster.network.set(Link(other, "1", REPLICATION), Condition(cut=Cut.LOSE))
    cluster.scheduler.run(2 * SESSION_MS)
    assert fenced(cluster) == set(), "heartbeats go to the controller's listener"
    cluster.network.heal_all()
    cluster.scheduler.run(100)
    assert len(far.responses) == 1


def test_a_broker_can_be_added_and_observers_are_notified(cluster):
    added: list[int] = []
    cluster.added.append(lambda machine: added.append(machine.node_id))
    cluster.add_broker(4, {"broker.rack": "elsewhere"})
    assert cluster.await_ready()
    assert added == [4]
    image = cluster.nodes[1].metadata.image
    assert set(image.brokers) == {1, 2, 3, 4}
    assert image.brokers[4].rack == "elsewhere"


def test_properties_of_one_node():
    cluster = ready(node_properties={2: {"broker.rack": "east"}})
    racks = {number: broker.rack for number, broker in cluster.nodes[1].metadata.image.brokers.items()}
    assert racks == {1: None, 2: "east", 3: None}


def test_a_node_that_is_not_ready_accepts_connections_of_controllers_only():
    cluster = SimulatedCluster(3, properties=PROPERTIES)
    early = Caller(cluster)
    cluster.scheduler.run(2)
    assert early.is_closed
    assert cluster.await_ready()
    states = {node.broker.lifecycle.state for node in cluster.nodes.values() if node.broker}
    assert states == {BrokerState.RUNNING}
