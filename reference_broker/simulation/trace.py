"""Digest of all events of a run: equal digests prove that two runs are equal.

An event is a flat tuple of numbers and strings. It contains the checksum of the data that are sent, not the data. No
part of it depends on the process: no object identity, no hash, no order of a set. The kinds of events are part of the
digest; a renamed kind changes the digest of every run.
"""

from hashlib import blake2b
from zlib import crc32

_PENDING_MAX = 1_000


class Trace:
    """Digest of the events of one run; the events are not kept."""

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
        """Add an event.

        :param kind: `request`, `answer`, `deliver`, `drop`, `connect`, `reset`, `start`, `kill`, `note`, …
        :param source: the place of the event, or the sender.
        :param destination: the receiver, or the other place of a connection; None for an event of one place.
        :param text: the listener of a message or connection, or the details of another event.
        :param data: the bytes of a `request` or `answer`; empty for other events.
        :param number: the number of the message in `request`, `answer`, `deliver` and `drop`; None for other events.
        """
        self._pending.append((at_ms, kind, source, destination, text, number, crc32(data)))
        if len(self._pending) == _PENDING_MAX:
            self._digest_pending()

    def _digest_pending(self) -> None:
        """Add the pending events to the digest. This takes half the time of adding them one by one."""
        self._digest.update("".join(map(repr, self._pending)).encode())
        self._pending.clear()

    @property
    def digest(self) -> str:
        """The digest of all events so far, in hexadecimal."""
        self._digest_pending()
        return self._digest.hexdigest()
