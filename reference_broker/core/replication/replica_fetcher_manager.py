"""Replica fetchers of a broker: for each leader, one busy fetcher for partitions with traffic, and several idle ones.

Follows: kafka.server.ReplicaFetcherManager, kafka.server.AbstractFetcherManager.

A Fetch contains all partitions of its fetcher. If it contained a thousand idle partitions, each record of a busy
partition would be expensive. Therefore a partition moves to the busy fetcher when its leader returns records, and back
after some time without records. An idle fetcher has a limited number of partitions, which limits the cost of the first
record of an idle partition. (Kafka has fetch sessions instead, and distributes partitions evenly among
`num.replica.fetchers`.) A partition moves only to a fetcher without a request in flight, so that the next request of
that fetcher contains it at once.

The endpoint of a leader is looked up in the metadata for every request, so that a restarted leader is found. A fetcher
without partitions is removed together with its channel, even if the leader is no longer registered.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any, NamedTuple

from reference_broker.core.clock import Now
from reference_broker.core.connection import Channel
from reference_broker.core.replication.fetch_settings import FetchSettings
from reference_broker.core.replication.fetch_state import FetchPhase
from reference_broker.core.replication.partition import Partition, ReplicaRole
from reference_broker.core.replication.replica_fetcher import ReplicaFetcher
from reference_broker.core.runtime import Runtime

Key = tuple[str, int]
Locate = Callable[[int], tuple[str, int] | None]
"""Returns host and port of a broker's inter-broker listener; null if the metadata has no such endpoint."""

_IDLE_AFTER_MS = 5_000
_IDLE_PARTITIONS_MAX = 250
"""Maximum number of partitions of an idle fetcher. A smaller maximum causes more requests; with a larger one, the first
record of an idle partition is more expensive."""


class FetcherKind(Enum):
    """Kind of a fetcher: for busy or for idle partitions. The value is the prefix of the purpose of its channel."""

    BUSY = "replica-fetcher"
    IDLE = "replica-fetcher-quiet"


class FetcherId(NamedTuple):
    """Id of a fetcher. Each leader has one busy fetcher, and numbered idle fetchers."""

    leader: int
    kind: FetcherKind
    number: int = 0

    @property
    def purpose(self) -> str:
        """Purpose of the fetcher's channel."""
        return self.kind.value if self.kind is FetcherKind.BUSY else f"{self.kind.value}-{self.number}"


