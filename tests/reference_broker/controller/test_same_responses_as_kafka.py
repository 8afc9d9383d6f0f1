"""Comparison of the reference controller with Apache Kafka's: the same requests must get the same responses.

The brokers of the scenarios are fictitious: the test registers them, sends their heartbeats, and proposes ISRs for
them. Each controller also has one broker that no scenario uses. For Kafka's controller, this broker is real.
"""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from fixtures.clients.raw import RawClient
from fixtures.targets.catalogue import parse_target
from fixtures.targets.target import NotInstalledError
from reference_broker.core.metadata.bootstrap import SUPPORTED_FEATURES
from reference_broker.protocol.errors import error_code
from tests.reference_broker.conftest import KAFKA_VERSION
from tests.reference_broker.controller.scripted_controller import CLUSTER, ScriptedController
from tests.reference_broker.requests import request

pytestmark = pytest.mark.java

CAUGHT_UP_OFFSET = 2**40
"""Metadata offset far above every real one: a broker that reports it has caught up."""
FEATURES = [
    {"name": name, "min_supported_version": lowest, "max_supported_version": highest}
    for name, (lowest, highest) in SUPPORTED_FEATURES.items()
]


class Kafka:
    """One node of Apache Kafka, reached by its controller listener and its broker listener."""

    def __init__(self, controller: RawClient, broker: RawClient, cluster_id: str) -> None:
        self._controller = controller
        self._broker = broker
        self.cluster_id = cluster_id

    def request(self, api: str, version: int, **fields: Any) -> Any:
        return self._controller.request(request(api, version, **fields))

    def leadership(self, name: str) -> tuple[int, int, tuple[int, ...]]:
        """Return leader, leader epoch and ISR of the topic's only partition."""
        time.sleep(0.3)  # The real broker must apply the last change before it responds.
        [topic] = self._broker.request(request("Metadata", 12, topics=[{"name": name}])).topics
        [partition] = topic.partitions
        return partition.leader_id, partition.leader_epoch, tuple(partition.isr_nodes)


class ReferenceController(ScriptedController):
    """The reference controller, with one broker that no scenario uses."""

    cluster_id = CLUSTER

    def __init__(self) -> None:
        super().__init__()
        self.serve(1)
        self.heartbeat(1, current_metadata_offset=CAUGHT_UP_OFFSET)

    def leadership(self, name: str) -> tuple[int, int, tuple[int, ...]]:
        partition = self.partition(name)
        return partition.leader, partition.leader_epoch, partition.isr


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    work_dir = tmp_path_factory.mktemp("kafka")
    try:
        cluster = parse_target(f"apache-kafka:{KAFKA_VERSION}", 1, work_dir=work_dir, mesh=False)
    except NotInstalledError as error:
        pytest.skip(str(error))
    with cluster:
        [properties] = [path.read_text() for path in work_dir.rglob("*.properties") if "CONTROLLER" in path.read_text()]
        [(host, port)] = re.findall(r"CONTROLLER\\?://([\d.]+)\\?:(\d+)", properties.split("advertised")[0])
        [cluster_id] = set(re.findall(r"cluster.id=(\S+)", _meta_properties(work_dir)))
        [node] = cluster.nodes
        with RawClient(host, int(port)) as controller, RawClient(node.host, node.port) as broker:
            kafka = Kafka(controller, broker, cluster_id)
            # The reference controller has no eligible leader replicas, so they are disabled in Kafka too.
            update = {"feature": "eligible.leader.replicas.version", "max_version_level": 0, "upgrade_type": 2}
            response = kafka.request("UpdateFeatures", 2, feature_updates=[update], timeout=10_000)
            assert response.error_code == 0, response
            yield kafka


def _meta_properties(work_dir: Path) -> str:
    return next(work_dir.rglob("meta.properties")).read_text()


