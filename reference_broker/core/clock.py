"""Time as the core sees it: an argument, never asked for."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Now:
    """One moment on two clocks.

    :param wall_ms: milliseconds since 1970, for what is written down or shown: timestamps, retention.
    :param monotonic_ms: milliseconds since an arbitrary start, for waiting: nobody can set this clock.
    """

    wall_ms: int
    monotonic_ms: int
