"""A script's clients as things that act: each drives one recorded client, in one thread at a time.

Writers work through the steps of a phase. Readers and watchers go on until the phase is over. An actor lives through
all phases and is closed after the last, which for a pipelined producer means: after its last delivery report.
"""

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from conformance.concurrent.script import (
    AwaitOutcomes,
    Client,
    Consumer,
    MetadataWatcher,
    OneShotProducer,
    Pause,
    Phase,
    PipelinedProducer,
    Send,
    Step,
    WatermarkReader,
)
from fixtures.clients.answers import ProducerIdentity
from fixtures.clients.confluent import RecordedConsumer, RecordedProducer
from fixtures.clients.outcomes import Outcome
from fixtures.clients.payload import to_record
from fixtures.clients.raw import RawClient
from fixtures.clients.record_batch import Record
from fixtures.clients.recorded import RecordedRawClient
from fixtures.clients.recorded_connection import TopicIds
from fixtures.targets.target import Target
from linearizability.history.recorder import Recorder

PRODUCE_TIMEOUT_MS = 30_000
"""How long a record may wait for its outcome: longer than any cut of a script, and than an ISR takes to shrink."""
_INIT_ATTEMPTS_MAX = 20
_INIT_PAUSE_S = 0.2


@dataclass(frozen=True, slots=True)
class Replicas:
    """Who leads a partition, and who else is in its ISR."""

    leader: int
    followers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the actors of one script stand on."""

    target: Target
    recorder: Recorder
    topic: str
    topic_ids: TopicIds
    replicas: Mapping[int, Replicas]
    """Of each partition, when the script started."""
    processes: Iterator[int]
    """Process numbers that nobody had yet."""
    values: Iterator[int]
    """Values that nobody sent yet."""

    def raw_client(self, node: int | None = None) -> RecordedRawClient:
        """A new process, connected to a node; to the first one where null."""
        nodes = {each.id: each for each in self.target.nodes}
        chosen = nodes[min(nodes) if node is None else node]
        return RecordedRawClient(
            RawClient(chosen.host, chosen.port),
            self.recorder,
            next(self.processes),
            topic_ids=self.topic_ids,
            node=chosen.id,
        )

    def records(self, step: Send) -> Iterator[Record]:
        """The records of one step."""
        for _ in range(step.records):
            value = next(self.values)
            yield to_record(value, key=f"k{value % 10}", timestamp_ms=int(time.time() * 1000), size=step.size)


class Actor(Protocol):
    """One client at work."""

    @property
    def is_writer(self) -> bool:
        """Whether a phase waits for its steps."""
        ...

    def act(self, phase: Phase, over: threading.Event) -> None:
        """Do the steps of a phase, or go on until it is over."""
        ...

    def close(self) -> None:
        """Wait for outcomes that are missing, and disconnect."""
        ...


def actor_of(client: Client, surroundings: Surroundings) -> Actor:
    """The actor for a script's client."""
    match client:
        case PipelinedProducer():
            return _Pipelined(client, surroundings)
        case OneShotProducer():
            return _OneShot(client, surroundings)
        case Consumer():
            return _Consuming(client, surroundings)
        case WatermarkReader():
            return _WatermarkReading(client, surroundings)
        case MetadataWatcher():
            return _Watching(client, surroundings)


def _steps(client: PipelinedProducer | OneShotProducer, phase: Phase) -> Sequence[Step]:
    return {Phase.STEADY: client.steady, Phase.FAULTY: client.faulty, Phase.HEALED: client.healed}[phase]


class _Pipelined:
    is_writer = True

    def __init__(self, client: PipelinedProducer, surroundings: Surroundings) -> None:
        self._client = client
        self._surroundings = surroundings
        self._producer = RecordedProducer(
            surroundings.target.bootstrap_servers,
            surroundings.recorder,
            next(surroundings.processes),
            topic_ids=surroundings.topic_ids,
            idempotent=client.idempotent,
            acks=client.acks,
            delivery_timeout_ms=PRODUCE_TIMEOUT_MS,
            properties={
                "max.in.flight.requests.per.connection": client.in_flight_max,
                "linger.ms": client.linger_ms,
                "batch.num.messages": client.batch_records_max,
                "compression.type": client.compression,
            },
        )

    def act(self, phase: Phase, over: threading.Event) -> None:
        for step in _steps(self._client, phase):
            match step:
                case Send():
                    for record in self._surroundings.records(step):
                        self._producer.send(self._surroundings.topic, self._client.partition, record)
                case Pause():
                    self._producer.poll(step.duration_ms / 1000)
                case AwaitOutcomes():
                    self._producer.flush(PRODUCE_TIMEOUT_MS / 1000)

    def close(self) -> None:
        self._producer.close()


