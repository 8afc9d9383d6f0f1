"""Retention: the deletion of the oldest segments of a log.

| name               | what must hold                                                                                 |
|--------------------|------------------------------------------------------------------------------------------------|
| `kept-long-enough` | a segment above the log start offset is deleted only under the policy `delete`. The rest of    |
|                    | the log must have at least `retention.bytes`, or the largest timestamp of the segment must be  |
|                    | older than `retention.ms`                                                                      |

DeleteRecords, and a higher log start offset of the leader, advance the log start offset before segments are deleted.
Therefore these deletions are not checked. The configuration at the time of the deletion applies.
"""

from itertools import groupby
from operator import attrgetter

from reference_broker.core.log.config import UNLIMITED
from reference_broker.simulation.invariants.log_mirror import Batch
from reference_broker.simulation.invariants.violation import InvariantViolation
from reference_broker.simulation.invariants.watch import Before, Observer, Replica, Watched


class RetentionInvariants(Observer):
    """Check of `kept-long-enough` after each deletion of segments."""

    def changed(self, watched: Watched, replica: Replica, before: Before) -> None:
        """Check deleted segments, except those that a truncation has removed."""
        deleted = [batch for batch in before.log.forgotten if batch.last_offset >= before.start_offset]
        assert replica.partition is not None
        if not deleted or before.log.removed or replica.start_offset > before.end_offset:
            return
        config, wall_ms = replica.partition.log.config, watched.machine.now.wall_ms
        left_bytes = sum(batch.size_bytes for batch in (*deleted, *replica.log.batches))
        for segment, batches in groupby(deleted, key=attrgetter("segment")):
            own: list[Batch] = list(batches)
            latest_ms = max(batch.max_timestamp_ms for batch in own)
            left_bytes -= sum(batch.size_bytes for batch in own)
            is_too_much = config.retention_bytes != UNLIMITED and left_bytes >= config.retention_bytes
            is_too_old = config.retention_ms != UNLIMITED and wall_ms - latest_ms > config.retention_ms
            if not config.deletes or not (is_too_much or is_too_old):
                policy = f"retention.bytes={config.retention_bytes}, retention.ms={config.retention_ms}"
                detail = (
                    f"{replica}: segment {segment} is deleted, {wall_ms - latest_ms} ms old, {left_bytes} bytes left"
                )
                raise InvariantViolation("kept-long-enough", f"{detail}, with {policy}")
