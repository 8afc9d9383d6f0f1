"""What must hold for the segments of a log that was appended to.

| name              | what must hold                                                                                  |
|-------------------|-------------------------------------------------------------------------------------------------|
| `segments-rolled` | a batch went into a segment that had room for it: less than `segment.bytes` with it, begun less |
|                   | than `segment.ms` before by the time of the records, its indexes within `segment.index.bytes`   |

By the settings of the moment when it is appended, as Kafka's `LogSegment.shouldRoll` has it.
"""

from typing import cast

from reference_broker.core.disk import MemoryDisk
from reference_broker.protocol.record_batch import BatchHeader
from reference_broker.simulation.invariants.violation import InvariantViolation
from reference_broker.simulation.invariants.watch import Before, Observer, Replica, Watched

_ENTRY_BYTES, _TIME_BYTES = 8, 12
"""Of an entry of an index, and of a time index, which has room for one more at its end."""


class RollingInvariants(Observer):
    """An observer of a watch."""

    def changed(self, watched: Watched, replica: Replica, before: Before) -> None:
        """See the table."""
        if replica.partition is None or not before.log.added:
            return
        log, batch = replica.partition.log, before.log.added[-1]
        active = log._segments[-1]
        if batch.segment != active.base_offset or not batch.position:
            return
        config = log.config
        file = cast("MemoryDisk", log._disk).files[active.log_path]
        first, last = (BatchHeader.parse(file, position).max_timestamp_ms for position in (0, batch.position))
        has_no_room = {
            f"of {len(file)} bytes, of {config.segment_bytes}": len(file) > config.segment_bytes,
            f"begun {last - first} ms before, of {config.segment_ms}": 0 <= first < last - config.segment_ms,
            "whose index is full": len(active._offset_index) > max(config.segment_index_bytes // _ENTRY_BYTES, 1),
            "whose time index is full": len(active._time_index) >= max(config.segment_index_bytes // _TIME_BYTES, 2),
        }
        for which, is_so in has_no_room.items():
            if is_so:
                raise InvariantViolation("segments-rolled", f"{replica}: {batch} lies in a segment {which}")
