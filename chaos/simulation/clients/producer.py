"""A producer that does what Kafka's Java producer does: batches in order, several in flight, retries, idempotence.

Each batch goes to one partition and is one `produce` operation, invoked when the batch is handed over. Rules:

- A batch that may be tried again is, after a pause and with fresh metadata, until its delivery time is over. Each pause
  is twice as long as the last one, up to a bound (KIP-580; without its jitter).
- Idempotence (KIP-98): a batch gets its sequence when it is first sent and keeps it. While one waits to be tried again,
  only the first without an outcome may be sent, so that order and sequences hold.
- DUPLICATE_SEQUENCE_NUMBER: the batch is in the log, nobody says where.
- A batch whose time is over while nobody knows whether it was appended, or that is refused for good while others were
  sent behind it, leaves the partition's sequence unresolved: no new batch is sent before all others have an outcome, or
  are known to be in no log; then, unless the last one acknowledged was the last one sent, the producer takes the next
  epoch of its id by itself and begins again at sequence 0 (KIP-360).
- OUT_OF_ORDER_SEQUENCE_NUMBER or UNKNOWN_PRODUCER_ID for the batch behind the last acknowledged one: acknowledged
  records are gone. The same, and the batches without an outcome are numbered anew from 0. For a later batch it only
  says that one before it has failed, and it is tried again.
"""

from collections.abc import Callable
from functools import partial
from itertools import count, islice
from typing import Any

from chaos.simulation.clients.batches import VALUES_PER_PROCESS, Batch, PartitionBatches, SentIn, crc_of
from chaos.simulation.clients.client import (
    STALE_METADATA,
    Client,
    Steps,
    Surroundings,
    backoff_ms,
    init_producer_id_request,
)
from chaos.simulation.clients.process import Answer, Ask, Behaviour, Process, Signal, Sleep, Wait
from chaos.simulation.clients.view import NO_NODE, Place
from chaos.trial import Flush, Idle, SendBatches
from chaos.trial import Producer as ProducerSteps
from fixtures.clients import requests
from fixtures.clients.client_request import client_request, newest_version
from fixtures.clients.messages import ApiKey
from fixtures.clients.outcomes import REQUEST_TIMED_OUT, outcome_of
from fixtures.clients.payload import SIZE_MIN, to_record
from fixtures.clients.record_batch import Compression, Record, RecordBatch, encode_batch
from fixtures.clients.responses import produced, producer_identity
from fixtures.clients.topic_ids import topic_id_text
from linearizability.history.recorder import Sent
from linearizability.operation import Outcome

_RETRIABLE = STALE_METADATA | {
    "NOT_ENOUGH_REPLICAS",
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
    "CORRUPT_MESSAGE",
    "INVALID_PRODUCER_EPOCH",
    "OFFSET_NOT_AVAILABLE",
}
_ANSWER_MS = 500
"""How much longer a producer waits than it lets the broker wait: the broker's word that the time is over counts."""
_LOST_SEQUENCE = frozenset({"OUT_OF_ORDER_SEQUENCE_NUMBER", "UNKNOWN_PRODUCER_ID"})
_EPOCH_MAX = 2**15 - 1