class Scenario:
    """Requests to one controller.

    A scenario identifies its brokers by small numbers. The keyword arguments of a request override its default fields.

    :param base_id: number that is added to the number of a broker to get its id. It differs between the scenarios,
        because they use the same cluster of Kafka.
    :ivar results: the parts of the responses that must be the same for both controllers.
    :ivar broker_epochs: the broker epochs by number, from the last accepted registrations.
    :ivar partition_epochs: leader epoch and partition epoch of the next proposal. An accepted proposal updates them.
        After other changes of the partition, the scenario must set them.
    """

    def __init__(self, controller: Any, base_id: int) -> None:
        self._controller = controller
        self._base_id = base_id
        self.results: list[Any] = []
        self.broker_epochs: dict[int, int] = {}
        self.topic_id: UUID | None = None
        self.partition_epochs = (0, 0)

    def _id(self, number: int) -> int:
        return self._base_id + number

    def register(self, number: int, incarnation: int = 0, **fields: Any) -> None:
        defaults = {
            "cluster_id": self._controller.cluster_id,
            "incarnation_id": UUID(int=2**70 + 1000 * self._id(number) + incarnation),
            "log_dirs": (self.directory(number),),
            "features": FEATURES,
            "listeners": [
                {"name": name, "host": "127.0.0.1", "port": 1, "security_protocol": 0}
                for name in ("CLIENT", "REPLICATION")
            ],
            **fields,
        }
        response = self._controller.request("BrokerRegistration", 4, broker_id=self._id(number), **defaults)
        self.results.append(("register", number, response.error_code))
        if response.error_code == 0:
            is_new = response.broker_epoch > self.broker_epochs.get(number, -1)
            self.results.append(("new epoch", is_new))
            self.broker_epochs[number] = response.broker_epoch

    def directory(self, number: int) -> UUID:
        return UUID(int=2**80 + self._id(number))

    def heartbeat(self, number: int, **fields: Any) -> None:
        response = self._heartbeat(number, **fields)
        state = (
            (response.is_caught_up, response.is_fenced, response.should_shut_down) if response.error_code == 0 else ()
        )
        self.results.append(("heartbeat", number, response.error_code, *state))

    def _heartbeat(self, number: int, **fields: Any) -> Any:
        defaults = {
            "broker_epoch": self.broker_epochs.get(number, 0),
            "current_metadata_offset": CAUGHT_UP_OFFSET,
            **fields,
        }
        return self._controller.request("BrokerHeartbeat", 1, broker_id=self._id(number), **defaults)

    def shut_down(self, number: int, *others: int) -> None:
        """Send heartbeats of a broker that wants to shut down, until the controller permits the shutdown.

        The controller waits until the other brokers report that they have applied the change of leaders.
        """
        deadline = time.monotonic() + 30
        while True:
            for other in others:
                self._heartbeat(other)
            response = self._heartbeat(number, want_shut_down=True)
            if response.should_shut_down or time.monotonic() > deadline:
                break
            time.sleep(0.1)
        self.results.append(("shut down", response.error_code, response.is_fenced, response.should_shut_down))

    def create(self, name: str, *numbers: int) -> None:
        assignments = [{"partition_index": 0, "broker_ids": tuple(map(self._id, numbers))}]
        topic = {"name": name, "num_partitions": -1, "replication_factor": -1, "assignments": assignments}
        [response] = self._controller.request("CreateTopics", 7, topics=[topic], timeout=10_000).topics
        self.results.append(("create", response.error_code))
        self.topic_id = response.topic_id
        self.partition_epochs = (0, 0)

    def propose(self, leader: int, *isr: int, member_epochs: dict[int, int] | None = None, **fields: Any) -> None:
        """Propose an ISR.

        :param member_epochs: broker epochs by number, by default `broker_epochs`. Members without one have -1.
        """
        epochs = self.broker_epochs if member_epochs is None else member_epochs
        members = [{"broker_id": self._id(number), "broker_epoch": epochs.get(number, -1)} for number in isr]
        topic_id = fields.pop("topic_id", self.topic_id)
        broker_epoch = fields.pop("broker_epoch", self.broker_epochs[leader])
        leader_epoch, partition_epoch = self.partition_epochs
        partition = {
            "partition_index": 0,
            "leader_epoch": leader_epoch,
            "partition_epoch": partition_epoch,
            "new_isr_with_epochs": members,
            **fields,
        }
        topics = [{"topic_id": topic_id, "partitions": [partition]}]
        response = self._controller.request(
            "AlterPartition", 3, broker_id=self._id(leader), broker_epoch=broker_epoch, topics=topics
        )
        if not response.topics:
            self.results.append(("propose", response.error_code))
            return
        [state] = response.topics[0].partitions
        self.results.append(("propose", state.error_code))
        if state.error_code == 0:
            self.partition_epochs = (state.leader_epoch, state.partition_epoch)
            isr_numbers = tuple(member - self._base_id for member in state.isr)
            leader_number = state.leader_id - self._base_id
            self.results.append((leader_number, isr_numbers, *self.partition_epochs, state.leader_recovery_state))

    def elect(self, election_type: int, name: str = "orders", index: int = 0) -> None:
        """Request an election.

        :param election_type: 0 elects the preferred leader, 1 permits an unclean leader.
        """
        topics = [{"topic": name, "partitions": (index,)}]
        response = self._controller.request(
            "ElectLeaders", 2, election_type=election_type, topic_partitions=topics, timeout=10_000
        )
        [result] = response.replica_election_results[0].partition_result
        self.results.append(("elect", election_type, result.error_code))

    def reassign(self, *numbers: int, name: str = "orders", index: int = 0) -> None:
        """Reassign a partition to brokers; without numbers, cancel its reassignment."""
        partition = {"partition_index": index, "replicas": tuple(map(self._id, numbers)) or None}
        topics = [{"name": name, "partitions": [partition]}]
        response = self._controller.request("AlterPartitionReassignments", 0, topics=topics, timeout=10_000)
        [result] = response.responses[0].partitions
        self.results.append(("reassign", numbers, result.error_code))

    def record_leadership(self) -> None:
        leader, leader_epoch, isr = self._controller.leadership("orders")
        number = leader - self._base_id if leader >= 0 else leader
        self.results.append(("led", number, leader_epoch, tuple(member - self._base_id for member in isr)))

    def unregister(self, number: int) -> None:
        response = self._controller.request("UnregisterBroker", 0, broker_id=self._id(number))
        self.results.append(("unregister", response.error_code))


