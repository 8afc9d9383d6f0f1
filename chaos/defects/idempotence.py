"""Defects of idempotent producers: duplicates, gaps, and the producer state."""

from collections import deque
from typing import Any

from chaos.defects.defect import Area
from reference_broker.core.clock import Now
from reference_broker.core.log import producer_state_manager
from reference_broker.core.log.append_validation import ValidatedBatch
from reference_broker.core.log.producer_state_manager import AppendedBatch, ProducerStateManager
from reference_broker.core.log.unified_log import Appended, UnifiedLog
from reference_broker.core.producer_id_manager import ProducerIdManager
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.record_batch import BatchHeader, Bytes

_REDPANDA_3039 = "https://github.com/redpanda-data/redpanda/issues/3039"
_REDPANDA_5026 = "https://github.com/redpanda-data/redpanda/issues/5026"

_SEQUENCES = 2**31

_seeds = Area.IDEMPOTENCE.seeds
_handle_allocate_producer_ids_response = ProducerIdManager._handle_allocate_producer_ids_response
_append = UnifiedLog.append_validated
_append_as_follower = UnifiedLog.append_as_follower
_check_sequence = ProducerStateManager.check_sequence
_update = ProducerStateManager.update
_rebuild_producer_state = UnifiedLog._rebuild_producer_state
_snapshot = ProducerStateManager.snapshot


@_seeds(
    ProducerStateManager,
    "update",
    "duplicate",
    "idempotence/duplicate-is-acknowledged-once",
    "unavailable",
    source="KAFKA-5494",
)
def remember_the_last_batch_only(self: ProducerStateManager, header: BatchHeader) -> None:
    """Only the last batch of a producer is recognised as a duplicate, although producers have up to five in flight.

    A pipelining producer that repeats its requests after a lost connection gets OUT_OF_ORDER_SEQUENCE_NUMBER for
    batches that are in the log, and fails.
    """
    _update(self, header)
    state = self._states[header.producer_id]
    while len(state.batches) > 1:
        state.batches.popleft()


@_seeds(
    ProducerStateManager,
    "find_duplicate_batch",
    "duplicate",
    "idempotence/duplicate-is-acknowledged-once",
    source=_REDPANDA_3039,
)
def append_duplicates(self: ProducerStateManager, header: BatchHeader) -> AppendedBatch | None:
    """No batch is recognised as a duplicate: a repeated batch is rejected with OUT_OF_ORDER_SEQUENCE_NUMBER.

    A producer that retries after a lost acknowledgement gets an error for a record that is in the log.
    """
    return None


@_seeds(
    ProducerStateManager,
    "check_sequence",
    "idempotence/sequence-gap-is-rejected",
    "producer-order",
    "duplicate",
    source=_REDPANDA_3039,
)
def accept_any_sequence(self: ProducerStateManager, header: BatchHeader) -> None:
    """Sequences need not be consecutive.

    If the first of several requests in flight is lost, the others are appended before its retry.
    """


@_seeds(ProducerStateManager, "check_sequence", "idempotence/sequence-gap-is-rejected", "producer-order")
def accept_gaps(self: ProducerStateManager, header: BatchHeader) -> None:
    """A batch whose sequence is higher than expected is accepted; only a lower sequence is rejected.

    The loss of a batch is not detected. Its retry is rejected if a later batch has been appended.
    """
    state = self._states.get(header.producer_id)
    if state is not None and header.producer_epoch == state.epoch:
        expected = producer_state_manager.next_sequence(state.batches[-1].last_sequence)
        if header.base_sequence < expected:
            _check_sequence(self, header)


@_seeds(ProducerStateManager, "check_producer_epoch", "idempotence/older-epoch-is-fenced", source="KIP-360")
def accept_any_producer_epoch(self: ProducerStateManager, header: BatchHeader) -> None:
    """A producer of an older epoch may continue to write.

    A zombie producer that was replaced appends records between those of its successor.
    """


@_seeds(
    UnifiedLog,
    "append_validated",
    "acknowledged-is-committed",
    "offset-mismatch",
    "divergent-offset",
    source=_REDPANDA_5026,
)
def return_the_log_end_for_a_duplicate(
    self: UnifiedLog, batch: ValidatedBatch, *, leader_epoch: int, now_ms: int
) -> Appended:
    """The response to a duplicate has the offset that a new batch would get.

    The producer receives an offset at which another record is appended later.
    """
    end_offset = self.log_end_offset
    appended = _append(self, batch, leader_epoch=leader_epoch, now_ms=now_ms)
    if self.log_end_offset > end_offset:
        return appended
    return appended._replace(base_offset=end_offset)


