"""Fetch state of one partition of a replica fetcher.

Follows: org.apache.kafka.server.PartitionFetchState (KIP-595).

| phase      | the partition                                                      | ends with                          |
|------------|--------------------------------------------------------------------|------------------------------------|
| FETCHING   | is part of the next Fetch request                                  | an error                           |
| TRUNCATING | has had OFFSET_OUT_OF_RANGE; a ListOffsets request is in flight    | the response, or a failure         |
| DELAYED    | has had another error or no response, and is not fetched           | the end of the fetch backoff       |
| FAILED     | has had FENCED_LEADER_EPOCH, and is not fetched                    | a new leader epoch                 |

A log that diverges from the leader's needs no phase: a Fetch response with a diverging epoch truncates the log, and the
partition stays in FETCHING.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from types import MappingProxyType

from reference_broker.core.replication.follower_progress import NEVER_MS
from reference_broker.core.replication.partition import Partition


class FetchPhase(Enum):
    """Phase of the replication of a partition (`ReplicaState`)."""

    FETCHING = auto()
    TRUNCATING = auto()
    DELAYED = auto()
    FAILED = auto()


TRANSITIONS: Mapping[FetchPhase, frozenset[FetchPhase]] = MappingProxyType(
    {
        FetchPhase.FETCHING: frozenset({FetchPhase.TRUNCATING, FetchPhase.DELAYED, FetchPhase.FAILED}),
        FetchPhase.TRUNCATING: frozenset({FetchPhase.FETCHING, FetchPhase.DELAYED, FetchPhase.FAILED}),
        FetchPhase.DELAYED: frozenset({FetchPhase.FETCHING}),
        FetchPhase.FAILED: frozenset(),
    }
)


@dataclass(slots=True, eq=False)
class PartitionFetchState:
    """Fetch state of one partition in one leader epoch. For a new leader epoch, a new object is created.

    :param leader_epoch: the leader epoch in the requests. A leader in another epoch rejects them.
    :param had_records_ms: monotonic time at which the leader last returned records of the partition.
    """

    partition: Partition
    leader_epoch: int
    phase: FetchPhase = FetchPhase.FETCHING
    had_records_ms: int = NEVER_MS

    def become(self, phase: FetchPhase) -> None:
        """Change the phase. Only the `TRANSITIONS` are allowed."""
        assert phase in TRANSITIONS[self.phase], f"no transition from {self.phase.name} to {phase.name}"
        self.phase = phase