def register_brokers(scenario: Scenario) -> None:
    """Send valid and invalid registrations."""
    scenario.register(1, cluster_id="another")
    scenario.register(1, log_dirs=())
    scenario.register(1, log_dirs=(None,))
    scenario.register(1, log_dirs=(UUID(int=50),))
    scenario.register(1, log_dirs=(scenario.directory(1), scenario.directory(1)))
    scenario.register(1, features=[])
    scenario.register(1, features=[feature | {"max_supported_version": 8} for feature in FEATURES])
    scenario.register(1, is_migrating_zk_broker=True)
    scenario.register(1)
    scenario.register(1)
    scenario.register(2, log_dirs=(scenario.directory(1),))
    scenario.register(1, cluster_id="another", log_dirs=(), incarnation=1)
    scenario.register(1, incarnation=1)
    scenario.heartbeat(1)
    scenario.register(1, incarnation=2)
    scenario.register(1, incarnation=2, log_dirs=())
    scenario.register(1, incarnation=1)
    scenario.register(1, incarnation=1, log_dirs=())
    scenario.unregister(1)
    scenario.unregister(1)
    scenario.heartbeat(1)


def send_heartbeats(scenario: Scenario) -> None:
    """Send heartbeats of a broker that is unregistered, fenced, unfenced, and shutting down."""
    scenario.heartbeat(1)
    scenario.register(1)
    scenario.heartbeat(1, broker_epoch=0)
    scenario.heartbeat(1, current_metadata_offset=0)
    scenario.heartbeat(1, want_fence=True)
    scenario.heartbeat(1, want_fence=True, current_metadata_offset=0)
    scenario.heartbeat(1)
    scenario.heartbeat(1)
    scenario.heartbeat(1, current_metadata_offset=0)
    scenario.heartbeat(1, want_fence=True)
    scenario.heartbeat(1)
    scenario.heartbeat(1, want_fence=True, want_shut_down=True)
    scenario.heartbeat(1)
    scenario.heartbeat(1, want_shut_down=True)
    scenario.heartbeat(1, want_shut_down=True)
    scenario.heartbeat(1)


