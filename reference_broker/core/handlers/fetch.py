"""Fetch (1), versions 4-18: read batches for consumers and followers, with long polling.

Follows: kafka.server.DelayedFetch, kafka.server.ReplicaManager (KIP-74, KIP-320, KIP-516, KIP-595, KIP-903, KIP-951).

- If there are fewer bytes to return than `min_bytes`, the request waits for at most `max_wait`. It is checked again at
  an append, an advance of the high watermark or a change of the leader. Errors and diverging epochs are returned at
  once.
- `max_bytes` and `partition_max_bytes` are soft limits: the first batch of a response is always whole, so that every
  reader makes progress (KIP-74). Partitions are served in the order of the request. An offset inside a batch returns
  that whole batch.
- Consumers read up to the high watermark, with read_committed up to the last stable offset; followers read everything.
- A last fetched epoch above the latest epoch of this log, or an offset below the log start: OFFSET_OUT_OF_RANGE(1) with
  watermarks of -1. An offset above the log end has the same error, unless the epochs diverge.
- The leader epoch of the request is checked (KIP-320). Epochs diverge if this log does not have the last fetched epoch,
  or if this epoch ended before the fetch offset. The response then has no records, but the largest epoch of this log
  that is not above the last fetched epoch, with its end offset (KIP-595).
- From version 13 topics have ids (KIP-516).
- Another broker leads: NOT_LEADER_OR_FOLLOWER(6). From version 16 this error and FENCED_LEADER_EPOCH(74) include the
  leader and its endpoint (KIP-951). From version 11 a consumer may read from a follower, but no preferred read replica
  is returned (KIP-392).
- A partition that occurs more than once is read once.
- A follower is identified by replica id and broker epoch. A broker that has no replica of the partition receives
  UNKNOWN_LEADER_EPOCH(75), or NOT_LEADER_OR_FOLLOWER if its request has no leader epoch. A previous incarnation of a
  broker receives NOT_LEADER_OR_FOLLOWER (KIP-903).
- The follower's fetch state is updated when its request arrives, not when the response is sent. If the request does
  not wait, the response has the high watermark from before that update.
- The response has session id 0, so that every client sends full fetches. An incremental fetch in a session returns
  FETCH_SESSION_ID_NOT_FOUND(70) (KIP-227).

Gaps: incremental sessions; preferred read replicas (KIP-392).
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, NamedTuple

from reference_broker.core.broker import Broker
from reference_broker.core.clock import Now
from reference_broker.core.connection import Connection
from reference_broker.core.handlers.current_leaders import CurrentLeaders
from reference_broker.core.handlers.lookup import find_partition, find_topic
from reference_broker.core.replication.brokers import BrokerRun
from reference_broker.core.replication.partition import NO_EPOCH, Partition
from reference_broker.core.replication.partition_reader import Isolation, PartitionReader
from reference_broker.core.request import Request, RequestOutcome
from reference_broker.protocol.durations import milliseconds
from reference_broker.protocol.errors import ErrorCode

_CONSUMER = -1
_READ_COMMITTED = 1
_FOLLOWER_FETCH_MIN_VERSION = 11
_CURRENT_LEADER_MIN_VERSION = 16
_UNKNOWN_OFFSET = -1
_UNKNOWN = frozenset({ErrorCode.unknown_topic_id, ErrorCode.unknown_topic_or_partition})
_ERRORS_WITH_LEADER = frozenset({ErrorCode.not_leader_or_follower, ErrorCode.fenced_leader_epoch})


def handle(broker: Broker, request: Request, now: Now) -> Any:
    """Return the readable records, or wait for more."""
    request = _without_repetitions(request)
    body = request.body
    if getattr(body, "session_epoch", -1) > 0:
        return request.replies.FetchResponse(error_code=ErrorCode.fetch_session_id_not_found, responses=())
    reader = _reader(broker, request)
    statuses = _check_partitions(broker, request, reader, now)
    max_wait_ms = milliseconds(body.max_wait)
    can_wait = max_wait_ms > 0 and bool(body.topics) and not any(status.is_urgent for status in statuses)
    if can_wait and (body.min_bytes > 0 and not any(status.has_records for status in statuses)):
        return _wait(broker, request, reader, statuses, now.monotonic_ms + max_wait_ms)
    builder = _ResponseBuilder(broker, request, statuses)
    response = builder.response()
    if can_wait and builder.size_bytes < body.min_bytes:
        return _wait(broker, request, reader, statuses, now.monotonic_ms + max_wait_ms)
    return response


def _without_repetitions(request: Request) -> Request:
    """Return the request with one element of each partition: the last element, at the position of the first.

    This is the order of the map `FetchRequest.fetchData`. Consecutive partitions of a topic have one topic element, as
    in `FetchResponse.toMessage`.
    """
    count = sum(len(topic.partitions) for topic in request.body.topics)
    found: dict[Any, tuple[Any, Any]] = {}
    for topic in request.body.topics:
        found |= {(_key(topic), requested.partition): (topic, requested) for requested in topic.partitions}
    if len(found) == count:
        return request
    topics = (list(consecutive) for _, consecutive in groupby(found.values(), lambda pair: _key(pair[0])))
    distinct = tuple(replace(pairs[0][0], partitions=tuple(requested for _, requested in pairs)) for pairs in topics)
    return replace(request, body=replace(request.body, topics=distinct))


def _key(topic: Any) -> tuple[Any, Any]:
    return getattr(topic, "topic", None), getattr(topic, "topic_id", None)


def _reader(broker: Broker, request: Request) -> PartitionReader:
    body = request.body
    state = getattr(body, "replica_state", None)
    replica_id = body.replica_id if state is None else state.replica_id
    if replica_id > _CONSUMER:
        follower = BrokerRun(replica_id, NO_EPOCH if state is None else state.replica_epoch)
        return PartitionReader(Isolation.LOG_END, broker.replicas.brokers, follower=follower)
    is_committed_only = body.isolation_level == _READ_COMMITTED
    return PartitionReader(
        Isolation.COMMITTED if is_committed_only else Isolation.HIGH_WATERMARK,
        broker.replicas.brokers,
        leader_only=request.api_version < _FOLLOWER_FETCH_MIN_VERSION,
    )


class _PartitionStatus(NamedTuple):
    """State of one requested partition, with the high watermark from before the follower's fetch state was updated."""

    requested: Any
    partition: Partition | None = None
    high_watermark: int = _UNKNOWN_OFFSET
    end_offset: int = _UNKNOWN_OFFSET
    """End of the records that the reader may read."""
    error: ErrorCode = ErrorCode.none
    diverging: tuple[int, int] | None = None
    """Epoch and end offset for the response if the epochs diverge."""
    topic_name: str | None = None
    """Set only with an error."""

    @property
    def is_urgent(self) -> bool:
        """Whether the response is sent at once, because of an error, a diverging epoch or the fetch offset.

        As in Kafka, a request with a fetch offset above the end of the readable records does not wait.
        """
        above = self.end_offset < int(self.requested.fetch_offset)
        return above or self.error is not ErrorCode.none or self.diverging is not None

    @property
    def has_records(self) -> bool:
        """Whether there are records to read."""
        return self.end_offset > int(self.requested.fetch_offset)


