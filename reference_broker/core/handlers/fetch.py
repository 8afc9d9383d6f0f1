"""Fetch (1), versions 4-18: batches are read, now or when there are enough of them, by consumers and by followers.

- A long poll: with fewer than `min_bytes` to give, the answer waits for an append, a moving high watermark or another
  leader, at most `max_wait` (KIP-41's purgatory). An error or a diverging epoch is answered at once.
- `max_bytes` and `partition_max_bytes` are soft: the first batch of an answer is given whole, so that a reader always
  gets on (KIP-74). Partitions are served in the order of the request. An offset inside a batch gives that whole batch.
- Consumers see what is below the high watermark, with read_committed below the last stable offset; followers all.
- Offset below the log's start or above its end: OFFSET_OUT_OF_RANGE(1) with watermarks of -1.
- The reader's leader epoch is checked (KIP-320). Where its last fetched epoch ended elsewhere in this log, the answer
  says where (diverging epoch, KIP-595), and its records are not given. From version 13 topics go by id (KIP-516).
- Another broker leads: NOT_LEADER_OR_FOLLOWER(6), from version 16 with the leader and where it is (KIP-951). A consumer
  of version 11 or later may read from a follower; none is told to (KIP-392).
- A partition that occurs more than once is read once.
- A follower is known by its replica id and broker epoch. One that is no replica gets UNKNOWN_LEADER_EPOCH(75), an
  earlier run of a broker NOT_LEADER_OR_FOLLOWER (KIP-903). Its first look, not what it is given later, tells how far it
  is; the high watermark in the answer is the one before that.
- Sessions (KIP-227) are refused by answering session id 0, which everybody takes for a full fetch; an incremental
  fetch of some session is FETCH_SESSION_ID_NOT_FOUND(70).

Gaps: incremental sessions; preferred read replicas (KIP-392).
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from reference_broker.core.broker import Broker
from reference_broker.core.clock import Now
from reference_broker.core.connection import Connection
from reference_broker.core.handlers.current_leaders import CurrentLeaders
from reference_broker.core.handlers.lookup import find_partition, find_topic
from reference_broker.core.replication.brokers import BrokerRun
from reference_broker.core.replication.partition import NO_EPOCH, Partition
from reference_broker.core.replication.partition_reader import Isolation, PartitionReader
from reference_broker.core.request import Outcome, Request
from reference_broker.protocol.durations import milliseconds
from reference_broker.protocol.errors import ErrorCode

_CONSUMER = -1
_READ_COMMITTED = 1
_FOLLOWERS_SERVE_VERSION = 11
_LEADER_TOLD_VERSION = 16
_UNKNOWN_OFFSET = -1
_UNKNOWN = frozenset({ErrorCode.unknown_topic_id, ErrorCode.unknown_topic_or_partition})
_MOVED = frozenset({ErrorCode.not_leader_or_follower, ErrorCode.fenced_leader_epoch})


def handle(broker: Broker, request: Request, now: Now) -> Any:
    """What there is to read, or a promise."""
    request = _without_repetitions(request)
    body = request.body
    if getattr(body, "session_epoch", -1) > 0:
        return request.replies.FetchResponse(error_code=ErrorCode.fetch_session_id_not_found, responses=())
    reader = _reader(broker, request)
    looks = _look_at_all(broker, request, reader, now)
    max_wait_ms = milliseconds(body.max_wait)
    can_wait = max_wait_ms > 0 and bool(body.topics) and not any(look.is_urgent for look in looks)
    if can_wait and (body.min_bytes > 0 and not any(look.has_records for look in looks)):
        return _wait(broker, request, reader, looks, now.monotonic_ms + max_wait_ms)
    answer = _Answer(broker, request, looks)
    response = answer.response()
    if can_wait and answer.size_bytes < body.min_bytes:
        return _wait(broker, request, reader, looks, now.monotonic_ms + max_wait_ms)
    return response


def _without_repetitions(request: Request) -> Request:
    """The same request with each topic and each partition once, the last one of each, as `FetchRequest.fetchData`."""
    topics: dict[Any, Any] = {}
    partitions: dict[Any, dict[int, Any]] = {}
    count = 0
    for topic in request.body.topics:
        key = getattr(topic, "topic", None), getattr(topic, "topic_id", None)
        topics.setdefault(key, topic)
        partitions.setdefault(key, {}).update((asked.partition, asked) for asked in topic.partitions)
        count += len(topic.partitions)
    if len(topics) == len(request.body.topics) and sum(map(len, partitions.values())) == count:
        return request
    distinct = tuple(replace(topic, partitions=tuple(partitions[key].values())) for key, topic in topics.items())
    return replace(request, body=replace(request.body, topics=distinct))


def _reader(broker: Broker, request: Request) -> PartitionReader:
    body = request.body
    state = getattr(body, "replica_state", None)
    replica_id = body.replica_id if state is None else state.replica_id
    if replica_id > _CONSUMER:
        follower = BrokerRun(replica_id, NO_EPOCH if state is None else state.replica_epoch)
        return PartitionReader(Isolation.LOG_END, broker.replicas.brokers, follower=follower)
    committed = body.isolation_level == _READ_COMMITTED
    return PartitionReader(
        Isolation.COMMITTED if committed else Isolation.HIGH_WATERMARK,
        broker.replicas.brokers,
        leader_only=request.api_version < _FOLLOWERS_SERVE_VERSION,
    )


class _Look(NamedTuple):
    """One partition of a request, as it was found. The high watermark is that from before a follower could move it."""

    asked: Any
    partition: Partition | None = None
    high_watermark: int = _UNKNOWN_OFFSET
    end_offset: int = _UNKNOWN_OFFSET
    """Up to where may be read."""
    error: ErrorCode = ErrorCode.none
    diverging: tuple[int, int] | None = None
    topic_name: str | None = None

    @property
    def is_urgent(self) -> bool:
        """It is answered at once: also a reader above what it may see is not made to wait for that, as in Kafka."""
        above = self.end_offset < int(self.asked.fetch_offset)
        return above or self.error is not ErrorCode.none or self.diverging is not None

    @property
    def has_records(self) -> bool:
        """There is something to read."""
        return self.end_offset > int(self.asked.fetch_offset)


def _look_at_all(broker: Broker, request: Request, reader: PartitionReader, now: Now) -> list[_Look]:
    """One look at each partition, in the order of the request."""
    looks = []
    for topic in request.body.topics:
        found = find_topic(broker, topic)
        for asked in topic.partitions:
            partition = find_partition(broker, found, asked.partition)
            if isinstance(partition, ErrorCode):
                name = None if isinstance(found, ErrorCode) else found.name
                looks.append(_Look(asked, error=partition, topic_name=name))
            else:
                looks.append(_look_at(partition, asked, reader, now))
    return looks


def _look_at(partition: Partition, asked: Any, reader: PartitionReader, now: Now) -> _Look:
    high_watermark = partition.high_watermark
    error = reader.check(partition, asked)
    if error is not ErrorCode.none:
        return _Look(asked, partition, error=error, topic_name=partition.topic)
    diverging = reader.diverging_epoch(partition, asked)
    if diverging is None:
        reader.note_progress(partition, asked, now)
    return _Look(asked, partition, high_watermark, reader.end_offset(partition), diverging=diverging)


def _wait(
    broker: Broker, request: Request, reader: PartitionReader, looks: Sequence[_Look], deadline_ms: int
) -> Outcome:
    asked = {look.partition.key: look.asked for look in looks if look.partition is not None}
    waiting = DelayedFetch(broker, request, reader.again(), asked)
    broker.purgatory.wait(waiting, tuple(asked), deadline_ms)
    return Outcome.DEFERRED


@dataclass(slots=True)
class DelayedFetch:
    """A fetch that waits for data."""

    broker: Broker
    request: Request
    reader: PartitionReader
    asked: Mapping[tuple[str, int], Any]

    @property
    def connection(self) -> Connection:
        """The connection of the request."""
        return self.request.connection

    def answer(self, now: Now, happened: Hashable | None) -> bool:
        """Only what happened to one partition can be news; so all the others are looked at only when it is."""
        if happened is not None and not self._is_news(happened, now):
            return False
        looks = _look_at_all(self.broker, self.request, self.reader, now)
        answer = _Answer(self.broker, self.request, looks)
        response = answer.response()
        is_urgent = happened is None or any(look.is_urgent for look in looks)
        if not is_urgent and answer.size_bytes < self.request.body.min_bytes:
            return False
        self.broker.runtime.respond(self.request, response)
        return True

    def _is_news(self, key: Any, now: Now) -> bool:
        partition = self.broker.replicas.find(key)
        if isinstance(partition, ErrorCode):
            return True
        look = _look_at(partition, self.asked[key], self.reader, now)
        return look.is_urgent or look.has_records


class _Answer:
    """What is read of what was found. `size_bytes` says afterwards how much it was."""

    def __init__(self, broker: Broker, request: Request, looks: Iterable[_Look]) -> None:
        self._new = request.replies
        self._request = request
        self._looks = iter(looks)
        self._leaders = CurrentLeaders(broker, request)
        self._left_bytes = min(request.body.max_bytes, broker.configuration.integer("fetch.max.bytes"))
        self._aborted = () if request.body.isolation_level == _READ_COMMITTED else None
        self.size_bytes = 0

    def response(self) -> Any:
        """The answer as of now."""
        responses = tuple(
            self._new.FetchableTopicResponse(
                topic=getattr(topic, "topic", None),
                topic_id=getattr(topic, "topic_id", None),
                partitions=tuple(self._partition(next(self._looks)) for _ in topic.partitions),
            )
            for topic in self._request.body.topics
        )
        return self._new.FetchResponse(
            error_code=ErrorCode.none, responses=responses, node_endpoints=self._leaders.endpoints()
        )

    def _partition(self, look: _Look) -> Any:
        if look.partition is None or look.error is not ErrorCode.none:
            return self._error(look)
        fields = {}
        if look.diverging is not None:
            epoch, end_offset = look.diverging
            fields["diverging_epoch"] = self._new.EpochEndOffset(epoch=epoch, end_offset=end_offset)
        return self._new.PartitionData(
            partition_index=look.asked.partition,
            error_code=ErrorCode.none,
            high_watermark=look.high_watermark,
            last_stable_offset=look.high_watermark,
            log_start_offset=look.partition.log_start_offset,
            aborted_transactions=self._aborted,
            records=self._records(look, look.partition),
            **fields,
        )

    def _records(self, look: _Look, partition: Partition) -> bytes:
        """Whole batches; the first batch of the answer whatever its size, later ones only if they fit."""
        max_bytes = min(look.asked.partition_max_bytes, self._left_bytes)
        if look.diverging is not None or not look.has_records or (self.size_bytes and max_bytes <= 0):
            return b""
        records = partition.log.read(
            look.asked.fetch_offset, max(max_bytes, 0), look.end_offset, whole_first_batch=not self.size_bytes
        )
        self.size_bytes += len(records)
        self._left_bytes -= len(records)
        return records

    def _error(self, look: _Look) -> Any:
        """A partition that does not exist has no aborted transactions, others have no list of them: so tells Kafka."""
        exists = look.error not in _UNKNOWN
        fields = {}
        tells_leader = look.error in _MOVED and self._request.api_version >= _LEADER_TOLD_VERSION
        if tells_leader and look.topic_name is not None:
            fields["current_leader"] = self._leaders.of(look.topic_name, look.asked.partition)
        return self._new.PartitionData(
            partition_index=look.asked.partition,
            error_code=look.error,
            high_watermark=_UNKNOWN_OFFSET,
            aborted_transactions=None if exists else (),
            records=b"",
            **fields,
        )
