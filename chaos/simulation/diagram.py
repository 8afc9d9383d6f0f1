"""Space-time diagram of the relevant part of a recorded run.

Even a short run has thousands of messages. At most `MESSAGES_MAX` are shown: those nearest in time to the violation, to
faults, elections and truncations, and to starts and ends of nodes. Heartbeats, ApiVersions, FetchSnapshot, fetches of
the metadata log, and fetches without records or without a response are never shown.
"""

from collections.abc import Iterable
from typing import Final

from chaos.campaign.counterexample import Counterexample, program_of
from chaos.simulation.recording import Change, FaultInterval, Record, SentMessage
from linearizability.picture.space_time import Mark, MarkKind, Message, Moment, SpaceTime, Stretch

MESSAGES_MAX: Final = 90
NOTES_MAX: Final = 60
_SILENT: Final = frozenset({"BrokerHeartbeat", "ApiVersions", "FetchSnapshot"})
_EMPTY_FETCH_SLACK_BYTES: Final = 24
_BREAK_MS: Final = 400
_CLIENT: Final = "client"
_HELPERS: Final = 1_000
_RELEVANT: Final = (MarkKind.ELECTION, MarkKind.TRUNCATION, MarkKind.END, MarkKind.START)


def diagram_of(found: Counterexample, record: Record, nodes: int) -> SpaceTime:
    """Return the diagram of a counterexample's run."""
    focus = _focus(found, record)
    messages = _chosen_messages(record.messages, focus)
    changes = _chosen_changes(record.changes, focus)
    times_ms = _times_ms(messages, changes, record.faults)
    moments = {position: number for number, position in enumerate(times_ms)}
    named = {lane for message in messages for lane in (message.source, message.destination)}
    clients = sorted(filter(_is_client, named), key=_client_number)
    known = (int(lane) for lane in named | {each.lane for each in changes} if not _is_client(lane))
    lanes = (*clients, *map(str, sorted({*range(1, nodes + 1), *known})))
    marks = [Mark(_title(each.lane), moments[each.position], each.text, each.kind) for each in changes]
    last = max((number for number, at_ms in enumerate(times_ms.values()) if at_ms <= found.at_ms), default=0)
    marks.append(Mark(_title(lanes[0]), last, f"{found.name}: {found.text}", MarkKind.VIOLATION))
    left_out = len(record.messages) - len(messages)
    return SpaceTime(
        title=found.name,
        statement=found.text,
        facts=_facts(found),
        lanes=tuple(_title(lane) for lane in lanes),
        moments=tuple(_moments(times_ms, messages, record.messages)),
        messages=tuple(_message(message, moments) for message in messages),
        marks=tuple(marks),
        faults=tuple(
            Stretch(
                None,
                moments[fault.position],
                None if fault.heal_position is None else moments[fault.heal_position],
                fault.text,
            )
            for fault in record.faults
        ),
        downs=tuple(_downs(changes, moments)),
        program=program_of(found),
        notes=(f"{left_out:,} of {len(record.messages):,} messages",) if left_out else (),
    )


def _facts(found: Counterexample) -> tuple[tuple[str, str], ...]:
    return (
        ("Found by", "a hand-written trial" if found.seed is None else found.command),
        ("Defect", found.defect or "none"),
        ("Trial", found.size),
        ("Digest", found.digest),
    )


# --- selection


def _focus(found: Counterexample, record: Record) -> list[int]:
    """Return the times in ms of the violation, of faults, and of `_RELEVANT` changes since the first fault."""
    faults = (ms for fault in record.faults for ms in (fault.at_ms, fault.healed_ms) if ms is not None)
    first_ms = min((fault.at_ms for fault in record.faults), default=0)
    changes = (each.at_ms for each in record.changes if each.kind in _RELEVANT and each.at_ms >= first_ms)
    return sorted({found.at_ms, *faults, *changes})


def _chosen_messages(messages: list[SentMessage], focus: list[int]) -> list[SentMessage]:
    """Return the requests nearest to the times in `focus`, with their responses; in the order of the run."""
    least = _least_sizes(messages)
    first = _first_of_clients(messages)
    requests = [message for message in messages[first:] if message.request is None and _is_shown(message, least)]
    requests.sort(key=lambda request: (_distance(request.at_ms, focus), -request.position))
    chosen: list[SentMessage] = []
    for request in requests:
        pair = [request] if request.response is None else [request, request.response]
        if len(chosen) + len(pair) > MESSAGES_MAX:
            break
        chosen += pair
    return sorted(chosen, key=lambda message: message.position)


