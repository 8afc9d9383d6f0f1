"""Time in the core, which is always an argument and never read from a clock."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Now:
    """One moment on two clocks.

    :param wall_ms: milliseconds since 1970, for timestamps and retention.
    :param monotonic_ms: milliseconds since an arbitrary start, for timeouts; this clock is never adjusted.
    """

    wall_ms: int
    monotonic_ms: int
