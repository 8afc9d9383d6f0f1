"""Clients of a round as actors: each drives one recorded client until the phase is over.

Raw clients follow the leader or the coordinator when it moves (`FollowingClient`). After an error, or while there is no
leader or coordinator, they repeat the lookup after a backoff, without a limit.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Final

from chaos.live.leader import FollowingClient, coordinator_client, leader_client
from chaos.live.retrying import RetryingProducer
from conformance.concurrent.actors import Actor, actor_of
from conformance.concurrent.trial_context import TrialContext
from conformance.trial.phased_clients import Phase
from conformance.trial.workloads import (
    DELIVERY_TIMEOUT_MS,
    Administrator,
    Committer,
    Keyed,
    LeaderReader,
    OneByOne,
    Pipelined,
    Retrying,
    Tail,
    Workload,
)
from fixtures.clients import administration
from fixtures.clients.drivers import Producer
from fixtures.clients.recorded import RecordedClient
from fixtures.clients.responses import ProducerIdentity
from fixtures.clients.stage import Event
from linearizability.operation import Outcome

_RETRY_BACKOFF_S: Final = 0.05
"""Time until a client's next attempt after an error, or without a leader or coordinator."""
_RECORD_BYTES: Final = 100
_ADMIN_TIMEOUT_MS: Final = 3_000


def clients_of(workload: Workload, context: TrialContext) -> Iterator[Actor]:
    """Yield the clients of a workload, on the topic of a context."""
    partitions = context.replicas
    match workload:
        case Pipelined():
            yield _Pipelined(workload, context)
        case OneByOne():
            yield from (_OneByOne(workload, context, partition) for partition in partitions)
        case Retrying():
            yield from (RetryingProducer(workload, context, partition) for partition in partitions)
        case Keyed():
            yield from (_Keyed(workload, context, partition) for partition in partitions)
        case Tail():
            yield actor_of(workload, context)
        case LeaderReader():
            yield from (_LeaderReader(workload, context, partition) for partition in partitions)
        case Committer():
            yield _Committer(workload, context)
        case Administrator():
            yield _Administrator(workload, context)


def write_end_records(context: TrialContext, timeout_s: float) -> tuple[int, ...]:
    """Produce one end record to every partition, so that its high watermark is above all earlier records.

    After a power cut a leader's checkpointed high watermark may be 0. The leader returns it as the end offset until its
    followers have fetched, and a consumer that reads up to this offset reads nothing.

    Returns the partitions that have accepted no record at the timeout; each is tried at least once.
    """
    clock = context.target.transport
    deadline_s = clock.monotonic() + timeout_s
    waiting = {partition: leader_client(context, partition) for partition in context.replicas}

    def is_written(partition: int) -> bool:
        client, topic, record = waiting[partition].client(), context.topic, context.records(1)
        is_accepted = (
            client is not None and client.produce(topic, partition, record, bracket=True).outcome is Outcome.OK
        )
        waiting[partition].reset()
        return is_accepted

    while True:
        waiting = {partition: leader for partition, leader in waiting.items() if not is_written(partition)}
        if not waiting or clock.monotonic() >= deadline_s:
            return tuple(waiting)
        clock.sleep(_RETRY_BACKOFF_S)


class _Pipelined:
    is_writer = False

    def __init__(self, workload: Pipelined, context: TrialContext) -> None:
        self._workload = workload
        self._context = context
        self._producer = self._open()

    def _open(self) -> Producer:
        context, workload = self._context, self._workload
        return context.target.drivers.producer(
            context.recorder,
            next(context.processes),
            topic_ids=context.topic_ids,
            idempotent=workload.idempotent,
            acks=workload.acks,
            delivery_timeout_ms=DELIVERY_TIMEOUT_MS,
            properties={"max.in.flight.requests.per.connection": workload.in_flight_max},
        )

    def act(self, phase: Phase, phase_over: Event) -> None:
        while not phase_over.is_set():
            for partition in self._context.replicas:
                for record in self._context.records(self._workload.records, _RECORD_BYTES):
                    self._producer.send(self._context.topic, partition, record)
            self._producer.poll(self._workload.pause_ms / 1000)
            if self._producer.fatal_error is not None:  # an application would replace the producer, too
                self._producer.close()
                self._producer = self._open()

    def close(self) -> None:
        self._producer.close()


