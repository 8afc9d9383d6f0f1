"""What happened, event by event: a digest that proves two runs equal, and the events themselves where asked for.

An event is a flat tuple of numbers, strings and bytes; its place in the run is its number. Nothing that depends on the
process goes in: no identity, no hash, no order of a set.
"""

from dataclasses import dataclass
from hashlib import blake2b


@dataclass(frozen=True, slots=True)
class TraceEvent:
    """One event, for a diagram or a person.

    :param kind: `request`, `answer`, `deliver`, `drop`, `connect`, `fault`, `start`, `kill`, `power`, `note`, …
    :param source: where it happened, or what sent it.
    :param destination: null where nothing was sent.
    :param number: of the message, the same where it is sent and where it ends; null where there is none.
    """

    at_ms: int
    kind: str
    source: str
    destination: str | None
    text: str
    number: int | None


class Trace:
    """The events of one run.

    :param keep: whether the events are kept, beside their digest.
    """

    def __init__(self, *, keep: bool = False) -> None:
        self.events: list[TraceEvent] = []
        self._keep = keep
        self._digest = blake2b(digest_size=16)

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
        """Note an event. `data` goes into the digest alone."""
        self._digest.update(f"{at_ms} {kind} {source} {destination} {text} {number} {len(data)}\n".encode())
        self._digest.update(data)
        if self._keep:
            self.events.append(TraceEvent(at_ms, kind, source, destination, text, number))

    @property
    def digest(self) -> str:
        """Of all events so far, in hexadecimal."""
        return self._digest.hexdigest()
