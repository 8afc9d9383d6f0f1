"""An active controller without a quorum: its log is a list, and the test commits it.

controller = ScriptedController()
controller.serve(1, 2, 3)
controller.create("orders", "123")
controller.kill(1)
assert controller.state("orders") == "123/23/2"
"""

from typing import Any
from uuid import UUID

from reference_broker.core.apis import CONTROLLER_APIS
from reference_broker.core.clock import Now
from reference_broker.core.configuration.configuration import BrokerConfiguration
from reference_broker.core.configuration.resource import ResourceType
from reference_broker.core.connection import Connection
from reference_broker.core.controller.controller import Controller
from reference_broker.core.disk import MemoryDisk
from reference_broker.core.identity import Identity
from reference_broker.core.metadata.bootstrap import METADATA_VERSION, METADATA_VERSION_MAX
from reference_broker.core.metadata.image import MetadataImage
from reference_broker.core.request import Request, RequestOutcome
from reference_broker.core.runtime import Runtime
from reference_broker.protocol.messages import message_codec
from reference_broker.protocol.metadata_records import ConfigRecord, PartitionRecord, TopicRecord
from tests.reference_broker.scripted import API_KEYS, START_MS, request

CLUSTER = "cluster"
SESSION_MS = 9_000
HEARTBEAT_MS = 2_000
FEATURES = [{"name": METADATA_VERSION, "min_supported_version": 7, "max_supported_version": METADATA_VERSION_MAX}]
QUIET = {"metadata.max.idle.interval.ms": "0"}
"""Configuration without periodic NoOpRecords, so that only the test causes records."""


class Log:
    """A metadata log in memory."""

    def __init__(self, start_offset: int = 0) -> None:
        self.records: list[Any] = []
        self.end_offset = start_offset

    def append(self, records: Any, epoch: int, now: Now) -> int:
        self.records += records
        self.end_offset += len(records)
        return self.end_offset


class RecordingRuntime(Runtime):
    """A runtime that stores the responses by correlation id."""

    responses: dict[int, Any]

    def respond(self, request: Request, response: Any) -> None:
        self.responses[request.correlation_id] = response


def incarnation(broker_id: int, life: int = 0) -> UUID:
    return UUID(int=10_000 + 100 * broker_id + life)


def directory(broker_id: int) -> UUID:
    return UUID(int=20_000 + broker_id)