@_seeds(UnifiedLog, "append_validated", "acknowledged-is-committed", "watermark-on-isr", "lost-write")
def acknowledge_a_duplicate_at_once(
    self: UnifiedLog, batch: ValidatedBatch, *, leader_epoch: int, now_ms: int
) -> Appended:
    """The response to a duplicate does not wait for the high watermark, because the batch is already in the log.

    The first attempt timed out because the batch could not be replicated. The second one is acknowledged, and the batch
    is lost if the leader fails.
    """
    end_offset = self.log_end_offset
    appended = _append(self, batch, leader_epoch=leader_epoch, now_ms=now_ms)
    return appended if self.log_end_offset > end_offset else appended._replace(last_offset=-1)


@_seeds(UnifiedLog, "append_as_follower", "producers-fit-log", "duplicate", "producer-order")
def note_producers_on_the_leader_only(self: UnifiedLog, records: Bytes, *, leader_epoch: int, now_ms: int) -> None:
    """A follower does not maintain the state of producers.

    After it becomes leader, the retry of a batch that its predecessor acknowledged is appended a second time.
    """
    known = dict(self.producers._states)
    batches = {producer_id: tuple(state.batches) for producer_id, state in known.items()}
    _append_as_follower(self, records, leader_epoch=leader_epoch, now_ms=now_ms)
    self.producers._states = known
    for producer_id, state in known.items():
        state.batches.clear()
        state.batches.extend(batches[producer_id])


@_seeds(UnifiedLog, "_rebuild_producer_state", "lost-write", "producers-fit-log", source="KAFKA-12153")
def keep_producers_when_truncating(self: UnifiedLog, now_ms: int) -> None:
    """The state of producers is unchanged when the log is truncated.

    A truncated batch counts as appended: its retry is acknowledged but not appended.
    """
    if not self.producers._states:
        _rebuild_producer_state(self, now_ms)


@_seeds(ProducerStateManager, "expire", "producers-fit-log", "duplicate", source="KAFKA-9144")
def expire_producers_by_their_first_batch(self: ProducerStateManager, now_ms: int, expiration_ms: int) -> None:
    """A producer expires a quarter of `producer.id.expiration.ms` after its oldest known batch, even if it is active.

    A retry after that is appended a second time.
    """
    self._states = {
        producer_id: state
        for producer_id, state in self._states.items()
        if now_ms - state.batches[0].timestamp_ms < expiration_ms // 4
    }


@_seeds(ProducerStateManager, "snapshot", "recovery-keeps", "producer-order", "duplicate", "exception")
def snapshot_the_first_batch(self: ProducerStateManager) -> bytes:
    """A snapshot of the producers has the oldest known batch of each, not its last one.

    After a clean restart a producer's next batch does not follow the restored one: it is rejected with
    OUT_OF_ORDER_SEQUENCE_NUMBER.
    """
    shortened = ProducerStateManager()
    shortened._states = {
        producer_id: producer_state_manager.ProducerState(state.epoch, deque(list(state.batches)[:1], maxlen=5))
        for producer_id, state in self._states.items()
    }
    return _snapshot(shortened)


@_seeds(ProducerIdManager, "_serve", "acknowledged-is-committed", "ids-unique", "duplicate", "lost-write")
def give_one_id_to_all_waiting_producers(self: ProducerIdManager, now: Now) -> None:
    """All producers that wait for the same block get its first id.

    Two producers that start at the same time share one id.
    """
    if self._block:
        producer_id, self._block = self._block[0], self._block[1:]
        while self._waiting:
            self._waiting.popleft()(producer_id, now)
    else:
        self._request_next_block(now)


@_seeds(ProducerIdManager, "_handle_allocate_producer_ids_response", "exception")
def expect_a_response_to_each_allocation(self: ProducerIdManager, response: Any, now: Now) -> None:
    """A broker does not expect that AllocateProducerIds fails without a response.

    The process of the broker ends if a producer is initialised while the broker cannot reach the controller.
    """
    succeeded = response.error_code is ErrorCode.none  # AttributeError if there is no response
    _handle_allocate_producer_ids_response(self, response if succeeded else None, now)


@_seeds(producer_state_manager, "next_sequence", "idempotence/sequences-wrap-to-zero", "exception", "duplicate")
def count_sequences_without_end(sequence: int) -> int:
    """After sequence 2147483647 the broker expects 2147483648, which no client can send.

    A producer that reaches it gets OUT_OF_ORDER_SEQUENCE_NUMBER indefinitely.
    """
    return sequence + 1


@_seeds(
    BatchHeader,
    "last_sequence",
    "idempotence/sequences-wrap-to-zero",
    "recovery-keeps",
    "exception",
    "duplicate",
)
def wrap_sequences_one_too_late(self: BatchHeader) -> int:
    """If the sequences of a batch wrap to 0, its last sequence is computed one too low.

    The next batch of that producer is rejected with OUT_OF_ORDER_SEQUENCE_NUMBER.
    """
    last = self.base_sequence + self.last_offset_delta
    return last if last < _SEQUENCES else last - _SEQUENCES - 1