class _RawClient(ABC):
    """Client that repeats one operation at the current leader or coordinator."""

    is_writer = False

    def __init__(self, context: TrialContext, connection: FollowingClient, pause_ms: int) -> None:
        self._context = context
        self._connection = connection
        self._pause_s = pause_ms / 1000

    def act(self, phase: Phase, phase_over: Event) -> None:
        while not phase_over.is_set():
            client = self._connection.client()
            done = client is not None and self._do(client)
            if not done:
                self._connection.reset()
            phase_over.wait(self._pause_s if done else _RETRY_BACKOFF_S)

    @abstractmethod
    def _do(self, client: RecordedClient) -> bool:
        """Perform the operation once, and return whether it succeeded."""

    def close(self) -> None:
        self._connection.reset()


class _PartitionClient(_RawClient):
    def __init__(self, context: TrialContext, partition: int, pause_ms: int) -> None:
        super().__init__(context, leader_client(context, partition), pause_ms)
        self._partition = partition


class _OneByOne(_PartitionClient):
    """Producer that sends each batch once, without retries.

    An idempotent one requests a new producer id after a batch that is not acknowledged.
    """

    def __init__(self, workload: OneByOne, context: TrialContext, partition: int) -> None:
        super().__init__(context, partition, workload.pause_ms)
        self._workload = workload
        self._identity: ProducerIdentity | None = None
        self._sequence = -1

    def _do(self, client: RecordedClient) -> bool:
        if self._workload.idempotent and self._identity is None:
            self._identity = client.init_producer_id().identity
            self._sequence = 0
            if self._identity is None:
                return False
        produced = client.produce(
            self._context.topic,
            self._partition,
            self._context.records(self._workload.records),
            acks=self._workload.acks,
            timeout_ms=self._workload.timeout_ms,
            producer=self._identity,
            base_sequence=self._sequence,
            bracket=self._workload.acks == -1,  # after acks=1 the end offset may lag
        )
        if produced.outcome is Outcome.OK:
            self._sequence += self._workload.records if self._workload.idempotent else 0
            return True
        self._identity = None
        return self._workload.acks == 0 and produced.error is None


class _Keyed(_PartitionClient):
    def __init__(self, workload: Keyed, context: TrialContext, partition: int) -> None:
        super().__init__(context, partition, workload.pause_ms)
        self._workload = workload

    def _do(self, client: RecordedClient) -> bool:
        records = [self._context.keyed_record(self._workload.keys)]
        produced = client.produce(self._context.topic, self._partition, records, bracket=True)
        return produced.outcome is Outcome.OK


class _LeaderReader(_PartitionClient):
    def __init__(self, workload: LeaderReader, context: TrialContext, partition: int) -> None:
        super().__init__(context, partition, workload.pause_ms)
        self._offset = 0

    def _do(self, client: RecordedClient) -> bool:
        topic = self._context.topic
        fetched = client.fetch(topic, self._partition, self._offset, max_wait_ms=50)
        self._offset = fetched.next_offset
        listed = client.list_offsets(topic, self._partition)
        if fetched.error == "OFFSET_OUT_OF_RANGE" and listed.offset is not None:
            self._offset = min(self._offset, listed.offset)  # a truncated log: continue from its end
        return fetched.error is None and listed.error is None


class _Committer(_RawClient):
    def __init__(self, workload: Committer, context: TrialContext) -> None:
        self._group = workload.group_of(context.topic)
        super().__init__(context, coordinator_client(context, self._group), workload.pause_ms)
        self._offset = 0

    def _do(self, client: RecordedClient) -> bool:
        topic, partitions = self._context.topic, list(self._context.replicas)
        self._offset += 1
        committed = client.commit(self._group, topic, dict.fromkeys(partitions, self._offset))
        return committed.error is None and client.fetch_offsets(self._group, topic, partitions).error is None


class _Administrator:
    """Client that sends administrative requests to one node after the other, also to faulty ones."""

    is_writer = False

    def __init__(self, workload: Administrator, context: TrialContext) -> None:
        self._workload = workload
        self._context = context

    def act(self, phase: Phase, phase_over: Event) -> None:
        while not phase_over.is_set():
            for node in self._context.target.nodes:
                if not phase_over.is_set():
                    self._create_and_delete(node.id)
                    phase_over.wait(self._workload.pause_ms / 1000)

    def _create_and_delete(self, node: int) -> None:
        topic = self._context.new_topic()
        with self._context.raw_client(node, timeout_s=_ADMIN_TIMEOUT_MS / 1000) as client:
            client.create_topic(topic, replication_factor=2, timeout_ms=_ADMIN_TIMEOUT_MS)
            client.administer(administration.alter_topic_config(topic, "retention.ms", "86400000"))
            client.administer(administration.delete_topic(topic, timeout_ms=_ADMIN_TIMEOUT_MS))

    def close(self) -> None:
        """Do nothing: `_create_and_delete` closes its connections."""
