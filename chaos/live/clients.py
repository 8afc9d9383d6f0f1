"""The clients of a round as things that act: each drives one recorded client until it is told to stop.

Raw clients follow the leader wherever it moves (`LeaderConnection`). Who finds no leader, or hears an error, waits a
moment and looks again; nobody gives up.
"""

from collections.abc import Iterator
from typing import Final

from chaos.live.round import Administrator, Keyed, LeaderReader, OneByOne, Pipelined, Tail, Workload
from chaos.load import LeaderConnection
from conformance.concurrent import script
from conformance.concurrent.actors import Actor, actor_of
from conformance.concurrent.script import Phase, Send
from conformance.concurrent.surroundings import Surroundings
from fixtures.clients.answers import ProducerIdentity
from fixtures.clients.outcomes import Outcome
from fixtures.clients.payload import to_record
from fixtures.clients.record_batch import Record
from fixtures.clients.recorded import RecordedRawClient
from fixtures.clients.stage import Event

DELIVERY_TIMEOUT_MS: Final = 60_000
"""Longer than any election: an idempotent producer that gives up has met a cluster that did not come back."""
_AGAIN_S: Final = 0.05
"""How long a client that found no leader waits before it asks again."""
_RECORD_BYTES: Final = 100
_TOMBSTONE_EVERY: Final = 7
_ADMIN_TIMEOUT_MS: Final = 3_000


def clients_of(workload: Workload, surroundings: Surroundings) -> Iterator[Actor]:
    """The clients that a workload stands for, on the topic that the surroundings name."""
    partitions = surroundings.replicas
    match workload:
        case Pipelined():
            yield _Pipelined(workload, surroundings)
        case OneByOne():
            yield from (_OneByOne(workload, surroundings, partition) for partition in partitions)
        case Keyed():
            yield from (_Keyed(workload, surroundings, partition) for partition in partitions)
        case Tail():
            yield actor_of(script.Consumer(), surroundings)
        case LeaderReader():
            yield from (_LeaderReader(workload, surroundings, partition) for partition in partitions)
        case Administrator():
            yield _Administrator(workload, surroundings)


class _Pipelined:
    is_writer = False

    def __init__(self, workload: Pipelined, surroundings: Surroundings) -> None:
        self._workload = workload
        self._surroundings = surroundings
        self._producer = surroundings.target.drivers.producer(
            surroundings.recorder,
            next(surroundings.processes),
            topic_ids=surroundings.topic_ids,
            idempotent=workload.idempotent,
            acks=workload.acks,
            delivery_timeout_ms=DELIVERY_TIMEOUT_MS,
            properties={"max.in.flight.requests.per.connection": workload.in_flight_max},
        )

    def act(self, phase: Phase, over: Event) -> None:
        burst = Send(self._workload.records, _RECORD_BYTES)
        while not over.is_set():
            for partition in self._surroundings.replicas:
                for record in self._surroundings.records(burst):
                    self._producer.send(self._surroundings.topic, partition, record)
            self._producer.poll(self._workload.pause_ms / 1000)

    def close(self) -> None:
        self._producer.close()


class _RawClient:
    """Does the same again and again, to the leader of one partition."""

    is_writer = False

    def __init__(self, surroundings: Surroundings, partition: int, pause_ms: int) -> None:
        self._surroundings = surroundings
        self._partition = partition
        self._pause_s = pause_ms / 1000
        self._leader = LeaderConnection(surroundings, partition)

    def act(self, phase: Phase, over: Event) -> None:
        while not over.is_set():
            client = self._leader.client()
            done = client is not None and self._do(client)
            if not done:
                self._leader.forget()
            over.wait(self._pause_s if done else _AGAIN_S)

    def _do(self, leader: RecordedRawClient) -> bool:
        """Once; whether the leader took it."""
        raise NotImplementedError

    def close(self) -> None:
        self._leader.forget()


class _OneByOne(_RawClient):
    """Sends each batch once, and takes a new producer id where the outcome of one is not known."""

    def __init__(self, workload: OneByOne, surroundings: Surroundings, partition: int) -> None:
        super().__init__(surroundings, partition, workload.pause_ms)
        self._workload = workload
        self._identity: ProducerIdentity | None = None
        self._sequence = -1

    def _do(self, leader: RecordedRawClient) -> bool:
        if self._workload.idempotent and self._identity is None:
            _, self._identity = leader.init_producer_id()
            self._sequence = 0
            if self._identity is None:
                return False
        produced = leader.produce(
            self._surroundings.topic,
            self._partition,
            list(self._surroundings.records(Send(self._workload.records))),
            acks=self._workload.acks,
            timeout_ms=self._workload.timeout_ms,
            producer=self._identity,
            base_sequence=self._sequence,
            bracket=self._workload.acks == -1,  # after acks=1 the end offset lawfully lags behind
        )
        if produced.outcome is Outcome.OK:
            self._sequence += self._workload.records if self._workload.idempotent else 0
            return True
        self._identity = None
        return self._workload.acks == 0 and produced.error is None


class _Keyed(_RawClient):
    def __init__(self, workload: Keyed, surroundings: Surroundings, partition: int) -> None:
        super().__init__(surroundings, partition, workload.pause_ms)
        self._workload = workload

    def _do(self, leader: RecordedRawClient) -> bool:
        records = [self._record()]
        produced = leader.produce(self._surroundings.topic, self._partition, records, bracket=True)
        return produced.outcome is Outcome.OK

    def _record(self) -> Record:
        value = next(self._surroundings.values)
        now_ms = int(self._surroundings.target.transport.time() * 1000)
        is_tombstone = value % _TOMBSTONE_EVERY == 0
        return to_record(
            None if is_tombstone else value, key=f"keyed-{value % self._workload.keys}", timestamp_ms=now_ms
        )


class _LeaderReader(_RawClient):
    def __init__(self, workload: LeaderReader, surroundings: Surroundings, partition: int) -> None:
        super().__init__(surroundings, partition, workload.pause_ms)
        self._offset = 0

    def _do(self, leader: RecordedRawClient) -> bool:
        topic = self._surroundings.topic
        fetched = leader.fetch(topic, self._partition, self._offset, max_wait_ms=50)
        self._offset = fetched.next_offset
        listed = leader.list_offsets(topic, self._partition)
        if fetched.error == "OFFSET_OUT_OF_RANGE" and listed.offset is not None:
            self._offset = min(self._offset, listed.offset)  # a log that was cut short: go on from its end
        return fetched.error is None and listed.error is None


class _Administrator:
    """Asks one node after the other, so that it meets those that are in trouble, too."""

    is_writer = False

    def __init__(self, workload: Administrator, surroundings: Surroundings) -> None:
        self._workload = workload
        self._surroundings = surroundings

    def act(self, phase: Phase, over: Event) -> None:
        while not over.is_set():
            for node in self._surroundings.target.nodes:
                if not over.is_set():
                    self._come_and_go(node.id)
                    over.wait(self._workload.pause_ms / 1000)

    def _come_and_go(self, node: int) -> None:
        client = self._surroundings.raw_client(node, timeout_s=_ADMIN_TIMEOUT_MS / 1000)
        topic = self._surroundings.new_topic()
        try:
            client.create_topic(topic, replication_factor=2, timeout_ms=_ADMIN_TIMEOUT_MS)
            client.alter_topic(topic, "retention.ms", "86400000")
            client.delete_topic(topic, timeout_ms=_ADMIN_TIMEOUT_MS)
        finally:
            client.client.close()

    def close(self) -> None:
        """Nothing is left open."""
