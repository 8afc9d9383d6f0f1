"""Limit of the memory that all connections of a node use for buffered requests and unread responses.

Kafka limits only the memory of requests, and only if `queued.max.request.bytes` is set (KIP-72). At the limit, Kafka
stops reading. It needs no limit for responses, because it sends records from files.

Here, at the limit, the connection that uses the most memory is closed, and its client retries. So a client that sends
half a request, or reads no response, does not block other clients.
"""

from typing import Protocol

_OTHERS_BYTES = 16 * 1024 * 1024
"""Memory that all connections may use in addition to one request of the maximum size."""


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
        self._held_bytes: dict[Holder, int] = {}
        """Size of each connection when it last grew. It may be smaller now."""
        self._total_bytes = 0

    def bound(self, changed: Holder) -> None:
        """Close the largest connections until the rest is within the limit; called when `changed` has grown.

        The present sizes of the other connections are computed only if the total of the known sizes exceeds the limit.
        """
        held_bytes = changed.held_bytes
        self._total_bytes += held_bytes - self._held_bytes.get(changed, 0)
        self._held_bytes[changed] = held_bytes
        if self._total_bytes > self._max_bytes:
            self._held_bytes = {holder: holder.held_bytes for holder in self._held_bytes}
            self._total_bytes = sum(self._held_bytes.values())
            self._close_largest()

    def remove(self, closed: Holder) -> None:
        """Stop counting a closed connection."""
        self._total_bytes -= self._held_bytes.pop(closed, 0)

    def _close_largest(self) -> None:
        for holder in sorted(self._held_bytes, key=self._held_bytes.__getitem__, reverse=True):
            if self._total_bytes <= self._max_bytes:
                return
            holder.abort(
                f"all connections hold {self._total_bytes:,} bytes of requests and unread responses,"
                f" more than {self._max_bytes:,}; this connection holds {self._held_bytes[holder]:,}"
            )
            self.remove(holder)
