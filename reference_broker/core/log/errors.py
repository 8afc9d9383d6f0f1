"""Errors of a log: Kafka's error, and for a rejected batch the invalid records (KIP-467)."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class RecordError:
    """An invalid record of a rejected batch."""

    batch_index: int
    message: str | None


@dataclass(slots=True)
class AppendError(Exception):
    """A rejected batch; the log is unchanged. `error` is the name of Kafka's error, as in `INVALID_RECORD`."""

    error: str
    message: str
    record_errors: tuple[RecordError, ...] = field(default=())

    def __str__(self) -> str:
        return f"{self.error}: {self.message}"


class OffsetOutOfRangeError(Exception):
    """An offset below the log start offset or above the log end offset."""
