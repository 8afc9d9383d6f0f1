"""Space-time diagram of the relevant part of a recorded run.

Even a short run has thousands of messages. Those nearest in time to the violation, to faults, elections, truncations,
and to starts and ends of nodes are shown. Heartbeats, ApiVersions, FetchSnapshot, fetches of the metadata log, and
fetches without records or without a response are not shown.
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
    places = _places(messages, changes, record.faults)
    by_place = {place: number for number, place in enumerate(places)}
    named = {place for passed in messages for place in (passed.source, passed.destination)}
    clients = sorted(filter(_is_client, named), key=_client_number)
    added = (int(place) for place in named | {each.lane for each in changes} if not _is_client(place))
    lanes = (*clients, *map(str, sorted({*range(1, nodes + 1), *added})))
    marks = [Mark(_lane(each.lane), by_place[each.place], each.text, each.kind) for each in changes]
    last = max((number for place, number in by_place.items() if places[place] <= found.at_ms), default=0)
    marks.append(Mark(_lane(lanes[0]), last, f"{found.name}: {found.text}", MarkKind.VIOLATION))
    left_out = len(record.messages) - len(messages)
    return SpaceTime(
        title=found.name,
        statement=found.text,
        facts=_facts(found),
        lanes=tuple(_lane(lane) for lane in lanes),
        moments=tuple(_moments(places, messages, record.messages)),
        messages=tuple(_message(passed, by_place) for passed in messages),
        marks=tuple(marks),
        faults=tuple(
            Stretch(None, by_place[fault.place], None if fault.healed is None else by_place[fault.healed], fault.text)
            for fault in record.faults
        ),
        downs=tuple(_downs(changes, by_place)),
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
    """Return the times of the violation, of faults, and of relevant changes since the first fault, in milliseconds."""
    faults = (ms for fault in record.faults for ms in (fault.at_ms, fault.healed_ms) if ms is not None)
    first_ms = min((fault.at_ms for fault in record.faults), default=0)
    changes = (each.at_ms for each in record.changes if each.kind in _RELEVANT and each.at_ms >= first_ms)
    return sorted({found.at_ms, *faults, *changes})


def _chosen_messages(messages: list[SentMessage], focus: list[int]) -> list[SentMessage]:
    """Choose the messages nearest to the relevant times; a request is shown with its response."""
    least = _least_sizes(messages)
    first = _first_of_clients(messages)
    requests = [passed for passed in messages[first:] if passed.request is None and _is_shown(passed, least)]
    requests.sort(key=lambda passed: (_distance(passed.at_ms, focus), -passed.place))
    chosen: list[SentMessage] = []
    for request in requests:
        pair = [request] if request.response is None else [request, request.response]
        if len(chosen) + len(pair) > MESSAGES_MAX:
            break
        chosen += pair
    return sorted(chosen, key=lambda passed: passed.place)


def _first_of_clients(messages: list[SentMessage]) -> int:
    """Return the index of the first message of the trial's clients, after the start of the cluster."""
    return next((number for number, passed in enumerate(messages) if 0 < _client_number(passed.source) < _HELPERS), 0)


def _least_sizes(messages: Iterable[SentMessage]) -> dict[tuple[str, str], int]:
    """Return by receiver and listener the size of the smallest Fetch response, which is assumed to have no records."""
    least: dict[tuple[str, str], int] = {}
    for passed in messages:
        if passed.request is not None and passed.api == "Fetch":
            key = passed.destination, passed.listener
            least[key] = min(least.get(key, passed.size_bytes), passed.size_bytes)
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
    notes = sorted(notes, key=lambda each: (_distance(each.at_ms, focus), -each.place))[:NOTES_MAX]
    return sorted([*notes, *(each for each in changes if each.kind is not MarkKind.NOTE)], key=lambda each: each.place)


def _distance(at_ms: int, focus: list[int]) -> int:
    return min(abs(at_ms - ms) for ms in focus)


# --- places


def _places(
    messages: Iterable[SentMessage], changes: Iterable[Change], faults: Iterable[FaultInterval]
) -> dict[int, int]:
    """Return the time of every event that is shown, by its position in the record."""
    places: dict[int, int] = {}
    for passed in messages:
        places[passed.place] = passed.at_ms
        if passed.arrived is not None and passed.arrived_ms is not None:
            places[passed.arrived] = passed.arrived_ms
    places |= {each.place: each.at_ms for each in changes}
    for fault in faults:
        places[fault.place] = fault.at_ms
        if fault.healed is not None and fault.healed_ms is not None:
            places[fault.healed] = fault.healed_ms
    return dict(sorted(places.items()))


def _moments(places: dict[int, int], shown: list[SentMessage], messages: list[SentMessage]) -> Iterable[Moment]:
    """Yield moments. A moment after an interval of at least `_BREAK_MS` has the number of messages omitted in it."""
    kept = {passed.place for passed in shown}
    missing = [passed.place for passed in messages if passed.place not in kept]
    passed_by = counted = 0
    before_ms = next(iter(places.values()), 0)
    for place, at_ms in places.items():
        while passed_by < len(missing) and missing[passed_by] < place:
            passed_by += 1
        if at_ms - before_ms < _BREAK_MS:
            yield Moment(at_ms)
        else:
            yield Moment(at_ms, passed_by - counted)
        counted, before_ms = passed_by, at_ms


def _message(passed: SentMessage, by_place: dict[int, int]) -> Message:
    return Message(
        source=_lane(passed.source),
        destination=_lane(passed.destination),
        sent_at=by_place[passed.place],
        arrived_at=None if passed.arrived is None else by_place[passed.arrived],
        text=passed.api or f"{passed.size_bytes} bytes",
        is_response=passed.request is not None,
    )


def _downs(changes: Iterable[Change], by_place: dict[int, int]) -> Iterable[Stretch]:
    down: dict[str, Change] = {}
    for each in changes:
        if each.kind is MarkKind.END:
            down.setdefault(each.lane, each)
        elif each.kind is MarkKind.START and each.lane in down:
            since = down.pop(each.lane)
            yield Stretch(_lane(each.lane), by_place[since.place], by_place[each.place], since.text)
    for lane, since in sorted(down.items()):
        yield Stretch(_lane(lane), by_place[since.place], None, since.text)


def _is_client(place: str) -> bool:
    return not place.isdecimal()


def _client_number(place: str) -> int:
    """Return a client's number: from 1000 for helpers, which are not part of the trial; 0 for a node."""
    digits = "" if place.isdecimal() else place.removeprefix(f"{_CLIENT}-")
    return int(digits) if digits.isdecimal() else 0


def _lane(place: str) -> str:
    return f"node {place}" if place.isdecimal() else place.replace("-", " ")