def create_topic_on_three_brokers(scenario: Scenario) -> None:
    """Register and unfence three brokers, and create a topic that broker 1 leads."""
    for number in (1, 2, 3):
        scenario.register(number)
        scenario.heartbeat(number)
    scenario.create("orders", 1, 2, 3)


def propose_isrs(scenario: Scenario) -> None:
    """Send valid and invalid ISR proposals."""
    create_topic_on_three_brokers(scenario)
    scenario.propose(1, 1, 2, topic_id=UUID(int=2**90))
    scenario.propose(1, 1, 2, partition_index=1)
    scenario.propose(1, 1, 2, leader_epoch=1)
    scenario.propose(1, 1, 2, partition_epoch=1)
    scenario.propose(1, 1, 2, leader_epoch=-1)
    scenario.propose(2, 1, 2)
    scenario.propose(2, 1, 2, leader_epoch=-1)
    scenario.propose(1, 1, 2, partition_epoch=-1)
    scenario.propose(1)
    scenario.propose(1, 1, 1)
    scenario.propose(1, 1, 4)
    scenario.propose(1, 2, 3)
    scenario.propose(1, 1, leader_recovery_state=1)
    scenario.propose(1, 1, 2, leader_recovery_state=1)
    scenario.propose(1, 1, 2, broker_epoch=0)
    scenario.propose(1, 1, 2, member_epochs={1: scenario.broker_epochs[1], 2: 0})
    scenario.propose(1, 1, 2)
    scenario.propose(1, 1, 2)
    scenario.propose(1, 1, 2, member_epochs={})
    scenario.propose(1, 1, 3, 2, member_epochs={1: -1})
    scenario.heartbeat(3, want_fence=True)
    scenario.partition_epochs = (0, 3)
    scenario.propose(1, 1, 2)
    scenario.propose(1, 1, 2, 3)
    scenario.heartbeat(3)
    scenario.propose(1, 1, 2, 3)
    scenario.heartbeat(1, want_fence=True)
    scenario.propose(1, 1)
    scenario.partition_epochs = (1, 5)
    scenario.propose(2, 2, 3)
    scenario.propose(2, 2, 3, 1)
    scenario.heartbeat(1)
    scenario.propose(2, 2, 3, 1)


def elect_leaders(scenario: Scenario) -> None:
    """Request elections."""
    create_topic_on_three_brokers(scenario)
    scenario.elect(0)
    scenario.elect(1)
    scenario.elect(0, name="other")
    scenario.elect(0, index=1)
    scenario.heartbeat(1, want_fence=True)
    scenario.elect(0)
    scenario.heartbeat(1)
    scenario.elect(0)
    scenario.partition_epochs = (1, 1)
    scenario.propose(2, 2, 3, 1)
    scenario.elect(0)
    scenario.partition_epochs = (2, 3)
    scenario.propose(1, 1, 2, 3)


def shut_down_broker(scenario: Scenario) -> None:
    """Shut down the leader in a controlled way, register a new incarnation of broker 2, and unregister broker 2."""
    create_topic_on_three_brokers(scenario)
    scenario.heartbeat(1, want_shut_down=True)
    scenario.heartbeat(2)
    scenario.partition_epochs = (1, 1)
    scenario.propose(2, 2, 3)
    scenario.propose(2, 2, 3, 1)
    scenario.shut_down(1, 2, 3)
    scenario.register(2, incarnation=1)
    scenario.unregister(2)
    scenario.partition_epochs = (2, 2)
    scenario.propose(3, 3)


