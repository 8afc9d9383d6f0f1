"""Bound on the memory that all connections of a node hold: incomplete requests, and responses that are not read.

Kafka bounds requests only, and only if `queued.max.request.bytes` is set (KIP-72): it stops to read. Responses need no
bound there, since records are sent from files. Here the connection that holds most is closed, and its client retries:
a client that sends half a request, or reads none of its responses, cannot keep others waiting.
"""

from collections.abc import Collection
from typing import Protocol

_OTHERS_BYTES = 16 * 1024 * 1024
"""Memory beside one request of the maximal size."""
_COUNTED_MIN_BYTES = 1024 * 1024
"""A connection that holds less never causes a count: the bound is exceeded by large requests and responses."""


class Holder(Protocol):
    """A connection."""

    @property
    def held_bytes(self) -> int:
        """The size of its incomplete requests and unread responses."""

    def abort(self, reason: str) -> None:
        """Close it at once, without sending the rest."""


class ConnectionMemory:
    """The memory of all connections.

    :param request_max_bytes: `socket.request.max.bytes`; such a request always fits.
    """

    def __init__(self, request_max_bytes: int) -> None:
        self._max_bytes = request_max_bytes + _OTHERS_BYTES

    def bound(self, changed: Holder, connections: Collection[Holder]) -> None:
        """Close the largest holders until the others are within the bound; called when `changed` has grown."""
        if changed.held_bytes < _COUNTED_MIN_BYTES:
            return
        held_bytes = {holder: holder.held_bytes for holder in connections}
        total_bytes = sum(held_bytes.values())
        for holder in sorted(held_bytes, key=held_bytes.__getitem__, reverse=True):
            if total_bytes <= self._max_bytes:
                return
            holder.abort(
                f"all connections hold {total_bytes:,} bytes of requests and unread responses,"
                f" more than {self._max_bytes:,}; this one {held_bytes[holder]:,}"
            )
            total_bytes -= held_bytes[holder]
