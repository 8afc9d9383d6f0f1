"""Links and their conditions.

A place is a machine or a client. A link is one direction between two places. `network` defines the effect of each
condition.
"""

from dataclasses import dataclass
from enum import StrEnum


class Cut(StrEnum):
    """Treatment of data on a link that is cut: they arrive after the cut, or are lost."""

    HOLD = "hold"
    LOSE = "lose"


@dataclass(frozen=True, slots=True)
class Link:
    """One direction between two places, such as `1` and `client`. None matches every place or listener.

    :param listener: only connections to this listener.
    :param opener: only connections that this place opened.
    """

    source: str | None
    destination: str | None
    listener: str | None = None
    opener: str | None = None

    def carries(self, source: str, destination: str, listener: str, opener: str) -> bool:
        """Whether this link carries bytes of a connection from a source to a destination."""
        return (
            self.source in (None, source)
            and self.destination in (None, destination)
            and self.listener in (None, listener)
            and self.opener in (None, opener)
        )


@dataclass(frozen=True, slots=True)
class Condition:
    """The condition of a link.

    :param cut: None if the link is not cut.
    :param delay_ms: added to the delay that every link has.
    :param jitter_ms: added to the jitter that every link has.
    :param bytes_per_ms: bandwidth of each connection; None if it is not limited.
    """

    cut: Cut | None = None
    delay_ms: int = 0
    jitter_ms: int = 0
    bytes_per_ms: int | None = None


NORMAL = Condition()


def worst(conditions: list[Condition]) -> Condition:
    """Return the worst cut, delay, jitter and bandwidth of at least one condition."""
    cuts = {condition.cut for condition in conditions}
    rates = [condition.bytes_per_ms for condition in conditions if condition.bytes_per_ms is not None]
    return Condition(
        cut=Cut.LOSE if Cut.LOSE in cuts else Cut.HOLD if Cut.HOLD in cuts else None,
        delay_ms=max(condition.delay_ms for condition in conditions),
        jitter_ms=max(condition.jitter_ms for condition in conditions),
        bytes_per_ms=min(rates, default=None),
    )
