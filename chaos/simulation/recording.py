"""What a run has done, kept for a diagram: every message with the name of its API, and what changed in the nodes.

A `RecordingTrace` takes the place of a run's trace, with the same digest, and a `Narrator` observes what the invariants
watch. Events share one count, which is their order. What a message changes in a node is seen when it has answered; that
is told before the answer, right behind the message's arrival.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass, field

from fixtures.clients.messages import api_name
from linearizability.picture.space_time import Happening
from reference_broker.core.quorum.quorum_state import QuorumRole, State
from reference_broker.core.tracer import QuorumStateChanged
from reference_broker.simulation.invariants.log_mirror import LogChange
from reference_broker.simulation.invariants.watch import Before, Observer, Replica, Watch, Watched
from reference_broker.simulation.trace import Trace

_REQUEST = struct.Struct(">ihhi")
_ANSWER = struct.Struct(">ii")
_INTERNAL = "__"
_STRIDE = 1_000
"""Places from one event to the next, for what the first one changes."""


@dataclass(eq=False, slots=True)
class Passed:
    """A message. `place` and `arrived` count events; null where it has not arrived.

    :ivar api: null where it is not a whole request, or answers none.
    :ivar of: what it answers; null of a request.
    :ivar answer: null where there is none.
    """

    place: int
    at_ms: int
    source: str
    destination: str
    listener: str
    api: str | None
    size_bytes: int
    of: "Passed | None" = None
    answer: "Passed | None" = None
    arrived: int | None = None
    arrived_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """Something that happened in one lane."""

    place: int
    at_ms: int
    lane: str
    text: str
    kind: Happening


@dataclass(eq=False, slots=True)
class Lasting:
    """A fault, until it is healed."""

    place: int
    at_ms: int
    text: str
    healed: int | None = None
    healed_ms: int | None = None


@dataclass(slots=True)
class Record:
    """All of it, in order.

    :ivar arrival: where and when a message came last, and how much has been told of what it changed.
    """

    events: int = 0
    arrival: tuple[str, int, int, int] = ("", -1, 0, 0)
    messages: list[Passed] = field(default_factory=list)
    told: list[Told] = field(default_factory=list)
    faults: list[Lasting] = field(default_factory=list)

    def next_place(self) -> int:
        """Of the event that happens now."""
        self.events += _STRIDE
        return self.events - _STRIDE

    def arrived(self, lane: str, at_ms: int) -> int:
        """The place of a message's arrival."""
        place = self.next_place()
        self.arrival = lane, at_ms, place, 0
        return place

    def place_of_change(self, lane: str, at_ms: int) -> int:
        """Behind the arrival of a message that a node has got last and just now, if one came; else of now."""
        arrived_in, arrived_ms, place, told = self.arrival
        if (arrived_in, arrived_ms) != (lane, at_ms) or told + 1 == _STRIDE:
            return self.next_place()
        self.arrival = arrived_in, arrived_ms, place, told + 1
        return place + told + 1


class RecordingTrace(Trace):
    """A trace that understands the messages."""

    def __init__(self, record: Record) -> None:
        super().__init__()
        self._record = record
        self._by_number: dict[int, Passed] = {}
        self._asked: dict[tuple[str, str, str, int], Passed] = {}

    def add(
        self,
        at_ms: int,
        kind: str,
        source: str,
        destination: str | None = None,
        text: str = "",
        *,
        data: bytes = b"",
        number: int | None = None,
    ) -> None:
        """Note an event."""
        super().add(at_ms, kind, source, destination, text, data=data, number=number)
        record = self._record
        match kind:
            case "request" | "answer" if destination is not None and number is not None:
                passed = Passed(record.next_place(), at_ms, source, destination, text, None, len(data))
                self._by_number[number] = passed
                record.messages.append(passed)
                (self._request if kind == "request" else self._answer)(passed, data)
            case "deliver":
                passed = self._by_number[number or 0]
                passed.arrived, passed.arrived_ms = record.arrived(passed.destination, at_ms), at_ms
            case "fault":
                record.faults.append(Lasting(record.next_place(), at_ms, text))
            case "heal":
                fault = next(each for each in record.faults if each.text == text and each.healed is None)
                fault.healed, fault.healed_ms = record.next_place(), at_ms
            case "pause" | "resume":
                record.told.append(Told(record.next_place(), at_ms, source, f"{kind}d", Happening.NOTE))
            case "clock":
                record.told.append(Told(record.next_place(), at_ms, source, f"clock: {text}", Happening.NOTE))
            case _:
                pass

    def _request(self, passed: Passed, data: bytes) -> None:
        if len(data) < _REQUEST.size:
            return
        _, api_key, _, correlation_id = _REQUEST.unpack_from(data)
        try:
            passed.api = api_name(api_key)
        except (KeyError, ValueError):
            passed.api = f"API {api_key}"
        self._asked[passed.source, passed.destination, passed.listener, correlation_id] = passed

    def _answer(self, passed: Passed, data: bytes) -> None:
        if len(data) < _ANSWER.size:
            return
        _, correlation_id = _ANSWER.unpack_from(data)
        asked = self._asked.pop((passed.destination, passed.source, passed.listener, correlation_id), None)
        if asked is not None:
            passed.of, passed.api, asked.answer = asked, asked.api, passed


