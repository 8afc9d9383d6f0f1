"""The records that the clients of a round send: each with a value of its own."""

from dataclasses import dataclass
from typing import Final

from conformance.concurrent.surroundings import Surroundings
from fixtures.clients.payload import SIZE_MIN, to_record
from fixtures.clients.record_batch import Record

_TOMBSTONE_EVERY: Final = 7


@dataclass(frozen=True, slots=True)
class Records:
    """Makes records with values that nobody has sent yet."""

    surroundings: Surroundings
    timestamp_kept: bool

    def some(self, count: int, size: int = SIZE_MIN) -> list[Record]:
        """So many, of some keys."""
        return [self._record(value, f"k{value % 10}", size) for value in self._values(count)]

    def of_keys(self, keys: int) -> Record:
        """One of few keys, now and then a tombstone."""
        (value,) = self._values(1)
        return self._record(None if value % _TOMBSTONE_EVERY == 0 else value, f"keyed-{value % keys}", SIZE_MIN)

    def _values(self, count: int) -> list[int]:
        return [next(self.surroundings.values) for _ in range(count)]

    def _record(self, value: int | None, key: str, size: int) -> Record:
        now_ms = int(self.surroundings.target.transport.time() * 1000)
        return to_record(value, key=key, timestamp_ms=now_ms, size=size, timestamp_kept=self.timestamp_kept)
