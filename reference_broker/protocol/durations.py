"""Durations of requests and responses, which kio reads and writes as `timedelta` of whole milliseconds."""

from datetime import timedelta

_MILLISECOND = timedelta(milliseconds=1)


def milliseconds(duration: timedelta) -> int:
    """Return the duration in whole milliseconds."""
    return duration // _MILLISECOND
