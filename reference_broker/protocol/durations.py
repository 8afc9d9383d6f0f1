"""Durations as requests and responses have them: kio reads and writes them as `timedelta`, of whole milliseconds."""

from datetime import timedelta

_MILLISECOND = timedelta(milliseconds=1)


def milliseconds(duration: timedelta) -> int:
    """The whole milliseconds."""
    return duration // _MILLISECOND
