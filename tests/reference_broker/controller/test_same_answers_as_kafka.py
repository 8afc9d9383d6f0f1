"""Apache Kafka's controller and ours are asked the same, as brokers ask, and give the same answers.

The brokers are made up: this test registers them, sends their heartbeats and changes ISRs in their name. Kafka's one
real broker stays out of it.
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
"""A metadata offset that a broker has which has caught up, whatever the controller has written."""
FEATURES = [
    {"name": name, "min_supported_version": lowest, "max_supported_version": highest}
    for name, (lowest, highest) in SUPPORTED_FEATURES.items()
]


class Kafka:
    """The controller listener of one node of Apache Kafka, and its broker's, which tells of partitions."""

    def __init__(self, controller: RawClient, broker: RawClient, cluster_id: str) -> None:
        self._controller = controller
        self._broker = broker
        self.cluster_id = cluster_id

    def ask(self, api: str, version: int, **fields: Any) -> Any:
        return self._controller.request(request(api, version, **fields))

    def led(self, name: str) -> tuple[int, int, tuple[int, ...]]:
        """Leader, leader epoch and ISR of the topic's partition, when the broker has heard of the last change."""
        time.sleep(0.3)
        [topic] = self._broker.request(request("Metadata", 12, topics=[{"name": name}])).topics
        [partition] = topic.partitions
        return partition.leader_id, partition.leader_epoch, tuple(partition.isr_nodes)


class Ours(ScriptedController):
    """Ours, with a broker that stays out of it too."""

    cluster_id = CLUSTER

    def __init__(self) -> None:
        super().__init__()
        self.serve(1)
        self.heartbeat(1, current_metadata_offset=FAR)

    def led(self, name: str) -> tuple[int, int, tuple[int, ...]]:
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
            answer = kafka.ask("UpdateFeatures", 2, feature_updates=[disabled], timeout=10_000)
            assert answer.error_code == 0, answer
            yield kafka


def _meta_properties(work_dir: Path) -> str:
    return next(work_dir.rglob("meta.properties")).read_text()


