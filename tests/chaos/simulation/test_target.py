"""Target `simulation`: its nodes, links and clock can be controlled, and it satisfies every requirement."""

import pytest

import chaos.targets  # noqa: F401 - registers the target
from chaos.defects.registry import defect
from conformance.engine import run_requirements
from conformance.events import RequirementJudged
from conformance.profiles import PROFILES, Profile
from conformance.registry import REQUIREMENTS
from conformance.targets import target_of_requirements
from fixtures.clients.raw import ConnectionClosed, RawClient, ResponseTimeout
from fixtures.targets.catalogue import parse_target
from fixtures.targets.controls import LinkedTarget, LogDirectories, MembershipControl, ProcessTarget
from fixtures.targets.target import Capability, TargetError, UnknownTargetError
from linearizability.history.reader import open_history
from linearizability.history.schema import SCHEMAS
from tests.conformance.tamperings import NOT_ON_REFERENCE
from tests.sampling import part


@pytest.fixture
def simulation():
    with parse_target("simulation") as target:
        yield target


def client_of(target, number):
    node = target.nodes[number]
    return RawClient(node.host, node.port, transport=target.transport, timeout_s=5)


SHORT = Profile("short", scripts_max=15, shrink_seconds=0.0)


def judged(run_dir, *names, profile=SHORT):
    """Return the findings of the named requirements by id, or of all requirements if none is named."""
    chosen = [requirement for requirement in REQUIREMENTS if not names or requirement.id in names]
    events = run_requirements([target_of_requirements("simulation")], chosen, seed=6, profile=profile, run_dir=run_dir)
    return {event.finding.requirement: event.finding for event in events if isinstance(event, RequirementJudged)}


SAMPLE = 12


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_sample_of_the_requirements_passes(tmp_path):
    assert_passed([requirement.id for requirement in part(REQUIREMENTS, SAMPLE)], tmp_path)


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_every_requirement_passes(tmp_path):
    assert_passed([requirement.id for requirement in REQUIREMENTS], tmp_path)


def assert_passed(names, tmp_path):
    found = judged(tmp_path, *names, profile=PROFILES["ci"])
    assert list(found) == names
    failed = {name: event.reason for name, event in found.items() if event.verdict != "ok"}
    assert {name for name, reason in failed.items() if "does not offer" not in reason} == set()
    assert failed.keys() <= NOT_ON_REFERENCE.keys()


@pytest.mark.parametrize(
    ("name", "requirement"),
    [
        ("acknowledge-before-replication", "produce/acks-all-holds-for-isr"),
        ("accept-any-acks", "produce/invalid-acks-are-rejected"),
        ("append-before-the-acks-are-checked", "produce/rejected-request-leaves-no-record"),
    ],
)
def test_a_wrong_response_is_detected(tmp_path, name, requirement):
    with defect(name).seeded():
        (event,) = judged(tmp_path, requirement).values()
    assert event.verdict == "violation"


def test_the_same_seed_gives_the_same_history(tmp_path):
    for run in ("one", "other"):
        judged(tmp_path / run, "idempotence/no-duplicates-on-retry", "leadership/unclean-election-when-enabled")
    for path in sorted((tmp_path / "one" / "histories").glob("*/*")):
        histories = [open_history(path), open_history(tmp_path / "other" / path.relative_to(tmp_path / "one"))]
        assert histories[0].table("operations").num_rows > 50
        for table in SCHEMAS:
            assert histories[0].table(table).equals(histories[1].table(table))


def test_the_simulation_has_all_controls(simulation):
    assert isinstance(simulation, LinkedTarget)
    assert isinstance(simulation, ProcessTarget)
    assert isinstance(simulation, MembershipControl)
    assert isinstance(simulation, LogDirectories)
    network_and_processes = {Capability.LINK_FAULTS, Capability.CLIENT_LINK_FAULTS, Capability.PROCESS_CONTROL}
    assert network_and_processes | {Capability.REPLICATION, Capability.LOG_DIRECTORIES} <= simulation.capabilities


def test_a_killed_node_refuses_connections_until_its_restart(simulation):
    simulation.processes.kill(2)
    with client_of(simulation, 1) as client, pytest.raises(ConnectionClosed, match="b2"):
        client.connect()
    assert simulation.processes.ended() == {2: ""}
    simulation.processes.restart(2)
    with client_of(simulation, 1) as client:
        assert client.api_versions


def test_a_node_that_shuts_down_ends(simulation):
    simulation.processes.shut_down(3)
    assert list(simulation.processes.ended()) == [3]


def test_changes_in_the_directory_of_a_stopped_node_are_on_its_disk_after_a_restart(simulation):
    simulation.processes.kill(2)
    (directory,) = simulation.log_directories(2)
    (directory / "lost+found").write_text("damage")
    assert simulation.log_directories(2) == (directory,)
    simulation.processes.restart(2)
    (directory,) = simulation.log_directories(2)
    assert (directory / "lost+found").read_text() == "damage"
    assert simulation.cluster.machines[2].disk.files["lost+found"] == b"damage"


def test_a_broker_joins_and_leaves(simulation):
    joined = simulation.add_broker()
    assert [node.id for node in simulation.nodes] == [1, 2, 3, joined.id]
    with client_of(simulation, 3) as client:
        client.connect()
    simulation.remove_broker(joined.id)
    assert [node.id for node in simulation.nodes] == [1, 2, 3]
    assert simulation.processes.ended() == {}
    with pytest.raises(TargetError, match="controller"):
        simulation.remove_broker(1)


def test_a_paused_node_responds_when_it_is_resumed(simulation):
    with client_of(simulation, 0) as client:
        client.connect()
        with simulation.processes.pause(1), pytest.raises(ResponseTimeout):
            client.api_versions  # noqa: B018
        assert client.receive(1)


def test_virtual_time_passes_only_while_waiting(simulation):
    transport = simulation.transport
    before = transport.monotonic()
    assert transport.monotonic() == before
    transport.sleep(600)
    assert transport.monotonic() == before + 600


def test_a_cut_link_accepts_no_connection(simulation):
    with simulation.links.cut("client", 1), client_of(simulation, 0) as client, pytest.raises(ResponseTimeout):
        client.connect()
    with client_of(simulation, 0) as client:
        client.connect()


@pytest.mark.parametrize(("name", "nodes"), [("simulation:1", None), ("simulation", 2)])
def test_an_unsupported_option_is_an_error_of_one_line(name, nodes):
    with pytest.raises(UnknownTargetError, match=r"^simulation"):
        parse_target(name, nodes)