class ReplicaFetcherManager:
    """The fetchers of a broker, by id.

    :param broker_epoch: returns this broker's epoch.
    """

    def __init__(
        self, runtime: Runtime, settings: FetchSettings, locate: Locate, broker_epoch: Callable[[], int]
    ) -> None:
        self._runtime = runtime
        self._settings = settings
        self._locate = locate
        self._broker_epoch = broker_epoch
        self._fetchers: dict[FetcherId, ReplicaFetcher] = {}
        self._channels: dict[FetcherId, Channel] = {}
        """The channel of each fetcher that has sent a request."""
        self._fetcher_ids: dict[Key, FetcherId] = {}
        self._idle_fetcher_ids: dict[Key, FetcherId] = {}
        """The idle fetcher of each followed partition, even while the partition is in the busy fetcher."""
        self._partition_counts: Counter[FetcherId] = Counter()

    @property
    def fetcher_ids(self) -> Mapping[Key, FetcherId]:
        """The fetcher that replicates each followed partition now, busy or idle."""
        return self._fetcher_ids

    @property
    def idle_fetcher_ids(self) -> Mapping[Key, FetcherId]:
        """The idle fetcher of each followed partition, even while the partition is in the busy fetcher."""
        return self._idle_fetcher_ids

    @property
    def partition_counts(self) -> Mapping[FetcherId, int]:
        """The number of partitions of each idle fetcher, including those that are in the busy fetcher now."""
        return self._partition_counts

    def update(self, partition: Partition) -> None:
        """Start or stop replicating a partition, according to its role. No request is sent before `maybe_fetch`."""
        fetcher_id = self._fetcher_ids.get(partition.key)
        is_followed = partition.role is ReplicaRole.FOLLOWER and self._locate(partition.leader) is not None
        if fetcher_id is not None and not (is_followed and fetcher_id.leader == partition.leader):
            self.remove_partition(partition.key)
        if is_followed:
            if partition.key not in self._fetcher_ids:
                self._assign_fetcher(partition.key, partition.leader)
            self._fetcher(self._fetcher_ids[partition.key]).add_partition(partition)

    def _assign_fetcher(self, key: Key, leader: int) -> None:
        """Assign a partition to the first idle fetcher of its leader that has room."""
        idle_id = FetcherId(leader, FetcherKind.IDLE)
        while self._partition_counts[idle_id] >= _IDLE_PARTITIONS_MAX:
            idle_id = idle_id._replace(number=idle_id.number + 1)
        self._partition_counts[idle_id] += 1
        self._fetcher_ids[key] = self._idle_fetcher_ids[key] = idle_id

    def remove_partition(self, key: Key) -> None:
        """Stop replicating a partition."""
        fetcher_id = self._fetcher_ids.pop(key, None)
        if fetcher_id is not None:
            self._partition_counts[self._idle_fetcher_ids.pop(key)] -= 1
            self._fetchers[fetcher_id].remove_partition(key)

    def rebuild_request(self, key: Key) -> None:
        """Rebuild the request of a partition's fetcher, because the partition's log start offset has changed."""
        fetcher_id = self._fetcher_ids.get(key)
        if fetcher_id is not None:
            self._fetchers[fetcher_id].rebuild_request()

    def maybe_fetch(self, now: Now) -> None:
        """Let every fetcher send its next request, and remove fetchers without partitions."""
        for fetcher_id, fetcher in tuple(self._fetchers.items()):
            if len(fetcher):
                fetcher.maybe_fetch(now)
            else:
                self._remove_fetcher(fetcher_id)

    # Between busy and idle fetchers

    def _rebalance(self, fetcher_id: FetcherId, now: Now) -> None:
        """Move partitions to or from this fetcher, which has received a response, within the fetchers of the leader.

        Partitions move only to a fetcher without a request in flight.
        """
        if fetcher_id not in self._fetchers:
            return  # the fetcher was removed while its request was in flight
        busy_id = FetcherId(fetcher_id.leader, FetcherKind.BUSY)
        busy = self._fetchers.get(busy_id)
        if busy is not None and fetcher_id.kind is FetcherKind.IDLE:
            idle = busy.idle_since(now.monotonic_ms - _IDLE_AFTER_MS)
            self._move([key for key in idle if self._idle_fetcher_ids[key] == fetcher_id], fetcher_id)
        of_leader = [other for other in self._fetchers if other.leader == fetcher_id.leader]
        for other in of_leader if fetcher_id.kind is FetcherKind.BUSY else [fetcher_id]:
            busy_partitions = tuple(self._fetchers[other].busy_partitions) if other.kind is FetcherKind.IDLE else ()
            if busy_partitions and (fetcher_id.kind is FetcherKind.BUSY or busy is None or not busy.is_in_flight):
                self._move(busy_partitions, busy_id)
                if fetcher_id.kind is FetcherKind.IDLE:
                    self._fetcher(busy_id).maybe_fetch(now)
        for other in (*of_leader, busy_id):
            if other in self._fetchers and not len(self._fetchers[other]):
                self._remove_fetcher(other)

    def _move(self, keys: Iterable[Key], fetcher_id: FetcherId) -> None:
        """Move the partitions that are in phase FETCHING. Any other phase must end in the fetcher where it began."""
        for key in keys:
            fetcher = self._fetchers[self._fetcher_ids[key]]
            state = fetcher.remove_partition(key) if fetcher.phase(key) is FetchPhase.FETCHING else None
            if state is not None:
                self._fetcher_ids[key] = fetcher_id
                self._fetcher(fetcher_id).add_fetch_state(state)

    def _fetcher(self, fetcher_id: FetcherId) -> ReplicaFetcher:
        if fetcher_id not in self._fetchers:
            self._fetchers[fetcher_id] = ReplicaFetcher(
                self._settings,
                self._runtime.timers,
                lambda request, then, now: self._send(fetcher_id, request, then, now),
                self._broker_epoch,
                lambda now: self._rebalance(fetcher_id, now),
                trace=self._runtime.trace,
            )
        return self._fetchers[fetcher_id]

    def _remove_fetcher(self, fetcher_id: FetcherId) -> None:
        del self._fetchers[fetcher_id]
        self._drop_channel(fetcher_id)

    def _drop_channel(self, fetcher_id: FetcherId) -> None:
        channel = self._channels.pop(fetcher_id, None)
        if channel is not None:
            self._runtime.channels.drop(channel)

    # To the leader

    def _send(self, fetcher_id: FetcherId, request: Any, then: Callable[[Any, Now], None], now: Now) -> bool:
        endpoint = self._locate(fetcher_id.leader)
        if endpoint is None:
            return False
        channel = Channel(fetcher_id.purpose, fetcher_id.leader, *endpoint)
        if self._channels.get(fetcher_id) != channel:
            self._drop_channel(fetcher_id)
            self._channels[fetcher_id] = channel
        self._runtime.channels.send_request(channel, request, then, timeout_ms=self._settings.timeout_ms, now=now)
        return True
