"""Time in the core: always an argument, never read from a clock."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Now:
    """One moment on two clocks.

    :param wall_ms: milliseconds since 1970, for what is written down or shown: timestamps, retention.
    :param monotonic_ms: milliseconds since an arbitrary start, for timeouts: this clock cannot be set.
    """

    wall_ms: int
    monotonic_ms: int
