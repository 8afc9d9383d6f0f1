"""The fetchers of a broker: two for each leader that it follows, one for partitions where something happens.

A fetch names all of its fetcher's partitions. If the thousand on which nothing happens were named together with the one
that is written to, each record of that one would cost as much as all of them. So a partition whose leader has records
goes over to the busy fetcher, and back when there were none for a while. (Kafka has fetch sessions for this, and
divides partitions evenly among `num.replica.fetchers`.) A fetcher takes partitions over only between an answer and the
next request, so that they never wait for a request that does not name them.

Where a leader is, the metadata says anew with every request, so that a leader that comes back elsewhere is found. A
fetcher that has nothing to follow any more is given up together with its channel.
"""

from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any

from reference_broker.core.clock import Now
from reference_broker.core.connection import Channel
from reference_broker.core.replication.fetch_settings import FetchSettings
from reference_broker.core.replication.fetch_state import FetchPhase
from reference_broker.core.replication.fetcher import Fetcher
from reference_broker.core.replication.partition import Partition, Role
from reference_broker.core.runtime import Runtime

Key = tuple[str, int]
Locate = Callable[[int], tuple[str, int] | None]
"""Host and port of a broker on the listener for replication; null for one that the metadata does not have."""

_CALM_AFTER_MS = 5_000


class Lane(Enum):
    """The two fetchers of a leader; the values are the purposes of their channels."""

    BUSY = "replica-fetcher"
    QUIET = "replica-fetcher-quiet"


class Fetchers:
    """The fetchers by leader and lane.

    :param broker_epoch: gives this broker's epoch.
    """

    def __init__(
        self, runtime: Runtime, settings: FetchSettings, locate: Locate, broker_epoch: Callable[[], int]
    ) -> None:
        self._runtime = runtime
        self._settings = settings
        self._locate = locate
        self._broker_epoch = broker_epoch
        self._fetchers: dict[tuple[int, Lane], Fetcher] = {}
        self._places: dict[Key, tuple[int, Lane]] = {}

    def update(self, partition: Partition) -> None:
        """Follow what the partition's role says. Nothing is sent before `proceed`."""
        place = self._places.get(partition.key)
        is_followed = partition.role is Role.FOLLOWER and self._locate(partition.leader) is not None
        if place is not None and not (is_followed and place[0] == partition.leader):
            self.leave(partition.key)
        if is_followed:
            leader, lane = self._places.setdefault(partition.key, (partition.leader, Lane.QUIET))
            self._fetcher(leader, lane).follow(partition)

    def leave(self, key: Key) -> None:
        """Do not follow a partition any more."""
        place = self._places.pop(key, None)
        if place is not None:
            self._fetchers[place].leave(key)

    def phase(self, key: Key) -> FetchPhase | None:
        """How far a partition is; null for one that is not followed."""
        place = self._places.get(key)
        return None if place is None else self._fetchers[place].phase(key)

    def proceed(self, now: Now) -> None:
        """Let every fetcher ask for what there is to follow now."""
        for place, fetcher in tuple(self._fetchers.items()):
            if len(fetcher):
                fetcher.proceed(now)
            else:
                self._give_up(*place)

    # Between the lanes

    def _turn(self, leader: int, lane: Lane, now: Now) -> None:
        """A fetcher has had its answer: it takes over what belongs to it, or lets the other one, if that is at rest."""
        busy, quiet = self._fetchers.get((leader, Lane.BUSY)), self._fetchers.get((leader, Lane.QUIET))
        if busy is not None and lane is Lane.QUIET:
            self._move(busy.calm_since(now.monotonic_ms - _CALM_AFTER_MS), leader, Lane.QUIET)
        if quiet is not None and quiet.stirred and (lane is Lane.BUSY or busy is None or not busy.is_under_way):
            self._move(tuple(quiet.stirred), leader, Lane.BUSY)
            if lane is Lane.QUIET:
                self._fetcher(leader, Lane.BUSY).proceed(now)
        for place in ((leader, Lane.BUSY), (leader, Lane.QUIET)):
            if place in self._fetchers and not len(self._fetchers[place]):
                self._give_up(*place)

    def _move(self, keys: Iterable[Key], leader: int, lane: Lane) -> None:
        """Only what is being fetched moves: whatever else goes on with a partition, its fetcher must end."""
        for key in keys:
            fetcher = self._fetchers[self._places[key]]
            state = fetcher.leave(key) if fetcher.phase(key) is FetchPhase.FETCHING else None
            if state is not None:
                self._places[key] = (leader, lane)
                self._fetcher(leader, lane).adopt(state)

    def _fetcher(self, leader: int, lane: Lane) -> Fetcher:
        if (leader, lane) not in self._fetchers:
            self._fetchers[leader, lane] = Fetcher(
                self._settings,
                self._runtime.timers,
                lambda request, then, now: self._ask(leader, lane, request, then, now),
                self._broker_epoch,
                lambda now: self._turn(leader, lane, now),
            )
        return self._fetchers[leader, lane]

    def _give_up(self, leader: int, lane: Lane) -> None:
        del self._fetchers[leader, lane]
        channel = self._channel(leader, lane)
        if channel is not None:
            self._runtime.channels.drop(channel)

    # To the leader

    def _ask(self, leader: int, lane: Lane, request: Any, then: Callable[[Any, Now], None], now: Now) -> bool:
        channel = self._channel(leader, lane)
        if channel is None:
            return False
        self._runtime.channels.ask(channel, request, then, timeout_ms=self._settings.timeout_ms, now=now)
        return True

    def _channel(self, leader: int, lane: Lane) -> Channel | None:
        found = self._locate(leader)
        return None if found is None else Channel(lane.value, leader, *found)
