"""Records that the clients of a round send, each with a unique value."""

from dataclasses import dataclass
from typing import Final

from conformance.concurrent.trial_context import TrialContext
from fixtures.clients.payload import SIZE_MIN, to_record
from fixtures.clients.record_batch import Record

_TOMBSTONE_EVERY: Final = 7


@dataclass(frozen=True, slots=True)
class Records:
    """Generator of records with unused values."""

    context: TrialContext
    timestamp_kept: bool

    def some(self, count: int, size: int = SIZE_MIN) -> list[Record]:
        """Return `count` records with ten different keys."""
        return [self._record(value, f"k{value % 10}", size) for value in self._values(count)]

    def keyed(self, keys: int) -> Record:
        """Return a record with one of a few keys; every seventh one is a tombstone."""
        (value,) = self._values(1)
        return self._record(None if value % _TOMBSTONE_EVERY == 0 else value, f"keyed-{value % keys}", SIZE_MIN)

    def _values(self, count: int) -> list[int]:
        return [next(self.context.values) for _ in range(count)]

    def _record(self, value: int | None, key: str, size: int) -> Record:
        now_ms = int(self.context.target.transport.time() * 1000)
        return to_record(value, key=key, timestamp_ms=now_ms, size=size, timestamp_kept=self.timestamp_kept)
