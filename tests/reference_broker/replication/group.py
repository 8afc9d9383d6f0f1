"""One partition on several brokers in memory, with a controller that is driven by the test.

    group = Group(replicas=3)                   # broker 1 leads, all replicas are in the ISR
    group.produce("a", "b")                     # to the leader, acks=all
    group.run()                                 # until no message is in flight
    group.elect(2)                              # publishes metadata to all brokers, or to those in `publish_to`

The brokers have their real handlers, fetchers and logs. Messages between them take no time, but are delivered only by
`run`, `step` and `step_until`. `Group` handles AlterPartition requests like a controller: the epochs must be current,
and the new ISR must contain only running brokers. Brokers get new metadata only from `publish_metadata`.
"""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from kio.index import load_response_schema

from fixtures.clients.raw import decode_response
from fixtures.clients.record_batch import Record, RecordBatch, decode_batches, encode_batch
from reference_broker.core.broker import Broker
from reference_broker.core.clock import Now
from reference_broker.core.configuration.configuration import BrokerConfiguration
from reference_broker.core.connection import Channel, Connection, Disconnect, Respond, Send
from reference_broker.core.disk import MemoryDisk
from reference_broker.core.handlers import fetch, list_offsets, produce
from reference_broker.core.identity import Endpoint, Identity
from reference_broker.core.metadata.delta import MetadataDelta
from reference_broker.core.metadata.image import MetadataImage
from reference_broker.core.replication.partition import Partition
from reference_broker.core.replication.replica_fetcher_manager import FetcherId, FetcherKind
from reference_broker.core.request import Request, RequestOutcome
from reference_broker.core.runtime import Runtime
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.messages import message_codec, read_header
from reference_broker.protocol.metadata_records import (
    BrokerEndpoint,
    ConfigRecord,
    MetadataRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from tests.reference_broker.scripted import START_MS, request

TOPIC, TOPIC_ID = "orders", UUID(int=7)
LISTENER = "PLAINTEXT"
LAG_MAX_MS = 3_000
FETCH = 1
HANDLERS = {0: produce.handle, FETCH: fetch.handle, 2: list_offsets.handle}


@dataclass
class Metadata:
    """Metadata that was published to one broker."""

    image: MetadataImage = field(default_factory=MetadataImage)
    offset: int = -1


@dataclass
class Member:
    """A running broker."""

    broker: Broker
    metadata: Metadata
    connections: dict[tuple[int, str], Connection] = field(default_factory=dict)
    """Connections from other brokers, by broker id and purpose."""


@dataclass(eq=False)
class Produced:
    """A Produce request and its response; `error` is None until the response arrives."""

    values: tuple[str, ...]
    acks: int
    error: ErrorCode | None = None
    base_offset: int = -1


class Group:
    """The brokers of a partition.

    :ivar records: all metadata records, whether they are published or not.
    :ivar alter_partition_error: error of every AlterPartition response; None for the regular handling.
    :ivar altered_isrs: the ISRs of the accepted AlterPartition requests.
    :ivar rejections: number of responses with `alter_partition_error`.
    :ivar fetches: number of Fetch requests for the partition, by follower.
    """

    def __init__(self, replicas: int = 3, *, min_isr: int = 1, isr: Iterable[int] | None = None) -> None:
        self.ids = tuple(range(1, replicas + 1))
        self.now = Now(START_MS, 1_000)
        self.disks = {node: MemoryDisk() for node in self.ids}
        self.members: dict[int, Member] = {}
        self.records: list[MetadataRecord] = []
        self.cuts: set[frozenset[int]] = set()
        self.is_controller_reachable = True
        self.alter_partition_error: ErrorCode | None = None
        self.altered_isrs: list[tuple[int, ...]] = []
        self.rejections = 0
        self.fetches = dict.fromkeys(self.ids, 0)
        self._messages: deque[Callable[[], None]] = deque()
        self._broker_epoch = 100
        self._produced: dict[Connection, Produced] = {}
        self.records += [
            TopicRecord(name=TOPIC, topic_id=TOPIC_ID),
            ConfigRecord(resource_type=2, resource_name=TOPIC, name="min.insync.replicas", value=str(min_isr)),
            PartitionRecord(
                partition_id=0,
                topic_id=TOPIC_ID,
                replicas=self.ids,
                isr=tuple(isr or self.ids),
                leader=1,
                leader_epoch=0,
                partition_epoch=0,
                directories=tuple(UUID(int=1) for _ in self.ids),
            ),
        ]
        for node in self.ids:
            self._register(node)
        for node in self.ids:
            self._open(node)
        self.publish_metadata()

    # Brokers

    def start(self, node: int) -> None:
        """Start a broker that was killed. It registers again; the registration is not published yet."""
        self._register(node)
        self._open(node)

    def kill(self, node: int) -> None:
        """Kill a broker. Messages from and to it are lost."""
        del self.members[node]
        for member in self.members.values():
            for kind in FetcherKind:
                self._drop_connection(member, node, FetcherId(node, kind).purpose)
        self._later(lambda: self._disconnect_all(node))

    def _register(self, node: int) -> None:
        self._broker_epoch += 1
        self.records.append(
            RegisterBrokerRecord(
                broker_id=node,
                incarnation_id=UUID(int=self._broker_epoch),
                broker_epoch=self._broker_epoch,
                end_points=(BrokerEndpoint(name=LISTENER, host=f"b{node}", port=9092),),
                features=(),
                fenced=False,
            )
        )

    def _open(self, node: int) -> None:
        identity = Identity(
            node, "cluster", (Endpoint(LISTENER, f"b{node}", 9092),), UUID(int=1), UUID(int=self._broker_epoch)
        )
        properties = {
            "replica.lag.time.max.ms": str(LAG_MAX_MS),
            "initial.broker.registration.timeout.ms": "600000",
            "log.dirs": "/data",
            "node.id": str(node),
        }
        runtime = Runtime(identity, BrokerConfiguration(properties), self.disks[node], lambda: UUID(int=9), lambda _: 0)
        metadata = Metadata()
        self.members[node] = Member(Broker(runtime, metadata, lambda: (99, "controller", 9093), self.now), metadata)

    def partition(self, node: int) -> Partition:
        partition = self.members[node].broker.replicas.get(TOPIC, 0)
        assert partition is not None
        return partition

    def log(self, node: int) -> list[tuple[int, int, str]]:
        """Return offset, leader epoch and value of each record in a broker's log."""
        log = self.partition(node).log
        records = []
        offset = log.log_start_offset
        while offset < log.log_end_offset:
            for batch in decode_batches(log.read(offset, 1 << 20, log.log_end_offset)):
                records += [(record.offset, batch.leader_epoch, record.value.decode()) for record in batch.records]
            offset = records[-1][0] + 1
        return records

    def values(self, node: int) -> str:
        """Return the values in a broker's log, separated by spaces."""
        return " ".join(value for _, _, value in self.log(node))

    # The controller

    @property
    def state(self) -> PartitionRecord:
        """The controller's state of the partition."""
        return next(record for record in reversed(self.records) if isinstance(record, PartitionRecord))

    def elect(self, leader: int, *, isr: Iterable[int] | None = None, publish_to: Iterable[int] | None = None) -> None:
        """Elect a broker as the leader in a new epoch."""
        state = self.state
        self.change(
            leader=leader,
            leader_epoch=state.leader_epoch + 1,
            isr=tuple(state.isr if isr is None else isr),
            publish_to=publish_to,
        )

    def change(self, *, publish_to: Iterable[int] | None = None, **fields: Any) -> None:
        """Change the state of the partition and publish it to some brokers or all."""
        state = self.state
        self.records.append(replace(state, partition_epoch=state.partition_epoch + 1, **fields))
        self.publish_metadata(publish_to)

    def alter_broker(self, node: int, *, publish_to: Iterable[int] | None = None, **fields: Any) -> None:
        """Change the registration of a broker and publish it to some brokers or all."""
        registered = [
            record for record in self.records if isinstance(record, RegisterBrokerRecord) and record.broker_id == node
        ]
        self.records.append(replace(registered[-1], **fields))
        self.publish_metadata(publish_to)

    def publish_metadata(self, nodes: Iterable[int] | None = None) -> None:
        """Publish all metadata to some brokers or all."""
        for node in self.members if nodes is None else nodes:
            if node in self.members:
                self._publish_metadata(node)

    def _publish_metadata(self, node: int) -> None:
        member = self.members[node]
        new_records = self.records[member.metadata.offset + 1 :]
        for record in new_records:
            member.metadata.image.apply(record)
        is_first = member.metadata.offset < 0
        member.metadata.offset = len(self.records) - 1
        delta = MetadataDelta(everything=True) if is_first else MetadataDelta.of(new_records)
        member.broker.on_metadata_update(delta, self.now)
        self._collect(node)

    def _alter_partition(self, body: Any) -> Any:
        """Handle an AlterPartition request of one partition."""
        new = message_codec(56, 3).replies
        partition = body.topics[0].partitions[0]
        state, isr = self.state, tuple(member.broker_id for member in partition.new_isr_with_epochs)
        error = ErrorCode.none
        if self.alter_partition_error is not None:
            error = self.alter_partition_error
            self.rejections += 1
        elif body.broker_id != state.leader or partition.leader_epoch != state.leader_epoch:
            error = ErrorCode.fenced_leader_epoch
        elif partition.partition_epoch != state.partition_epoch:
            error = ErrorCode.invalid_update_version
        elif not all(self._is_eligible(member) for member in partition.new_isr_with_epochs):
            error = ErrorCode.ineligible_replica
        else:
            self.altered_isrs.append(isr)
            self.change(isr=isr, publish_to=())
        data = new.PartitionData(
            partition_index=0,
            error_code=error,
            leader_id=self.state.leader,
            leader_epoch=self.state.leader_epoch,
            isr=self.state.isr if error is ErrorCode.none else (),
            partition_epoch=self.state.partition_epoch,
        )
        topic = new.TopicData(topic_id=TOPIC_ID, partitions=(data,))
        return new.AlterPartitionResponse(error_code=ErrorCode.none, topics=(topic,))

    def _is_eligible(self, member: Any) -> bool:
        """Whether a broker runs and has the broker epoch of the request (KIP-903)."""
        registered = [
            record.broker_epoch
            for record in self.records
            if isinstance(record, RegisterBrokerRecord) and record.broker_id == member.broker_id
        ]
        return member.broker_id in self.members and member.broker_epoch in {-1, registered[-1]}

    # Clients

    def produce(self, *values: str, acks: int = -1, to: int | None = None, timeout_ms: int = 30_000) -> Produced:
        """Send a batch to a broker, by default the leader. The response sets error and base offset of the result."""
        node = self.state.leader if to is None else to
        produced = Produced(values, acks)
        records = tuple(Record(value=value.encode(), timestamp_ms=START_MS) for value in values)
        data = {"index": 0, "records": encode_batch(RecordBatch(records))}
        body = request(
            "Produce", 9, acks=acks, timeout=timeout_ms, topic_data=[{"name": TOPIC, "partition_data": [data]}]
        )
        connection = Connection()
        self._produced[connection] = produced
        self._serve(node, connection, 0, 9, 0, body)
        return produced

    # Messages and time

    def cut(self, one: int, other: int) -> None:
        """Cut the link between two brokers; requests in flight are lost."""
        self.cuts.add(frozenset({one, other}))
        for node, peer in ((one, other), (other, one)):
            if node in self.members:
                self._disconnect(node, peer)

    def heal(self) -> None:
        self.cuts.clear()

    def step(self) -> bool:
        """Deliver one message; return whether one was in flight."""
        if not self._messages:
            return False
        self._messages.popleft()()
        return True

    def step_until(self, condition: Callable[[], object], *, within_ms: int = 5_000) -> None:
        """Deliver messages one by one, or advance the clock if there are none, until the condition is true."""
        end_ms = self.now.monotonic_ms + within_ms
        while not condition():
            if not self.step():
                due_ms = self._next_timer_ms()
                assert due_ms is not None
                assert due_ms <= end_ms, f"not within {within_ms} ms"
                self._fire(due_ms)

    def run(self, for_ms: int = 0) -> None:
        """Deliver messages until none is in flight, and advance the clock by `for_ms`."""
        end_ms = self.now.monotonic_ms + for_ms
        while self.step():
            pass
        while (due_ms := self._next_timer_ms()) is not None and due_ms <= end_ms:
            self._fire(due_ms)
            while self.step():
                pass
        self._set_clock(end_ms)

    def _fire(self, at_ms: int) -> None:
        self._set_clock(max(at_ms, self.now.monotonic_ms))
        for node, member in tuple(self.members.items()):
            member.broker.runtime.timers.fire(self.now)
            self._collect(node)

    def _next_timer_ms(self) -> int | None:
        due = [member.broker.runtime.timers.next_ms for member in self.members.values()]
        return min((at_ms for at_ms in due if at_ms is not None), default=None)

    def _set_clock(self, monotonic_ms: int) -> None:
        self.now = Now(self.now.wall_ms + monotonic_ms - self.now.monotonic_ms, monotonic_ms)

    def _later(self, message: Callable[[], None]) -> None:
        self._messages.append(message)

    def _collect(self, node: int) -> None:
        """Execute the effects of a broker."""
        sender = self.members[node]
        for effect in self.members[node].broker.runtime.take_effects():
            match effect:
                case Send(channel=channel, data=data):
                    self._later(lambda channel=channel, data=data: self._arrive(sender, node, channel, data[4:]))
                case Respond(connection=connection, data=data):
                    self._send_response(node, connection, data[4:])
                case Disconnect(channel=channel) if channel.node_id in self.members:
                    self._drop_connection(self.members[channel.node_id], node, channel.purpose)

    def _arrive(self, member: Member, sender: int, channel: Channel, frame: bytes) -> None:
        """Handle a broker's request at the controller or at another broker."""
        if self.members.get(sender) is not member:
            return  # the sender has been killed
        receiver = channel.node_id
        header = read_header(frame)
        _, body = message_codec(header.api_key, header.api_version).read(frame)
        if channel.purpose == "alter-partition":
            if self.is_controller_reachable:
                response = self._alter_partition(body)
                data = message_codec(56, 3).write(header.correlation_id, response)
                self.members[sender].broker.runtime.channels.handle_response(channel, data[4:], self.now)
                self._collect(sender)
                self._later(self.publish_metadata)
            return
        if receiver not in self.members or frozenset({sender, receiver}) in self.cuts:
            self._disconnect(sender, receiver)
            return
        if header.api_key == FETCH and body.topics:
            self.fetches[sender] += 1
        connection = self.members[receiver].connections.setdefault((sender, channel.purpose), Connection())
        self._serve(receiver, connection, header.api_key, header.api_version, header.correlation_id, body)

    def _serve(
        self, node: int, connection: Connection, api_key: int, version: int, correlation_id: int, body: Any
    ) -> None:
        broker = self.members[node].broker
        codec = message_codec(api_key, version)
        received = Request(connection, api_key, version, correlation_id, None, body, codec.replies)
        response = HANDLERS[api_key](broker, received, self.now)
        if not isinstance(response, RequestOutcome):
            broker.runtime.respond(received, response)
        self._collect(node)

    def _send_response(self, node: int, connection: Connection, frame: bytes) -> None:
        followers = {id(known): follower for follower, known in self.members[node].connections.items()}
        follower = followers.get(id(connection))
        if follower is not None:
            member = self.members.get(follower[0])
            self._later(lambda: self._deliver(member, node, *follower, frame))
        elif connection in self._produced:
            self._complete(self._produced.pop(connection), frame)

    def _deliver(self, member: Member | None, leader: int, follower: int, purpose: str, frame: bytes) -> None:
        """Deliver a leader's response, unless the follower was killed after its request."""
        if member is None or self.members.get(follower) is not member or frozenset({leader, follower}) in self.cuts:
            return
        member.broker.runtime.channels.handle_response(_channel(leader, purpose), frame, self.now)
        self._collect(follower)

    def _complete(self, produced: Produced, frame: bytes) -> None:
        response = decode_response(load_response_schema(0, 9), frame)
        partition = response.responses[0].partition_responses[0]
        produced.error, produced.base_offset = partition.error_code, partition.base_offset

    def _disconnect(self, node: int, peer: int) -> None:
        """Close the channels from a broker to a peer."""
        for kind in FetcherKind:
            purpose = FetcherId(peer, kind).purpose
            if peer in self.members:
                self._drop_connection(self.members[peer], node, purpose)
            self.members[node].broker.runtime.channels.lost(_channel(peer, purpose), self.now)
        self._collect(node)

    def _disconnect_all(self, killed: int) -> None:
        for node in tuple(self.members):
            if node != killed:
                self._disconnect(node, killed)

    @staticmethod
    def _drop_connection(member: Member, peer: int, purpose: str) -> None:
        """Drop the connection from a peer to a broker."""
        connection = member.connections.pop((peer, purpose), None)
        if connection is not None:
            member.broker.purgatory.drop(connection)


def _channel(node: int, purpose: str) -> Channel:
    return Channel(purpose, node, f"b{node}", 9092)
