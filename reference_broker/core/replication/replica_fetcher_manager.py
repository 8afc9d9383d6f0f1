"""Replica fetchers of a broker: for each leader, one for partitions with traffic, and others for idle partitions.

Follows: kafka.server.ReplicaFetcherManager, kafka.server.AbstractFetcherManager.

A Fetch contains all partitions of its fetcher, so with a thousand idle partitions in the request, each record of a
busy partition would be expensive. Therefore a partition whose leader has records moves to the busy fetcher, and back
after some time without records. A quiet fetcher has a limited number of idle partitions, which limits the cost of the
first record of one. (Kafka has fetch sessions for this, and distributes partitions evenly among
`num.replica.fetchers`.) Partitions move only after a response and before the next request of a fetcher, so that they
never wait for a request that does not contain them.

The endpoint of a leader is looked up in the metadata for every request, so that a restarted leader is found. A fetcher
without partitions is removed together with its channel.
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
"""Returns host and port of a broker on the replication listener; null for a broker that is not in the metadata."""

_IDLE_AFTER_MS = 5_000
_SHARE_MAX = 250
"""Partitions of a quiet fetcher: fewer cost more while they are idle, more cost more when records arrive."""


class Lane(Enum):
    """The two kinds of fetchers; the values are the purposes of their channels."""

    BUSY = "replica-fetcher"
    QUIET = "replica-fetcher-quiet"


class Place(NamedTuple):
    """One fetcher of a leader. The busy one has no shares."""

    leader: int
    lane: Lane
    share: int = 0

    @property
    def purpose(self) -> str:
        """Purpose of the fetcher's channel."""
        return self.lane.value if self.lane is Lane.BUSY else f"{self.lane.value}-{self.share}"


class ReplicaFetcherManager:
    """The fetchers by place.

    :param broker_epoch: returns this broker's epoch.
    """

    def __init__(
        self, runtime: Runtime, settings: FetchSettings, locate: Locate, broker_epoch: Callable[[], int]
    ) -> None:
        self._runtime = runtime
        self._settings = settings
        self._locate = locate
        self._broker_epoch = broker_epoch
        self._fetchers: dict[Place, ReplicaFetcher] = {}
        self._places: dict[Key, Place] = {}
        self._homes: dict[Key, Place] = {}
        """The quiet fetcher of each partition while it is idle."""
        self._inhabitants: Counter[Place] = Counter()

    @property
    def places(self) -> Mapping[Key, Place]:
        """The fetcher that each followed partition is assigned to."""
        return self._places

    @property
    def homes(self) -> Mapping[Key, Place]:
        """The quiet fetcher of each followed partition."""
        return self._homes

    @property
    def inhabitants(self) -> Mapping[Place, int]:
        """The number of partitions that are assigned to each quiet fetcher while they are idle."""
        return self._inhabitants

    def update(self, partition: Partition) -> None:
        """Start or stop replicating a partition by its role. Nothing is sent before `maybe_fetch`."""
        place = self._places.get(partition.key)
        is_followed = partition.role is ReplicaRole.FOLLOWER and self._locate(partition.leader) is not None
        if place is not None and not (is_followed and place.leader == partition.leader):
            self.remove_partition(partition.key)
        if is_followed:
            if partition.key not in self._places:
                self._settle(partition.key, partition.leader)
            self._fetcher(self._places[partition.key]).add_partition(partition)

    def _settle(self, key: Key, leader: int) -> None:
        """Assign a partition to the first quiet fetcher with room."""
        home = Place(leader, Lane.QUIET)
        while self._inhabitants[home] >= _SHARE_MAX:
            home = home._replace(share=home.share + 1)
        self._inhabitants[home] += 1
        self._places[key] = self._homes[key] = home

    def remove_partition(self, key: Key) -> None:
        """Stop replicating a partition."""
        place = self._places.pop(key, None)
        if place is not None:
            self._inhabitants[self._homes.pop(key)] -= 1
            self._fetchers[place].remove_partition(key)

    def renew(self, key: Key) -> None:
        """Build the next request of a partition's fetcher again, because its log start offset has changed."""
        place = self._places.get(key)
        if place is not None:
            self._fetchers[place].renew()

    def maybe_fetch(self, now: Now) -> None:
        """Let every fetcher send its next request."""
        for place, fetcher in tuple(self._fetchers.items()):
            if len(fetcher):
                fetcher.maybe_fetch(now)
            else:
                self._give_up(place)

    # Between the lanes

    def _turn(self, place: Place, now: Now) -> None:
        """Move partitions after a response: to this fetcher, or to the other one if it has no request in flight."""
        if place not in self._fetchers:
            return  # it was removed while the request was in flight
        busy_place = Place(place.leader, Lane.BUSY)
        busy = self._fetchers.get(busy_place)
        if busy is not None and place.lane is Lane.QUIET:
            idle = busy.idle_since(now.monotonic_ms - _IDLE_AFTER_MS)
            self._move([key for key in idle if self._homes[key] == place], place)
        own = [other for other in self._fetchers if other.leader == place.leader]
        for other in own if place.lane is Lane.BUSY else [place]:
            busy_partitions = tuple(self._fetchers[other].busy_partitions) if other.lane is Lane.QUIET else ()
            if busy_partitions and (place.lane is Lane.BUSY or busy is None or not busy.is_under_way):
                self._move(busy_partitions, busy_place)
                if place.lane is Lane.QUIET:
                    self._fetcher(busy_place).maybe_fetch(now)
        for other in (*own, busy_place):
            if other in self._fetchers and not len(self._fetchers[other]):
                self._give_up(other)

    def _move(self, keys: Iterable[Key], place: Place) -> None:
        """Move partitions in phase FETCHING; any other phase must end in its fetcher."""
        for key in keys:
            fetcher = self._fetchers[self._places[key]]
            state = fetcher.remove_partition(key) if fetcher.phase(key) is FetchPhase.FETCHING else None
            if state is not None:
                self._places[key] = place
                self._fetcher(place).adopt(state)

    def _fetcher(self, place: Place) -> ReplicaFetcher:
        if place not in self._fetchers:
            self._fetchers[place] = ReplicaFetcher(
                self._settings,
                self._runtime.timers,
                lambda request, then, now: self._send(place, request, then, now),
                self._broker_epoch,
                lambda now: self._turn(place, now),
                trace=self._runtime.trace,
            )
        return self._fetchers[place]

    def _give_up(self, place: Place) -> None:
        del self._fetchers[place]
        channel = self._channel(place)
        if channel is not None:
            self._runtime.channels.drop(channel)

    # To the leader

    def _send(self, place: Place, request: Any, then: Callable[[Any, Now], None], now: Now) -> bool:
        channel = self._channel(place)
        if channel is None:
            return False
        self._runtime.channels.send_request(channel, request, then, timeout_ms=self._settings.timeout_ms, now=now)
        return True

    def _channel(self, place: Place) -> Channel | None:
        found = self._locate(place.leader)
        return None if found is None else Channel(place.purpose, place.leader, *found)
