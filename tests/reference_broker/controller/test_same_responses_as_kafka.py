"""Apache Kafka's controller and ours return the same responses to the same requests of brokers.

The brokers are fictitious: this test registers them, sends their heartbeats and proposes ISRs for them. Kafka's one
real broker takes no part.
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
from tests.reference_broker.scripted import request

pytestmark = pytest.mark.java

FAR = 2**40
"""Metadata offset of a broker that has always caught up."""
FEATURES = [
    {"name": name, "min_supported_version": lowest, "max_supported_version": highest}
    for name, (lowest, highest) in SUPPORTED_FEATURES.items()
]


class Kafka:
    """Controller listener and broker listener of one node of Apache Kafka."""

    def __init__(self, controller: RawClient, broker: RawClient, cluster_id: str) -> None:
        self._controller = controller
        self._broker = broker
        self.cluster_id = cluster_id

    def request(self, api: str, version: int, **fields: Any) -> Any:
        return self._controller.request(request(api, version, **fields))

    def leadership(self, name: str) -> tuple[int, int, tuple[int, ...]]:
        """Return leader, leader epoch and ISR of the topic's partition after the broker has applied the last change."""
        time.sleep(0.3)
        [topic] = self._broker.request(request("Metadata", 12, topics=[{"name": name}])).topics
        [partition] = topic.partitions
        return partition.leader_id, partition.leader_epoch, tuple(partition.isr_nodes)


class Ours(ScriptedController):
    """Our controller. Like Kafka's, it has one more broker, which takes no part in the test."""

    cluster_id = CLUSTER

    def __init__(self) -> None:
        super().__init__()
        self.serve(1)
        self.heartbeat(1, current_metadata_offset=FAR)

    def leadership(self, name: str) -> tuple[int, int, tuple[int, ...]]:
        now = self.partition(name)
        return now.leader, now.leader_epoch, now.isr


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
            disabled = {"feature": "eligible.leader.replicas.version", "max_version_level": 0, "upgrade_type": 2}
            response = kafka.request("UpdateFeatures", 2, feature_updates=[disabled], timeout=10_000)
            assert response.error_code == 0, response
            yield kafka


def _meta_properties(work_dir: Path) -> str:
    return next(work_dir.rglob("meta.properties")).read_text()


