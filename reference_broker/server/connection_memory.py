"""Limit of the memory that all connections of a node use for buffered requests and unread responses.

Kafka limits only the memory of requests, and only if `queued.max.request.bytes` is set (KIP-72). At the limit it stops
reading. It needs no limit for responses, because it sends records from files. Here the connection that uses the most
memory is closed, and its client retries. So a client that sends half a request, or reads no response, does not block
other clients.
"""

from collections.abc import Collection
from typing import Protocol

_OTHERS_BYTES = 16 * 1024 * 1024
"""Limit of the memory in addition to one request of the maximal size."""
_COUNTED_MIN_BYTES = 1024 * 1024
"""If a changed connection uses less than this, the total is not computed: the sum over all connections takes time."""


class Holder(Protocol):
    """A connection whose memory is limited."""

    @property
    def held_bytes(self) -> int:
        """The size of its buffered requests and unread responses."""

    def abort(self, reason: str) -> None:
        """Close the connection at once, without sending the rest."""


class ConnectionMemory:
    """Limit of the memory of all connections.

    :param request_max_bytes: `socket.request.max.bytes`; one request of this size does not exceed the limit.
    """

    def __init__(self, request_max_bytes: int) -> None:
        self._max_bytes = request_max_bytes + _OTHERS_BYTES

    def bound(self, changed: Holder, connections: Collection[Holder]) -> None:
        """Close the largest connections until the rest is within the limit; called when `changed` has grown."""
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
