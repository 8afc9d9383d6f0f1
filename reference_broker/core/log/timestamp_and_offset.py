"""What a lookup by time finds."""

from typing import NamedTuple


class TimestampAndOffset(NamedTuple):
    """A record's timestamp, its offset, and the leader epoch of its batch."""

    timestamp_ms: int
    offset: int
    leader_epoch: int