class Story:
    """What is asked of one controller, and what it answered, as far as that has to be the same."""

    def __init__(self, controller: Any, first_id: int) -> None:
        self._controller = controller
        self._first_id = first_id
        self.told: list[Any] = []
        self.epochs: dict[int, int] = {}
        self.topic_id: UUID | None = None
        self.partition = (0, 0)

    def _id(self, number: int) -> int:
        return self._first_id + number

    def register(self, number: int, life: int = 0, **fields: Any) -> None:
        asked = {
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
        answer = self._controller.ask("BrokerRegistration", 4, broker_id=self._id(number), **asked)
        self.told.append(("register", number, answer.error_code))
        if answer.error_code == 0:
            is_new = answer.broker_epoch > self.epochs.get(number, -1)
            self.told.append(("new epoch", is_new))
            self.epochs[number] = answer.broker_epoch

    def directory(self, number: int) -> UUID:
        return UUID(int=2**80 + self._id(number))

    def heartbeat(self, number: int, **fields: Any) -> None:
        answer = self._heartbeat(number, **fields)
        state = (answer.is_caught_up, answer.is_fenced, answer.should_shut_down) if answer.error_code == 0 else ()
        self.told.append(("heartbeat", number, answer.error_code, *state))

    def _heartbeat(self, number: int, **fields: Any) -> Any:
        asked = {"broker_epoch": self.epochs.get(number, 0), "current_metadata_offset": FAR, **fields}
        return self._controller.ask("BrokerHeartbeat", 1, broker_id=self._id(number), **asked)

    def leave(self, number: int, *others: int) -> None:
        """Heartbeats until a broker may go: the others, one of them real, have to know that it leads no more."""
        deadline = time.monotonic() + 30
        while True:
            for other in others:
                self._heartbeat(other)
            answer = self._heartbeat(number, want_shut_down=True)
            if answer.should_shut_down or time.monotonic() > deadline:
                break
            time.sleep(0.1)
        self.told.append(("leave", answer.error_code, answer.is_fenced, answer.should_shut_down))

    def create(self, name: str, *numbers: int) -> None:
        assignments = [{"partition_index": 0, "broker_ids": tuple(map(self._id, numbers))}]
        topic = {"name": name, "num_partitions": -1, "replication_factor": -1, "assignments": assignments}
        [answer] = self._controller.ask("CreateTopics", 7, topics=[topic], timeout=10_000).topics
        self.told.append(("create", answer.error_code))
        self.topic_id = answer.topic_id
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
        answer = self._controller.ask(
            "AlterPartition", 3, broker_id=self._id(leader), broker_epoch=broker_epoch, topics=topics
        )
        if not answer.topics:
            self.told.append(("propose", answer.error_code))
            return
        [now] = answer.topics[0].partitions
        self.told.append(("propose", now.error_code))
        if now.error_code == 0:
            self.partition = (now.leader_epoch, now.partition_epoch)
            isr_now = tuple(member - self._first_id for member in now.isr)
            self.told.append((now.leader_id - self._first_id, isr_now, *self.partition, now.leader_recovery_state))

    def elect(self, election_type: int, name: str = "orders", index: int = 0) -> None:
        wanted = [{"topic": name, "partitions": (index,)}]
        answer = self._controller.ask(
            "ElectLeaders", 2, election_type=election_type, topic_partitions=wanted, timeout=10_000
        )
        [result] = answer.replica_election_results[0].partition_result
        self.told.append(("elect", election_type, result.error_code))

    def reassign(self, *numbers: int, name: str = "orders", index: int = 0) -> None:
        """Without numbers: give the reassignment up."""
        partition = {"partition_index": index, "replicas": tuple(map(self._id, numbers)) or None}
        topics = [{"name": name, "partitions": [partition]}]
        answer = self._controller.ask("AlterPartitionReassignments", 0, topics=topics, timeout=10_000)
        [result] = answer.responses[0].partitions
        self.told.append(("reassign", numbers, result.error_code))

    def look(self) -> None:
        leader, leader_epoch, isr = self._controller.led("orders")
        number = leader - self._first_id if leader >= 0 else leader
        self.told.append(("led", number, leader_epoch, tuple(member - self._first_id for member in isr)))

    def unregister(self, number: int) -> None:
        answer = self._controller.ask("UnregisterBroker", 0, broker_id=self._id(number))
        self.told.append(("unregister", answer.error_code))


def joining(story: Story) -> None:
    """Registrations, right and wrong."""
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
    """Heartbeats in every state."""
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
    """Three that serve, and a topic of theirs that 1 leads."""
    for number in (1, 2, 3):
        story.register(number)
        story.heartbeat(number)
    story.create("orders", 1, 2, 3)


def changing_the_isr(story: Story) -> None:
    """Proposals, right and wrong."""
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
    """Elections that somebody wants."""
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
    """A controlled shutdown, and what a new life of the same broker finds."""
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
    """The last in-sync replica goes, and comes back; then it goes for good."""
    three_brokers(story)
    story.propose(1, 1, 2)
    story.heartbeat(2, want_fence=True)
    story.look()
    story.heartbeat(1, want_fence=True)
    story.look()
    story.heartbeat(2)
    story.look()
    story.heartbeat(1)
    story.look()
    story.partition = (2, 4)
    story.propose(1, 1, 3)
    story.propose(1, 1)
    story.elect(1)
    story.heartbeat(1, want_fence=True)
    story.elect(0)
    story.elect(1)
    story.look()
    story.partition = (4, 8)
    story.propose(2, 2, 3, leader_recovery_state=1)
    story.propose(2, 2, leader_recovery_state=1)
    story.propose(2, 2, leader_recovery_state=0)
    story.propose(2, 2, 3, leader_recovery_state=1)
    story.propose(2, 2, 3)
    story.look()


def moving(story: Story) -> None:
    """Reassignments, right and wrong; one is given up, one is completed."""
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
    story.look()
    story.reassign()
    story.look()
    story.partition = (1, 3)
    story.reassign(4, 5)
    story.partition = (1, 4)
    story.propose(1, 1, 2, 3, 4)
    story.propose(1, 1, 2, 3, 4, 5)
    story.look()
    story.partition = (2, 6)
    story.propose(4, 4)
    story.reassign(4, 1)
    story.partition = (2, 8)
    story.propose(4, 4, 1)
    story.look()


STORIES = [leaving, joining, living, changing_the_isr, electing, losing_all, moving]
"""The first one waits until all brokers there are know something, so there are to be none of another story."""


@pytest.mark.parametrize("tell", STORIES, ids=lambda story: story.__name__)
def test_the_same_answers(kafka, tell):
    first_id = 100 * (1 + STORIES.index(tell))
    expected, told = Story(kafka, first_id), Story(Ours(), first_id)
    tell(expected)
    kafka.ask("DeleteTopics", 6, topics=[{"name": "orders"}], timeout=10_000)
    tell(told)
    assert told.told == expected.told


def test_the_one_known_difference(kafka):
    """A broker that was let go, and starts again at once: Kafka 4 has it wait for the rest of its old session."""
    stories = [Story(controller, 900) for controller in (kafka, Ours())]
    for story in stories:
        story.register(1)
        story.heartbeat(1)
        story.heartbeat(1, want_fence=True, want_shut_down=True)
        assert story.told[-1] == ("heartbeat", 1, 0, True, True, True)
        story.told.clear()
        story.register(1, life=1)
    refused, taken = (story.told[0] for story in stories)
    assert refused == ("register", 1, error_code("DUPLICATE_BROKER_REGISTRATION"))
    assert taken == ("register", 1, error_code("NONE"))