def _first_of_clients(messages: list[SentMessage]) -> int:
    """Return the index of the first message of the trial's clients. The messages before it start the cluster."""
    return next((index for index, message in enumerate(messages) if 0 < _client_number(message.source) < _HELPERS), 0)


def _least_sizes(messages: Iterable[SentMessage]) -> dict[tuple[str, str], int]:
    """Return the size of the smallest Fetch response by receiver and listener. That response is assumed to be empty."""
    least: dict[tuple[str, str], int] = {}
    for message in messages:
        if message.request is not None and message.api == "Fetch":
            key = message.destination, message.listener
            least[key] = min(least.get(key, message.size_bytes), message.size_bytes)
    return least


def _is_shown(request: SentMessage, least: dict[tuple[str, str], int]) -> bool:
    if request.api in _SILENT:
        return False
    if request.api == "Fetch":
        if request.response is None:
            return False
        empty_bytes = least[request.source, request.listener] + _EMPTY_FETCH_SLACK_BYTES
        return request.listener != "CONTROLLER" and request.response.size_bytes > empty_bytes
    return True


def _chosen_changes(changes: list[Change], focus: list[int]) -> list[Change]:
    notes = [each for each in changes if each.kind is MarkKind.NOTE]
    notes = sorted(notes, key=lambda each: (_distance(each.at_ms, focus), -each.position))[:NOTES_MAX]
    return sorted(
        [*notes, *(each for each in changes if each.kind is not MarkKind.NOTE)], key=lambda each: each.position
    )


def _distance(at_ms: int, focus: list[int]) -> int:
    return min(abs(at_ms - ms) for ms in focus)


# --- positions, times and lanes


def _times_ms(
    messages: Iterable[SentMessage], changes: Iterable[Change], faults: Iterable[FaultInterval]
) -> dict[int, int]:
    """Return the time of every event that is shown, by its position, in the order of positions."""
    times_ms: dict[int, int] = {}
    for message in messages:
        times_ms[message.position] = message.at_ms
        if message.arrival_position is not None and message.arrived_ms is not None:
            times_ms[message.arrival_position] = message.arrived_ms
    times_ms |= {each.position: each.at_ms for each in changes}
    for fault in faults:
        times_ms[fault.position] = fault.at_ms
        if fault.heal_position is not None and fault.healed_ms is not None:
            times_ms[fault.heal_position] = fault.healed_ms
    return dict(sorted(times_ms.items()))


def _moments(times_ms: dict[int, int], shown: list[SentMessage], messages: list[SentMessage]) -> Iterable[Moment]:
    """Yield the moment of each shown event. After a gap of at least `_BREAK_MS`, it counts the omitted messages."""
    kept = {message.position for message in shown}
    missing = [message.position for message in messages if message.position not in kept]
    passed = counted = 0
    before_ms = next(iter(times_ms.values()), 0)
    for position, at_ms in times_ms.items():
        while passed < len(missing) and missing[passed] < position:
            passed += 1
        if at_ms - before_ms < _BREAK_MS:
            yield Moment(at_ms)
        else:
            yield Moment(at_ms, passed - counted)
        counted, before_ms = passed, at_ms


def _message(message: SentMessage, moments: dict[int, int]) -> Message:
    """Return the arrow of a message; `moments` has the index of the moment of each position."""
    return Message(
        source=_title(message.source),
        destination=_title(message.destination),
        sent_at=moments[message.position],
        arrived_at=None if message.arrival_position is None else moments[message.arrival_position],
        text=message.api or f"{message.size_bytes} bytes",
        is_response=message.request is not None,
    )


def _downs(changes: Iterable[Change], moments: dict[int, int]) -> Iterable[Stretch]:
    """Yield the stretches in which nodes are down."""
    down: dict[str, Change] = {}
    for each in changes:
        if each.kind is MarkKind.END:
            down.setdefault(each.lane, each)
        elif each.kind is MarkKind.START and each.lane in down:
            since = down.pop(each.lane)
            yield Stretch(_title(each.lane), moments[since.position], moments[each.position], since.text)
    for lane, since in sorted(down.items()):
        yield Stretch(_title(lane), moments[since.position], None, since.text)


def _is_client(lane: str) -> bool:
    return not lane.isdecimal()


def _client_number(lane: str) -> int:
    """Return a client's number; it is above `_HELPERS` for clients that are not part of the trial, and 0 for a node."""
    digits = "" if lane.isdecimal() else lane.removeprefix(f"{_CLIENT}-")
    return int(digits) if digits.isdecimal() else 0


def _title(lane: str) -> str:
    return f"node {lane}" if lane.isdecimal() else lane.replace("-", " ")