class ScriptedController:
    """One controller, its brokers, and a clock that stands still unless a method advances it."""

    def __init__(self, **properties: str) -> None:
        named = {name.replace("_", "."): value for name, value in properties.items()}
        identity = Identity(0, CLUSTER, (), UUID(int=77), UUID(int=88))
        self.runtime = RecordingRuntime(
            identity, BrokerConfiguration(QUIET | named), MemoryDisk(), lambda: UUID(int=99), lambda _: 0
        )
        self.runtime.responses = {}
        self.now = Now(START_MS, 1_000)
        self.log = Log()
        self.controller = Controller(self.runtime, self.log)
        self.controller.activate(1, MetadataImage(), self.now)
        self.commit()
        self._correlation_id = 0

    @property
    def image(self) -> MetadataImage:
        return self.controller.image

    # Requests

    def request(self, api: str, version: int, **fields: Any) -> Any:
        """Send a request, commit everything, and return the response."""
        number = self.send(api, version, **fields)
        self.commit()
        return self.runtime.responses.pop(number)

    def send(self, api: str, version: int, **fields: Any) -> int:
        """Send a request and return its correlation id, the key of the response in `runtime.responses`."""
        self._correlation_id += 1
        key = API_KEYS[api]
        body, replies = request(api, version, **fields), message_codec(key, version).replies
        number = self._correlation_id
        received = Request(Connection(is_controller=True), key, version, number, "test", body, replies)
        response = CONTROLLER_APIS[key].handle(self.controller, received, self.now)
        if response is not RequestOutcome.DEFERRED:
            self.runtime.respond(received, response)
        return number

    def commit(self) -> None:
        """Commit everything that was written."""
        self.controller.handle_commit(self.log.end_offset, self.now)

    def advance(self, by_ms: int) -> None:
        """Let time pass, and commit the resulting records."""
        end_ms = self.now.monotonic_ms + by_ms
        while (at_ms := self.runtime.timers.next_ms) is not None and at_ms <= end_ms:
            self._set_clock(max(at_ms, self.now.monotonic_ms))
            self.runtime.timers.fire(self.now)
            self.commit()
        self._set_clock(end_ms)

    def sleep(self, for_ms: int) -> None:
        """Let time pass while the controller's process is stopped."""
        self._set_clock(self.now.monotonic_ms + for_ms)
        self.runtime.timers.fire(self.now)
        self.commit()

    def _set_clock(self, at_ms: int) -> None:
        self.now = Now(START_MS + at_ms, at_ms)

    def fail_over(self) -> None:
        """Make another controller take over with the committed image."""
        image = self.image.copy()
        self.controller.deactivate(self.now)
        self.controller.activate(2, image, self.now)
        self.commit()

    # Requests of brokers

    def register(self, broker_id: int, life: int = 0, **fields: Any) -> Any:
        """Register a broker and return the response; `life` counts the starts of its process."""
        defaults = {
            "cluster_id": CLUSTER,
            "incarnation_id": incarnation(broker_id, life),
            "log_dirs": (directory(broker_id),),
            "features": FEATURES,
            "listeners": [{"name": "REPLICATION", "host": f"b{broker_id}", "port": 9093, "security_protocol": 0}],
            **fields,
        }
        return self.request("BrokerRegistration", 4, broker_id=broker_id, **defaults)

    def heartbeat(self, broker_id: int, **fields: Any) -> Any:
        """Send a heartbeat of a broker that has applied all metadata, and return the response."""
        return self.request("BrokerHeartbeat", 1, **self.heartbeat_fields(broker_id, **fields))

    def heartbeat_fields(self, broker_id: int, **fields: Any) -> dict[str, Any]:
        epoch = self.image.brokers[broker_id].broker_epoch
        defaults = {"broker_epoch": epoch, "current_metadata_offset": self.log.end_offset - 1, **fields}
        return {"broker_id": broker_id, **defaults}

    def serve(self, *broker_ids: int, life: int = 0) -> None:
        """Register and unfence brokers."""
        for broker_id in broker_ids:
            assert self.register(broker_id, life).error_code == 0
            assert not self.heartbeat(broker_id).is_fenced

    def keep_alive(self, *broker_ids: int, for_ms: int) -> None:
        """Let time pass while only these brokers send heartbeats."""
        for _ in range(for_ms // HEARTBEAT_MS):
            self.advance(HEARTBEAT_MS)
            for broker_id in broker_ids:
                self.heartbeat(broker_id)

    def kill(self, broker_id: int) -> None:
        """Let the session of one broker expire while all others send heartbeats."""
        others = [other for other, broker in self.image.brokers.items() if other != broker_id and not broker.fenced]
        self.keep_alive(*others, for_ms=SESSION_MS + HEARTBEAT_MS)
        assert self.image.brokers[broker_id].fenced

    # State

    def create(self, topic: str, replicas: str, isr: str | None = None, leader: int | None = None) -> UUID:
        """Write a topic with one partition in a given state."""
        topic_id = UUID(int=30_000 + len(self.image.topics))
        on_brokers = tuple(int(digit) for digit in replicas)
        record = PartitionRecord(
            partition_id=0,
            topic_id=topic_id,
            replicas=on_brokers,
            isr=on_brokers if isr is None else tuple(int(digit) for digit in isr),
            leader=on_brokers[0] if leader is None else leader,
            leader_epoch=0,
            partition_epoch=0,
            directories=tuple(map(directory, on_brokers)),
        )
        self.controller.write([TopicRecord(name=topic, topic_id=topic_id), record], lambda _: None, self.now)
        self.commit()
        return topic_id

    def configure(self, resource_type: ResourceType, resource: str, name: str, value: str | None) -> None:
        """Set a property."""
        record = ConfigRecord(resource_type=resource_type, resource_name=resource, name=name, value=value)
        self.controller.write([record], lambda _: None, self.now)
        self.commit()

    def partition(self, topic: str) -> PartitionRecord:
        found = self.image.partition(topic, 0)
        assert found is not None
        return found

    def state(self, topic: str) -> str:
        """Return `replicas/ISR/leader` of a topic's partition, with `-` for no leader."""
        now = self.partition(topic)
        leader = "-" if now.leader < 0 else str(now.leader)
        return f"{''.join(map(str, now.replicas))}/{''.join(map(str, now.isr))}/{leader}"

    def propose(self, topic: str, isr: str, **fields: Any) -> Any:
        """Send AlterPartition with this ISR as the leader; `fields` override those of the request and its partition."""
        now = self.partition(topic)
        broker_id = fields.pop("broker_id", now.leader)
        epochs = fields.pop("epochs", {})
        broker_epoch = fields.pop("broker_epoch", self.image.brokers[broker_id].broker_epoch)
        topic_id = fields.pop("topic_id", now.topic_id)
        members = [
            {"broker_id": int(member), "broker_epoch": epochs.get(int(member), self._epoch_of(int(member)))}
            for member in isr
        ]
        partition = {
            "partition_index": 0,
            "leader_epoch": now.leader_epoch,
            "partition_epoch": now.partition_epoch,
            "leader_recovery_state": now.leader_recovery_state,
            "new_isr_with_epochs": members,
            **fields,
        }
        topics = [{"topic_id": topic_id, "partitions": [partition]}]
        response = self.request("AlterPartition", 3, broker_id=broker_id, broker_epoch=broker_epoch, topics=topics)
        return response.topics[0].partitions[0] if response.topics else response

    def _epoch_of(self, broker_id: int) -> int:
        broker = self.image.brokers.get(broker_id)
        return -1 if broker is None else broker.broker_epoch
