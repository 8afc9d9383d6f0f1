"""A partition replica on this broker: a log, and what leadership adds to it.

This broker has one node, so it leads every partition, its ISR is itself, and the high watermark is the log's end: what
is appended is at once on the full ISR. Replication gives the high watermark a state of its own, here.
"""

from dataclasses import dataclass
from uuid import UUID

from reference_broker.core.log.partition_log import PartitionLog
from reference_broker.protocol.errors import ErrorCode

NO_EPOCH = -1
"""A leader epoch that the client does not know, or that there is none to tell."""


@dataclass(slots=True, eq=False)
class Partition:
    """A partition that this broker leads. `flushed_at_ms` (monotonic) is when `flush.ms` last had its way."""

    topic: str
    topic_id: UUID
    index: int
    leader_epoch: int
    log: PartitionLog
    flushed_at_ms: int

    @property
    def key(self) -> tuple[str, int]:
        """Its name, under which requests wait for it."""
        return self.topic, self.index

    @property
    def high_watermark(self) -> int:
        """Consumers read below this offset."""
        return self.log.log_end_offset

    @property
    def last_stable_offset(self) -> int:
        """Consumers that ask for read_committed read below this one: below the first open transaction."""
        return self.high_watermark

    def check_leader_epoch(self, current_leader_epoch: int) -> ErrorCode:
        """Fencing of a client whose metadata is older, or newer, than this broker's (KIP-320)."""
        if current_leader_epoch < 0 or current_leader_epoch == self.leader_epoch:
            return ErrorCode.none
        older = current_leader_epoch < self.leader_epoch
        return ErrorCode.fenced_leader_epoch if older else ErrorCode.unknown_leader_epoch
