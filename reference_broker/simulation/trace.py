"""What happened, event by event: a digest that proves two runs equal.

An event is a flat tuple of numbers and strings, and the checksum of what was sent. Nothing that depends on the process
goes in: no identity, no hash, no order of a set.
"""

from hashlib import blake2b
from zlib import crc32

_PENDING_MAX = 1_000


class Trace:
    """The events of one run; only their digest is kept."""

    def __init__(self) -> None:
        self._digest = blake2b(digest_size=16)
        self._pending: list[tuple[object, ...]] = []

    def add(
        self,
        at_ms: int,
        kind: str,
        source: str,
        destination: str | None = None,
        text: str = "",
        *,
        data: bytes = b"",
        number: int | None = None,
    ) -> None:
        """Note an event.

        :param kind: `request`, `answer`, `deliver`, `drop`, `connect`, `reset`, `start`, `kill`, `note`, …
        :param source: where it happened, or what sent it.
        :param destination: null where nothing was sent.
        :param number: of the message, in `request` or `answer`, and in `deliver` or `drop`; null where there is none.
        """
        self._pending.append((at_ms, kind, source, destination, text, number, crc32(data)))
        if len(self._pending) == _PENDING_MAX:
            self._digest_pending()

    def _digest_pending(self) -> None:
        """Many at once: that costs half."""
        self._digest.update("".join(map(repr, self._pending)).encode())
        self._pending.clear()

    @property
    def digest(self) -> str:
        """Of all events so far, in hexadecimal."""
        self._digest_pending()
        return self._digest.hexdigest()
