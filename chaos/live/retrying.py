"""Raw idempotent producer with several requests in flight; it retries as Java's `Sender` and `TransactionManager` do.

It has one partition, and one connection to its leader. All batches that are not acknowledged are sent in order. When
the connection is lost, they are sent again, in the same order, on the next one. OUT_OF_ORDER_SEQUENCE_NUMBER for one of
them bumps the producer epoch, and the remaining ones get sequences from 0 (KIP-360).

The epoch is bumped once the leader has acknowledged or rejected each batch in flight. Java's producer bumps it at once.
If the response to a batch is lost afterwards, Java's producer sends the batch again in the new epoch, to the leader
that has already appended it. With the producer of this module, a duplicate is possible only after a restart of the
leader.
"""

from dataclasses import dataclass
from typing import Final

from chaos.live.leader import leader_client
from conformance.concurrent.trial_context import TrialContext
from conformance.trial.phased_clients import Phase
from conformance.trial.workloads import Retrying
from fixtures.clients.call_results import Produced
from fixtures.clients.core.client import Exchange
from fixtures.clients.outcomes import REQUEST_TIMED_OUT
from fixtures.clients.record_batch import Record, RecordBatch, encode_batch
from fixtures.clients.recorded import RecordedClient
from fixtures.clients.responses import ProducerIdentity, known, sent
from fixtures.clients.stage import Event
from fixtures.clients.topic_ids import topic_id_text
from linearizability.operation import Outcome

IN_FLIGHT: Final = "max.in.flight.requests.per.connection"
_TIMEOUT_MS: Final = 5_000
_RETRY_BACKOFF_S: Final = 0.05
_OUT_OF_ORDER: Final = "OUT_OF_ORDER_SEQUENCE_NUMBER"
_APPENDED: Final = (None, "DUPLICATE_SEQUENCE_NUMBER")


@dataclass(slots=True)
class _Batch:
    """A batch that is not acknowledged."""

    records: list[Record]
    op_id: int
    sequence: int
    attempts: int = 0


class RetryingProducer:
    """The producer of one partition, as an actor of a round."""

    is_writer = False

    def __init__(self, workload: Retrying, context: TrialContext, partition: int) -> None:
        self._workload = workload
        self._context = context
        self._partition = partition
        self._connection = leader_client(context, partition)
        self._process = next(context.processes)
        self._identity: ProducerIdentity | None = None
        self._next_sequence = 0
        self._unacknowledged: list[_Batch] = []
        properties = {"enable.idempotence": "true", IN_FLIGHT: str(workload.in_flight_max)}
        context.recorder.client(self._process, properties)

    def act(self, phase: Phase, phase_over: Event) -> None:
        """Send unacknowledged and new batches, up to the number in flight, until the phase is over."""
        while not phase_over.is_set():
            client = self._connection.client()
            if client is None or not self._produce(client):
                self._connection.reset()
                phase_over.wait(_RETRY_BACKOFF_S)
            else:
                phase_over.wait(self._workload.pause_ms / 1000)

    def close(self) -> None:
        """Record an unknown outcome for each batch that is not acknowledged."""
        for batch in self._unacknowledged:
            self._complete(batch, Outcome.INFO, REQUEST_TIMED_OUT)
        self._unacknowledged.clear()
        self._connection.reset()

    def _produce(self, client: RecordedClient) -> bool:
        """Fill up the batches in flight, send all of them once, and return whether the node acknowledged them all."""
        if self._identity is None:
            self._identity = client.init_producer_id().identity
            if self._identity is None:
                return False
        while len(self._unacknowledged) < self._workload.in_flight_max:
            self._unacknowledged.append(self._new_batch(self._identity))
        is_out_of_order = False
        batches = tuple(self._unacknowledged)
        responses = client.pipeline(self._send(client, batch) for batch in batches)
        for batch, produced in zip(batches, responses, strict=False):
            if produced.error in _APPENDED:
                self._acknowledge(batch, produced)
            elif produced.error != _OUT_OF_ORDER:
                return False  # the later responses are for batches that are sent again
            is_out_of_order |= produced.error == _OUT_OF_ORDER
        if is_out_of_order:
            self._bump_epoch()
        return not is_out_of_order

    def _new_batch(self, identity: ProducerIdentity) -> _Batch:
        records = self._context.records(self._workload.records)
        op_id = self._context.recorder.invoke(
            self._process,
            "produce",
            sends=[sent(record) for record in records],
            topic=self._context.topic,
            topic_id=topic_id_text(self._context.topic_ids.get(self._context.topic)),
            partition=self._partition,
            acks=-1,
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
        )
        batch = _Batch(records, op_id, self._next_sequence)
        self._next_sequence += len(records)
        return batch

    def _send(self, client: RecordedClient, batch: _Batch) -> Exchange[Produced]:
        assert self._identity is not None
        batch.attempts += 1
        data = encode_batch(
            RecordBatch(
                tuple(batch.records),
                producer_id=self._identity.producer_id,
                producer_epoch=self._identity.producer_epoch,
                base_sequence=batch.sequence,
            )
        )
        return client.requests.send_batch(self._context.topic, self._partition, data, acks=-1, timeout_ms=_TIMEOUT_MS)

    def _acknowledge(self, batch: _Batch, produced: Produced) -> None:
        self._unacknowledged.remove(batch)
        self._complete(batch, Outcome.OK, None, base_offset=known(produced.base_offset))

    def _bump_epoch(self) -> None:
        assert self._identity is not None
        self._identity = ProducerIdentity(self._identity.producer_id, self._identity.producer_epoch + 1)
        self._next_sequence = 0
        for batch in self._unacknowledged:
            batch.sequence = self._next_sequence
            self._next_sequence += len(batch.records)

    def _complete(self, batch: _Batch, outcome: Outcome, error: str | None, base_offset: int | None = None) -> None:
        assert self._identity is not None
        self._context.recorder.complete(
            batch.op_id,
            outcome,
            error,
            base_offset=base_offset,
            attempts=batch.attempts,
            producer_epoch=self._identity.producer_epoch,
        )
