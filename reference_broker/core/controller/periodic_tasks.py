"""Periodic tasks of an active controller.

Follows: org.apache.kafka.controller.PeriodicTaskControlManager, org.apache.kafka.controller.QuorumController (KIP-835).

| task                           | when                                                                                |
|--------------------------------|-------------------------------------------------------------------------------------|
| `electUnclean`                 | every `unclean.leader.election.interval.ms`                                         |
| `maybeBalancePartitionLeaders` | every `leader.imbalance.check.interval.seconds`                                     |
| `writeNoOpRecord` (KIP-835)    | every `metadata.max.idle.interval.ms`, unless that is 0                             |
| `maybeFenceStaleBroker`        | when a broker's last heartbeat is more than `broker.session.timeout.ms` ago         |

`electUnclean` also runs when a record sets or deletes `unclean.leader.election.enable`. `maybeBalancePartitionLeaders`
runs only if `auto.leader.rebalance.enable` is true.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from reference_broker.core.clock import Now
from reference_broker.core.controller import membership
from reference_broker.core.controller.broker_heartbeat_manager import BrokerHeartbeatManager
from reference_broker.core.controller.elections import UNCLEAN_ELECTION, Elections
from reference_broker.core.metadata.image import MetadataImage
from reference_broker.core.runtime import Runtime
from reference_broker.core.timers import Timer
from reference_broker.protocol.metadata_records import ConfigRecord, MetadataRecord, NoOpRecord

_LATE_MS = 250
"""Delay from which a check for expired sessions is late. Heartbeats may then be waiting too, so no session expires."""
_GRACE_MS = 250
"""Delay of the second check after a late one. The node handles the waiting heartbeats in this time."""

Decide = Callable[[], Sequence[MetadataRecord]]
"""Returns the records that a task writes; none if there is nothing to change."""


class ControllerState(Protocol):
    """The part of `Controller` that the tasks use."""

    runtime: Runtime
    image: MetadataImage
    heartbeat_manager: BrokerHeartbeatManager

    @property
    def elections(self) -> Elections:
        """Elections on the present image."""

    def write(self, records: Sequence[MetadataRecord], then: Callable[[Now], None], now: Now) -> None:
        """Write records, and call `then` once they are committed."""


class PeriodicTasks:
    """The timers of a controller while it is active."""

    def __init__(self, controller: ControllerState) -> None:
        self._controller = controller
        self._timers: dict[str, Timer] = {}

    def start(self, now: Now) -> None:
        """Schedule all tasks: the controller has become active."""
        controller = self._controller
        configuration = controller.runtime.configuration
        self._every(
            "unclean",
            configuration.integer("unclean.leader.election.interval.ms"),
            controller.elections.maybe_elect_unclean_leaders,
            now,
        )
        if configuration.value("auto.leader.rebalance.enable"):
            period_ms = configuration.integer("leader.imbalance.check.interval.seconds") * 1000
            self._every("preferred", period_ms, controller.elections.maybe_balance_partition_leaders, now)
        if idle_ms := configuration.integer("metadata.max.idle.interval.ms"):
            self._every("idle", idle_ms, lambda: [NoOpRecord()], now)
        self.schedule_session_expiry(now)

    def stop(self) -> None:
        """Cancel all tasks: the controller is no longer active."""
        for timer in self._timers.values():
            self._controller.runtime.timers.cancel(timer)
        self._timers.clear()

    def schedule_session_expiry(self, now: Now) -> None:
        """Schedule the check for expired sessions at the earliest expiry, unless it is scheduled already.

        This must be called whenever a session starts.
        """
        next_check_time_ms = self._controller.heartbeat_manager.next_check_time_ms
        if "session" not in self._timers and next_check_time_ms is not None:
            self._schedule_session_expiry_at(next_check_time_ms)

    def _schedule_session_expiry_at(self, at_ms: int, *, is_second_check: bool = False) -> None:
        def check(now: Now) -> None:
            del self._timers["session"]
            if now.monotonic_ms > at_ms + _LATE_MS and not is_second_check:
                self._schedule_session_expiry_at(now.monotonic_ms + _GRACE_MS, is_second_check=True)
            else:
                self._fence_expired(now)

        self._timers["session"] = self._controller.runtime.timers.set(at_ms, check)

    def records_written(self, records: Sequence[MetadataRecord], now: Now) -> None:
        """Run the tasks that these records trigger."""
        if any(isinstance(record, ConfigRecord) and record.name == UNCLEAN_ELECTION for record in records):
            self._write(self._controller.elections.maybe_elect_unclean_leaders(), now)

    def _fence_expired(self, now: Now) -> None:
        controller = self._controller
        for broker_id in controller.heartbeat_manager.stale_brokers(now):
            controller.heartbeat_manager.remove(broker_id)
            self._write(membership.handle_broker_fenced(controller.image.brokers[broker_id], controller.elections), now)
        self.schedule_session_expiry(now)

    def _every(self, name: str, period_ms: int, decide: Decide, now: Now) -> None:
        def fire(now: Now) -> None:
            self._every(name, period_ms, decide, now)
            self._write(decide(), now)

        self._timers[name] = self._controller.runtime.timers.set(now.monotonic_ms + period_ms, fire)

    def _write(self, records: Sequence[MetadataRecord], now: Now) -> None:
        if records:
            self._controller.write(records, ignore_commit, now)


def ignore_commit(now: Now) -> None:
    """Do nothing: the callback of a write without a waiting request."""