class Story:
    """Requests to one controller, and the parts of its responses that have to be equal."""

    def __init__(self, controller: Any, first_id: int) -> None:
        self._controller = controller
        self._first_id = first_id
        self.results: list[Any] = []
        self.epochs: dict[int, int] = {}
        self.topic_id: UUID | None = None
        self.partition = (0, 0)

    def _id(self, number: int) -> int:
        return self._first_id + number

    def register(self, number: int, life: int = 0, **fields: Any) -> None:
        defaults = {
            "cluster_id": self._controller.cluster_id,
            "incarnation_id": UUID(int=2**70 + 1000 * self._id(number) + life),
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
            is_new = response.broker_epoch > self.epochs.get(number, -1)
            self.results.append(("new epoch", is_new))
            self.epochs[number] = response.broker_epoch

    def directory(self, number: int) -> UUID:
        return UUID(int=2**80 + self._id(number))

    def heartbeat(self, number: int, **fields: Any) -> None:
        response = self._heartbeat(number, **fields)
        state = (
            (response.is_caught_up, response.is_fenced, response.should_shut_down) if response.error_code == 0 else ()
        )
        self.results.append(("heartbeat", number, response.error_code, *state))

    def _heartbeat(self, number: int, **fields: Any) -> Any:
        requested = {"broker_epoch": self.epochs.get(number, 0), "current_metadata_offset": FAR, **fields}
        return self._controller.request("BrokerHeartbeat", 1, broker_id=self._id(number), **requested)

    def leave(self, number: int, *others: int) -> None:
        """Send heartbeats until a broker may shut down: all others must have applied the loss of its leaderships."""
        deadline = time.monotonic() + 30
        while True:
            for other in others:
                self._heartbeat(other)
            response = self._heartbeat(number, want_shut_down=True)
            if response.should_shut_down or time.monotonic() > deadline:
                break
            time.sleep(0.1)
        self.results.append(("leave", response.error_code, response.is_fenced, response.should_shut_down))

    def create(self, name: str, *numbers: int) -> None:
        assignments = [{"partition_index": 0, "broker_ids": tuple(map(self._id, numbers))}]
        topic = {"name": name, "num_partitions": -1, "replication_factor": -1, "assignments": assignments}
        [response] = self._controller.request("CreateTopics", 7, topics=[topic], timeout=10_000).topics
        self.results.append(("create", response.error_code))
        self.topic_id = response.topic_id
        self.partition = (0, 0)

    def propose(self, leader: int, *isr: int, epochs: dict[int, int] | None = None, **fields: Any) -> None:
        members = [
            {"broker_id": self._id(number), "broker_epoch": (epochs or self.epochs).get(number, -1)} for number in isr
        ]
        topic_id = fields.pop("topic_id", self.topic_id)
        broker_epoch = fields.pop("broker_epoch", self.epochs[leader])
        leader_epoch, partition_epoch = self.partition
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
        [now] = response.topics[0].partitions
        self.results.append(("propose", now.error_code))
        if now.error_code == 0:
            self.partition = (now.leader_epoch, now.partition_epoch)
            isr_now = tuple(member - self._first_id for member in now.isr)
            self.results.append((now.leader_id - self._first_id, isr_now, *self.partition, now.leader_recovery_state))

    def elect(self, election_type: int, name: str = "orders", index: int = 0) -> None:
        topics = [{"topic": name, "partitions": (index,)}]
        response = self._controller.request(
            "ElectLeaders", 2, election_type=election_type, topic_partitions=topics, timeout=10_000
        )
        [result] = response.replica_election_results[0].partition_result
        self.results.append(("elect", election_type, result.error_code))

    def reassign(self, *numbers: int, name: str = "orders", index: int = 0) -> None:
        """Reassign to brokers; without numbers, cancel the reassignment."""
        partition = {"partition_index": index, "replicas": tuple(map(self._id, numbers)) or None}
        topics = [{"name": name, "partitions": [partition]}]
        response = self._controller.request("AlterPartitionReassignments", 0, topics=topics, timeout=10_000)
        [result] = response.responses[0].partitions
        self.results.append(("reassign", numbers, result.error_code))

    def check_leadership(self) -> None:
        leader, leader_epoch, isr = self._controller.leadership("orders")
        number = leader - self._first_id if leader >= 0 else leader
        self.results.append(("led", number, leader_epoch, tuple(member - self._first_id for member in isr)))

    def unregister(self, number: int) -> None:
        response = self._controller.request("UnregisterBroker", 0, broker_id=self._id(number))
        self.results.append(("unregister", response.error_code))


def joining(story: Story) -> None:
    """Send valid and invalid registrations."""
    story.register(1, cluster_id="another")
    story.register(1, log_dirs=())
    story.register(1, log_dirs=(None,))
    story.register(1, log_dirs=(UUID(int=50),))
    story.register(1, log_dirs=(story.directory(1), story.directory(1)))
    story.register(1, features=[])
    story.register(1, features=[feature | {"max_supported_version": 8} for feature in FEATURES])
    story.register(1, is_migrating_zk_broker=True)
    story.register(1)
    story.register(1)
    story.register(2, log_dirs=(story.directory(1),))
    story.register(1, cluster_id="another", log_dirs=(), life=1)
    story.register(1, life=1)
    story.heartbeat(1)
    story.register(1, life=2)
    story.register(1, life=2, log_dirs=())
    story.register(1, life=1)
    story.register(1, life=1, log_dirs=())
    story.unregister(1)
    story.unregister(1)
    story.heartbeat(1)


def living(story: Story) -> None:
    """Send heartbeats in every state."""
    story.heartbeat(1)
    story.register(1)
    story.heartbeat(1, broker_epoch=0)
    story.heartbeat(1, current_metadata_offset=0)
    story.heartbeat(1, want_fence=True)
    story.heartbeat(1, want_fence=True, current_metadata_offset=0)
    story.heartbeat(1)
    story.heartbeat(1)
    story.heartbeat(1, current_metadata_offset=0)
    story.heartbeat(1, want_fence=True)
    story.heartbeat(1)
    story.heartbeat(1, want_fence=True, want_shut_down=True)
    story.heartbeat(1)
    story.heartbeat(1, want_shut_down=True)
    story.heartbeat(1, want_shut_down=True)
    story.heartbeat(1)


def three_brokers(story: Story) -> None:
    """Register and unfence three brokers, and create a topic that broker 1 leads."""
    for number in (1, 2, 3):
        story.register(number)
        story.heartbeat(number)
    story.create("orders", 1, 2, 3)


def changing_the_isr(story: Story) -> None:
    """Send valid and invalid ISR proposals."""
    three_brokers(story)
    story.propose(1, 1, 2, topic_id=UUID(int=2**90))
    story.propose(1, 1, 2, partition_index=1)
    story.propose(1, 1, 2, leader_epoch=1)
    story.propose(1, 1, 2, partition_epoch=1)
    story.propose(1, 1, 2, leader_epoch=-1)
    story.propose(2, 1, 2)
    story.propose(2, 1, 2, leader_epoch=-1)
    story.propose(1, 1, 2, partition_epoch=-1)
    story.propose(1)
    story.propose(1, 1, 1)
    story.propose(1, 1, 4)
    story.propose(1, 2, 3)
    story.propose(1, 1, leader_recovery_state=1)
    story.propose(1, 1, 2, leader_recovery_state=1)
    story.propose(1, 1, 2, broker_epoch=0)
    story.propose(1, 1, 2, epochs={1: story.epochs[1], 2: 0})
    story.propose(1, 1, 2)
    story.propose(1, 1, 2)
    story.propose(1, 1, 2, epochs={})
    story.propose(1, 1, 3, 2, epochs={1: -1})
    story.heartbeat(3, want_fence=True)
    story.partition = (0, 3)
    story.propose(1, 1, 2)
    story.propose(1, 1, 2, 3)
    story.heartbeat(3)
    story.propose(1, 1, 2, 3)
    story.heartbeat(1, want_fence=True)
    story.propose(1, 1)
    story.partition = (1, 5)
    story.propose(2, 2, 3)
    story.propose(2, 2, 3, 1)
    story.heartbeat(1)
    story.propose(2, 2, 3, 1)


def electing(story: Story) -> None:
    """Request elections."""
    three_brokers(story)
    story.elect(0)
    story.elect(1)
    story.elect(0, name="other")
    story.elect(0, index=1)
    story.heartbeat(1, want_fence=True)
    story.elect(0)
    story.heartbeat(1)
    story.elect(0)
    story.partition = (1, 1)
    story.propose(2, 2, 3, 1)
    story.elect(0)
    story.partition = (2, 3)
    story.propose(1, 1, 2, 3)


def leaving(story: Story) -> None:
    """Shut a broker down in a controlled way, and register its next incarnation."""
    three_brokers(story)
    story.heartbeat(1, want_shut_down=True)
    story.heartbeat(2)
    story.partition = (1, 1)
    story.propose(2, 2, 3)
    story.propose(2, 2, 3, 1)
    story.leave(1, 2, 3)
    story.register(2, life=1)
    story.unregister(2)
    story.partition = (2, 2)
    story.propose(3, 3)


def losing_all(story: Story) -> None:
    """Fence and unfence the last in-sync replica; then fence it again and elect another replica uncleanly."""
    three_brokers(story)
    story.propose(1, 1, 2)
    story.heartbeat(2, want_fence=True)
    story.check_leadership()
    story.heartbeat(1, want_fence=True)
    story.check_leadership()
    story.heartbeat(2)
    story.check_leadership()
    story.heartbeat(1)
    story.check_leadership()
    story.partition = (2, 4)
    story.propose(1, 1, 3)
    story.propose(1, 1)
    story.elect(1)
    story.heartbeat(1, want_fence=True)
    story.elect(0)
    story.elect(1)
    story.check_leadership()
    story.partition = (4, 8)
    story.propose(2, 2, 3, leader_recovery_state=1)
    story.propose(2, 2, leader_recovery_state=1)
    story.propose(2, 2, leader_recovery_state=0)
    story.propose(2, 2, 3, leader_recovery_state=1)
    story.propose(2, 2, 3)
    story.check_leadership()


def moving(story: Story) -> None:
    """Request valid and invalid reassignments; cancel one and complete one."""
    three_brokers(story)
    for number in (4, 5):
        story.register(number)
        story.heartbeat(number)
    story.reassign()
    story.reassign(1, 1)
    story.reassign(1, 9)
    story.reassign(1, 2, name="other")
    story.reassign(1, 2, index=1)
    story.reassign(4, 5)
    story.partition = (0, 1)
    story.propose(1, 1, 2, 3, 4)
    story.check_leadership()
    story.reassign()
    story.check_leadership()
    story.partition = (1, 3)
    story.reassign(4, 5)
    story.partition = (1, 4)
    story.propose(1, 1, 2, 3, 4)
    story.propose(1, 1, 2, 3, 4, 5)
    story.check_leadership()
    story.partition = (2, 6)
    story.propose(4, 4)
    story.reassign(4, 1)
    story.partition = (2, 8)
    story.propose(4, 4, 1)
    story.check_leadership()


STORIES = [leaving, joining, living, changing_the_isr, electing, losing_all, moving]
"""The first story waits until all brokers have caught up, so no other story may have registered brokers before it."""


@pytest.mark.parametrize("run", STORIES, ids=lambda story: story.__name__)
def test_responses_are_the_same(kafka, run):
    first_id = 100 * (1 + STORIES.index(run))
    expected, actual = Story(kafka, first_id), Story(Ours(), first_id)
    run(expected)
    kafka.request("DeleteTopics", 6, topics=[{"name": "orders"}], timeout=10_000)
    run(actual)
    assert actual.results == expected.results


def test_only_kafka_rejects_a_registration_right_after_a_shutdown(kafka):
    """The one known difference: in Kafka 4, a broker that restarts at once waits until its old session expires."""
    stories = [Story(controller, 900) for controller in (kafka, Ours())]
    for story in stories:
        story.register(1)
        story.heartbeat(1)
        story.heartbeat(1, want_fence=True, want_shut_down=True)
        assert story.results[-1] == ("heartbeat", 1, 0, True, True, True)
        story.results.clear()
        story.register(1, life=1)
    rejected, accepted = (story.results[0] for story in stories)
    assert rejected == ("register", 1, error_code("DUPLICATE_BROKER_REGISTRATION"))
    assert accepted == ("register", 1, error_code("NONE"))