class _OneShot:
    is_writer = True

    def __init__(self, client: OneShotProducer, surroundings: Surroundings) -> None:
        self._client = client
        self._surroundings = surroundings
        self._raw = surroundings.raw_client(surroundings.replicas[client.partition].leader)
        self._identity: ProducerIdentity | None = None
        self._sequence = -1

    def act(self, phase: Phase, over: threading.Event) -> None:
        for step in _steps(self._client, phase):
            match step:
                case Send():
                    self._send(step)
                case Pause():
                    time.sleep(step.duration_ms / 1000)
                case AwaitOutcomes():
                    pass  # it never does anything else

    def _send(self, step: Send) -> None:
        if self._client.idempotent and self._identity is None:
            self._identity = self._new_identity()
            self._sequence = 0
            if self._identity is None:
                return
        produced = self._raw.produce(
            self._surroundings.topic,
            self._client.partition,
            list(self._surroundings.records(step)),
            acks=self._client.acks,
            timeout_ms=PRODUCE_TIMEOUT_MS,
            producer=self._identity,
            base_sequence=self._sequence,
            bracket=self._client.acks == -1,  # after acks=1 the end offset lawfully lags behind
        )
        if self._identity is not None:
            self._sequence += step.records
            if produced.outcome is not Outcome.OK:
                self._identity = None  # the next sequence is not known: go on with another producer id

    def _new_identity(self) -> ProducerIdentity | None:
        """A producer id; a cluster that never gave one may say COORDINATOR_LOAD_IN_PROGRESS for a while."""
        for _ in range(_INIT_ATTEMPTS_MAX):
            _, identity = self._raw.init_producer_id()
            if identity is not None:
                return identity
            time.sleep(_INIT_PAUSE_S)
        return None

    def close(self) -> None:
        self._raw.client.close()


class _Consuming:
    is_writer = False

    def __init__(self, client: Consumer, surroundings: Surroundings) -> None:
        self._client = client
        self._consumer = RecordedConsumer(
            surroundings.target.bootstrap_servers,
            surroundings.recorder,
            next(surroundings.processes),
            topic_ids=surroundings.topic_ids,
            isolation=client.isolation,
        )
        self._consumer.assign({(surroundings.topic, partition): 0 for partition in surroundings.replicas})

    def act(self, phase: Phase, over: threading.Event) -> None:
        while not over.is_set():
            self._consumer.poll(self._client.poll_records_max, 0.1)

    def close(self) -> None:
        self._consumer.close()


class _WatermarkReading:
    is_writer = False

    def __init__(self, client: WatermarkReader, surroundings: Surroundings) -> None:
        self._client = client
        self._topic = surroundings.topic
        self._raw = surroundings.raw_client(surroundings.replicas[client.partition].leader)
        self._offset = 0

    def act(self, phase: Phase, over: threading.Event) -> None:
        while not over.is_set():
            fetched = self._raw.fetch(
                self._topic, self._client.partition, self._offset, max_wait_ms=50, max_bytes=self._client.max_bytes
            )
            self._offset = fetched.next_offset
            self._raw.list_offsets(self._topic, self._client.partition)
            if fetched.error is not None:
                over.wait(0.1)  # not in a busy loop while the leader is elsewhere

    def close(self) -> None:
        self._raw.client.close()


class _Watching:
    is_writer = False

    def __init__(self, client: MetadataWatcher, surroundings: Surroundings) -> None:
        self._period_s = client.period_ms / 1000
        self._topic = surroundings.topic
        self._raw = surroundings.raw_client(surroundings.replicas[0].leader)

    def act(self, phase: Phase, over: threading.Event) -> None:
        while not over.is_set():
            self._raw.metadata([self._topic])
            over.wait(self._period_s)

    def close(self) -> None:
        self._raw.client.close()
