"""A raw client: each step is one request, sent once to one node, and one operation, as `fixtures.clients` writes them.

It also sends what no good client sends: to a node that does not lead, in an epoch that is over, the same batch again, a
batch with a hole before it, bytes that are wrong. A produce answer does not tell the leader epoch in which a batch was
acknowledged; so it asks ListOffsets before and after an acks=all batch, and one epoch twice was that in between.
"""

from collections.abc import Sequence
from itertools import count, islice
from typing import Any

from chaos.simulation.clients.administration import (
    ADMIN_TIMEOUT_MS,
    ADMINISTRATIVE_STEPS,
    AdministrativeStep,
    admin_request,
)
from chaos.simulation.clients.batches import VALUES_PER_PROCESS, crc_of
from chaos.simulation.clients.client import (
    STALE_METADATA,
    Client,
    Steps,
    Surroundings,
    init_producer_id_request,
)
from chaos.simulation.clients.process import Answer, Ask, Behaviour, Process, Sleep
from chaos.simulation.clients.view import NO_EPOCH, NO_NODE, Place
from chaos.trial import (
    ApiVersions,
    DeleteRecords,
    Fetch,
    Idle,
    ListOffsets,
    MalformedRequest,
    Metadata,
    OffsetForLeaderEpoch,
    Produce,
    RawStep,
)
from chaos.trial import Node as NodeName
from chaos.trial import RequestClient as RequestClientSteps
from fixtures.clients import requests
from fixtures.clients.administration import AdminRequest
from fixtures.clients.client_request import cached_request, client_request, malformed_request, newest_version
from fixtures.clients.messages import ApiKey, error_name
from fixtures.clients.outcomes import outcome_of
from fixtures.clients.payload import to_record
from fixtures.clients.record_batch import MalformedBatch, RecordBatch, encode_batch
from fixtures.clients.responses import (
    EARLIEST_TIMESTAMP,
    ISOLATION_LEVELS,
    LATEST_TIMESTAMP,
    READ_UNCOMMITTED,
    ProducerIdentity,
    epoch_end,
    fetched_partition,
    known,
    only_partition,
    produced,
    producer_identity,
    read_batches,
    read_position,
)
from linearizability.history.recorder import Position, Read, Sent
from linearizability.operation import Outcome

_MAX_WAIT_MS = 50
_MAX_BYTES = 65_536
_LAST_BYTE = 1
_SEQUENCES = 2**31
"""So many there are; then they begin again at 0."""