class Narrator(Observer):
    """Tells what changes in the nodes: elections, truncations, in-sync sets, high watermarks."""

    def __init__(self, record: Record, now_ms: Callable[[], int]) -> None:
        self._record = record
        self._now_ms = now_ms
        self._isrs: dict[tuple[str, int], tuple[int, ...]] = {}

    def subscribe(self, watch: Watch) -> None:
        """Observe a cluster, ahead of the observers that end the run."""
        watch.observers.insert(0, self)
        watch.subscribe(QuorumStateChanged, self._tell_leader, first=True)

    def _tell(self, watched: Watched, text: str, kind: Happening) -> None:
        now_ms, lane = self._now_ms(), str(watched.node_id)
        self._record.told.append(Told(self._record.place_of_change(lane, now_ms), now_ms, lane, text, kind))

    def started(self, watched: Watched) -> None:
        """A node has started."""
        self._tell(watched, "starts", Happening.START)
        self._tell_leader(watched, watched.quorum.state)

    def ended(self, watched: Watched) -> None:
        """A node is gone."""
        machine = watched.machine
        why = f"ends: {machine.failed}" if machine.failed else f"ends ({machine.ended_by})"
        self._tell(watched, why, Happening.END)

    def _tell_leader(self, watched: Watched, state: State | QuorumStateChanged) -> None:
        if state.role is QuorumRole.LEADER:
            self._tell(watched, f"leads the quorum in epoch {state.epoch}", Happening.ELECTION)

    def opened(self, watched: Watched, replica: Replica, log: LogChange) -> None:
        """A log was opened."""
        if log.removed and not _is_internal(replica):
            self._tell(
                watched, f"has lost {_name(replica)} from {log.removed[-1].base_offset} on", Happening.TRUNCATION
            )

    def changed(self, watched: Watched, replica: Replica, before: Before) -> None:
        """A replica has changed."""
        if _is_internal(replica):
            return
        name = _name(replica)
        if before.log.removed:
            text = f"truncates {name} from {before.end_offset} to {before.log.removed[-1].base_offset}"
            self._tell(watched, text, Happening.TRUNCATION)
        if replica.is_leader and (not before.is_leader or replica.leader_epoch != before.leader_epoch):
            self._tell(watched, f"leads {name} in epoch {replica.leader_epoch}", Happening.ELECTION)
        if before.log.added:
            self._tell(watched, f"{name} ends at {replica.end_offset}", Happening.NOTE)
        if replica.is_leader and replica.high_watermark != before.high_watermark:
            self._tell(watched, f"high watermark of {name}: {replica.high_watermark}", Happening.NOTE)
        self._tell_isr(watched, replica)

    def _tell_isr(self, watched: Watched, replica: Replica) -> None:
        if replica.is_leader and replica.isr is not None:
            isr = tuple(sorted(replica.isr.isr))
            if self._isrs.get(replica.name) != isr:
                self._isrs[replica.name] = isr
                self._tell(watched, f"ISR of {_name(replica)}: {', '.join(map(str, isr))}", Happening.NOTE)


def _name(replica: Replica) -> str:
    return f"{replica.name[0]}-{replica.name[1]}"


def _is_internal(replica: Replica) -> bool:
    return replica.name[0].startswith(_INTERNAL)
