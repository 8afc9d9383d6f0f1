"""Simulated producers and consumers for trials: `Drivers` whose clients behave like Kafka's Java clients.

The clients are those of simulated campaigns (`fixtures.clients.core`). Here each call of a trial, such as `send` or
`poll`, drives them. A history has the same operations as with librdkafka: one `produce` for each record, and one `poll`
for each call of `poll`.
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
_CLOSE_SLACK_S: Final = 5.0
"""Time for which `close` waits longer than the delivery timeout, because the producer may report an outcome late."""


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
        """Return a producer. Of librdkafka's properties, it supports only those that trials set."""
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
    """Limits of a batch: time to wait for more records, and number of records."""

    linger_ms: int
    records_max: int


@dataclass(slots=True)
class _OpenBatch:
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
        self._open_batches: dict[TopicPartition, _OpenBatch] = {}
        self._pending: dict[int, None] = {}
        """The op_ids of records without an outcome, in the order of `send`."""
        self._producer = Producer(process, context, settings)
        self._producer.begin()

    @property
    def _scheduler(self) -> Timers:
        return self._process.scheduler

    def send(self, topic: str, partition: int, record: Record) -> int:
        """Queue one record. Return its op_id."""
        contents = from_record(record)
        op_id = self._recorder.invoke(
            self._process.number,
            "produce",
            sends=[Sent(contents.value, contents.key, record.timestamp_ms)],
            topic=topic,
            topic_id=topic_id_text(self._topic_ids.get(topic)),
            partition=partition,
            acks=self._settings.acks,
            producer_id=-1 if self._settings.idempotent else None,  # librdkafka does not report the id
        )
        self._pending[op_id] = None
        topic_partition = topic, partition
        batch = self._open_batches.get(topic_partition)
        if batch is None:
            batch = self._open_batches[topic_partition] = _OpenBatch()
            self._scheduler.after(self._batching.linger_ms, partial(self._close_batch, topic_partition, batch))
        batch.records.append(record)
        batch.op_ids.append(op_id)
        if len(batch.records) == self._batching.records_max:
            self._close_batch(topic_partition, batch)
        return op_id

    def _close_batch(self, topic_partition: TopicPartition, batch: _OpenBatch) -> None:
        """Pass a batch that is full or has lingered to the producer, unless this was done before."""
        if self._open_batches.get(topic_partition) is batch:
            del self._open_batches[topic_partition]
            self._producer.queue(topic_partition, tuple(batch.records), partial(self._complete_batch, batch.op_ids))

    def _complete_batch(
        self, op_ids: Sequence[int], outcome: Outcome, error: str | None, *, base_offset: int | None, **_: Any
    ) -> None:
        """Record the outcome of a batch for each of its records, without details that librdkafka does not report."""
        for index, op_id in enumerate(op_ids):
            self._complete(op_id, outcome, error, None if base_offset is None else base_offset + index)

    def _complete(self, op_id: int, outcome: Outcome, error: str | None, offset: int | None) -> None:
        if op_id in self._pending:
            del self._pending[op_id]
            self._recorder.complete(op_id, outcome, error, base_offset=offset)

    def poll(self, seconds: float) -> None:
        """Let virtual time pass, during which outcomes are recorded."""
        self._stage.wait(lambda: False, round(seconds * 1000))

    def flush(self, timeout_s: float) -> int:
        """Wait until all records have outcomes, or until the timeout. Return the number of records without one."""
        self._stage.wait(lambda: not self._pending, round(timeout_s * 1000))
        return len(self._pending)

    def close(self) -> None:
        """Wait until every record has its outcome, and close. After a timeout, missing outcomes are unknown."""
        self.flush(self._settings.delivery_timeout_ms / 1000 + _CLOSE_SLACK_S)
        self._producer.end()
        self._process.close()
        for op_id in tuple(self._pending):
            self._complete(op_id, Outcome.INFO, REQUEST_TIMED_OUT, None)


class _DrivenConsumer:
    """Consumer that sends at most one Fetch request for each poll, for one of its partitions in turn.

    A poll with an error returns when its timeout has passed, so that its caller need not wait before the next one.
    """

    def __init__(self, process: Process, context: ClientContext, isolation: str, stage: SimulatedStage) -> None:
        self._process = process
        self._context = context
        self._isolation = isolation
        self._stage = stage
        self._consumer: Consumer | None = None

    def assign(self, offsets: Mapping[tuple[str, int], int]) -> None:
        """Assign partitions with the offsets to start from."""
        settings = ConsumerSteps(partitions=tuple(offsets), isolation=self._isolation, max_wait_ms=_FETCH_WAIT_MAX_MS)
        self._consumer = Consumer(self._process, self._context, settings)
        self._consumer.assign(offsets)

    def poll(self, messages_max: int = 500, timeout_s: float = 1.0) -> Sequence[Read]:
        """Return up to `messages_max` records."""
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