def _check_partitions(broker: Broker, request: Request, reader: PartitionReader, now: Now) -> list[_PartitionStatus]:
    """Return the state of each partition, in the order of the request.

    :param reader: updates the follower's fetch state, unless this is a retry of a delayed fetch.
    """
    statuses = []
    for topic in request.body.topics:
        found = find_topic(broker, topic)
        for requested in topic.partitions:
            partition = find_partition(broker, found, requested.partition)
            if isinstance(partition, ErrorCode):
                name = None if isinstance(found, ErrorCode) else found.name
                statuses.append(_PartitionStatus(requested, error=partition, topic_name=name))
            else:
                statuses.append(_check_partition(partition, requested, reader, now))
    return statuses


def _check_partition(partition: Partition, requested: Any, reader: PartitionReader, now: Now) -> _PartitionStatus:
    high_watermark = partition.high_watermark
    error = reader.check(partition, requested)
    if error is not ErrorCode.none:
        return _PartitionStatus(requested, partition, error=error, topic_name=partition.topic)
    diverging = reader.diverging_epoch(partition, requested)
    if diverging is None:
        reader.update_follower_fetch_state(partition, requested, now)
    return _PartitionStatus(requested, partition, high_watermark, reader.end_offset(partition), diverging=diverging)


def _wait(
    broker: Broker, request: Request, reader: PartitionReader, statuses: Sequence[_PartitionStatus], deadline_ms: int
) -> RequestOutcome:
    requested = {status.partition.key: status.requested for status in statuses if status.partition is not None}
    waiting = DelayedFetch(broker, request, reader.for_retry(), requested)
    broker.purgatory.watch(waiting, tuple(requested), deadline_ms)
    return RequestOutcome.DEFERRED


