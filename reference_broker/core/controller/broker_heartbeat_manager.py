"""Sessions of brokers, and the state that a broker has after a heartbeat.

Follows: org.apache.kafka.controller.BrokerHeartbeatManager (KIP-631, KIP-841).

| state of the broker    | requests       | condition                                | next state             |
|------------------------|----------------|------------------------------------------|------------------------|
| fenced                 | to serve       | it has applied its own registration      | unfenced               |
| fenced                 | to shut down   |                                          | shut down now          |
| unfenced               | to be fenced   |                                          | fenced                 |
| unfenced               | to shut down   | it leads partitions                      | in controlled shutdown |
| unfenced               | to shut down   | it leads none                            | shut down now          |
| in controlled shutdown | anything       | it leads none, and others have caught up | shut down now          |

`TRANSITIONS` has these transitions, and those that keep the state. An unfenced broker that requests both to be fenced
and to shut down is shut down at once. The other brokers have caught up when each of them has applied the records that
moved the leaderships away from this broker. Brokers that are fenced or in controlled shutdown do not count.

A session lasts `broker.session.timeout.ms` from the last heartbeat; a fenced broker has no session. A controller that
becomes active starts a new session for every unfenced broker, since earlier heartbeats went to its predecessor.

Difference from Kafka 4: in Kafka 4, a broker that was shut down cleanly keeps its session until the timeout, and cannot
register again before that. Here, as in Kafka 3, the session ends when the broker is fenced.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum, auto

from reference_broker.core.clock import Now
from reference_broker.protocol.metadata_records import RegisterBrokerRecord

_NEVER = -1
"""Offset before the first heartbeat, or before a controlled shutdown."""


class BrokerControlState(Enum):
    """State of a broker as the controller sees it."""

    FENCED = auto()
    UNFENCED = auto()
    CONTROLLED_SHUTDOWN = auto()
    SHUTDOWN_NOW = auto()


class DesiredState(Enum):
    """State that a heartbeat requests, by its flags `WantFence` and `WantShutDown`."""

    SERVE = (False, False)
    BE_FENCED = (True, False)
    SHUT_DOWN = (False, True)
    SHUT_DOWN_FENCED = (True, True)


class Condition(Enum):
    """Condition of a transition. `CAUGHT_UP`: the broker has applied its own registration."""

    ALWAYS = auto()
    CAUGHT_UP = auto()
    LEADS = auto()
    OTHERS_CAUGHT_UP = auto()


_FENCED, _UNFENCED, _SHUTTING_DOWN, _SHUTDOWN_NOW = BrokerControlState

TRANSITIONS: dict[tuple[BrokerControlState, DesiredState], tuple[tuple[Condition, BrokerControlState], ...]] = {
    (_FENCED, DesiredState.SERVE): ((Condition.CAUGHT_UP, _UNFENCED), (Condition.ALWAYS, _FENCED)),
    (_FENCED, DesiredState.BE_FENCED): ((Condition.ALWAYS, _FENCED),),
    (_FENCED, DesiredState.SHUT_DOWN): ((Condition.ALWAYS, _SHUTDOWN_NOW),),
    (_FENCED, DesiredState.SHUT_DOWN_FENCED): ((Condition.ALWAYS, _SHUTDOWN_NOW),),
    (_UNFENCED, DesiredState.SERVE): ((Condition.ALWAYS, _UNFENCED),),
    (_UNFENCED, DesiredState.BE_FENCED): ((Condition.ALWAYS, _FENCED),),
    (_UNFENCED, DesiredState.SHUT_DOWN): ((Condition.LEADS, _SHUTTING_DOWN), (Condition.ALWAYS, _SHUTDOWN_NOW)),
    (_UNFENCED, DesiredState.SHUT_DOWN_FENCED): ((Condition.ALWAYS, _SHUTDOWN_NOW),),
    **{
        (_SHUTTING_DOWN, desired): (
            (Condition.LEADS, _SHUTTING_DOWN),
            (Condition.OTHERS_CAUGHT_UP, _SHUTDOWN_NOW),
            (Condition.ALWAYS, _SHUTTING_DOWN),
        )
        for desired in DesiredState
    },
}
"""Conditions with next states, by present and desired state. The first condition that is met determines the state."""


@dataclass(slots=True)
class _Session:
    broker_epoch: int
    last_contact_ms: int
    metadata_offset: int = _NEVER
    controlled_shutdown_offset: int = _NEVER


class BrokerHeartbeatManager:
    """Broker sessions on an active controller.

    :param timeout_ms: `broker.session.timeout.ms`.
    """

    def __init__(self, timeout_ms: int) -> None:
        self._timeout_ms = timeout_ms
        self._sessions: dict[int, _Session] = {}

    def activate(self, brokers: Iterable[RegisterBrokerRecord], now: Now) -> None:
        """Replace all sessions by a new one for every unfenced broker."""
        self._sessions = {
            broker.broker_id: _Session(broker.broker_epoch, now.monotonic_ms) for broker in brokers if not broker.fenced
        }

    def has_valid_session(self, broker_id: int, now: Now) -> bool:
        """Whether a broker has a session that has not expired."""
        session = self._sessions.get(broker_id)
        return session is not None and now.monotonic_ms <= session.last_contact_ms + self._timeout_ms

    def remove(self, broker_id: int) -> None:
        """End the session of a broker that is fenced or unregistered."""
        self._sessions.pop(broker_id, None)

    def calculate_next_broker_state(
        self, broker: RegisterBrokerRecord, desired: DesiredState, metadata_offset: int, leads: Callable[[], bool]
    ) -> tuple[BrokerControlState, BrokerControlState]:
        """Return the present and the next state of a broker that sent a heartbeat.

        :param metadata_offset: offset of the last record that the broker has applied.
        :param leads: returns whether the broker leads any partition; called only if needed, since it is expensive.
        """
        state = self.current_broker_state(broker)
        is_met: dict[Condition, Callable[[], bool]] = {
            Condition.ALWAYS: lambda: True,
            Condition.CAUGHT_UP: lambda: metadata_offset >= broker.broker_epoch,
            Condition.LEADS: leads,
            Condition.OTHERS_CAUGHT_UP: lambda: self._others_caught_up(broker.broker_id),
        }
        return state, next(then for condition, then in TRANSITIONS[state, desired] if is_met[condition]())

    def current_broker_state(self, broker: RegisterBrokerRecord) -> BrokerControlState:
        """Return the state of a registered broker."""
        session = self._sessions.get(broker.broker_id)
        if session is not None and session.controlled_shutdown_offset != _NEVER:
            return BrokerControlState.CONTROLLED_SHUTDOWN
        return BrokerControlState.FENCED if broker.fenced else BrokerControlState.UNFENCED

    def touch(self, broker: RegisterBrokerRecord, metadata_offset: int, now: Now) -> None:
        """Record a heartbeat of a broker that is, or becomes, unfenced."""
        session = self._sessions.get(broker.broker_id)
        if session is None or session.broker_epoch != broker.broker_epoch:
            session = self._sessions[broker.broker_id] = _Session(broker.broker_epoch, now.monotonic_ms)
        session.last_contact_ms = now.monotonic_ms
        session.metadata_offset = metadata_offset

    def maybe_update_controlled_shutdown_offset(self, broker_id: int, offset: int) -> None:
        """Store the offset up to which the other brokers must apply the metadata, unless it is stored already.

        :param offset: offset of the last metadata record when the controlled shutdown begins.
        """
        session = self._sessions[broker_id]
        if session.controlled_shutdown_offset == _NEVER:
            session.controlled_shutdown_offset = offset

    def _others_caught_up(self, broker_id: int) -> bool:
        offset = self._sessions[broker_id].controlled_shutdown_offset
        return all(
            session.metadata_offset >= offset
            for session in self._sessions.values()
            if session.controlled_shutdown_offset == _NEVER
        )

    def stale_brokers(self, now: Now) -> list[int]:
        """Return the brokers whose sessions have expired."""
        return [broker_id for broker_id in self._sessions if not self.has_valid_session(broker_id, now)]

    @property
    def next_check_time_ms(self) -> int | None:
        """Monotonic time at which the oldest session expires; null if there are no sessions."""
        last_contacts = (session.last_contact_ms for session in self._sessions.values())
        oldest_ms = min(last_contacts, default=None)
        return None if oldest_ms is None else oldest_ms + self._timeout_ms + 1
