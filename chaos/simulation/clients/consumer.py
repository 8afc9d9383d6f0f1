"""A consumer that does what Kafka's Java consumer does, with partitions that it assigned itself.

Each poll is one Fetch from one of its partitions, by turns, and one `poll` operation. Rules:

- It fetches from the leader that it knows, in the leader epoch that it knows. An error of stale metadata makes it ask
  anew; nothing is tried again within a poll.
- After the leader has changed it asks for the end of the epoch of the last record that it consumed, and goes back to
  there where that lies below its position: that part of the log was truncated (KIP-320). History: cause `reset`.
- An offset that is out of range makes it go on at the log start (`auto.offset.reset=earliest`). The same cause.
- Offsets of its group are committed and fetched by the group's coordinator, which it looks for anew after an error.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chaos.simulation.clients.client import STALE_METADATA, Client, Steps, Surroundings
from chaos.simulation.clients.process import Answer, Ask, Behaviour, Process, Sleep
from chaos.simulation.clients.view import NO_EPOCH, NO_NODE, Place
from chaos.trial import CommitOffsets, FetchOffsets, Idle, Poll, Seek
from chaos.trial import Consumer as ConsumerSteps
from fixtures.clients import requests
from fixtures.clients.client_request import ClientRequest, cached_request, client_request, newest_version
from fixtures.clients.messages import ApiKey, error_name
from fixtures.clients.outcomes import outcome_of
from fixtures.clients.record_batch import MalformedBatch
from fixtures.clients.responses import (
    EARLIEST_TIMESTAMP,
    ISOLATION_LEVELS,
    LATEST_TIMESTAMP,
    committed_codes,
    fetched_bounds,
    fetched_offsets,
    fetched_partition,
    first_error,
    found_coordinator,
    known,
    only_partition,
    read_batches,
    read_position,
)
from linearizability.history.recorder import Position
from linearizability.operation import Outcome

REQUEST_TIMEOUT_MS = 3_000
_BACKOFF_MS = 100
_FIND_TIMES = 10
"""The topic of group offsets is made when somebody asks first, and its partitions have no leader at once."""
_UNDEFINED = -1


@dataclass(slots=True)
class _Progress:
    """Where it stands in one partition.

    :ivar epoch: of the last record that it consumed.
    :ivar validated_epoch: leader epoch in which its position is known to be in the log.
    """

    place: Place
    offset: int = 0
    epoch: int = NO_EPOCH
    validated_epoch: int = NO_EPOCH
    must_reset: bool = False


class Consumer(Client):
    """One consumer and its steps."""

    def __init__(self, process: Process, surroundings: Surroundings, script: ConsumerSteps) -> None:
        super().__init__(process, surroundings)
        self._script = script
        self._progress = {place: _Progress(place) for place in script.partitions}
        self._topics = tuple(dict.fromkeys(topic for topic, _ in script.partitions))
        self._polls = 0
        self._is_stale = True
        self._coordinator: int | None = None
        self.recorder.client(process.number, {"isolation.level": script.isolation, "group.id": script.group})

    def run(self) -> None:
        """Begin."""
        self.process.start(self._work())

    def _work(self) -> Behaviour:
        self.assign()
        for step in self._script.steps:
            match step:
                case Poll():
                    for _ in range(step.times):
                        yield from self.poll()
                        if step.pause_ms:
                            yield Sleep(step.pause_ms)
                case CommitOffsets():
                    yield from self.commit()
                case FetchOffsets():
                    yield from self.fetch_offsets(list(self._progress))
                case Seek():
                    yield from self._seek(step)
                case Idle(duration_ms):
                    yield Sleep(duration_ms)

    def position(self, place: Place) -> int:
        """The next offset to read."""
        return self._progress[place].offset

    def assign(self, offsets: Mapping[Place, int] | None = None) -> None:
        """One `assign` of its partitions, from these offsets on; from 0 where none is said."""
        starts = offsets or {}
        op_id = self.invoke("assign", isolation=self._script.isolation)
        positions = [self._move(progress, starts.get(place, 0), "assign") for place, progress in self._progress.items()]
        self.recorder.complete(op_id, Outcome.OK, positions=positions)

    def _move(self, progress: _Progress, offset: int, cause: str, epoch: int = NO_EPOCH) -> Position:
        progress.offset, progress.epoch, progress.must_reset = offset, epoch, False
        progress.validated_epoch = NO_EPOCH
        topic, partition = progress.place
        return Position(topic, self.view.topic_id_text(topic), partition, offset, offset, cause)

    def _seek(self, step: Seek) -> Steps:
        place = step.topic, step.partition
        offset = step.offset
        if offset is None:
            offset = yield from self._end_of(place)
        if offset is None or place not in self._progress:
            return
        op_id = self.invoke("seek", place, by_id=True, offset=offset, isolation=self._script.isolation)
        self.recorder.complete(op_id, Outcome.OK, positions=[self._move(self._progress[place], offset, "seek")])

    # Polls

    def poll(self, place: Place | None = None, records_max: int | None = None) -> Steps:
        """One `poll` of a partition, of the next by turns where none is said; returns an error, and what it read.

        :param records_max: what of an answer goes beyond so many records is fetched again later.
        """
        if place is None:
            places = list(self._progress)
            place = places[self._polls % len(places)]
            self._polls += 1
        progress = self._progress[place]
        op_id = self.invoke("poll", isolation=self._script.isolation)
        if self._is_stale or self.view.leader(place).node == NO_NODE:
            self._is_stale = False
            yield from self.refresh(self._topics)
        error, reads, positions, node = yield from self._read(progress, records_max)
        self._note(error)
        outcome = outcome_of(error, attempts=1)
        self.recorder.complete(op_id, outcome, error, node=node, reads=reads, positions=positions)
        return error, reads

    def _note(self, error: str | None) -> None:
        if error in STALE_METADATA:
            self._is_stale = True

    def _read(self, progress: _Progress, records_max: int | None) -> Steps:
        """Error, reads, positions and the node that was asked last."""
        leader = self.view.leader(progress.place)
        if leader.node == NO_NODE:
            return "LEADER_NOT_AVAILABLE", (), (), None
        positions: list[Position] = []
        if progress.must_reset:
            error = yield from self._reset(progress, leader.node, positions)
            return error, (), positions, leader.node
        if self._has_to_validate(progress, leader.epoch):
            error = yield from self._validate(progress, leader.node, leader.epoch, positions)
            if error is not None or positions or progress.must_reset:
                return error, (), positions, leader.node
        error, reads = yield from self._fetch(progress, leader.node, leader.epoch, positions, records_max)
        return error, reads, positions, leader.node

    def _fetch(
        self, progress: _Progress, node: int, epoch: int, positions: list[Position], records_max: int | None
    ) -> Steps:
        place, script = progress.place, self._script
        version = newest_version(ApiKey.FETCH, requests.LAST_VERSION_BY_NAME if script.by_name else None)
        topic_id = self.view.topic_id_text(place[0])
        known_epoch = epoch if script.checks_epochs else NO_EPOCH
        request = cached_request(
            ApiKey.FETCH,
            requests.fetch,
            *place,
            progress.offset,
            topic_id=self.view.topic_ids.get(place[0]),
            leader_epoch=known_epoch,
            isolation_level=ISOLATION_LEVELS[script.isolation],
            max_wait_ms=script.max_wait_ms,
            max_bytes=script.max_bytes,
            version=version,
        )
        asked_ns = self.recorder.now_ns()
        answer: Answer = yield Ask(node, request, script.max_wait_ms + REQUEST_TIMEOUT_MS)
        if answer.response is None:
            return answer.error, ()
        of_partition, error = fetched_partition(answer.response)
        if error == "OFFSET_OUT_OF_RANGE":
            progress.must_reset = True
        if error is not None:
            return error, ()
        before = progress.offset
        try:
            data = of_partition.records or b""
            reads, after, last_epoch = read_batches(data, place, topic_id, before, records_max)
        except MalformedBatch:
            return "CORRUPT_MESSAGE", ()
        self._tell_fetched(place, node, known_epoch, asked_ns, of_partition)
        progress.offset = after
        progress.validated_epoch = known_epoch
        if last_epoch is not None:
            progress.epoch = last_epoch
        positions.append(read_position(place, topic_id, before, after, of_partition))
        return None, reads

    def _tell_fetched(self, place: Place, node: int, epoch: int, asked_ns: int, of_partition: Any) -> None:
        """A leader that takes a fetch in this epoch is in this epoch."""
        self.state(
            "fetch",
            asked_ns,
            place,
            node,
            None,
            topic_id=self.view.topic_id_text(place[0]),
            isolation=self._script.isolation,
            leader_epoch=known(epoch),
            **fetched_bounds(of_partition),
        )

    def drain(self) -> Steps:
        """Read every partition up to the end that its leader answers first."""
        self.assign()
        yield from self.refresh(self._topics)
        for place, progress in self._progress.items():
            end = None
            while end is None:
                end = yield from self._end_of(place)
            while progress.offset < end:
                error, _ = yield from self.poll(place)
                if error is not None:
                    yield Sleep(_BACKOFF_MS)

    def _end_of(self, place: Place) -> Steps:
        op_id = self.invoke("list_offsets", place, isolation=self._script.isolation)
        if self._is_stale or self.view.leader(place).node == NO_NODE:
            self._is_stale = False
            yield from self.refresh(self._topics)
        leader = self.view.leader(place).node
        node = self.next_node() if leader == NO_NODE else leader
        error, offset, _ = yield from self.list_offsets(
            place, node, timestamp=LATEST_TIMESTAMP, isolation=self._script.isolation, timeout_ms=REQUEST_TIMEOUT_MS
        )
        self._note(error)
        self.recorder.complete(op_id, outcome_of(error, attempts=1), error, node=node, offset=offset)
        if error is not None:
            yield Sleep(_BACKOFF_MS)
        return offset

    # Truncation

    def _has_to_validate(self, progress: _Progress, leader_epoch: int) -> bool:
        if not self._script.checks_epochs or progress.epoch == NO_EPOCH:
            return False
        return leader_epoch not in {NO_EPOCH, progress.validated_epoch}

    def _validate(self, progress: _Progress, node: int, leader_epoch: int, positions: list[Position]) -> Steps:
        request = cached_request(
            ApiKey.OFFSET_FOR_LEADER_EPOCH,
            requests.offset_for_leader_epoch,
            *progress.place,
            progress.epoch,
            current_leader_epoch=leader_epoch,
        )
        answer: Answer = yield Ask(node, request, REQUEST_TIMEOUT_MS)
        if answer.response is None:
            return answer.error
        of_partition = only_partition(answer.response)
        error = error_name(of_partition.error_code)
        if error is not None:
            return error
        if of_partition.end_offset == _UNDEFINED:
            progress.must_reset = True
            return None
        if of_partition.end_offset < progress.offset:
            positions.append(
                self._move(progress, int(of_partition.end_offset), "reset", int(of_partition.leader_epoch))
            )
        progress.validated_epoch = leader_epoch
        return None

    def _reset(self, progress: _Progress, node: int, positions: list[Position]) -> Steps:
        error, offset, _ = yield from self.list_offsets(
            progress.place, node, timestamp=EARLIEST_TIMESTAMP, timeout_ms=REQUEST_TIMEOUT_MS
        )
        if offset is not None:
            positions.append(self._move(progress, offset, "reset"))
        return error

    # Group offsets

    def commit(self) -> Steps:
        """One `commit_offsets` of all positions, sent once."""
        offsets = tuple((*place, progress.offset, progress.epoch) for place, progress in self._progress.items())
        op_id = self.invoke("commit_offsets", group=self._script.group)
        rows = [self._offset_row((topic, partition), offset, "commit") for topic, partition, offset, _ in offsets]
        request = client_request(
            ApiKey.OFFSET_COMMIT,
            requests.offset_commit,
            self._script.group,
            [(topic, [(partition, offset, epoch)]) for topic, partition, offset, epoch in offsets],
            version=requests.LAST_GROUP_VERSION_BY_NAME,
        )
        answer = yield from self._ask_coordinator(request)
        error, node, sent = answer.error, self._coordinator, answer.sent
        if answer.response is not None:
            error = first_error(committed_codes(answer.response))
        self.recorder.group_offsets(op_id, rows)
        self.recorder.complete(op_id, outcome_of(error, attempts=1, sent=sent), error, node=node)
        if error is not None:
            self._coordinator = None
            return
        for topic, partition, offset, _ in offsets:
            self.surroundings.committed(self._script.group, topic, partition, offset)

    def fetch_offsets(self, places: Sequence[Place]) -> Steps:
        """One `fetch_offsets`; returns an error."""
        op_id = self.invoke("fetch_offsets", group=self._script.group)
        request = cached_request(
            ApiKey.OFFSET_FETCH,
            requests.offset_fetch,
            self._script.group,
            tuple(places),
            require_stable=True,
            version=requests.LAST_GROUP_VERSION_BY_NAME,
        )
        answer = yield from self._ask_coordinator(request)
        error, node = answer.error, self._coordinator
        if answer.response is not None:
            error, offsets = fetched_offsets(answer.response)
            if error is None:
                rows = [self._offset_row(place, offset, "fetched") for place, offset in offsets.items()]
                self.recorder.group_offsets(op_id, rows)
        self.recorder.complete(op_id, outcome_of(error, attempts=1), error, node=node)
        if error is not None:
            self._coordinator = None
        return error

    def _offset_row(self, place: Place, offset: int | None, direction: str) -> dict[str, Any]:
        return {
            "group": self._script.group,
            "topic": place[0],
            "topic_id": self.id_of_name(place[0]),
            "partition": place[1],
            "offset": offset,
            "direction": direction,
        }

    def _ask_coordinator(self, request: ClientRequest) -> Steps:
        """The coordinator's answer, or that of whoever should have known it."""
        if self._coordinator is None:
            error = yield from self._find_coordinator()
            if error is not None:
                return Answer(error=error, sent=False)
        assert self._coordinator is not None
        answer: Answer = yield Ask(self._coordinator, request, REQUEST_TIMEOUT_MS)
        return answer

    def _find_coordinator(self) -> Steps:
        """Ask who coordinates the group until somebody knows, some times; returns the last error."""
        request = cached_request(ApiKey.FIND_COORDINATOR, requests.find_coordinator, self._script.group)
        error: str | None = None
        for _ in range(_FIND_TIMES):
            found: Answer = yield Ask(self.next_node(), request, REQUEST_TIMEOUT_MS)
            error = found.error
            if found.response is not None:
                error, self._coordinator = found_coordinator(found.response)
                if error is None:
                    return None
            yield Sleep(_BACKOFF_MS)
        return error