@dataclass(slots=True)
class DelayedFetch:
    """A fetch that waits for records."""

    broker: Broker
    request: Request
    reader: PartitionReader
    requested: Mapping[tuple[str, int], Any]

    @property
    def connection(self) -> Connection:
        """The connection of the request."""
        return self.request.connection

    def try_complete(self, now: Now, changed_key: Hashable | None) -> bool:
        """Complete the fetch if possible, and always at the deadline. Return whether it is completed.

        :param changed_key: the partition that has changed; null at the deadline. If this partition has no records to
            read and no error, the other partitions are not checked.
        """
        if changed_key is not None and not self._may_complete(changed_key, now):
            return False
        statuses = _check_partitions(self.broker, self.request, self.reader, now)
        builder = _ResponseBuilder(self.broker, self.request, statuses)
        response = builder.response()
        is_urgent = changed_key is None or any(status.is_urgent for status in statuses)
        if not is_urgent and builder.size_bytes < self.request.body.min_bytes:
            return False
        self.broker.runtime.respond(self.request, response)
        return True

    def _may_complete(self, key: Any, now: Now) -> bool:
        partition = self.broker.replicas.find(key)
        if isinstance(partition, ErrorCode):
            return True
        status = _check_partition(partition, self.requested[key], self.reader, now)
        return status.is_urgent or status.has_records


class _ResponseBuilder:
    """Builder of a response; `size_bytes` is the size of the records that the response has so far."""

    def __init__(self, broker: Broker, request: Request, statuses: Iterable[_PartitionStatus]) -> None:
        self._new = request.replies
        self._request = request
        self._statuses = iter(statuses)
        self._leaders = CurrentLeaders(broker, request)
        self._remaining_bytes = min(request.body.max_bytes, broker.configuration.integer("fetch.max.bytes"))
        self._aborted = () if request.body.isolation_level == _READ_COMMITTED else None
        self.size_bytes = 0

    def response(self) -> Any:
        """Read the records and return the response."""
        responses = tuple(
            self._new.FetchableTopicResponse(
                topic=getattr(topic, "topic", None),
                topic_id=getattr(topic, "topic_id", None),
                partitions=tuple(self._partition(next(self._statuses)) for _ in topic.partitions),
            )
            for topic in self._request.body.topics
        )
        return self._new.FetchResponse(
            error_code=ErrorCode.none, responses=responses, node_endpoints=self._leaders.endpoints()
        )

    def _partition(self, status: _PartitionStatus) -> Any:
        if status.partition is None or status.error is not ErrorCode.none:
            return self._error(status)
        fields = {}
        if status.diverging is not None:
            epoch, end_offset = status.diverging
            fields["diverging_epoch"] = self._new.EpochEndOffset(epoch=epoch, end_offset=end_offset)
        return self._new.PartitionData(
            partition_index=status.requested.partition,
            error_code=ErrorCode.none,
            high_watermark=status.high_watermark,
            last_stable_offset=status.high_watermark,
            log_start_offset=status.partition.log_start_offset,
            aborted_transactions=self._aborted,
            records=self._records(status, status.partition),
            **fields,
        )

    def _records(self, status: _PartitionStatus, partition: Partition) -> bytes:
        """Read whole batches. Only the first batch of the response may exceed the limits."""
        max_bytes = min(status.requested.partition_max_bytes, self._remaining_bytes)
        if status.diverging is not None or not status.has_records or (self.size_bytes and max_bytes <= 0):
            return b""
        records = partition.log.read(
            status.requested.fetch_offset, max(max_bytes, 0), status.end_offset, whole_first_batch=not self.size_bytes
        )
        self.size_bytes += len(records)
        self._remaining_bytes -= len(records)
        return records

    def _error(self, status: _PartitionStatus) -> Any:
        """Return an error. As in Kafka, aborted transactions are empty for an unknown partition, and otherwise null."""
        exists = status.error not in _UNKNOWN
        fields = {}
        has_leader = status.error in _ERRORS_WITH_LEADER and self._request.api_version >= _CURRENT_LEADER_MIN_VERSION
        if has_leader and status.topic_name is not None:
            fields["current_leader"] = self._leaders.current_leader(status.topic_name, status.requested.partition)
        return self._new.PartitionData(
            partition_index=status.requested.partition,
            error_code=status.error,
            high_watermark=_UNKNOWN_OFFSET,
            aborted_transactions=None if exists else (),
            records=b"",
            **fields,
        )