class RequestClient(Client):
    """One raw client and its steps."""

    def __init__(self, process: Process, surroundings: Surroundings, script: RequestClientSteps) -> None:
        super().__init__(process, surroundings)
        self._script = script
        self._values = count(process.number * VALUES_PER_PROCESS)
        self._high_watermarks: dict[Place, int] = {}
        self._identity: ProducerIdentity | None = None
        self._sequences: dict[Place, int] = {}
        self._versions: dict[int, dict[int, int]] = {}
        self.recorder.client(process.number, {})

    def run(self) -> None:
        """Begin."""
        self.process.start(self._work())

    def _work(self) -> Behaviour:
        for step in self._script.steps:
            for _ in range(getattr(step, "times", 1)):
                yield from self._take(step)
                pause_ms = getattr(step, "pause_ms", 0)
                if pause_ms:
                    yield Sleep(pause_ms)

    def _take(self, step: RawStep) -> Steps:
        match step:
            case Idle(duration_ms):
                yield Sleep(duration_ms)
            case ListOffsets():
                yield from self._ask_end(step)
            case OffsetForLeaderEpoch():
                yield from self._ask_epoch_end(step)
            case Metadata():
                yield from self._ask_metadata(step)
            case ApiVersions():
                yield from self._ask_versions(step)
            case Fetch():
                yield from self._read_at(step)
            case Produce():
                yield from self._send_once(step)
            case MalformedRequest():
                yield from self._send_nonsense(step)
            case DeleteRecords():
                yield from self._delete_records(step)
            case _ if isinstance(step, ADMINISTRATIVE_STEPS):
                yield from self.administer_step(step)

    def node_of(self, name: NodeName | None, place: Place) -> Steps:
        """Whom to send to: the one named, or whoever leads as far as this client knows; any where nobody does."""
        if name is not None:
            found = self.surroundings.node(name)
            return self.next_node() if found is None else found
        if self.view.leader(place).node == NO_NODE:
            yield from self.refresh([place[0]])
        leader = self.view.leader(place).node
        return self.next_node() if leader == NO_NODE else leader

    def _learn(self, place: Place, error: str | None) -> Steps:
        """After an answer that says so, look who leads."""
        if error in STALE_METADATA:
            yield from self.refresh([place[0]])

    # Questions

    def _ask_end(self, step: ListOffsets) -> Steps:
        place = step.topic, step.partition
        node = yield from self.node_of(step.node, place)
        op_id = self.invoke("list_offsets", place, isolation=step.isolation)
        timestamp = step.timestamp if step.timestamp < 0 else self.surroundings.wall_start_ms + step.timestamp
        error, offset, _ = yield from self.list_offsets(
            place, node, timestamp=timestamp, isolation=step.isolation, timeout_ms=self._script.timeout_ms
        )
        told = offset if step.timestamp in {LATEST_TIMESTAMP, EARLIEST_TIMESTAMP} else None
        self.recorder.complete(op_id, outcome_of(error, attempts=1), error, node=node, offset=told)
        if offset is not None and step.timestamp == LATEST_TIMESTAMP:
            self._high_watermarks[place] = offset
        yield from self._learn(place, error)

    def _ask_epoch_end(self, step: OffsetForLeaderEpoch) -> Steps:
        place = step.topic, step.partition
        node = yield from self.node_of(None, place)
        epoch = max(self.view.leader(place).epoch - step.epochs_ago, 0)
        asked_ns = self.recorder.now_ns()
        op_id = self.invoke("offset_for_leader_epoch", place)
        request = cached_request(
            ApiKey.OFFSET_FOR_LEADER_EPOCH,
            requests.offset_for_leader_epoch,
            *place,
            epoch,
            current_leader_epoch=NO_EPOCH,
        )
        answer: Answer = yield Ask(node, request, self._script.timeout_ms)
        error = answer.error
        if answer.response is not None:
            error, columns = epoch_end(answer.response)
            self.state("offset_for_leader_epoch", asked_ns, place, node, error, **columns)
        self.recorder.complete(op_id, outcome_of(error, attempts=1), error, node=node)
        yield from self._learn(place, error)

    def _ask_metadata(self, step: Metadata) -> Steps:
        node = self.next_node() if step.node is None else self.surroundings.node(step.node)
        yield from self._metadata([step.topic], self.next_node() if node is None else node)

    def _metadata(self, topics: Sequence[str], node: int) -> Steps:
        op_id = self.invoke("metadata")
        answer = yield from self.refresh(topics, node=node, tells=True)
        self.recorder.complete(op_id, outcome_of(answer.error, attempts=1), answer.error, node=node)
        return answer.error

    def ask_metadata(self, topics: Sequence[str]) -> Steps:
        """Ask until somebody tells."""
        while (yield from self._metadata(topics, self.next_node())) is not None:
            yield Sleep(_MAX_WAIT_MS)

    def _ask_versions(self, step: ApiVersions) -> Steps:
        node = yield from self.node_of(step.node, ("", 0))
        op_id = self.invoke("api_versions")
        answer: Answer = yield Ask(
            node, cached_request(ApiKey.API_VERSIONS, requests.api_versions), self._script.timeout_ms
        )
        if answer.response is not None:
            self._versions[node] = {each.api_key: each.max_version for each in answer.response.api_keys}
        self.recorder.complete(op_id, outcome_of(answer.error, attempts=1), answer.error, node=node)

    def _version(self, node: int, api_key: int, highest: int | None) -> int:
        """The newest that the client knows, and the node, if it was asked: at most `highest`."""
        newest = newest_version(api_key, highest)
        return min(newest, self._versions.get(node, {}).get(api_key, newest))

    def _read_at(self, step: Fetch) -> Steps:
        place = step.topic, step.partition
        node = yield from self.node_of(step.node, place)
        offset = self._high_watermarks.get(place, 0) if step.offset is None else step.offset
        epoch = self.view.leader(place).epoch
        claimed = NO_EPOCH if step.epoch_ahead is None or epoch == NO_EPOCH else max(epoch + step.epoch_ahead, 0)
        op_id = self.invoke("fetch", place, by_id=True, offset=offset, isolation=READ_UNCOMMITTED)
        error, reads, positions = yield from self._fetch(place, node, offset, claimed)
        self.recorder.complete(op_id, outcome_of(error, attempts=1), error, node=node, reads=reads, positions=positions)
        yield from self._learn(place, error)

    def _fetch(self, place: Place, node: int, offset: int, claimed_epoch: int) -> Steps:
        topic_id = self.view.topic_ids.get(place[0])
        request = cached_request(
            ApiKey.FETCH,
            requests.fetch,
            *place,
            offset,
            topic_id=topic_id,
            leader_epoch=claimed_epoch,
            isolation_level=ISOLATION_LEVELS[READ_UNCOMMITTED],
            max_wait_ms=_MAX_WAIT_MS,
            max_bytes=_MAX_BYTES,
            version=self._version(node, ApiKey.FETCH, None if topic_id else requests.LAST_VERSION_BY_NAME),
        )
        answer: Answer = yield Ask(node, request, self._script.timeout_ms)
        if answer.response is None:
            return answer.error, (), ()
        of_partition, error = fetched_partition(answer.response)
        if error is not None:
            return error, (), ()
        text = self.view.topic_id_text(place[0])
        reads: list[Read]
        try:
            reads, after, _ = read_batches(of_partition.records or b"", place, text, offset)
        except MalformedBatch:
            return "CORRUPT_MESSAGE", (), ()
        positions: list[Position] = [read_position(place, text, offset, after, of_partition)]
        self._high_watermarks[place] = max(int(of_partition.high_watermark), 0)
        return None, reads, positions

    # Writes

    def _send_once(self, step: Produce) -> Steps:
        place = step.topic, step.partition
        node = yield from self.node_of(step.node, place)
        if step.idempotent and self._identity is None:
            yield from self._get_producer_id(node)
            if self._identity is None:
                return
        timestamp_ms = self.wall_ms
        values, kept = list(islice(self._values, step.records)), self.surroundings.keeps_timestamps
        identity = self._identity if step.idempotent and self._identity else ProducerIdentity(-1, -1)
        first = self._sequences.get(place, self._script.first_sequence)
        sequence = (first + step.skips) % _SEQUENCES if step.idempotent else -1
        data = encode_batch(
            RecordBatch(
                tuple(to_record(value, timestamp_ms=timestamp_ms, timestamp_kept=kept) for value in values),
                producer_id=identity.producer_id,
                producer_epoch=identity.producer_epoch,
                base_sequence=sequence,
            )
        )
        if step.corrupt:
            data = data[:-_LAST_BYTE] + bytes([data[-_LAST_BYTE] ^ 1])
        is_bracketed = step.acks == -1
        epoch = (yield from self._epoch(place, node)) if is_bracketed else None
        op_id = self.invoke(
            "produce",
            place,
            by_id=True,
            sends=[Sent(value, None, timestamp_ms) for value in values],
            acks=step.acks,
            producer_id=identity.producer_id if step.idempotent else None,
            producer_epoch=identity.producer_epoch if step.idempotent else None,
        )
        error, base_offset, sent = yield from self._produce(step, place, node, data)
        outcome = outcome_of(error, acks=step.acks, attempts=step.copies, sent=sent)
        if outcome is Outcome.OK and step.idempotent:
            self._sequences[place] = (sequence + step.records) % _SEQUENCES
        elif outcome is Outcome.INFO and step.idempotent:
            self._identity = None  # this sequence may have been taken, and must not stand for another batch
            self._sequences.clear()
        later = (yield from self._epoch(place, node)) if epoch is not None and outcome is Outcome.OK else None
        self.recorder.complete(
            op_id,
            outcome,
            error,
            base_offset=base_offset,
            leader_epoch=epoch if later == epoch else None,
            node=node,
            attempts=step.copies,
        )
        if base_offset is not None and step.acks == -1 and not step.corrupt:
            self.surroundings.acknowledged(place, base_offset, crc_of(data))
        yield from self._learn(place, error)

    def _epoch(self, place: Place, node: int) -> Steps:
        _, _, epoch = yield from self.list_offsets(
            place, node, timestamp=LATEST_TIMESTAMP, timeout_ms=self._script.timeout_ms
        )
        return epoch

    def _produce(self, step: Produce, place: Place, node: int, data: bytes) -> Steps:
        """Send all copies, one after the other; the first acknowledgement counts, else the last error."""
        topic_id = self.view.topic_ids.get(place[0])
        highest = step.api_version if topic_id else min(step.api_version or 99, requests.LAST_VERSION_BY_NAME)
        request = client_request(
            ApiKey.PRODUCE,
            requests.produce,
            *place,
            data,
            acks=step.acks,
            timeout_ms=self._script.timeout_ms,
            topic_id=topic_id,
            version=self._version(node, ApiKey.PRODUCE, highest),
        )
        error: str | None = None
        acknowledged: int | None = None
        sent = False
        for _ in range(step.copies):
            answer: Answer = yield Ask(node, request, self._script.timeout_ms + _MAX_WAIT_MS)
            sent = sent or answer.sent
            error = answer.error
            if answer.response is not None:
                error, base_offset = produced(answer.response)
                if error is None and acknowledged is None:
                    acknowledged = known(base_offset)
        return (None if acknowledged is not None else error), acknowledged, sent

    def _get_producer_id(self, node: int) -> Steps:
        op_id = self.invoke("init_producer_id")
        answer: Answer = yield Ask(node, init_producer_id_request(), self._script.timeout_ms)
        error, columns = answer.error, dict[str, Any]()
        if answer.response is not None:
            error, identity = producer_identity(answer.response)
            if identity is not None:
                self._identity = identity
                columns = {"producer_id": identity.producer_id, "producer_epoch": identity.producer_epoch}
        self.recorder.complete(op_id, outcome_of(error, attempts=1), error, node=node, **columns)

    def _send_nonsense(self, step: MalformedRequest) -> Steps:
        node = yield from self.node_of(step.node, ("", 0))
        op_id = self.invoke("nonsense")
        request = malformed_request(step.api_key, step.api_version, step.size)
        answer: Answer = yield Ask(node, request, self._script.timeout_ms)
        self.recorder.complete(op_id, Outcome.INFO, answer.error, node=node)

    def _delete_records(self, step: DeleteRecords) -> Steps:
        place = step.topic, step.partition
        node = yield from self.node_of(None, place)
        before = -1 if step.before is None else step.before
        op_id = self.invoke("delete_records", place, offset=known(before))
        request = client_request(
            ApiKey.DELETE_RECORDS, requests.delete_records, *place, before, timeout_ms=self._script.timeout_ms // 2
        )
        answer: Answer = yield Ask(node, request, self._script.timeout_ms + _MAX_WAIT_MS)
        error, columns = answer.error, dict[str, Any]()
        if answer.response is not None:
            part = only_partition(answer.response)
            error = error_name(part.error_code)
            if error is None:
                columns["offset"] = known(part.low_watermark)
        self.recorder.complete(op_id, outcome_of(error, attempts=1), error, node=node, **columns)
        yield from self._learn(place, error)

    # Administration

    def administer_step(self, step: AdministrativeStep) -> Steps:
        """Send the request of a step to any node; return the error."""
        error = yield from self.administer(admin_request(step))
        return error

    def administer(self, request: AdminRequest) -> Steps:
        """Send one administrative request to any node; return the error."""
        op_id = self.invoke(request.f, topic=request.topic, partition=request.partition)
        node = self.next_node()
        answer: Answer = yield Ask(node, request.encoded(), self._script.timeout_ms + ADMIN_TIMEOUT_MS)
        error = answer.error if answer.response is None else request.error_of(answer.response)
        self.recorder.complete(op_id, outcome_of(error, attempts=1, sent=answer.sent), error, node=node)
        return error
