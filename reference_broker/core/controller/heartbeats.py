"""Sessions of brokers: who was heard of lately, and what a broker that is heard of becomes (KIP-631, KIP-841).

| a broker that is | and wants to  | when                              | becomes                |
|------------------|---------------|-----------------------------------|------------------------|
| fenced           | serve         | it knows its own registration     | unfenced               |
| fenced           | shut down     |                                   | told to go             |
| unfenced         | be fenced     |                                   | fenced                 |
| unfenced         | shut down     | it leads partitions               | in controlled shutdown |
| unfenced         | shut down     | it leads none                     | told to go             |
| shutting down    |               | it leads none, and others know    | told to go             |

`TRANSITIONS` is that table. Others know, when every active broker has the records in its image by which the leaders
moved. A session lasts `broker.session.timeout.ms` from the last heartbeat; a broker that is fenced has none. A
controller that becomes active gives every unfenced broker a new one: it cannot know when they were last heard of.

Differs from Kafka 4: there a broker that was shut down cleanly has its session for the rest of the time-out, and comes
back only after it; here, as in Kafka 3, the session ends when the broker is fenced.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum, auto

from reference_broker.core.clock import Now
from reference_broker.protocol.metadata_records import RegisterBrokerRecord

_NEVER = -1


class BrokerControlState(Enum):
    """What the controller makes of a broker."""

    FENCED = auto()
    UNFENCED = auto()
    CONTROLLED_SHUTDOWN = auto()
    SHUTDOWN_NOW = auto()


class Wish(Enum):
    """What a heartbeat asks for (WantFence, WantShutDown)."""

    SERVE = (False, False)
    BE_FENCED = (True, False)
    SHUT_DOWN = (False, True)
    SHUT_DOWN_FENCED = (True, True)


class Condition(Enum):
    """What a transition depends on."""

    ALWAYS = auto()
    CAUGHT_UP = auto()
    LEADS = auto()
    OTHERS_KNOW = auto()


_FENCED, _UNFENCED, _SHUTTING_DOWN, _GO = BrokerControlState

TRANSITIONS: dict[tuple[BrokerControlState, Wish], tuple[tuple[Condition, BrokerControlState], ...]] = {
    (_FENCED, Wish.SERVE): ((Condition.CAUGHT_UP, _UNFENCED), (Condition.ALWAYS, _FENCED)),
    (_FENCED, Wish.BE_FENCED): ((Condition.ALWAYS, _FENCED),),
    (_FENCED, Wish.SHUT_DOWN): ((Condition.ALWAYS, _GO),),
    (_FENCED, Wish.SHUT_DOWN_FENCED): ((Condition.ALWAYS, _GO),),
    (_UNFENCED, Wish.SERVE): ((Condition.ALWAYS, _UNFENCED),),
    (_UNFENCED, Wish.BE_FENCED): ((Condition.ALWAYS, _FENCED),),
    (_UNFENCED, Wish.SHUT_DOWN): ((Condition.LEADS, _SHUTTING_DOWN), (Condition.ALWAYS, _GO)),
    (_UNFENCED, Wish.SHUT_DOWN_FENCED): ((Condition.ALWAYS, _GO),),
    **{
        (_SHUTTING_DOWN, wish): (
            (Condition.LEADS, _SHUTTING_DOWN),
            (Condition.OTHERS_KNOW, _GO),
            (Condition.ALWAYS, _SHUTTING_DOWN),
        )
        for wish in Wish
    },
}
"""By state and wish: conditions in the order in which they are asked, and the state that the first one met leads to."""


@dataclass(slots=True)
class _Session:
    broker_epoch: int
    last_contact_ms: int
    metadata_offset: int = _NEVER
    controlled_shutdown_offset: int = _NEVER


class Heartbeats:
    """The sessions of an active controller.

    :param timeout_ms: `broker.session.timeout.ms`.
    """

    def __init__(self, timeout_ms: int) -> None:
        self._timeout_ms = timeout_ms
        self._sessions: dict[int, _Session] = {}

    def begin(self, brokers: Iterable[RegisterBrokerRecord], now: Now) -> None:
        """Give every unfenced broker a session that begins now; those there were are forgotten."""
        self._sessions = {
            broker.broker_id: _Session(broker.broker_epoch, now.monotonic_ms) for broker in brokers if not broker.fenced
        }

    def has_session(self, broker_id: int, now: Now) -> bool:
        """Whether a broker is alive, as far as can be known."""
        session = self._sessions.get(broker_id)
        return session is not None and now.monotonic_ms <= session.last_contact_ms + self._timeout_ms

    def end(self, broker_id: int) -> None:
        """A broker is fenced, or gone."""
        self._sessions.pop(broker_id, None)

    def next_state(
        self, broker: RegisterBrokerRecord, wish: Wish, metadata_offset: int, leads: Callable[[], bool]
    ) -> tuple[BrokerControlState, BrokerControlState]:
        """The state of a broker that sends a heartbeat, and the one it comes to.

        :param metadata_offset: of the last record in the broker's image.
        :param leads: whether it leads any partition; dear to find out, so asked only where it matters.
        """
        state = self.state(broker)
        is_met: dict[Condition, Callable[[], bool]] = {
            Condition.ALWAYS: lambda: True,
            Condition.CAUGHT_UP: lambda: metadata_offset >= broker.broker_epoch,
            Condition.LEADS: leads,
            Condition.OTHERS_KNOW: lambda: self._others_know(broker.broker_id),
        }
        return state, next(then for condition, then in TRANSITIONS[state, wish] if is_met[condition]())

    def state(self, broker: RegisterBrokerRecord) -> BrokerControlState:
        """What a registered broker is now."""
        session = self._sessions.get(broker.broker_id)
        if session is not None and session.controlled_shutdown_offset != _NEVER:
            return BrokerControlState.CONTROLLED_SHUTDOWN
        return BrokerControlState.FENCED if broker.fenced else BrokerControlState.UNFENCED

    def heard_of(self, broker: RegisterBrokerRecord, metadata_offset: int, now: Now) -> None:
        """A broker that stays, or becomes, unfenced has sent a heartbeat."""
        session = self._sessions.get(broker.broker_id)
        if session is None or session.broker_epoch != broker.broker_epoch:
            session = self._sessions[broker.broker_id] = _Session(broker.broker_epoch, now.monotonic_ms)
        session.last_contact_ms = now.monotonic_ms
        session.metadata_offset = metadata_offset

    def shutting_down(self, broker_id: int, offset: int) -> None:
        """A broker has begun its controlled shutdown with the record at an offset."""
        session = self._sessions[broker_id]
        if session.controlled_shutdown_offset == _NEVER:
            session.controlled_shutdown_offset = offset

    def _others_know(self, broker_id: int) -> bool:
        offset = self._sessions[broker_id].controlled_shutdown_offset
        return all(
            session.metadata_offset >= offset
            for session in self._sessions.values()
            if session.controlled_shutdown_offset == _NEVER
        )

    def expired(self, now: Now) -> list[int]:
        """The brokers that were not heard of for too long."""
        return [broker_id for broker_id in self._sessions if not self.has_session(broker_id, now)]

    @property
    def next_expiry_ms(self) -> int | None:
        """When the first session may be over, by the monotonic clock."""
        last_contacts = (session.last_contact_ms for session in self._sessions.values())
        oldest_ms = min(last_contacts, default=None)
        return None if oldest_ms is None else oldest_ms + self._timeout_ms + 1
