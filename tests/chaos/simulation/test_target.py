"""The target `simulation`: it starts, breaks and heals as any other, and keeps every sequential requirement."""

import pytest

import chaos.targets  # noqa: F401 - registers it
from conformance.engine import run_requirements
from conformance.events import RequirementJudged
from conformance.profiles import PROFILES
from conformance.registry import REQUIREMENTS
from fixtures.clients.raw import ConnectionClosed, RawClient, ResponseTimeout
from fixtures.targets.catalogue import parse_target
from fixtures.targets.target import Capability, LinkControl, ProcessControl, UnknownTargetError

SEQUENTIAL = [requirement for requirement in REQUIREMENTS if not requirement.family]


@pytest.fixture
def simulation():
    with parse_target("simulation") as target:
        yield target


def client_of(target, number):
    node = target.nodes[number]
    return RawClient(node.host, node.port, transport=target.transport, timeout_s=5)


@pytest.mark.slow
def test_every_sequential_requirement_holds(tmp_path):
    events = run_requirements(
        [parse_target("simulation")], SEQUENTIAL, seed=6, profile=PROFILES["ci"], run_dir=tmp_path
    )
    judged = [event for event in events if isinstance(event, RequirementJudged)]
    assert [event.requirement for event in judged] == [requirement.id for requirement in SEQUENTIAL]
    assert {event.requirement: event.reason for event in judged if event.verdict != "ok"} == {}


def test_it_can_be_controlled(simulation):
    assert isinstance(simulation, LinkControl)
    assert isinstance(simulation, ProcessControl)
    assert {Capability.LINK_FAULTS, Capability.PROCESS_CONTROL, Capability.REPLICATION} <= simulation.capabilities


def test_a_dead_node_refuses_and_comes_back(simulation):
    simulation.kill(2)
    with client_of(simulation, 1) as client, pytest.raises(ConnectionClosed, match="b2"):
        client.connect()
    assert simulation.ended_nodes() == {2: ""}
    simulation.restart(2)
    with client_of(simulation, 1) as client:
        assert client.api_versions


def test_a_node_that_shuts_down_ends(simulation):
    simulation.shut_down(3)
    assert list(simulation.ended_nodes()) == [3]


def test_a_paused_node_answers_once_it_goes_on(simulation):
    with client_of(simulation, 0) as client:
        client.connect()
        with simulation.pause(1), pytest.raises(ResponseTimeout):
            client.api_versions  # noqa: B018
        assert client.receive(1)


def test_time_passes_by_waiting_alone(simulation):
    transport = simulation.transport
    before = transport.monotonic()
    assert transport.monotonic() == before
    transport.sleep(3600)
    assert transport.monotonic() == before + 3600


def test_a_cut_link_takes_no_connection(simulation):
    with simulation.cut("client", 1), client_of(simulation, 0) as client, pytest.raises(ResponseTimeout):
        client.connect()
    with client_of(simulation, 0) as client:
        client.connect()


@pytest.mark.parametrize(("name", "nodes"), [("simulation:1", None), ("simulation", 2)])
def test_what_is_not_offered_is_one_line(name, nodes):
    with pytest.raises(UnknownTargetError, match=r"^simulation"):
        parse_target(name, nodes)
