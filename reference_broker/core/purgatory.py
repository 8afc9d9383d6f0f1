"""Where requests wait for something to happen: Kafka's `DelayedOperationPurgatory`, as plain state.

An operation waits under keys. When something happened to a key, everything that waits under it is asked whether it can
be answered now; at its deadline it is answered with what there is. Each is answered once.

Rules of this file: it knows neither requests nor partitions; a waiting operation's `answer` does. An operation whose
connection is gone is dropped, not answered.
"""

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Protocol

from reference_broker.core.clock import Now
from reference_broker.core.connection import Connection
from reference_broker.core.timers import Timer, Timers


class Waiting(Protocol):
    """An operation that cannot be answered yet."""

    @property
    def connection(self) -> Connection:
        """Whose it is."""
        ...

    def answer(self, now: Now, *, expired: bool) -> bool:
        """Answer if it can be, and in any case if `expired`. True if it was."""
        ...


@dataclass(slots=True, eq=False)
class _Watched:
    operation: Waiting
    keys: Sequence[Hashable]
    deadline: Timer | None = None


class Purgatory:
    """The waiting operations, by key."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._by_key: defaultdict[Hashable, dict[_Watched, None]] = defaultdict(dict)

    def __len__(self) -> int:
        return len({watched for waiting in self._by_key.values() for watched in waiting})

    def wait(self, operation: Waiting, keys: Sequence[Hashable], deadline_ms: int) -> None:
        """Keep an operation until one of its keys lets it be answered, or until the deadline (monotonic)."""
        watched = _Watched(operation, tuple(keys))
        for key in watched.keys:
            self._by_key[key][watched] = None
        watched.deadline = self._timers.set(deadline_ms, lambda now: self._try(watched, now, expired=True))

    def happened(self, key: Hashable, now: Now) -> None:
        """Ask all that waits under a key."""
        for watched in tuple(self._by_key.get(key, ())):
            self._try(watched, now, expired=False)

    def drop(self, connection: Connection) -> None:
        """Forget what a connection that is gone was waiting for."""
        waiting = [watched for by_key in self._by_key.values() for watched in by_key]
        for watched in waiting:
            if watched.operation.connection is connection:
                self._remove(watched)

    def _try(self, watched: _Watched, now: Now, *, expired: bool) -> None:
        if watched.deadline is not None and watched.operation.answer(now, expired=expired):
            self._remove(watched)

    def _remove(self, watched: _Watched) -> None:
        if watched.deadline is not None:
            self._timers.cancel(watched.deadline)
            watched.deadline = None
        for key in watched.keys:
            waiting = self._by_key[key]
            waiting.pop(watched, None)
            if not waiting:
                del self._by_key[key]
