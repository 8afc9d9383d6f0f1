"""Active controller for tests, without a quorum: its log is a list, and the test decides when records are committed.

controller = ScriptedController()
controller.serve(1, 2, 3)  # registers and unfences these brokers
controller.create("orders", "123")  # a topic with one partition and these replicas
controller.kill(1)  # the session of broker 1 expires
assert controller.state("orders") == "123/23/2"  # replicas, ISR, leader
"""

from collections.abc import Mapping
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
WITHOUT_NO_OP_RECORDS = {"metadata.max.idle.interval.ms": "0"}
"""Configuration without periodic NoOpRecords, so that all records are caused by the test."""


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
    """A runtime that records the responses by correlation id."""

    responses: dict[int, Any]

    def respond(self, request: Request, response: Any) -> None:
        self.responses[request.correlation_id] = response


def incarnation(broker_id: int, restarts: int = 0) -> UUID:
    """Return the incarnation id of a broker's process."""
    return UUID(int=10_000 + 100 * broker_id + restarts)


def directory(broker_id: int) -> UUID:
    """Return the id of a broker's log directory."""
    return UUID(int=20_000 + broker_id)


class ScriptedController:
    """One controller, its brokers, and a clock that stands still unless a method advances it.

    :param properties: properties of the controller, with `_` in place of `.` in their names.
    """

    def __init__(self, **properties: str) -> None:
        named = {name.replace("_", "."): value for name, value in properties.items()}
        configuration = BrokerConfiguration(WITHOUT_NO_OP_RECORDS | named)
        identity = Identity(0, CLUSTER, (), UUID(int=77), UUID(int=88))
        self.runtime = RecordingRuntime(identity, configuration, MemoryDisk(), lambda: UUID(int=99), lambda _: 0)
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
        """Send a request, commit all records, and return the response."""
        correlation_id = self.send(api, version, **fields)
        self.commit()
        return self.runtime.responses.pop(correlation_id)

    def send(self, api: str, version: int, **fields: Any) -> int:
        """Send a request and return its correlation id, the key of the response in `runtime.responses`."""
        self._correlation_id += 1
        correlation_id, key = self._correlation_id, API_KEYS[api]
        body, replies = request(api, version, **fields), message_codec(key, version).replies
        received = Request(Connection(is_controller=True), key, version, correlation_id, "test", body, replies)
        response = CONTROLLER_APIS[key].handle(self.controller, received, self.now)
        if response is not RequestOutcome.DEFERRED:
            self.runtime.respond(received, response)
        return correlation_id

    def commit(self) -> None:
        """Commit all records of the log."""
        self.controller.handle_commit(self.log.end_offset, self.now)

    def advance(self, by_ms: int) -> None:
        """Advance the clock. Each timer fires at its time, and the records that it causes are committed."""
        end_ms = self.now.monotonic_ms + by_ms
        while (at_ms := self.runtime.timers.next_ms) is not None and at_ms <= end_ms:
            self._set_clock(max(at_ms, self.now.monotonic_ms))
            self.runtime.timers.fire(self.now)
            self.commit()
        self._set_clock(end_ms)

    def stop_process(self, for_ms: int) -> None:
        """Advance the clock as if the controller's process was stopped: all due timers fire at the end."""
        self._set_clock(self.now.monotonic_ms + for_ms)
        self.runtime.timers.fire(self.now)
        self.commit()

    def _set_clock(self, at_ms: int) -> None:
        self.now = Now(START_MS + at_ms, at_ms)

    def fail_over(self) -> None:
        """Replace the active controller by the one of the next epoch, which starts with the committed image."""
        image = self.image.copy()
        self.controller.deactivate(self.now)
        self.controller.activate(2, image, self.now)
        self.commit()

    # Requests of brokers

    def register(self, broker_id: int, restarts: int = 0, **fields: Any) -> Any:
        """Register a broker whose process was restarted this number of times, and return the response."""
        defaults = {
            "cluster_id": CLUSTER,
            "incarnation_id": incarnation(broker_id, restarts),
            "log_dirs": (directory(broker_id),),
            "features": FEATURES,
            "listeners": [{"name": "REPLICATION", "host": f"b{broker_id}", "port": 9093, "security_protocol": 0}],
            **fields,
        }
        return self.request("BrokerRegistration", 4, broker_id=broker_id, **defaults)

    def heartbeat(self, broker_id: int, **fields: Any) -> Any:
        """Send a heartbeat of a broker that has applied all metadata, and return the response.

        :param fields: fields of the request that differ.
        """
        return self.request("BrokerHeartbeat", 1, **self.heartbeat_fields(broker_id, **fields))

    def heartbeat_fields(self, broker_id: int, **fields: Any) -> dict[str, Any]:
        epoch = self.image.brokers[broker_id].broker_epoch
        defaults = {"broker_epoch": epoch, "current_metadata_offset": self.log.end_offset - 1, **fields}
        return {"broker_id": broker_id, **defaults}

    def serve(self, *broker_ids: int, restarts: int = 0) -> None:
        """Register and unfence brokers."""
        for broker_id in broker_ids:
            assert self.register(broker_id, restarts).error_code == 0
            assert not self.heartbeat(broker_id).is_fenced

    def keep_alive(self, *broker_ids: int, for_ms: int) -> None:
        """Advance the clock while only these brokers send heartbeats."""
        for _ in range(for_ms // HEARTBEAT_MS):
            self.advance(HEARTBEAT_MS)
            for broker_id in broker_ids:
                self.heartbeat(broker_id)

    def kill(self, broker_id: int) -> None:
        """Let the session of one broker expire, while all other unfenced brokers send heartbeats."""
        others = [other for other, broker in self.image.brokers.items() if other != broker_id and not broker.fenced]
        self.keep_alive(*others, for_ms=SESSION_MS + HEARTBEAT_MS)
        assert self.image.brokers[broker_id].fenced

    # State

    def create(self, topic: str, replicas: str, isr: str | None = None, leader: int | None = None) -> UUID:
        """Write the records of a topic with one partition in a given state, and return the topic id.

        :param replicas: the broker ids, one digit each, such as "123".
        :param isr: the same for the ISR; by default, all replicas.
        :param leader: by default, the first replica.
        """
        topic_id = UUID(int=30_000 + len(self.image.topics))
        broker_ids = _broker_ids(replicas)
        record = PartitionRecord(
            partition_id=0,
            topic_id=topic_id,
            replicas=broker_ids,
            isr=broker_ids if isr is None else _broker_ids(isr),
            leader=broker_ids[0] if leader is None else leader,
            leader_epoch=0,
            partition_epoch=0,
            directories=tuple(map(directory, broker_ids)),
        )
        self.controller.write([TopicRecord(name=topic, topic_id=topic_id), record], lambda _: None, self.now)
        self.commit()
        return topic_id

    def configure(self, resource_type: ResourceType, resource: str, name: str, value: str | None) -> None:
        """Write the record of a property; null removes it."""
        record = ConfigRecord(resource_type=resource_type, resource_name=resource, name=name, value=value)
        self.controller.write([record], lambda _: None, self.now)
        self.commit()

    def partition(self, topic: str) -> PartitionRecord:
        found = self.image.partition(topic, 0)
        assert found is not None
        return found

    def state(self, topic: str) -> str:
        """Return `replicas/ISR/leader` of a topic's partition, with `-` for no leader."""
        partition = self.partition(topic)
        leader = "-" if partition.leader < 0 else str(partition.leader)
        return f"{''.join(map(str, partition.replicas))}/{''.join(map(str, partition.isr))}/{leader}"

    def propose(
        self,
        topic: str,
        isr: str,
        *,
        broker_id: int | None = None,
        broker_epoch: int | None = None,
        topic_id: UUID | None = None,
        epochs: Mapping[int, int] | None = None,
        **fields: Any,
    ) -> Any:
        """Send AlterPartition with this ISR. Return the partition in the response, or a response without one.

        :param broker_id: the broker that sends the request; by default, the leader.
        :param epochs: broker epochs of ISR members that differ from the registered ones.
        :param fields: fields of the request's partition that differ.
        """
        state = self.partition(topic)
        sender = state.leader if broker_id is None else broker_id
        members = [
            {"broker_id": member, "broker_epoch": (epochs or {}).get(member, self._broker_epoch(member))}
            for member in _broker_ids(isr)
        ]
        partition = {
            "partition_index": 0,
            "leader_epoch": state.leader_epoch,
            "partition_epoch": state.partition_epoch,
            "leader_recovery_state": state.leader_recovery_state,
            "new_isr_with_epochs": members,
            **fields,
        }
        response = self.request(
            "AlterPartition",
            3,
            broker_id=sender,
            broker_epoch=self._broker_epoch(sender) if broker_epoch is None else broker_epoch,
            topics=[{"topic_id": state.topic_id if topic_id is None else topic_id, "partitions": [partition]}],
        )
        return response.topics[0].partitions[0] if response.topics else response

    def _broker_epoch(self, broker_id: int) -> int:
        """Return the epoch of a registered broker; -1 if it is not registered."""
        broker = self.image.brokers.get(broker_id)
        return -1 if broker is None else broker.broker_epoch


def _broker_ids(digits: str) -> tuple[int, ...]:
    return tuple(int(digit) for digit in digits)
