"""Producers and consumers for concurrent scripts on the target `simulation`.

`SimulatedDrivers` creates the clients of simulated campaigns (`fixtures.clients.core`), which behave like the Java
clients. Each call of a script drives them for a while in virtual time. The history has the form that librdkafka's
clients give: one operation `produce` for each record, and one `poll` for each call of `poll`.
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
"""Additional time after `delivery.timeout.ms` in which `close` waits for the outcomes of records."""


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
        """Return a producer. Of librdkafka's properties, it supports those that scripts set; it ignores others."""
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
    """When a batch is closed: after `linger_ms`, or when it has `records_max` records."""

    linger_ms: int
    records_max: int


@dataclass(slots=True)
class _Filling:
    """A batch that still accepts records."""

    records: list[Record] = field(default_factory=list)
    op_ids: list[int] = field(default_factory=list)


class _DrivenProducer:
    """A producer that adds single records to batches, and writes the outcome of each record to the history."""

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
        """Add a record to the open batch of its partition; return its operation id."""
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
        topic_partition = topic, partition
        filling = self._filling.get(topic_partition)
        if filling is None:
            filling = self._filling[topic_partition] = _Filling()
            self._scheduler.after(self._batching.linger_ms, partial(self._hand_over, topic_partition, filling))
        filling.records.append(record)
        filling.op_ids.append(op_id)
        if len(filling.records) == self._batching.records_max:
            self._hand_over(topic_partition, filling)
        return op_id

    def _hand_over(self, topic_partition: TopicPartition, filling: _Filling) -> None:
        """Close a batch and queue it, unless that was done before."""
        if self._filling.get(topic_partition) is filling:
            del self._filling[topic_partition]
            self._producer.queue(topic_partition, tuple(filling.records), partial(self._delivered, filling.op_ids))

    def _delivered(
        self, op_ids: Sequence[int], outcome: Outcome, error: str | None, *, base_offset: int | None, **_: Any
    ) -> None:
        """Record the outcome of a batch for each of its records, with only the details that librdkafka reports."""
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
        """Wait until every record has its outcome, or for the timeout; return the number of records without outcome."""
        self._stage.wait(lambda: not self._pending, round(timeout_s * 1000))
        return len(self._pending)

    def close(self) -> None:
        """Wait for the outcomes of all records, and close. A record without outcome after the timeout gets `info`."""
        self.flush(self._settings.delivery_timeout_ms / 1000 + _SETTLE_S)
        self._producer.end()
        self._process.close()
        for op_id in tuple(self._pending):
            self._end(op_id, Outcome.INFO, REQUEST_TIMED_OUT, None)


class _DrivenConsumer:
    """Consumer that sends one Fetch for each poll, to its partitions in turn.

    A poll whose Fetch fails returns only after its timeout.
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
