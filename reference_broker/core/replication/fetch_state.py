"""How far the replication of one partition from its leader is (Kafka's `PartitionFetchState`).

| state      | what it means                                              | ends with                               |
|------------|------------------------------------------------------------|-----------------------------------------|
| FETCHING   | named in the next fetch                                    | whatever goes wrong                     |
| TRUNCATING | out of the leader's range: the leader is asked for it      | the leader's answer                     |
| DELAYED    | something went wrong that may pass                         | `replica.fetch.backoff.ms`, then FETCHING |
| FAILED     | fenced, or broken: nothing is fetched                      | a new leader epoch, which begins anew   |

A log that has parted from the leader's is cut where the fetch answer says so (diverging epoch, KIP-595), at once and
without a state of its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from types import MappingProxyType

from reference_broker.core.replication.follower_progress import NEVER_MS
from reference_broker.core.replication.partition import Partition


class FetchPhase(Enum):
    """What goes on with a partition."""

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
    """One partition of one fetcher, for one leader epoch.

    :param leader_epoch: that the fetcher was told; fetches carry it, so that a leader of another one refuses them.
    :param had_records_ms: when (monotonic) the leader last had records for it.
    """

    partition: Partition
    leader_epoch: int
    phase: FetchPhase = FetchPhase.FETCHING
    had_records_ms: int = NEVER_MS

    def become(self, phase: FetchPhase) -> None:
        """Go over into another phase."""
        assert phase in TRANSITIONS[self.phase], f"{phase.name} out of {self.phase.name}"
        self.phase = phase
