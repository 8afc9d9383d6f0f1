"""Roll of segments before an append.

| name              | what must hold                                                                                  |
|-------------------|-------------------------------------------------------------------------------------------------|
| `segments-rolled` | a batch is appended to a segment only under three conditions: with the batch, the segment has   |
|                   | at most `segment.bytes`; its first batch is at most `segment.ms` older, by record timestamps;   |
|                   | its indexes are within `segment.index.bytes`. The first batch of a segment is not checked       |

The configuration at the time of the append applies (`LogSegment.shouldRoll`).
"""

from bisect import bisect_left
from operator import attrgetter

from reference_broker.simulation.invariants.violation import InvariantViolation
from reference_broker.simulation.invariants.watch import Before, Observer, Replica, Watched

_segment = attrgetter("segment")
_ENTRY_BYTES, _TIME_BYTES = 8, 12
"""Size of an entry of an offset index and of a time index. A time index always has room for one more entry."""


class RollingInvariants(Observer):
    """Check of `segments-rolled` after each change of a log."""

    def changed(self, watched: Watched, replica: Replica, before: Before) -> None:
        """Check the last appended batch."""
        assert replica.partition is not None
        if not before.log.added:
            return
        log, batch = replica.partition.log, before.log.added[-1]
        active = log.segments[-1]
        if batch.segment != active.base_offset or not batch.position:
            return
        config, batches = log.config, replica.log.batches
        first_ms = batches[bisect_left(batches, batch.segment, key=_segment)].max_timestamp_ms
        reasons = {
            "is too large": batch.position + batch.size_bytes > config.segment_bytes,
            "is too old": 0 <= first_ms < batch.max_timestamp_ms - config.segment_ms,
            "has a full index": len(active.offset_index) > max(config.segment_index_bytes // _ENTRY_BYTES, 1),
            "has a full time index": len(active.time_index) >= max(config.segment_index_bytes // _TIME_BYTES, 2),
        }
        for reason, is_full in reasons.items():
            if is_full:
                raise InvariantViolation(
                    "segments-rolled", f"{replica}: the segment of {batch} {reason}, with {config}"
                )
