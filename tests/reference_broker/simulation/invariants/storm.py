"""A small random run of a cluster under faults, with clients that report acknowledgements to the invariants.

    Storm(seed=7).run()         # raises `InvariantViolation`

Everything is generated from the seed: the kinds of faults, their times and nodes. Finally all faults are healed, and
the cluster has a bounded time to converge.
"""

import struct
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

from kio.index import load_response_schema

from fixtures.clients.raw import decode_response, encode_request
from reference_broker.simulation.clock import WALL_START_MS
from reference_broker.simulation.cluster import ClientConnection, SimulatedCluster
from reference_broker.simulation.coverage import Coverage
from reference_broker.simulation.disk import Failure
from reference_broker.simulation.invariants import Invariants, InvariantViolation, converged
from reference_broker.simulation.links import Condition, Cut, Link
from tests.reference_broker.requests import batch, request

PROPERTIES = {
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "replica.lag.time.max.ms": "1500",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "3",
    "min.insync.replicas": "2",
    "default.replication.factor": "3",
    "replica.high.watermark.checkpoint.interval.ms": "700",
    "log.flush.offset.checkpoint.interval.ms": "900",
    "controlled.shutdown.enable": "true",
}
TOPIC, GROUP = "orders", "readers"
FAULTY_MS, CONVERGENCE_MS = 20_000, 60_000
RETRY_MS = 1_500
_CRC = struct.Struct(">I")
MACHINE_KINDS = ("kill", "power", "midway", "pause", "stop", "slow-disk", "disk-error", "disk-full", "jump", "drift")
KINDS = (*MACHINE_KINDS, "isolate", "deaf", "cut", "elect", "reassign", "delete-records")
"""Kinds of faults and of administrative requests. `midway` cuts the power during one of the next disk operations."""


