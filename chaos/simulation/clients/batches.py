"""A producer's batches: what each has gone through, and in which sequences those of one partition are on their way."""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from uuid import UUID

from chaos.simulation.clients.view import Place
from fixtures.clients.record_batch import NO_SEQUENCE, Record

_CRC = slice(17, 21)
VALUES_PER_PROCESS = 1_000_000
"""A record's value is its process's number times this, and a counter: unique in a run."""


def crc_of(batch: bytes) -> int:
    """The checksum in a batch's header, the same in every log that has it."""
    return int.from_bytes(batch[_CRC], "big")


@dataclass(eq=False, slots=True)
class Batch:
    """One batch, from when it is handed over to its outcome."""

    report: Callable[..., None]
    """Takes its outcome, as `Recorder.complete` does behind the operation."""
    records: tuple[Record, ...]
    deadline_ms: int
    sequence: int = NO_SEQUENCE
    producer_id: int = -1
    producer_epoch: int = -1
    attempts: int = 0
    is_out: bool = False
    """A request with it waits for an answer."""
    not_before_ms: int = 0
    may_be_in_log: bool = False
    """It was sent, and not every answer was that it is out of order."""
    is_renumbered: bool = False
    topic_id: UUID | None = None
    """To which it was sent first; a topic that is made again under the same name is not sent what was on its way."""
    is_over: bool = False
    crc: int = 0
    """Of the bytes that were sent last."""


@dataclass(eq=False, slots=True)
class PartitionBatches:
    """What is on its way to one partition.

    :ivar waiting: never sent, in order.
    :ivar window: sent, and without an outcome, in order.
    :ivar acknowledged: the last sequence of the last batch that was acknowledged, -1 before.
    """

    place: Place
    waiting: deque[Batch] = field(default_factory=deque)
    window: list[Batch] = field(default_factory=list)
    next_sequence: int = 0
    acknowledged: int = -1
    producer_epoch: int = -1
    producer_id: int = -1
    is_unresolved: bool = False

    def number(self, batch: Batch, newest: tuple[int, int]) -> None:
        """Give a batch its sequence. A partition goes over to the newest id and epoch when no other is on its way."""
        if len(self.window) == 1 and (self.producer_id, self.producer_epoch) != newest:
            self.producer_id, self.producer_epoch = newest
            self.next_sequence, self.acknowledged = 0, -1
        batch.producer_id, batch.producer_epoch = self.producer_id, self.producer_epoch
        batch.sequence = self.next_sequence
        self.next_sequence += len(batch.records)

    def close_gap(self, failed: Batch) -> None:
        """A batch was refused for good: the next one takes its place, unless others were sent behind it.

        Those may be in the log by now: a broker that knows nothing of the producer takes any sequence first.
        """
        if any(batch.sequence > failed.sequence for batch in self.window):
            self.is_unresolved = True
        else:
            self.next_sequence = failed.sequence

    def renumber(self, batches: Iterable[Batch]) -> None:
        """Give batches that have a sequence the next ones."""
        for batch in batches:
            batch.producer_id, batch.producer_epoch = self.producer_id, self.producer_epoch
            batch.sequence = self.next_sequence
            batch.is_renumbered = True
            self.next_sequence += len(batch.records)


@dataclass(frozen=True, slots=True)
class SentIn:
    """What a batch was last sent in. `sent_as`: its producer epoch and sequence by then."""

    node: int
    version: int
    sent_as: tuple[int, int]
