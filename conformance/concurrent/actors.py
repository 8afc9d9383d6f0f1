"""Actors: each runs the steps of one client of a script.

An actor records all calls of its client, and is used by one thread at a time.

A phase ends when all writers have run their steps and all faults are healed, or early because of a failure. Readers
and watchers continue until then. An actor is used in all phases and closed after the last; a pipelined producer then
waits for its last delivery report.
"""

from abc import ABC, abstractmethod
from itertools import takewhile
from typing import Protocol

from conformance.concurrent.trial_context import ScriptNotRunError, TrialContext
from conformance.trial.phased_clients import (
    AwaitNodeFault,
    MetadataWatcher,
    OneShotProducer,
    Phase,
    PipelinedProducer,
    SendRecords,
    TopicCreator,
    Trickle,
    WatermarkReader,
)
from conformance.trial.trial import Client
from conformance.trial.workloads import Tail
from fixtures.clients.recorded import RecordedClient
from fixtures.clients.responses import ProducerIdentity
from fixtures.clients.stage import Event
from fixtures.clients.steps import Flush, Idle
from linearizability.operation import Outcome

PRODUCE_TIMEOUT_MS = 30_000
"""Timeout of a Produce request: ten times `replica.lag.time.max.ms` with trial settings."""
_WATCHER_TIMEOUT_S = 2.0
"""Request timeout of a watcher, whose node may be paused or cut off."""
_CREATED_REPLICAS = 2
"""Replication factor of created topics: the number of brokers that run while one of three is down."""
_CREATE_TIMEOUT_MS = 3_000
_ONE = SendRecords(1)
_INIT_ATTEMPTS_MAX = 20
_INIT_PAUSE_S = 0.2
_POLL_TIMEOUT_S = 0.05


class Actor(Protocol):
    """Runner of one client's steps."""

    @property
    def is_writer(self) -> bool:
        """Whether a phase waits for the steps of this actor."""
        ...

    def act(self, phase: Phase, phase_over: Event) -> None:
        """Run the steps of a phase; a reader or watcher continues until `phase_over` is set."""
        ...

    def close(self) -> None:
        """Wait for pending outcomes, and disconnect."""
        ...


def actor_of(client: Client, context: TrialContext) -> Actor:
    """Return the actor of a client with phases, or of a consumer. Raises `ScriptNotRunError` for other clients."""
    match client:
        case PipelinedProducer():
            return _Pipelined(client, context)
        case OneShotProducer():
            return _OneShot(client, context)
        case Tail():
            return _Consuming(client, context)
        case WatermarkReader():
            return _WatermarkReading(client, context)
        case MetadataWatcher():
            return _Watching(client, context)
        case TopicCreator():
            return _Creating(client, context)
        case _:
            raise ScriptNotRunError(f"{type(client).__name__} cannot be a client of a requirement's trial")


class _RawActor:
    """Actor that sends single requests."""

    _raw: RecordedClient

    def close(self) -> None:
        self._raw.close()


class _Stepping(ABC):
    """Actor of a producer, which runs steps in each phase."""

    is_writer = True

    def __init__(self, client: PipelinedProducer | OneShotProducer, context: TrialContext) -> None:
        self._steps = {Phase.STEADY: client.steady, Phase.FAULTY: client.faulty, Phase.HEALED: client.healed}
        self._context = context

    def act(self, phase: Phase, phase_over: Event) -> None:
        for step in takewhile(lambda _: not phase_over.is_set(), self._steps[phase]):
            match step:
                case SendRecords():
                    self._send(step)
                case Trickle():
                    for _ in self._context.while_nemesis_runs(step):
                        self._send(_ONE)
                        self._pause(step.pause_ms / 1000)
                case Idle():
                    self._pause(step.duration_ms / 1000)
                case Flush():
                    self._flush()
                case AwaitNodeFault():
                    self._await_node_fault()

    @abstractmethod
    def _send(self, step: SendRecords) -> None: ...

    @abstractmethod
    def _pause(self, seconds: float) -> None: ...

    @abstractmethod
    def _flush(self) -> None: ...

    @abstractmethod
    def _await_node_fault(self) -> None: ...


class _Pipelined(_Stepping):
    def __init__(self, client: PipelinedProducer, context: TrialContext) -> None:
        super().__init__(client, context)
        self._client = client
        self._producer = context.target.drivers.producer(
            context.recorder,
            next(context.processes),
            topic_ids=context.topic_ids,
            idempotent=client.idempotent,
            acks=client.acks,
            delivery_timeout_ms=client.delivery_timeout_ms,
            properties={
                "max.in.flight.requests.per.connection": client.in_flight_max,
                "linger.ms": client.linger_ms,
                "batch.num.messages": client.batch_records_max,
                "compression.type": client.compression,
            },
        )

    def _send(self, step: SendRecords) -> None:
        for record in self._context.records(step.records, step.size):
            self._producer.send(self._context.topic, self._client.partition, record)

    def _pause(self, seconds: float) -> None:
        self._producer.poll(seconds)

    def _flush(self) -> None:
        self._producer.flush(self._client.delivery_timeout_ms / 1000)

    def _await_node_fault(self) -> None:
        while not self._context.node_failed.is_set():
            self._producer.poll(_POLL_TIMEOUT_S)

    def close(self) -> None:
        self._producer.close()


