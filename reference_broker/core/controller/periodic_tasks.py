"""Periodic tasks of an active controller (Kafka's `PeriodicTaskControlManager`).

| task                                    | when                                                                  |
|-----------------------------------------|-----------------------------------------------------------------------|
| fence brokers that were not heard of    | `broker.session.timeout.ms` after the last heartbeat                  |
| let first replicas lead again           | every `leader.imbalance.check.interval.seconds`, if                   |
|                                         | `auto.leader.rebalance.enable`                                        |
| elect uncleanly where that is permitted | every `unclean.leader.election.interval.ms`, and when a setting       |
|                                         | permits it                                                            |
| write a NoOpRecord (KIP-835)            | every `metadata.max.idle.interval.ms`, if that is not 0               |
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from reference_broker.core.clock import Now
from reference_broker.core.controller import membership
from reference_broker.core.controller.elections import UNCLEAN_ELECTION, Elections
from reference_broker.core.controller.heartbeats import Heartbeats
from reference_broker.core.metadata.image import MetadataImage
from reference_broker.core.runtime import Runtime
from reference_broker.core.timers import Timer
from reference_broker.protocol.metadata_records import ConfigRecord, MetadataRecord, NoOpRecord

_LATE_MS = 250
_GRACE_MS = 250
"""A controller that looks so late was not running: it reads the heartbeats that came meanwhile, and looks again."""

Decide = Callable[[], Sequence[MetadataRecord]]


class DecidingController(Protocol):
    """What the tasks need of a `Controller`."""

    runtime: Runtime
    image: MetadataImage
    heartbeats: Heartbeats

    @property
    def elections(self) -> Elections:
        """The elections that the image calls for."""

    def write(self, records: Sequence[MetadataRecord], then: Callable[[Now], None], now: Now) -> None:
        """Make these records part of the metadata."""


class PeriodicTasks:
    """The timers of a controller while it is active."""

    def __init__(self, controller: DecidingController) -> None:
        self._controller = controller
        self._timers: dict[str, Timer] = {}

    def begin(self, now: Now) -> None:
        """The controller has become active."""
        controller = self._controller
        configuration = controller.runtime.configuration
        self._every(
            "unclean", configuration.integer("unclean.leader.election.interval.ms"), controller.elections.unclean, now
        )
        if configuration.value("auto.leader.rebalance.enable"):
            period_ms = configuration.integer("leader.imbalance.check.interval.seconds") * 1000
            self._every("preferred", period_ms, controller.elections.preferred, now)
        if idle_ms := configuration.integer("metadata.max.idle.interval.ms"):
            self._every("idle", idle_ms, lambda: [NoOpRecord()], now)
        self.watch_sessions(now)

    def end(self) -> None:
        """It is active no more."""
        for timer in self._timers.values():
            self._controller.runtime.timers.cancel(timer)
        self._timers.clear()

    def watch_sessions(self, now: Now) -> None:
        """Be there when the first session is over; to be called when there is a new one."""
        next_expiry_ms = self._controller.heartbeats.next_expiry_ms
        if "session" not in self._timers and next_expiry_ms is not None:
            self._watch_sessions_at(next_expiry_ms)

    def _watch_sessions_at(self, at_ms: int, *, is_second_look: bool = False) -> None:
        def look(now: Now) -> None:
            del self._timers["session"]
            if now.monotonic_ms > at_ms + _LATE_MS and not is_second_look:
                self._watch_sessions_at(now.monotonic_ms + _GRACE_MS, is_second_look=True)
            else:
                self._fence_expired(now)

        self._timers["session"] = self._controller.runtime.timers.set(at_ms, look)

    def records_written(self, records: Sequence[MetadataRecord], now: Now) -> None:
        """Do what follows from these records."""
        if any(isinstance(record, ConfigRecord) and record.name == UNCLEAN_ELECTION for record in records):
            self._write(self._controller.elections.unclean(), now)

    def _fence_expired(self, now: Now) -> None:
        controller = self._controller
        for broker_id in controller.heartbeats.expired(now):
            controller.heartbeats.end(broker_id)
            self._write(membership.fenced(controller.image.brokers[broker_id], controller.elections), now)
        self.watch_sessions(now)

    def _every(self, name: str, period_ms: int, decide: Decide, now: Now) -> None:
        def fire(now: Now) -> None:
            self._every(name, period_ms, decide, now)
            self._write(decide(), now)

        self._timers[name] = self._controller.runtime.timers.set(now.monotonic_ms + period_ms, fire)

    def _write(self, records: Sequence[MetadataRecord], now: Now) -> None:
        if records:
            self._controller.write(records, nothing, now)


def nothing(now: Now) -> None:
    """Of a write that nobody waits for."""
