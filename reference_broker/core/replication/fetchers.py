"""The fetchers of a broker: one for each leader that it follows.

Where a leader is, the metadata says anew with every request, so that a leader that comes back elsewhere is found. A
fetcher that has nothing to follow any more is given up together with its channel.
"""

from collections.abc import Callable
from typing import Any

from reference_broker.core.clock import Now
from reference_broker.core.connection import Channel
from reference_broker.core.replication.fetch_settings import FetchSettings
from reference_broker.core.replication.fetch_state import FetchPhase
from reference_broker.core.replication.fetcher import Fetcher
from reference_broker.core.replication.partition import Partition, Role
from reference_broker.core.runtime import Runtime

PURPOSE = "replica-fetcher"

Locate = Callable[[int], tuple[str, int] | None]
"""Host and port of a broker on the listener for replication; null for one that the metadata does not have."""


class Fetchers:
    """The fetchers by leader.

    :param broker_epoch: gives this broker's epoch.
    """

    def __init__(
        self, runtime: Runtime, settings: FetchSettings, locate: Locate, broker_epoch: Callable[[], int]
    ) -> None:
        self._runtime = runtime
        self._settings = settings
        self._locate = locate
        self._broker_epoch = broker_epoch
        self._fetchers: dict[int, Fetcher] = {}
        self._leaders: dict[tuple[str, int], int] = {}

    def update(self, partition: Partition) -> None:
        """Follow what the partition's role says. Nothing is sent before `proceed`."""
        if partition.role is not Role.FOLLOWER or self._locate(partition.leader) is None:
            self.leave(partition.key)
            return
        if self._leaders.get(partition.key) not in {None, partition.leader}:
            self.leave(partition.key)
        self._leaders[partition.key] = partition.leader
        self._fetcher_of(partition.leader).follow(partition)

    def leave(self, key: tuple[str, int]) -> None:
        """Do not follow a partition any more."""
        leader = self._leaders.pop(key, None)
        if leader is not None:
            self._fetchers[leader].leave(key)

    def phase(self, key: tuple[str, int]) -> FetchPhase | None:
        """How far a partition is; null for one that is not followed."""
        leader = self._leaders.get(key)
        return None if leader is None else self._fetchers[leader].phase(key)

    def proceed(self, now: Now) -> None:
        """Let every fetcher ask for what there is to follow now."""
        for leader, fetcher in tuple(self._fetchers.items()):
            if len(fetcher):
                fetcher.proceed(now)
            else:
                del self._fetchers[leader]
                self._close_channel(leader)

    def _close_channel(self, leader: int) -> None:
        channel = self._channel(leader)
        if channel is not None:
            self._runtime.channels.drop(channel)

    def _fetcher_of(self, leader: int) -> Fetcher:
        if leader not in self._fetchers:
            self._fetchers[leader] = Fetcher(
                self._settings,
                self._runtime.timers,
                lambda request, then, now: self._ask(leader, request, then, now),
                self._broker_epoch,
            )
        return self._fetchers[leader]

    def _ask(self, leader: int, request: Any, then: Callable[[Any, Now], None], now: Now) -> bool:
        channel = self._channel(leader)
        if channel is None:
            return False
        self._runtime.channels.ask(channel, request, then, timeout_ms=self._settings.timeout_ms, now=now)
        return True

    def _channel(self, leader: int) -> Channel | None:
        found = self._locate(leader)
        return None if found is None else Channel(PURPOSE, leader, *found)
