"""Fetch state of one partition of a replica fetcher.

Follows: org.apache.kafka.server.PartitionFetchState (KIP-595).

| state      | meaning                                                    | ends with                                 |
|------------|------------------------------------------------------------|-------------------------------------------|
| FETCHING   | part of the next fetch                                     | an error                                  |
| TRUNCATING | offset out of range: a ListOffsets request is in flight    | the leader's response, or a failure       |
| DELAYED    | after any other error, until the next attempt              | `replica.fetch.backoff.ms`, then FETCHING |
| FAILED     | FENCED_LEADER_EPOCH: nothing is fetched                    | a new leader epoch                        |

A log that diverges from the leader's is truncated at the diverging epoch of the fetch response, at once and without a
separate state.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from types import MappingProxyType

from reference_broker.core.replication.follower_progress import NEVER_MS
from reference_broker.core.replication.partition import Partition


class FetchPhase(Enum):
    """The phase of a partition's replication."""

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
    """Fetch state of one partition in one leader epoch.

    :param leader_epoch: the epoch of the fetch requests, which a leader in another epoch rejects.
    :param had_records_ms: monotonic time at which the leader last returned records of the partition.
    """

    partition: Partition
    leader_epoch: int
    phase: FetchPhase = FetchPhase.FETCHING
    had_records_ms: int = NEVER_MS

    def become(self, phase: FetchPhase) -> None:
        """Change the phase."""
        assert phase in TRANSITIONS[self.phase], f"{phase.name} out of {self.phase.name}"
        self.phase = phase
