"""Producers and consumers of the simulation for concurrent scripts, with the behaviour of the Java clients.

They are the clients of simulated campaigns (`fixtures.clients.core`), driven call by call by the actors of a script.
Their histories are like those of librdkafka: one `produce` for each record, one `poll` for each poll.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from chaos.simulation.stage import SimulatedStage
from chaos.simulation.transport import PLACE
from fixtures.clients import drivers
from fixtures.clients.confluent import Properties
from fixtures.clients.core.client import ClientContext
from fixtures.clients.core.consumer import Consumer
from fixtures.clients.core.process import Behaviour, Process, Sleep, Timers
from fixtures.clients.core.producer import Producer
from fixtures.clients.outcomes import REQUEST_TIMED_OUT
from fixtures.clients.payload import from_record
from fixtures.clients.record_batch import Record
from fixtures.clients.responses import TopicPartition
from fixtures.clients.steps import Consumer as ConsumerSteps
from fixtures.clients.steps import Producer as ProducerSteps
from fixtures.clients.topic_ids import TopicIds, topic_id_text
from linearizability.history.recorder import Read, Recorder, Sent
from linearizability.operation import Outcome
from reference_broker.simulation.clock import WALL_START_MS
from reference_broker.simulation.cluster import SimulatedCluster

_IN_FLIGHT_MAX: Final = 5
_BATCH_RECORDS_MAX: Final = 10_000
_FETCH_WAIT_MAX_MS: Final = 100
_SETTLE_S: Final = 5.0
"""Time after the delivery timeout within which a record has its outcome."""


class SimulatedDrivers:
    """Factory of the clients of one simulated cluster."""

    def __init__(self, cluster: SimulatedCluster, stage: SimulatedStage, brokers: Sequence[int]) -> None:
        self._cluster = cluster
        self._stage = stage
        self._brokers = tuple(brokers)

    def producer(
        self,
        recorder: Recorder,
        process: int,
        *,
        topic_ids: TopicIds,
        idempotent: bool,
        acks: int,
        delivery_timeout_ms: int,
        properties: Properties,
    ) -> drivers.Producer:
        """Return a producer. It supports only the librdkafka properties that scripts set."""
        settings = ProducerSteps(
            idempotent=idempotent,
            acks=acks,
            delivery_timeout_ms=delivery_timeout_ms,
            in_flight_max=int(properties.get("max.in.flight.requests.per.connection", _IN_FLIGHT_MAX)),
            compression=str(properties.get("compression.type", "none")),
        )
        batching = _Batching(
            linger_ms=int(properties.get("linger.ms", 0)),
            records_max=int(properties.get("batch.num.messages", _BATCH_RECORDS_MAX)),
        )
        context = self._context(recorder, topic_ids)
        return _DrivenProducer(
            self._process(process), context, settings, batching=batching, stage=self._stage, topic_ids=topic_ids
        )

    def consumer(
        self, recorder: Recorder, process: int, *, topic_ids: TopicIds, isolation: str = "read_uncommitted"
    ) -> drivers.Consumer:
        """Return a consumer."""
        context = self._context(recorder, topic_ids)
        return _DrivenConsumer(self._process(process), context, isolation, self._stage)

    def _process(self, number: int) -> Process:
        return Process(number, self._cluster, PLACE)

    def _context(self, recorder: Recorder, topic_ids: TopicIds) -> ClientContext:
        return ClientContext(
            recorder,
            self._brokers,
            wall_start_ms=WALL_START_MS,
            topic_ids=topic_ids,
        )


@dataclass(frozen=True, slots=True)
class _Batching:
    """Limits of a batch: size, and time to wait for more records."""

    linger_ms: int
    records_max: int


@dataclass(slots=True)
class _Filling:
    """A batch that still accepts records."""

    records: list[Record] = field(default_factory=list)
    op_ids: list[int] = field(default_factory=list)


class _DrivenProducer:
    """A producer that fills batches record by record, and records the outcome of each."""

    fatal_error: str | None = None

    def __init__(
        self,
        process: Process,
        context: ClientContext,
        settings: ProducerSteps,
        *,
        batching: _Batching,
        stage: SimulatedStage,
        topic_ids: TopicIds,
    ) -> None:
        self._process = process
        self._recorder = context.recorder
        self._settings = settings
        self._batching = batching
        self._stage = stage
        self._topic_ids = topic_ids
        self._filling: dict[TopicPartition, _Filling] = {}
        self._pending: dict[int, None] = {}
        self._producer = Producer(process, context, settings)
        self._producer.begin()

    @property
    def _scheduler(self) -> Timers:
        return self._process.scheduler

    def send(self, topic: str, partition: int, record: Record) -> int:
        """Queue one record."""
        contents = from_record(record)
        op_id = self._recorder.invoke(
            self._process.number,
            "produce",
            sends=[Sent(contents.value, contents.key, record.timestamp_ms)],
            topic=topic,
            topic_id=topic_id_text(self._topic_ids.get(topic)),
            partition=partition,
            acks=self._settings.acks,
            producer_id=-1 if self._settings.idempotent else None,
        )
        self._pending[op_id] = None
        place = topic, partition
        filling = self._filling.get(place)
        if filling is None:
            filling = self._filling[place] = _Filling()
            self._scheduler.after(self._batching.linger_ms, partial(self._hand_over, place, filling))
        filling.records.append(record)
        filling.op_ids.append(op_id)
        if len(filling.records) == self._batching.records_max:
            self._hand_over(place, filling)
        return op_id

    def _hand_over(self, place: TopicPartition, filling: _Filling) -> None:
        """Close a batch that is full or has lingered; it may be closed already."""
        if self._filling.get(place) is filling:
            del self._filling[place]
            self._producer.queue(place, tuple(filling.records), partial(self._delivered, filling.op_ids))

    def _delivered(
        self, op_ids: Sequence[int], outcome: Outcome, error: str | None, *, base_offset: int | None, **_: Any
    ) -> None:
        """Record the outcome of a batch for each of its records, with the details that librdkafka reports."""
        for index, op_id in enumerate(op_ids):
            self._end(op_id, outcome, error, None if base_offset is None else base_offset + index)

    def _end(self, op_id: int, outcome: Outcome, error: str | None, offset: int | None) -> None:
        if op_id in self._pending:
            del self._pending[op_id]
            self._recorder.complete(op_id, outcome, error, base_offset=offset)

    def poll(self, seconds: float) -> None:
        """Advance time by a duration."""
        self._stage.wait(lambda: False, round(seconds * 1000))

    def flush(self, timeout_s: float) -> int:
        """Wait for all outcomes; return the number of missing ones."""
        self._stage.wait(lambda: not self._pending, round(timeout_s * 1000))
        return len(self._pending)

    def close(self) -> None:
        """Wait until every record has its outcome, and close. After a timeout, missing outcomes are unknown."""
        self.flush(self._settings.delivery_timeout_ms / 1000 + _SETTLE_S)
        self._producer.end()
        self._process.close()
        for op_id in tuple(self._pending):
            self._end(op_id, Outcome.INFO, REQUEST_TIMED_OUT, None)


class _DrivenConsumer:
    """Consumer with one fetch for each poll, from its partitions in turn.

    A poll with an error returns when its timeout has passed.
    """

    def __init__(self, process: Process, context: ClientContext, isolation: str, stage: SimulatedStage) -> None:
        self._process = process
        self._context = context
        self._isolation = isolation
        self._stage = stage
        self._consumer: Consumer | None = None

    def assign(self, offsets: Mapping[tuple[str, int], int]) -> None:
        """Read these partitions from these offsets on."""
        settings = ConsumerSteps(partitions=tuple(offsets), isolation=self._isolation, max_wait_ms=_FETCH_WAIT_MAX_MS)
        self._consumer = Consumer(self._process, self._context, settings)
        self._consumer.assign(offsets)

    def poll(self, messages_max: int = 500, timeout_s: float = 1.0) -> Sequence[Read]:
        """Return up to a number of records."""
        reads: list[Read] = []
        self._process.start(self._poll(messages_max, round(timeout_s * 1000), reads))
        self._stage.wait(lambda: self._process.is_done, None)
        return reads

    def _poll(self, messages_max: int, timeout_ms: int, reads: list[Read]) -> Behaviour:
        end_ms = self._process.scheduler.now_ms + timeout_ms
        error, found = yield from self._assigned.poll(records_max=messages_max)
        reads += found
        if error is not None:
            yield Sleep(max(end_ms - self._process.scheduler.now_ms, 0))

    def position(self, topic: str, partition: int) -> int:
        """Return the next offset to read."""
        return self._assigned.position((topic, partition))

    @property
    def _assigned(self) -> Consumer:
        assert self._consumer is not None, "nothing is assigned"
        return self._consumer

    def close(self) -> None:
        """Stop reading. Idempotent."""
        self._process.close()
