"""Record of a run for a diagram: every message with the name of its API, the faults, and the changes of the nodes.

A run uses a `RecordingTrace` instead of a `Trace`; both have the same digest. A `ChangeRecorder` observes the same
`Watch` as the invariants. Every event has a position, a number that orders all events. The observer learns of a change
only after the node has sent its responses. The change nevertheless gets a position before the responses, directly after
the arrival of the message that caused it.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass, field

from fixtures.clients.messages import api_name
from linearizability.picture.space_time import MarkKind
from reference_broker.core.quorum.quorum_state import QuorumRole, State
from reference_broker.core.tracer import QuorumStateChanged
from reference_broker.simulation.invariants.log_mirror import LogChange
from reference_broker.simulation.invariants.watch import Before, Observer, Replica, Watch, Watched
from reference_broker.simulation.trace import Trace

_REQUEST = struct.Struct(">ihhi")
_RESPONSE = struct.Struct(">ii")
_INTERNAL = "__"
_STRIDE = 1_000
"""Distance between the positions of two events. The positions in between are for changes that the first one causes."""


@dataclass(eq=False, slots=True)
class SentMessage:
    """A request or a response.

    :ivar source: name of a client, or id of a node; `destination` likewise.
    :ivar api: name of the API; None if the message is neither a complete request nor the response to one.
    :ivar request: for a response, its request; None for a request.
    :ivar response: for a request, its response; None if there is none.
    :ivar arrival_position: position of the arrival; None if the message has not arrived.
    """

    position: int
    at_ms: int
    source: str
    destination: str
    listener: str
    api: str | None
    size_bytes: int
    request: "SentMessage | None" = None
    response: "SentMessage | None" = None
    arrival_position: int | None = None
    arrived_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a node, shown in its lane of the diagram."""

    position: int
    at_ms: int
    lane: str
    text: str
    kind: MarkKind


@dataclass(eq=False, slots=True)
class FaultInterval:
    """A fault, until it is healed."""

    position: int
    at_ms: int
    text: str
    heal_position: int | None = None
    healed_ms: int | None = None


@dataclass(slots=True)
class Record:
    """The events of a run, in order.

    :ivar events: position of the next event.
    :ivar arrival: the last arrival of a message: lane, time in milliseconds, position, and number of changes that are
        recorded directly after it.
    """

    events: int = 0
    arrival: tuple[str, int, int, int] = ("", -1, 0, 0)
    messages: list[SentMessage] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    faults: list[FaultInterval] = field(default_factory=list)

    def next_position(self) -> int:
        """Return the position for a new event."""
        self.events += _STRIDE
        return self.events - _STRIDE

    def add_arrival(self, lane: str, at_ms: int) -> int:
        """Note the arrival of a message, and return its position."""
        position = self.next_position()
        self.arrival = lane, at_ms, position, 0
        return position

    def position_of_change(self, lane: str, at_ms: int) -> int:
        """Return the position directly after the last arrival if that has this lane and time, else a new position."""
        arrival_lane, arrival_ms, position, count = self.arrival
        if (arrival_lane, arrival_ms) != (lane, at_ms) or count + 1 == _STRIDE:
            return self.next_position()
        self.arrival = arrival_lane, arrival_ms, position, count + 1
        return position + count + 1


class RecordingTrace(Trace):
    """A trace that also records messages, faults, and changes of machines and clocks."""

    def __init__(self, record: Record) -> None:
        super().__init__()
        self._record = record
        self._by_number: dict[int, SentMessage] = {}
        self._requests: dict[tuple[str, str, str, int], SentMessage] = {}

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
        """Add an event, and record it."""
        super().add(at_ms, kind, source, destination, text, data=data, number=number)
        record = self._record
        match kind:
            case "request" | "answer" if destination is not None and number is not None:
                message = SentMessage(record.next_position(), at_ms, source, destination, text, None, len(data))
                self._by_number[number] = message
                record.messages.append(message)
                (self._request if kind == "request" else self._response)(message, data)
            case "deliver":
                message = self._by_number[number or 0]
                message.arrival_position, message.arrived_ms = record.add_arrival(message.destination, at_ms), at_ms
            case "fault":
                record.faults.append(FaultInterval(record.next_position(), at_ms, text))
            case "heal":
                fault = next(each for each in record.faults if each.text == text and each.heal_position is None)
                fault.heal_position, fault.healed_ms = record.next_position(), at_ms
            case "pause" | "resume":
                record.changes.append(Change(record.next_position(), at_ms, source, f"{kind}d", MarkKind.NOTE))
            case "clock":
                record.changes.append(Change(record.next_position(), at_ms, source, f"clock: {text}", MarkKind.NOTE))
            case _:
                pass

    def _request(self, message: SentMessage, data: bytes) -> None:
        if len(data) < _REQUEST.size:
            return
        _, api_key, _, correlation_id = _REQUEST.unpack_from(data)
        try:
            message.api = api_name(api_key)
        except (KeyError, ValueError):
            message.api = f"API {api_key}"
        self._requests[message.source, message.destination, message.listener, correlation_id] = message

    def _response(self, message: SentMessage, data: bytes) -> None:
        if len(data) < _RESPONSE.size:
            return
        _, correlation_id = _RESPONSE.unpack_from(data)
        request = self._requests.pop((message.destination, message.source, message.listener, correlation_id), None)
        if request is not None:
            message.request, message.api, request.response = request, request.api, message