def lose_all_in_sync_replicas(scenario: Scenario) -> None:
    """Fence and unfence the last member of the ISR. Then fence it again, and elect another replica uncleanly."""
    create_topic_on_three_brokers(scenario)
    scenario.propose(1, 1, 2)
    scenario.heartbeat(2, want_fence=True)
    scenario.record_leadership()
    scenario.heartbeat(1, want_fence=True)
    scenario.record_leadership()
    scenario.heartbeat(2)
    scenario.record_leadership()
    scenario.heartbeat(1)
    scenario.record_leadership()
    scenario.partition_epochs = (2, 4)
    scenario.propose(1, 1, 3)
    scenario.propose(1, 1)
    scenario.elect(1)
    scenario.heartbeat(1, want_fence=True)
    scenario.elect(0)
    scenario.elect(1)
    scenario.record_leadership()
    scenario.partition_epochs = (4, 8)
    scenario.propose(2, 2, 3, leader_recovery_state=1)
    scenario.propose(2, 2, leader_recovery_state=1)
    scenario.propose(2, 2, leader_recovery_state=0)
    scenario.propose(2, 2, 3, leader_recovery_state=1)
    scenario.propose(2, 2, 3)
    scenario.record_leadership()


def reassign_partition(scenario: Scenario) -> None:
    """Request valid and invalid reassignments; cancel one and complete one."""
    create_topic_on_three_brokers(scenario)
    for number in (4, 5):
        scenario.register(number)
        scenario.heartbeat(number)
    scenario.reassign()
    scenario.reassign(1, 1)
    scenario.reassign(1, 9)
    scenario.reassign(1, 2, name="other")
    scenario.reassign(1, 2, index=1)
    scenario.reassign(4, 5)
    scenario.partition_epochs = (0, 1)
    scenario.propose(1, 1, 2, 3, 4)
    scenario.record_leadership()
    scenario.reassign()
    scenario.record_leadership()
    scenario.partition_epochs = (1, 3)
    scenario.reassign(4, 5)
    scenario.partition_epochs = (1, 4)
    scenario.propose(1, 1, 2, 3, 4)
    scenario.propose(1, 1, 2, 3, 4, 5)
    scenario.record_leadership()
    scenario.partition_epochs = (2, 6)
    scenario.propose(4, 4)
    scenario.reassign(4, 1)
    scenario.partition_epochs = (2, 8)
    scenario.propose(4, 4, 1)
    scenario.record_leadership()


SCENARIOS = [
    shut_down_broker,
    register_brokers,
    send_heartbeats,
    propose_isrs,
    elect_leaders,
    lose_all_in_sync_replicas,
    reassign_partition,
]
"""`shut_down_broker` must be the first: the shutdown waits until all active brokers have caught up, and brokers of an
earlier scenario no longer send heartbeats."""


@pytest.mark.parametrize("run", SCENARIOS, ids=lambda run: run.__name__)
def test_responses_are_the_same(kafka, run):
    base_id = 100 * (1 + SCENARIOS.index(run))
    expected, actual = Scenario(kafka, base_id), Scenario(ReferenceController(), base_id)
    run(expected)
    kafka.request("DeleteTopics", 6, topics=[{"name": "orders"}], timeout=10_000)
    run(actual)
    assert actual.results == expected.results


def test_only_kafka_rejects_a_registration_right_after_a_shutdown(kafka):
    """The only known difference: Kafka rejects a new incarnation until the session of the previous one has expired."""
    scenarios = [Scenario(controller, 900) for controller in (kafka, ReferenceController())]
    for scenario in scenarios:
        scenario.register(1)
        scenario.heartbeat(1)
        scenario.heartbeat(1, want_fence=True, want_shut_down=True)
        assert scenario.results[-1] == ("heartbeat", 1, 0, True, True, True)
        scenario.results.clear()
        scenario.register(1, incarnation=1)
    rejected, accepted = (scenario.results[0] for scenario in scenarios)
    assert rejected == ("register", 1, error_code("DUPLICATE_BROKER_REGISTRATION"))
    assert accepted == ("register", 1, error_code("NONE"))