class Client:
    """Client with one connection per node and a timeout for each request."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster
        self._connections: dict[int, ClientConnection] = {}
        self._waiting: dict[int, tuple[int, Any, Callable[[Any], None]]] = {}
        self._numbers = 0

    def send(self, node_id: int, entity: Any, then: Callable[[Any], None]) -> None:
        """Send a request; `then` is called with the response, or None after a failure."""
        self._numbers += 1
        number = self._numbers
        schema = load_response_schema(entity.__api_key__, entity.__version__)
        self._waiting[number] = node_id, schema, then
        if node_id not in self._connections:
            self._connections[node_id] = self._connect(node_id)
        frame = encode_request(entity, number, "storm")
        self._connections[node_id].send(len(frame).to_bytes(4) + frame)
        self._cluster.scheduler.after(RETRY_MS, lambda: self._time_out(number))

    def _connect(self, node_id: int) -> ClientConnection:
        def received(data: bytes) -> None:
            number = int.from_bytes(data[4:8])
            if number in self._waiting:
                _, schema, then = self._waiting.pop(number)
                then(decode_response(schema, data[4:]))

        def closed() -> None:
            self._connections.pop(node_id, None)
            lost = [number for number, (to, _, _) in self._waiting.items() if to == node_id]
            for number in lost:
                self._waiting.pop(number)[2](None)

        return self._cluster.connect("client", node_id, received, closed)

    def _time_out(self, number: int) -> None:
        if number in self._waiting:
            node_id, _, then = self._waiting.pop(number)
            if node_id in self._connections:
                self._connections.pop(node_id).close()
            then(None)


class Producer:
    """A producer that sends one batch after the other to a partition.

    An idempotent producer sends each batch again until it is acknowledged, or until the error requires a new
    producer id. A producer that is not idempotent continues with the next batch after an error.
    """

    def __init__(self, storm: "Storm", partition: int, *, is_idempotent: bool) -> None:
        self._storm = storm
        self._client = Client(storm.cluster)
        self._partition = partition
        self._producer: dict[str, int] = {}
        self._is_idempotent = is_idempotent
        self._sequence = self._value = 0
        self.acknowledged = 0

    def begin(self) -> None:
        if not self._is_idempotent:
            self._send_next()
            return
        entity = request("InitProducerId", 4, transactional_id=None, producer_id=-1, producer_epoch=-1)
        self._client.send(self._storm.any_node(), entity, self._identified)

    def _identified(self, response: Any) -> None:
        if response is None or response.error_code:
            self._later(self.begin)
            return
        self._producer = {"producer_id": response.producer_id, "producer_epoch": response.producer_epoch}
        self._sequence = 0
        self._send_next()

    def _later(self, action: Callable[[], None]) -> None:
        if not self._storm.is_over:
            self._storm.cluster.scheduler.after(self._storm.random.randrange(2, 80), action)

    def _send_next(self) -> None:
        self._value += 1
        producer = self._producer | ({"base_sequence": self._sequence} if self._producer else {})
        count = self._storm.random.choice((1, 1, 3))
        values = [f"{self._partition}:{self._value}:{number}".encode() for number in range(count)]
        padding = b"." * self._storm.random.choice((0, 0, 3_000))
        timestamp_ms = WALL_START_MS + self._storm.cluster.scheduler.now_ms
        self._send(batch(*(value + padding for value in values), timestamp_ms=timestamp_ms, **producer), count)

    def _send(self, records: bytes, count: int) -> None:
        data = [{"name": TOPIC, "partition_data": [{"index": self._partition, "records": records}]}]
        entity = request("Produce", 9, acks=-1, timeout=1_000, topic_data=data)

        def on_response(response: Any) -> None:
            produced = None if response is None else response.responses[0].partition_responses[0]
            code = None if produced is None else int(produced.error_code)
            if produced is not None and code == 0:
                self._note(produced.base_offset, records)
                self._sequence += count
                self._later(self._send_next)
            elif code in {45, 47, 59}:  # the sequence is out of order, or the producer id is unknown or fenced
                self._later(self.begin)
            elif self._is_idempotent:
                self._later(lambda: self._send(records, count))
            else:
                self._later(self._send_next)

        self._client.send(self._storm.leader(self._partition), entity, on_response)

    def _note(self, base_offset: int, records: bytes) -> None:
        self.acknowledged += 1
        if base_offset >= 0:  # an old duplicate has no known offset
            crc = _CRC.unpack_from(records, 17)[0]
            self._storm.invariants.acknowledged(TOPIC, self._partition, base_offset, crc=crc)


class Committer:
    """A client that commits offsets of a group repeatedly."""

    def __init__(self, storm: "Storm") -> None:
        self._storm = storm
        self._client = Client(storm.cluster)
        self._offset = 0
        self._node = 1
        self.acknowledged = 0

    def begin(self) -> None:
        if self._storm.is_over:
            return
        self._offset += 1
        partitions = [{"partition_index": 0, "committed_offset": self._offset, "committed_leader_epoch": -1}]
        topics = [{"name": TOPIC, "partitions": partitions}]
        entity = request("OffsetCommit", 8, group_id=GROUP, generation_id_or_member_epoch=-1, topics=topics)
        offset = self._offset

        def on_response(response: Any) -> None:
            code = None if response is None else int(response.topics[0].partitions[0].error_code)
            if code == 0:
                self.acknowledged += 1
                self._storm.invariants.committed_group_offset(GROUP, TOPIC, 0, offset)
            else:
                self._find()
            self._storm.cluster.scheduler.after(self._storm.random.randrange(50, 400), self.begin)

        self._client.send(self._node, entity, on_response)

    def _find(self) -> None:
        """Find the coordinator of the group."""

        def on_response(response: Any) -> None:
            if response is not None and int(response.coordinators[0].error_code) == 0:
                self._node = int(response.coordinators[0].node_id)

        entity = request("FindCoordinator", 4, key_type=0, coordinator_keys=(GROUP,))
        self._client.send(self._storm.any_node(), entity, on_response)


class Storm:
    """One run of a cluster under random faults.

    :param kinds: kinds of faults, from `KINDS`; by default, a random selection.
    :param faults: number of faults; by default, random.
    :param faulty_ms: duration of the phase in which faults are injected.
    :param for_ms: duration of each fault; by default, random for each.
    """

    def __init__(
        self,
        seed: int,
        *,
        kinds: Iterable[str] | None = None,
        properties: dict[str, str] | None = None,
        faults: int | None = None,
        faulty_ms: int = FAULTY_MS,
        for_ms: int | None = None,
    ) -> None:
        self.random = Random(seed)
        self.cluster = SimulatedCluster(3, seed=seed, properties=PROPERTIES | (properties or {}))
        self.invariants = Invariants(self.cluster)
        self.coverage = Coverage(self.cluster, self.invariants.watch)
        generated = [kind for kind in KINDS if self.random.random() < 0.4]
        self.kinds = tuple(kinds) if kinds is not None else tuple(generated) or ("kill",)
        self.faults = self.random.randrange(1, 14) if faults is None else faults
        self.faulty_ms = faulty_ms
        self._for_ms = for_ms
        self.is_over = self._is_healed = False
        self.producers: list[Producer] = []
        self.committer = Committer(self)

    def any_node(self) -> int:
        return self.random.choice((1, 2, 3))

    def leader(self, partition: int) -> int:
        """Return the leader in the metadata of a random running node. The metadata may be outdated."""
        nodes = self.cluster.nodes
        if not nodes:
            return 1
        image = nodes[self.random.choice(sorted(nodes))].metadata.image
        found = image.partition(TOPIC, partition)
        return found.leader if found is not None and found.leader > 0 else self.any_node()

    def run(self, *, to_the_end: bool = True) -> "Storm":
        """Run all phases.

        :param to_the_end: whether to make the final checks, after which the cluster must not be used.
        """
        scheduler = self.cluster.scheduler
        if not self.cluster.await_ready():
            raise InvariantViolation("not-ready", "the cluster did not start")
        self._create_topic()
        for partition in range(2):
            self.producers.append(Producer(self, partition, is_idempotent=partition == 0))
            scheduler.after(10, self.producers[-1].begin)
        scheduler.after(10, self.committer.begin)
        for _ in range(self.faults):
            kind, at_ms = self.random.choice(self.kinds), self.random.randrange(self.faulty_ms)
            scheduler.after(at_ms, lambda kind=kind: self._inject(kind))
        scheduler.run(self.faulty_ms)
        self._heal()
        scheduler.run(2_000)
        self.is_over = True
        scheduler.run(2_000)
        self._await_convergence()
        self.invariants.check_idle()
        if to_the_end:
            self.invariants.check_end()
        return self

    def _create_topic(self) -> None:
        responses: list[Any] = []
        configs = [{"name": "segment.ms", "value": "4000"}, {"name": "index.interval.bytes", "value": "200"}]
        topics = [{"name": TOPIC, "num_partitions": 2, "replication_factor": 3, "configs": configs}]
        entity = request("CreateTopics", 7, topics=topics, timeout=5_000)
        Client(self.cluster).send(1, entity, responses.append)
        end_ms = self.cluster.scheduler.now_ms + 5_000
        assert self.cluster.scheduler.run_until(lambda: bool(responses), end_ms=end_ms)
        assert responses[0] is not None
        assert int(responses[0].topics[0].error_code) == 0, responses[0]

    def _await_convergence(self) -> None:
        end_ms = self.cluster.scheduler.now_ms + CONVERGENCE_MS
        while (reason := converged(self.cluster)) is not None:
            if self.cluster.scheduler.now_ms >= end_ms:
                raise InvariantViolation("not-converged", reason)
            self.cluster.scheduler.run(200)

    # Faults

    def _inject(self, kind: str) -> None:
        if self._is_healed:
            return
        node_id = self.any_node()
        for_ms = self._for_ms or self.random.choice((0, 50, 700, 2_500, 6_000))
        if kind in {"elect", "reassign", "delete-records"}:
            self._request(kind, node_id)
        elif kind in {"isolate", "deaf", "cut"}:
            self._cut(kind, str(node_id), for_ms)
        else:
            self._break_machine(kind, node_id, for_ms)

    def _break_machine(self, kind: str, node_id: int, for_ms: int) -> None:
        machine, scheduler = self.cluster.machines[node_id], self.cluster.scheduler
        match kind:
            case "kill" | "power" if machine.node is not None:
                (self.cluster.kill if kind == "kill" else self.cluster.cut_power)(node_id)
                scheduler.after(for_ms, lambda: self._start(node_id))
            case "pause":
                machine.pause()
                scheduler.after(for_ms, machine.resume)
            case "stop" if machine.node is not None and not machine.is_paused:
                self.cluster.shut_down(node_id)
                self._start_when_gone(node_id, for_ms)
            case "slow-disk":
                machine.disk.flush_ms = self.random.choice((5, 60, 400))
                scheduler.after(for_ms, lambda: setattr(machine.disk, "flush_ms", 0))
            case "jump":
                machine.jump_clock(self.random.choice((-3_600_000, -2_000, 2_000, 3_600_000)))
            case "drift":
                machine.drift_clock(self.random.choice((-20_000, 20_000)))
            case "midway":
                machine.disk.crashes_after = self.random.randrange(12)
                self._start_when_gone(node_id, for_ms)
            case "disk-error":
                operation = self.random.choice(("append", "flush", "replace", "truncate", "delete", "write"))
                machine.disk.failures.append(Failure(operation=operation))
                self._start_when_gone(node_id, for_ms)
            case "disk-full":
                machine.disk.free_bytes = self.random.randrange(20_000)
                self._start_when_gone(node_id, for_ms)

    def _request(self, kind: str, node_id: int) -> None:
        """Send an administrative request."""
        index = self.random.randrange(2)
        match kind:
            case "elect":
                entity = request("ElectLeaders", 2, election_type=0, topic_partitions=None, timeout=2_000)
            case "reassign":
                partitions = [{"partition_index": index, "replicas": tuple(self.random.sample((1, 2, 3), 3))}]
                topics = [{"name": TOPIC, "partitions": partitions}]
                entity = request("AlterPartitionReassignments", 0, timeout=2_000, topics=topics)
            case "delete-records":
                partitions = [{"partition_index": index, "offset": self.random.choice((5, 20, 150))}]
                topics = [{"name": TOPIC, "partitions": partitions}]
                entity, node_id = request("DeleteRecords", 2, timeout=2_000, topics=topics), self.leader(index)
        Client(self.cluster).send(node_id, entity, lambda _: None)

    def _cut(self, kind: str, place: str, for_ms: int) -> None:
        others = [str(other) for other in self.cluster.machines if str(other) != place]
        if kind == "cut":
            others = [self.random.choice(others)]
        condition = Condition(cut=self.random.choice((Cut.HOLD, Cut.LOSE)))
        links = [Link(other, place) for other in others]
        links += [] if kind == "deaf" else [Link(place, other) for other in others]
        for link in links:
            self.cluster.network.set(link, condition)
        self.cluster.scheduler.after(for_ms, lambda: [self.cluster.network.heal(link) for link in links])

    def _start_when_gone(self, node_id: int, for_ms: int) -> None:
        if self._is_healed:
            return
        if self.cluster.machines[node_id].node is None:
            self.cluster.scheduler.after(for_ms, lambda: self._start(node_id))
        else:
            self.cluster.scheduler.after(20, lambda: self._start_when_gone(node_id, for_ms))

    def _start(self, node_id: int) -> None:
        machine = self.cluster.machines[node_id]
        if machine.node is None:
            machine.disk.failures.clear()
            machine.disk.free_bytes = machine.disk.crashes_after = None
            self.cluster.start(node_id)

    def _heal(self) -> None:
        self._is_healed = True
        self.cluster.network.heal_all()
        for node_id, machine in self.cluster.machines.items():
            machine.disk.flush_ms = 0
            machine.disk.failures.clear()
            machine.disk.free_bytes = machine.disk.crashes_after = None
            machine.drift_clock(0)
            machine.resume()
            self._start(node_id)
