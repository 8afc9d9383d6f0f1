"""State of idempotent producers in a log, which detects duplicate batches.

Follows: org.apache.kafka.storage.internals.log.ProducerStateManager (KIP-98, KIP-360).

Rules of this file, per producer id:
- An epoch below the latest epoch is fenced. A new epoch starts at sequence 0. If the producer is unknown, any sequence
  is accepted, as in Kafka, because the state of the producer may have expired.
- Within an epoch, the first sequence of a batch must follow the last one of the previous batch; 0 follows 2^31-1.
- A batch with the epoch and sequences of one of the last five batches is a duplicate. The response has the offsets of
  the original batch.
- A snapshot has Kafka's `ProducerSnapshot` schema, version 1. As in Kafka, it contains only the last batch of each
  producer, so only a duplicate of this batch is detected after a restart. `snapshots` writes and loads the files.
"""

import struct
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from crc32c import crc32c

from reference_broker.core.log.errors import AppendError
from reference_broker.protocol.record_batch import BatchHeader

BATCHES_REMEMBERED = 5
SEQUENCE_MAX = 2**31 - 1

_VERSION = 1
_PREFIX = struct.Struct(">hI")
_COUNT = struct.Struct(">i")
_ENTRY = struct.Struct(">qhiqiqiq")
_NO_COORDINATOR_EPOCH = -1
_NO_TRANSACTION = -1


@dataclass(frozen=True, slots=True)
class AppendedBatch:
    """Sequences, offsets and max timestamp of an appended batch (`BatchMetadata`)."""

    base_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int
    timestamp_ms: int


@dataclass(slots=True)
class ProducerState:
    """Latest epoch and last batches of a producer id (`ProducerStateEntry`)."""

    epoch: int
    batches: deque[AppendedBatch] = field(default_factory=lambda: deque(maxlen=BATCHES_REMEMBERED))


class ProducerStateManager:
    """The producers of one log, by producer id."""

    def __init__(self) -> None:
        self._states: dict[int, ProducerState] = {}

    @property
    def states(self) -> Mapping[int, ProducerState]:
        """The state of each known producer id."""
        return self._states

    def get(self, producer_id: int) -> ProducerState | None:
        """Return the state of a producer id, or null."""
        return self._states.get(producer_id)

    def find_duplicate_batch(self, header: BatchHeader) -> AppendedBatch | None:
        """Return the earlier batch that this batch duplicates; null if there is none."""
        state = self._states.get(header.producer_id)
        if state is None or state.epoch != header.producer_epoch:
            return None
        wanted = (header.base_sequence, header.last_sequence)
        return next((batch for batch in state.batches if (batch.base_sequence, batch.last_sequence) == wanted), None)

    def check_producer_epoch(self, header: BatchHeader) -> None:
        """Raise `AppendError` for a batch with a fenced epoch."""
        state = self._states.get(header.producer_id)
        if state is not None and header.producer_epoch < state.epoch:
            raise AppendError(
                "INVALID_PRODUCER_EPOCH",
                f"epoch {header.producer_epoch} of producer {header.producer_id} is older than {state.epoch}",
            )

    def check_sequence(self, header: BatchHeader) -> None:
        """Raise `AppendError` for a batch whose sequence does not follow that of the producer's last batch."""
        state = self._states.get(header.producer_id)
        if state is None:
            return
        is_new_epoch = header.producer_epoch > state.epoch
        expected = 0 if is_new_epoch else next_sequence(state.batches[-1].last_sequence)
        if header.base_sequence != expected:
            raise AppendError(
                "OUT_OF_ORDER_SEQUENCE_NUMBER",
                f"sequence {header.base_sequence} of producer {header.producer_id} instead of {expected}",
            )

    def update(self, header: BatchHeader) -> None:
        """Record an appended batch."""
        state = self._states.get(header.producer_id)
        if state is None or state.epoch != header.producer_epoch:
            state = self._states[header.producer_id] = ProducerState(header.producer_epoch)
        state.batches.append(
            AppendedBatch(
                header.base_sequence,
                header.last_sequence,
                header.base_offset,
                header.last_offset,
                header.max_timestamp_ms,
            )
        )

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Remove producers whose last batch is at least `producer.id.expiration.ms` old (`removeExpiredProducers`)."""
        self._states = {
            producer_id: state
            for producer_id, state in self._states.items()
            if now_ms - state.batches[-1].timestamp_ms < expiration_ms
        }

    def clear(self) -> None:
        """Remove all producers."""
        self._states.clear()

    def snapshot(self) -> bytes:
        """Return the content of a `.snapshot` file."""
        entries = [_COUNT.pack(len(self._states))]
        for producer_id, state in sorted(self._states.items()):
            last = state.batches[-1]
            delta = last.last_offset - last.base_offset
            entries.append(
                _ENTRY.pack(
                    producer_id, state.epoch, last.last_sequence, last.last_offset, delta, last.timestamp_ms,
                    _NO_COORDINATOR_EPOCH, _NO_TRANSACTION,
                )
            )  # fmt: skip
        body = b"".join(entries)
        return _PREFIX.pack(_VERSION, crc32c(body)) + body

    def load(self, data: bytes) -> bool:
        """Replace the state with that of a snapshot. Return False, without a change, if the snapshot is corrupt."""
        try:
            version, crc = _PREFIX.unpack_from(data)
            body = memoryview(data)[_PREFIX.size :]
            (count,) = _COUNT.unpack_from(body)
        except struct.error:
            return False
        if version != _VERSION or crc != crc32c(body) or len(body) != _COUNT.size + count * _ENTRY.size:
            return False
        self._states = {}
        for producer_id, epoch, last_sequence, last_offset, delta, timestamp_ms, _, _ in _ENTRY.iter_unpack(
            body[_COUNT.size :]
        ):
            base_sequence = (last_sequence - delta) & SEQUENCE_MAX
            if last_offset < 0:
                continue  # only transaction markers of this producer are left
            batch = AppendedBatch(base_sequence, last_sequence, last_offset - delta, last_offset, timestamp_ms)
            self._states[producer_id] = ProducerState(epoch, deque([batch], maxlen=BATCHES_REMEMBERED))
        return True


def next_sequence(sequence: int) -> int:
    """Return the sequence after this one."""
    return 0 if sequence == SEQUENCE_MAX else sequence + 1
