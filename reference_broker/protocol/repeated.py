"""Messages that come again and again, written and read once.

While nothing happens, a follower sends the same Fetch twice a second and gets the same answer, and so do heartbeats.
What is read is immutable, so that it may be shared: many short ones are kept, and the last few long ones. All versions
share these places, and no other API has any: a node would otherwise keep the last records of each Produce version.
"""

from collections import deque
from collections.abc import Callable
from functools import lru_cache
from typing import Any

Read = Callable[[bytes, int], Any]
"""From bytes, and a position in them, to the entity that begins there."""

REPEATING_APIS = frozenset({1, 63})
"""API keys of Fetch and BrokerHeartbeat."""
_KEPT = 8
_SHORT_KEPT = 128
_SHORT_MAX_BYTES, _SIZE_MAX_BYTES = 512, 128 * 1024
"""Longer ones carry records."""


@lru_cache(_SHORT_KEPT)
def _read_short(read: Read, body: bytes) -> Any:
    return read(body, 0)


@lru_cache(_KEPT)
def _read_long(read: Read, body: bytes) -> Any:
    return read(body, 0)


def remembering(read: Read) -> Read:
    """The same reader, which knows again what it has just read."""

    def read_or_remember(frame: bytes, position: int) -> Any:
        size_bytes = len(frame) - position
        if size_bytes <= _SHORT_MAX_BYTES:
            return _read_short(read, frame[position:])
        if size_bytes <= _SIZE_MAX_BYTES:
            return _read_long(read, frame[position:])
        return read(frame, position)

    return read_or_remember


def remembering_writer(write: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
    """The same writer, which knows again an entity, by identity, that it has just written."""
    written: deque[tuple[Any, bytes]] = deque(maxlen=_KEPT)

    def write_or_remember(entity: Any) -> bytes:
        for known, data in written:
            if known is entity:
                return data
        written.append((entity, write(entity)))
        return written[-1][1]

    return write_or_remember
