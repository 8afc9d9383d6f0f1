"""Errors of a log: Kafka's error, and for a rejected batch the invalid records (KIP-467)."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class RecordError:
    """One record of a refused batch."""

    batch_index: int
    message: str | None


@dataclass(slots=True)
class AppendError(Exception):
    """A batch was refused and the log is as it was. `error` is Kafka's name, as in `INVALID_RECORD`."""

    error: str
    message: str
    record_errors: tuple[RecordError, ...] = field(default=())

    def __str__(self) -> str:
        return f"{self.error}: {self.message}"


class OffsetOutOfRangeError(Exception):
    """An offset below the log's start or above its end."""