class Producer(Client):
    """One producer and its steps."""

    def __init__(self, process: Process, surroundings: Surroundings, script: ProducerSteps) -> None:
        super().__init__(process, surroundings)
        self._script = script
        self._partitions: dict[Place, PartitionBatches] = {}
        self._values = count(process.number * VALUES_PER_PROCESS)
        self._producer_id = -1
        self._producer_epoch = -1
        self._changed = Signal()
        self._settled = Signal()
        self._has_ended = False
        self._stale: set[str] = set()
        self._alarm_ms: int | None = None
        self._refresh_after_ms = 0
        self._refreshed_in_vain = 0
        self.refused: list[Place] = []
        """Where a batch was not acknowledged."""
        self.recorder.client(
            process.number,
            {
                "enable.idempotence": str(script.idempotent).lower(),
                "acks": str(script.acks),
                "compression.type": script.compression,
            },
        )

    def run(self) -> None:
        """Begin."""
        self.process.start(self._work())
        self.begin()

    # Steps

    def _work(self) -> Behaviour:
        for step in self._script.steps:
            match step:
                case SendBatches():
                    for _ in range(step.batches):
                        self._make_batch(step)
                        if step.pause_ms:
                            yield Sleep(step.pause_ms)
                case Flush():
                    while self._open:
                        yield Wait(self._settled)
                case Idle(duration_ms):
                    yield Sleep(duration_ms)
        self.end()

    # What its steps are made of, and others may make of it

    def begin(self) -> None:
        """Send what is handed over, until there will be no more."""
        self.process.start(self._send_forever())

    def hand_over(self, place: Place, records: tuple[Record, ...], report: Callable[..., None]) -> None:
        """Send a batch. `report` takes its outcome, as `Recorder.complete` does behind the operation."""
        partition = self._partitions.setdefault(place, PartitionBatches(place))
        partition.waiting.append(Batch(report, records, self.now_ms + self._script.delivery_timeout_ms))
        self._changed.give()

    def end(self) -> None:
        """Nothing more will be handed over."""
        self._has_ended = True
        self._changed.give()

    @property
    def _open(self) -> bool:
        return any(partition.waiting or partition.window for partition in self._partitions.values())

    def _make_batch(self, step: SendBatches) -> None:
        size = max(step.value_bytes, SIZE_MIN)
        values = list(islice(self._values, step.records))
        timestamp_ms = self.wall_ms
        kept = self.surroundings.keeps_timestamps
        keys = [f"k{value % step.keys}" if step.keys else None for value in values]
        records = tuple(
            to_record(value, key=key, timestamp_ms=timestamp_ms, size=size, timestamp_kept=kept)
            for value, key in zip(values, keys, strict=True)
        )
        place = step.topic, step.partition
        op_id = self.invoke(
            "produce",
            place,
            by_id=True,
            sends=[Sent(value, key, timestamp_ms) for value, key in zip(values, keys, strict=True)],
            acks=self._script.acks,
            producer_id=-1 if self._script.idempotent else None,
        )
        self.hand_over(place, records, partial(self.recorder.complete, op_id))

    # The sender

    def _send_forever(self) -> Behaviour:
        """Send what may be sent, whenever something has changed or a pause is over."""
        if self._script.idempotent:
            yield from self._get_producer_id()
        while self._open or not self._has_ended:
            self._expire()
            topics = self._stale | self._leaderless()
            if topics and self.now_ms >= self._refresh_after_ms:
                self._stale.clear()
                yield from self.refresh(sorted(topics))
                self._refreshed_in_vain = self._refreshed_in_vain + 1 if self._leaderless() else 0
                self._refresh_after_ms = self.now_ms + self._backoff_ms(self._refreshed_in_vain)
                self._expire()
            for partition in self._partitions.values():
                self._resolve(partition)
                self._send_ready(partition)
            self._set_alarm()
            if self._open or not self._has_ended:  # which the refresh may have changed
                yield Wait(self._changed)
        self._settled.give()

    def _set_alarm(self) -> None:
        """Wake up when something becomes due, unless that is so already."""
        wake_ms = self._wake_ms()
        if wake_ms is None or (self._alarm_ms is not None and self._alarm_ms <= wake_ms):
            return
        self._alarm_ms = wake_ms

        def ring() -> None:
            if self._alarm_ms == wake_ms:
                self._alarm_ms = None
                self._changed.give()

        self.process.scheduler.at(wake_ms, ring)

    def _leaderless(self) -> set[str]:
        return {
            partition.place[0]
            for partition in self._partitions.values()
            if (partition.waiting or partition.window) and self.view.leader(partition.place).node == NO_NODE
        }

    def _wake_ms(self) -> int | None:
        """When something becomes due without an answer."""
        times = []
        for partition in self._partitions.values():
            for batch in (*partition.window, *partition.waiting):
                times.append(batch.deadline_ms)
                if batch.not_before_ms > self.now_ms and not batch.is_out:
                    times.append(batch.not_before_ms)
        if self._leaderless() or self._stale:
            times.append(max(self._refresh_after_ms, self.now_ms + 1))
        return min(times, default=None)

    def _send_ready(self, partition: PartitionBatches) -> None:
        leader = self.view.leader(partition.place)
        if leader.node == NO_NODE:
            return
        idle = [batch for batch in partition.window if not batch.is_out]
        for batch in idle:
            if batch.not_before_ms > self.now_ms or (self._script.idempotent and batch is not partition.window[0]):
                return
            self._send(partition, batch, leader.node)
            if self._script.idempotent:
                return
        while partition.waiting and len(partition.window) < self._script.in_flight_max and not partition.is_unresolved:
            batch = partition.waiting.popleft()
            partition.window.append(batch)
            if self._script.idempotent:
                partition.number(batch, (self._producer_id, self._producer_epoch))
            self._send(partition, batch, leader.node)

    def _send(self, partition: PartitionBatches, batch: Batch, node: int) -> None:
        batch.is_out = True
        batch.attempts += 1
        topic_id = self.view.topic_ids.get(partition.place[0])
        if batch.attempts == 1:
            batch.topic_id = topic_id
        if batch.topic_id == topic_id:
            self.process.start(self._exchange(partition, batch, node))
        else:
            batch.attempts -= 1
            self._end(partition, batch, "UNKNOWN_TOPIC_ID")

    def _exchange(self, partition: PartitionBatches, batch: Batch, node: int) -> Behaviour:
        topic, index = partition.place
        script = self._script
        version = newest_version(ApiKey.PRODUCE, requests.LAST_VERSION_BY_NAME if script.by_name else None)
        data = encode_batch(
            RecordBatch(
                batch.records,
                compression=Compression[script.compression.upper()],
                producer_id=batch.producer_id,
                producer_epoch=batch.producer_epoch,
                base_sequence=batch.sequence,
            )
        )
        batch.crc = crc_of(data)
        request = client_request(
            ApiKey.PRODUCE,
            requests.produce,
            topic,
            index,
            data,
            acks=script.acks,
            timeout_ms=script.request_timeout_ms,
            topic_id=batch.topic_id,
            version=version,
        )
        sent_in = SentIn(node, version, (batch.producer_epoch, batch.sequence))
        answer: Answer = yield Ask(node, request, script.request_timeout_ms + _ANSWER_MS)
        batch.is_out = False
        if not batch.is_over:
            self._answered(partition, batch, sent_in, answer)
        self._changed.give()

    # Answers

    def _answered(self, partition: PartitionBatches, batch: Batch, request: SentIn, answer: Answer) -> None:
        error, base_offset = answer.error, None
        if answer.response is not None:
            error, base_offset = produced(answer.response)
        elif self._script.acks == 0:
            self._end(partition, batch, None, request=request)
            return
        if error is None or error == "DUPLICATE_SEQUENCE_NUMBER":
            if (batch.producer_epoch, batch.sequence) == request.sent_as:
                last = batch.sequence + len(batch.records) - 1
                partition.acknowledged = max(partition.acknowledged, last)
            self._end(partition, batch, None, base_offset, request=request)
        elif error in STALE_METADATA:
            self._stale.add(partition.place[0])
            self._again(batch)
        elif error in _LOST_SEQUENCE and self._script.idempotent:
            is_next = partition.acknowledged + 1 == batch.sequence
            if is_next and not partition.is_unresolved and not batch.is_renumbered:
                self._take_next_epoch(partition)
            self._again(batch, is_refused=True)
        elif error in _RETRIABLE:
            self._again(batch)
        else:
            self._end(partition, batch, error, request=request)
            if self._script.idempotent:
                partition.close_gap(batch)

    def _again(self, batch: Batch, *, is_refused: bool = False) -> None:
        batch.may_be_in_log |= not is_refused
        batch.not_before_ms = self.now_ms + self._backoff_ms(batch.attempts)

    def _backoff_ms(self, attempts: int) -> int:
        return backoff_ms(self._script.retry_backoff_ms, attempts)

    def _end(
        self,
        partition: PartitionBatches,
        batch: Batch,
        error: str | None,
        base_offset: int | None = None,
        *,
        request: SentIn | None = None,
    ) -> None:
        """The batch has its outcome."""
        batch.is_over = True
        if batch in partition.window:
            partition.window.remove(batch)
        outcome = outcome_of(error, acks=self._script.acks, attempts=batch.attempts, sent=batch.attempts > 0)
        columns: dict[str, Any] = {} if request is None else {"node": request.node, "api_version": request.version}
        if self._script.idempotent and batch.attempts:
            columns |= {"producer_id": batch.producer_id, "producer_epoch": batch.producer_epoch}
        batch.report(
            outcome,
            error,
            base_offset=base_offset if base_offset is not None and base_offset >= 0 else None,
            attempts=batch.attempts,
            topic_id=topic_id_text(batch.topic_id) or self.view.topic_id_text(partition.place[0]),
            **columns,
        )
        if outcome is not Outcome.OK:
            self.refused.append(partition.place)
        if base_offset is not None and base_offset >= 0 and self._script.acks == -1:
            self.surroundings.acknowledged(partition.place, base_offset, batch.crc)
        self._settled.give()

    def _expire(self) -> None:
        """Give up what has had its time."""
        now_ms = self.now_ms
        for partition in self._partitions.values():
            late = [batch for batch in (*partition.window, *partition.waiting) if batch.deadline_ms <= now_ms]
            for batch in late:
                if batch in partition.window:
                    partition.is_unresolved = self._script.idempotent
                else:
                    partition.waiting.remove(batch)
                self._end(partition, batch, REQUEST_TIMED_OUT)

    # Sequences

    def _resolve(self, partition: PartitionBatches) -> None:
        """All that was sent has an outcome, or is known to be in no log: go on with the sequences, or begin anew."""
        if partition.is_unresolved and not any(each.is_out or each.may_be_in_log for each in partition.window):
            partition.is_unresolved = False
            if partition.acknowledged + 1 != partition.next_sequence:
                self._take_next_epoch(partition)

    def _take_next_epoch(self, partition: PartitionBatches) -> None:
        """Begin at sequence 0 in the next epoch of the same id, with what has no outcome yet."""
        if self._producer_epoch == _EPOCH_MAX:
            return
        self._producer_epoch += 1
        partition.producer_id, partition.producer_epoch = self._producer_id, self._producer_epoch
        partition.next_sequence, partition.acknowledged = 0, -1
        partition.renumber(partition.window)

    def _get_producer_id(self) -> Steps:
        """Ask until somebody hands out an id."""
        while not (self._has_ended and not self._open):
            op_id = self.invoke("init_producer_id")
            node = self.next_node()
            answer: Answer = yield Ask(node, init_producer_id_request(), self._script.request_timeout_ms)
            error = answer.error
            handed_out: dict[str, Any] = {}
            if answer.response is not None:
                error, identity = producer_identity(answer.response)
                if identity is not None:
                    self._producer_id, self._producer_epoch = identity.producer_id, identity.producer_epoch
                    handed_out = {"producer_id": self._producer_id, "producer_epoch": self._producer_epoch}
            outcome = Outcome.OK if error is None else Outcome.INFO
            self.recorder.complete(op_id, outcome, error, node=node, **handed_out)
            if error is None:
                return
            self._expire()
            yield Sleep(self._script.retry_backoff_ms)
