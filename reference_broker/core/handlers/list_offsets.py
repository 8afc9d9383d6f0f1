"""ListOffsets (2), versions 1-11: where a log begins, ends, or passes a time.

- A timestamp ≥ 0: the first offset whose record is not older, -1 where there is none (KIP-79).
- -1 the high watermark, with read_committed the last stable offset; -2 the log start; from version 7 -3, the record
  with the largest timestamp (KIP-734); from 8 -4, the local log start (KIP-405); from 9 -5, the end of what is tiered
  (KIP-1005), and from 11 -6, the earliest not yet uploaded (KIP-1023): nothing is tiered here, so both are -1. In an
  older version a special timestamp is UNSUPPORTED_VERSION(35).
- A new leader does not know yet what is committed of its predecessors': until its high watermark has passed the start
  of its epoch, consumers are not told an end, but OFFSET_NOT_AVAILABLE(78), before version 5 LEADER_NOT_AVAILABLE(5)
  (KIP-207). A follower is told the log's end.
- A partition twice in the request: INVALID_REQUEST(42). The client's leader epoch is checked (KIP-320), and whether
  this broker leads: NOT_LEADER_OR_FOLLOWER(6).
"""

from collections import Counter
from typing import Any

from reference_broker.core.broker import Broker
from reference_broker.core.clock import Now
from reference_broker.core.handlers.lookup import find_partition, find_topic
from reference_broker.core.log.partition_log import TimestampAndOffset
from reference_broker.core.replication.partition import NO_EPOCH, Partition
from reference_broker.core.request import Outcome, Request
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.steps import Steps

_LATEST, _EARLIEST, _MAX_TIMESTAMP, _EARLIEST_LOCAL, _LATEST_TIERED, _EARLIEST_PENDING_UPLOAD = range(-1, -7, -1)
_FIRST_VERSION = {_MAX_TIMESTAMP: 7, _EARLIEST_LOCAL: 8, _LATEST_TIERED: 9, _EARLIEST_PENDING_UPLOAD: 11}
_NOT_AVAILABLE_VERSION = 5
_READ_COMMITTED = 1
_CONSUMER, _DEBUGGING_CONSUMER = -1, -2
_NONE = -1
_Key = tuple[str, int]
_ByTime = dict[_Key, TimestampAndOffset | None]
"""What was found for a timestamp, by topic and partition index."""


def handle(broker: Broker, request: Request, now: Now) -> Any:
    """Look up what depends on timestamps, in pieces, and return all offsets."""

    def found(by_time: _ByTime, _: Now) -> None:
        broker.runtime.respond(request, _response(broker, request, by_time))

    broker.runtime.work.run(request, _look_up_all(broker, request), found, now)
    return Outcome.DEFERRED


def _look_up_all(broker: Broker, request: Request) -> Steps[_ByTime]:
    """Timestamps are looked up before anything is checked, for the checks hold only when the response is made."""
    by_time: _ByTime = {}
    for topic in request.body.topics:
        for asked in topic.partitions:
            key = topic.name, asked.partition_index
            if (asked.timestamp >= 0 or asked.timestamp == _MAX_TIMESTAMP) and key not in by_time:
                by_time[key] = yield from _look_up(broker, key, asked.timestamp)
                yield
    return by_time


def _look_up(broker: Broker, key: _Key, timestamp: int) -> Steps[TimestampAndOffset | None]:
    """The record of a timestamp, as long as the log is there."""
    partition = broker.replicas.get(*key)
    if partition is None:
        return None
    log = partition.log
    steps = log.max_timestamp() if timestamp == _MAX_TIMESTAMP else log.offset_for_timestamp(timestamp)
    while broker.replicas.get(*key) is partition:
        try:
            next(steps)
        except StopIteration as done:
            found: TimestampAndOffset | None = done.value
            return found
        yield
    return None


def _response(broker: Broker, request: Request, by_time: _ByTime) -> Any:
    new = request.replies
    times = Counter((topic.name, asked.partition_index) for topic in request.body.topics for asked in topic.partitions)
    return new.ListOffsetsResponse(
        topics=tuple(
            new.ListOffsetsTopicResponse(
                name=topic.name,
                partitions=tuple(
                    _error(request, asked, ErrorCode.invalid_request)
                    if times[topic.name, asked.partition_index] > 1
                    else _partition(broker, request, topic, asked, by_time.get((topic.name, asked.partition_index)))
                    for asked in {asked.partition_index: asked for asked in topic.partitions}.values()
                ),
            )
            for topic in request.body.topics
        )
    )


def _partition(broker: Broker, request: Request, topic: Any, asked: Any, found: TimestampAndOffset | None) -> Any:
    known = asked.timestamp >= _EARLIEST_PENDING_UPLOAD
    if not known or request.api_version < _FIRST_VERSION.get(asked.timestamp, 0):
        return _error(request, asked, ErrorCode.unsupported_version)
    partition = find_partition(broker, find_topic(broker, topic), asked.partition_index)
    if isinstance(partition, ErrorCode):
        return _error(request, asked, partition)
    fenced = partition.check_leader_epoch(getattr(asked, "current_leader_epoch", NO_EPOCH))
    if fenced is not ErrorCode.none:
        return _error(request, asked, fenced)
    if not partition.is_leader and request.body.replica_id != _DEBUGGING_CONSUMER:
        return _error(request, asked, ErrorCode.not_leader_or_follower)
    return _find(request, partition, asked, found)


def _find(request: Request, partition: Partition, asked: Any, found: TimestampAndOffset | None) -> Any:
    """A place that no record stands for has no timestamp.

    :param found: the record of the timestamp.
    """
    is_client = request.body.replica_id == _CONSUMER
    is_committed_only = getattr(request.body, "isolation_level", 0) == _READ_COMMITTED
    committed = partition.last_stable_offset if is_committed_only else partition.high_watermark
    end_offset = committed if is_client else partition.log.log_end_offset
    is_behind = is_client and partition.is_leader and partition.epoch_start_offset > partition.high_watermark
    match asked.timestamp:
        case -1:
            if is_behind:
                return _error(request, asked, _not_yet(request))
            return _found(request, asked, _NONE, end_offset, partition.leader_epoch)
        case -2 | -4:
            return _found(request, asked, _NONE, partition.log_start_offset, partition.leader_epoch)
        case -5 | -6:
            return _error(request, asked, ErrorCode.none)
    if found is not None and found.offset < end_offset:
        return _found(request, asked, found.timestamp_ms, found.offset, found.leader_epoch)
    return _error(request, asked, _not_yet(request) if is_behind else ErrorCode.none)


def _not_yet(request: Request) -> ErrorCode:
    tells = request.api_version >= _NOT_AVAILABLE_VERSION
    return ErrorCode.offset_not_available if tells else ErrorCode.leader_not_available


def _found(request: Request, asked: Any, timestamp: int, offset: int, leader_epoch: int) -> Any:
    return request.replies.ListOffsetsPartitionResponse(
        partition_index=asked.partition_index,
        error_code=ErrorCode.none,
        timestamp=timestamp,
        offset=offset,
        leader_epoch=leader_epoch,
    )


def _error(request: Request, asked: Any, error: ErrorCode) -> Any:
    """No offset; without an error, that there is none."""
    return request.replies.ListOffsetsPartitionResponse(partition_index=asked.partition_index, error_code=error)
