"""Errors of a log: a rejected batch with its invalid records (KIP-467), and an offset out of range."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class RecordError:
    """An invalid record of a rejected batch; `batch_index` is the index of the record in the batch."""

    batch_index: int
    message: str | None


@dataclass(slots=True)
class AppendError(Exception):
    """A rejected batch; the log is unchanged. `error` is Kafka's name of the error, for example `INVALID_RECORD`."""

    error: str
    message: str
    record_errors: tuple[RecordError, ...] = field(default=())

    def __str__(self) -> str:
        return f"{self.error}: {self.message}"


class OffsetOutOfRangeError(Exception):
    """An offset below the log start offset or above the log end offset."""