class ChangeRecorder(Observer):
    """Observer that records changes of nodes: starts, ends, elections, truncations, log ends, high watermarks, ISRs."""

    def __init__(self, record: Record, now_ms: Callable[[], int]) -> None:
        self._record = record
        self._now_ms = now_ms
        self._isrs: dict[tuple[str, int], tuple[int, ...]] = {}

    def subscribe(self, watch: Watch) -> None:
        """Observe a cluster. This observer is called first, because another one may end the run."""
        watch.observers.insert(0, self)
        watch.subscribe(QuorumStateChanged, self._record_leader, first=True)

    def _add(self, watched: Watched, text: str, kind: MarkKind) -> None:
        now_ms, lane = self._now_ms(), str(watched.node_id)
        self._record.changes.append(Change(self._record.position_of_change(lane, now_ms), now_ms, lane, text, kind))

    def started(self, watched: Watched) -> None:
        """Record the start of a node."""
        self._add(watched, "starts", MarkKind.START)
        self._record_leader(watched, watched.quorum.state)

    def ended(self, watched: Watched) -> None:
        """Record the end of a node."""
        machine = watched.machine
        text = f"ends: {machine.failed}" if machine.failed else f"ends ({machine.ended_by})"
        self._add(watched, text, MarkKind.END)

    def _record_leader(self, watched: Watched, state: State | QuorumStateChanged) -> None:
        if state.role is QuorumRole.LEADER:
            self._add(watched, f"leads the quorum in epoch {state.epoch}", MarkKind.ELECTION)

    def opened(self, watched: Watched, replica: Replica, log: LogChange) -> None:
        """Record as a truncation that a log has lost records when it is opened."""
        if log.removed and not _is_internal(replica):
            self._add(watched, f"has lost {_name(replica)} from {log.removed[-1].base_offset} on", MarkKind.TRUNCATION)

    def changed(self, watched: Watched, replica: Replica, before: Before) -> None:
        """Record the changes of a replica."""
        if _is_internal(replica):
            return
        name = _name(replica)
        if before.log.removed:
            text = f"truncates {name} from {before.end_offset} to {before.log.removed[-1].base_offset}"
            self._add(watched, text, MarkKind.TRUNCATION)
        if replica.is_leader and (not before.is_leader or replica.leader_epoch != before.leader_epoch):
            self._add(watched, f"leads {name} in epoch {replica.leader_epoch}", MarkKind.ELECTION)
        if before.log.added:
            self._add(watched, f"{name} ends at {replica.end_offset}", MarkKind.NOTE)
        if replica.is_leader and replica.high_watermark != before.high_watermark:
            self._add(watched, f"high watermark of {name}: {replica.high_watermark}", MarkKind.NOTE)
        self._record_isr(watched, replica)

    def _record_isr(self, watched: Watched, replica: Replica) -> None:
        if replica.is_leader and replica.isr is not None:
            isr = tuple(sorted(replica.isr.isr))
            if self._isrs.get(replica.name) != isr:
                self._isrs[replica.name] = isr
                self._add(watched, f"ISR of {_name(replica)}: {', '.join(map(str, isr))}", MarkKind.NOTE)


def _name(replica: Replica) -> str:
    return f"{replica.name[0]}-{replica.name[1]}"


def _is_internal(replica: Replica) -> bool:
    return replica.name[0].startswith(_INTERNAL)