class _OneShot(_RawActor, _Stepping):
    def __init__(self, client: OneShotProducer, context: TrialContext) -> None:
        super().__init__(client, context)
        self._client = client
        self._raw = context.raw_client(context.replicas[client.partition].leader)
        self._identity: ProducerIdentity | None = None
        self._sequence = -1

    def _send(self, step: SendRecords) -> None:
        if self._client.idempotent and self._identity is None:
            self._identity = self._new_identity()
            self._sequence = 0
            if self._identity is None:
                return
        # No ListOffsets after acks=1: it may return an end offset below the batch.
        bracket = self._client.records_leader_epoch and self._client.acks == -1
        produced = self._raw.produce(
            self._context.topic,
            self._client.partition,
            self._context.records(step.records, step.size),
            acks=self._client.acks,
            timeout_ms=PRODUCE_TIMEOUT_MS,
            producer=self._identity,
            base_sequence=self._sequence,
            bracket=bracket,
        )
        if self._identity is not None:
            self._sequence += step.records
            if produced.outcome is not Outcome.OK:
                self._identity = None  # the next sequence is unknown: continue with a new producer id

    def _pause(self, seconds: float) -> None:
        self._context.target.transport.sleep(seconds)

    def _flush(self) -> None:
        """Do nothing: each batch is sent synchronously."""

    def _await_node_fault(self) -> None:
        self._context.node_failed.wait()

    def _new_identity(self) -> ProducerIdentity | None:
        """Return a new producer id, or None if every attempt fails.

        A new cluster may return COORDINATOR_LOAD_IN_PROGRESS for a while.
        """
        for _ in range(_INIT_ATTEMPTS_MAX):
            identity = self._raw.init_producer_id().identity
            if identity is not None:
                return identity
            self._context.target.transport.sleep(_INIT_PAUSE_S)
        return None


class _Consuming:
    is_writer = False

    def __init__(self, client: Tail, context: TrialContext) -> None:
        self._client = client
        self._consumer = context.target.drivers.consumer(
            context.recorder,
            next(context.processes),
            topic_ids=context.topic_ids,
            isolation=client.isolation,
        )
        self._consumer.assign({(context.topic, partition): 0 for partition in context.replicas})

    def act(self, phase: Phase, phase_over: Event) -> None:
        while not phase_over.is_set():
            self._consumer.poll(self._client.poll_records_max, 0.1)

    def close(self) -> None:
        self._consumer.close()


class _WatermarkReading(_RawActor):
    is_writer = False

    def __init__(self, client: WatermarkReader, context: TrialContext) -> None:
        self._client = client
        self._topic = context.topic
        self._raw = context.raw_client(context.replicas[client.partition].leader)
        self._offset = 0

    def act(self, phase: Phase, phase_over: Event) -> None:
        while not phase_over.is_set():
            fetched = self._raw.fetch(
                self._topic, self._client.partition, self._offset, max_wait_ms=50, max_bytes=self._client.max_bytes
            )
            self._offset = fetched.next_offset
            self._raw.list_offsets(self._topic, self._client.partition)
            if fetched.error is not None:
                phase_over.wait(0.1)  # no busy loop while another node is the leader


class _Watching(_RawActor):
    is_writer = False

    def __init__(self, client: MetadataWatcher, context: TrialContext) -> None:
        self._client = client
        self._topic = context.topic
        self._raw = context.raw_client(context.node_of(client.node), timeout_s=_WATCHER_TIMEOUT_S)

    def act(self, phase: Phase, phase_over: Event) -> None:
        while not phase_over.is_set():
            self._raw.metadata([self._topic])
            if self._client.cluster:
                self._raw.describe_cluster()
                self._raw.describe_quorum()
            phase_over.wait(self._client.period_ms / 1000)


class _Creating(_RawActor):
    is_writer = True

    def __init__(self, client: TopicCreator, context: TrialContext) -> None:
        self._client = client
        self._context = context
        self._raw = context.raw_client(context.node_of(client.node))

    def act(self, phase: Phase, phase_over: Event) -> None:
        if phase is Phase.FAULTY:
            for _ in takewhile(lambda _: not self._context.node_failed.is_set(), range(self._client.topics_max)):
                self._create()
            self._context.node_failed.wait()
            for _ in takewhile(lambda _: not phase_over.is_set(), range(self._client.topics_max)):
                self._create()

    def _create(self) -> None:
        name = self._context.new_topic()
        self._raw.create_topic(name, replication_factor=_CREATED_REPLICAS, timeout_ms=_CREATE_TIMEOUT_MS)
        self._context.target.transport.sleep(self._client.pause_ms / 1000)
