"""Fetch (1), versions 4-18: read batches for consumers and followers, with long polling.

Follows: kafka.server.DelayedFetch, kafka.server.ReplicaManager (KIP-74, KIP-320, KIP-516, KIP-595, KIP-903, KIP-951).

- If there are fewer bytes to return than `min_bytes`, the request waits for an append, an advance of the high watermark
  or a change of the leader, at most for `max_wait`. Errors and diverging epochs are returned at once.
- `max_bytes` and `partition_max_bytes` are soft limits: the first batch of a response is always whole, so that every
  reader makes progress (KIP-74). Partitions are served in the order of the request. If the fetch offset is inside a
  batch, the whole batch is returned.
- Consumers read up to the high watermark, with read_committed up to the last stable offset; followers read everything.
- If the fetch offset is below the log start offset, or the last fetched epoch is above the latest epoch of this log,
  the error is OFFSET_OUT_OF_RANGE(1), with -1 as the high watermark and the last stable offset. The same holds for a
  fetch offset above the log end offset, unless there is a diverging epoch.
- The leader epoch of the request is checked (KIP-320). If this log does not have the last fetched epoch, or the epoch
  ended before the fetch offset, the response has the diverging epoch with its end offset, and no records (KIP-595).
- From version 13 topics have ids (KIP-516).
- If another broker is the leader, the error is NOT_LEADER_OR_FOLLOWER(6). From version 16 this error and
  FENCED_LEADER_EPOCH(74) include the leader and its endpoint (KIP-951). From version 11 a consumer may read from a
  follower, but no preferred read replica is returned (KIP-392).
- A partition that occurs more than once in the request is read once.
- A follower is identified by replica id and broker epoch. A broker that has no replica of the partition receives
  UNKNOWN_LEADER_EPOCH(75), or NOT_LEADER_OR_FOLLOWER if its request has no leader epoch. A previous incarnation of a
  broker receives NOT_LEADER_OR_FOLLOWER (KIP-903).
- The leader updates its state of a follower when the follower's request arrives, not when the response is sent. If the
  request does not wait, the response has the high watermark from before that update.
- The response has session id 0, so that every client sends full fetches; an incremental fetch in a session
  returns FETCH_SESSION_ID_NOT_FOUND(70) (KIP-227).

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
"""First version in which a consumer may fetch from a follower (KIP-392)."""
_CURRENT_LEADER_MIN_VERSION = 16
_UNKNOWN_OFFSET = -1
_UNKNOWN = frozenset({ErrorCode.unknown_topic_id, ErrorCode.unknown_topic_or_partition})
"""Errors of a topic or partition that does not exist."""
_ERRORS_WITH_LEADER = frozenset({ErrorCode.not_leader_or_follower, ErrorCode.fenced_leader_epoch})


def handle(broker: Broker, request: Request, now: Now) -> Any:
    """Return the response, or wait until there are `min_bytes` to return."""
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
    """Return the request with each partition only once: its last element, in the position of its first.

    This is the order of Kafka's map `FetchRequest.fetchData`. As in `FetchResponse.toMessage`, consecutive partitions
    of a topic are in one element, and a topic has several elements if partitions of another topic are between its own.
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
    committed = body.isolation_level == _READ_COMMITTED
    return PartitionReader(
        Isolation.COMMITTED if committed else Isolation.HIGH_WATERMARK,
        broker.replicas.brokers,
        leader_only=request.api_version < _FOLLOWER_FETCH_MIN_VERSION,
    )


class _PartitionStatus(NamedTuple):
    """State of one requested partition. The high watermark is from before the update of the follower's fetch state."""

    requested: Any
    partition: Partition | None = None
    high_watermark: int = _UNKNOWN_OFFSET
    end_offset: int = _UNKNOWN_OFFSET
    """The offset up to which the reader may read."""
    error: ErrorCode = ErrorCode.none
    diverging: tuple[int, int] | None = None
    topic_name: str | None = None

    @property
    def is_urgent(self) -> bool:
        """Whether the request must not wait: for an error, a diverging epoch, or a fetch offset that is too high.

        As in Kafka, a fetch offset is too high if it is above the offset up to which the reader may read.
        """
        above = self.end_offset < int(self.requested.fetch_offset)
        return above or self.error is not ErrorCode.none or self.diverging is not None

    @property
    def has_records(self) -> bool:
        """Whether there are records to read."""
        return self.end_offset > int(self.requested.fetch_offset)


def _check_partitions(broker: Broker, request: Request, reader: PartitionReader, now: Now) -> list[_PartitionStatus]:
    """Return the state of each partition, in the order of the request, and update the follower's fetch state."""
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
    """Return the state of one partition, and update the follower's fetch state unless the reader is for a retry."""
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

        If the changed partition has no records to read and is not urgent, the fetch is not completed, and the other
        partitions are not checked.

        :param changed_key: the partition that has changed; null at the deadline.
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
        """Whether the change of this partition may complete the fetch."""
        partition = self.broker.replicas.find(key)
        if isinstance(partition, ErrorCode):
            return True
        status = _check_partition(partition, self.requested[key], self.reader, now)
        return status.is_urgent or status.has_records


class _ResponseBuilder:
    """Builder of a response.

    :ivar size_bytes: size of all records that were read for the response.
    """

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
        """Read whole batches: the first batch of the response even if it is too large, later ones only if they fit."""
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
        """Return an error response for a partition.

        As in Kafka, the list of aborted transactions is empty if the partition does not exist, otherwise null.
        """
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
