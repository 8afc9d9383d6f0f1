"""Purgatory of delayed operations.

Follows: org.apache.kafka.server.purgatory.DelayedOperationPurgatory.

An operation is watched under keys. `check_and_complete` completes the operations of a key that can be completed. At its
deadline an operation is always completed. No operation is completed twice. If a connection is closed, its operations
are dropped without a response. The purgatory does not depend on requests or partitions; only the operations do.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterator, KeysView, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from reference_broker.core.clock import Now
from reference_broker.core.connection import Connection
from reference_broker.core.timers import Timer, Timers
from reference_broker.core.tracer import KeyChecked, OperationExpired, Tracer, no_tracer


class DelayedOperation(Protocol):
    """An operation that cannot be completed yet."""

    @property
    def connection(self) -> Connection | None:
        """The client's connection; null for an internal operation."""
        ...

    def try_complete(self, now: Now, changed_key: Hashable | None) -> bool:
        """Complete the operation if possible, and return whether it is completed.

        :param changed_key: the key that has changed; null at the deadline, at which the operation is always completed.
        """
        ...


@dataclass(slots=True, eq=False)
class _Watched:
    operation: DelayedOperation
    keys: Sequence[Hashable]
    deadline: Timer | None = None


class Purgatory:
    """The waiting operations, by key and by connection."""

    def __init__(self, timers: Timers, trace: Tracer = no_tracer) -> None:
        self._timers = timers
        self._trace = trace
        self._by_key: defaultdict[Hashable, dict[_Watched, None]] = defaultdict(dict)
        self._by_connection: defaultdict[Connection | None, dict[_Watched, None]] = defaultdict(dict)

    def __len__(self) -> int:
        return sum(len(waiting) for waiting in self._by_connection.values())

    @property
    def keys(self) -> KeysView[Hashable]:
        """The keys under which operations wait."""
        return self._by_key.keys()

    @property
    def connections(self) -> KeysView[Connection | None]:
        """The connections whose operations wait."""
        return self._by_connection.keys()

    def operations(self, key: Hashable) -> Iterator[DelayedOperation]:
        """Return the operations that wait under a key."""
        return (watched.operation for watched in self._by_key.get(key, ()))

    def watch(self, operation: DelayedOperation, keys: Sequence[Hashable], deadline_ms: int) -> None:
        """Watch an operation until it is completed, at the latest at the deadline (monotonic)."""
        watched = _Watched(operation, tuple(keys))
        for key in watched.keys:
            self._by_key[key][watched] = None
        self._by_connection[operation.connection][watched] = None
        watched.deadline = self._timers.set(deadline_ms, lambda now: self._try(watched, now, None))

    def check_and_complete(self, key: Hashable, now: Now) -> None:
        """Check the operations that wait under a key, and complete those that can be."""
        self._trace(KeyChecked(key))
        for watched in tuple(self._by_key.get(key, ())):
            self._try(watched, now, key)

    def drop(self, connection: Connection) -> None:
        """Drop the operations of a closed connection."""
        for watched in tuple(self._by_connection.get(connection, ())):
            if watched.deadline is not None:
                self._remove(watched, watched.deadline)

    def _try(self, watched: _Watched, now: Now, changed_key: Hashable | None) -> None:
        """Try to complete an operation. `watched.deadline` is null meanwhile, so a recursive call has no effect."""
        deadline, watched.deadline = watched.deadline, None
        if deadline is None:
            return
        if changed_key is None:
            self._trace(OperationExpired())
        if watched.operation.try_complete(now, changed_key):
            self._remove(watched, deadline)
        else:
            watched.deadline = deadline

    def _remove(self, watched: _Watched, deadline: Timer) -> None:
        self._timers.cancel(deadline)
        watched.deadline = None
        for key in watched.keys:
            _discard(self._by_key, key, watched)
        _discard(self._by_connection, watched.operation.connection, watched)


def _discard(waiting: dict[Any, dict[_Watched, None]], key: Hashable, watched: _Watched) -> None:
    waiting[key].pop(watched, None)
    if not waiting[key]:
        del waiting[key]
