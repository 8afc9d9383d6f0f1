"""Caches of repeated messages: the same bytes are decoded once, and the same entity is encoded once.

In an idle cluster a follower sends the same Fetch request twice a second and receives the same response; heartbeats are
repeated, too. Entities are immutable and can be shared. All readers share two caches: one for many short messages, and
one for a few long messages. Each writer has its own cache. The caches are used only for Fetch and BrokerHeartbeat:
otherwise a node would keep the records of the last Produce requests.
"""

from collections import deque
from collections.abc import Callable
from functools import lru_cache
from typing import Any

Read = Callable[[bytes, int], Any]
"""Function from bytes and a position to the entity at this position."""

REPEATING_APIS = frozenset({1, 63})
"""API keys of Fetch and BrokerHeartbeat."""
_CACHE_SIZE = 8
_SHORT_CACHE_SIZE = 128
"""Number of messages in a cache."""
_SHORT_MAX_BYTES, _SIZE_MAX_BYTES = 512, 128 * 1024
"""Maximum sizes of a short and of a long message. Longer messages contain records, and are not cached."""


@lru_cache(_SHORT_CACHE_SIZE)
def _read_short(read: Read, body: bytes) -> Any:
    return read(body, 0)


@lru_cache(_CACHE_SIZE)
def _read_long(read: Read, body: bytes) -> Any:
    return read(body, 0)


def caching_reader(read: Read) -> Read:
    """Return a reader that caches each entity by its bytes."""

    def read_cached(frame: bytes, position: int) -> Any:
        size_bytes = len(frame) - position
        if size_bytes <= _SHORT_MAX_BYTES:
            return _read_short(read, frame[position:])
        if size_bytes <= _SIZE_MAX_BYTES:
            return _read_long(read, frame[position:])
        return read(frame, position)

    return read_cached


def caching_writer(write: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
    """Return a writer that caches bytes by the identity of the entity."""
    written: deque[tuple[Any, bytes]] = deque(maxlen=_CACHE_SIZE)

    def write_cached(entity: Any) -> bytes:
        for known, data in written:
            if known is entity:
                return data
        written.append((entity, write(entity)))
        return written[-1][1]

    return write_cached
