"""ListOffsets (2), versions 1-11: the offsets of a log's start and end, and of timestamps.

Follows: kafka.server.ReplicaManager (KIP-79, KIP-207, KIP-320, KIP-405, KIP-734, KIP-1005, KIP-1023).

| timestamp | versions | offset                                                                                     |
|-----------|----------|--------------------------------------------------------------------------------------------|
| ≥ 0       | all      | offset of the first record with this or a later timestamp (KIP-79)                         |
| -1        | all      | high watermark; last stable offset with read_committed; log end offset for followers       |
| -2        | all      | log start offset                                                                           |
| -3        | 7-11     | offset of the record with the largest timestamp (KIP-734)                                  |
| -4        | 8-11     | local log start offset (KIP-405), here the log start offset                                |
| -5        | 9-11     | end of the tiered log (KIP-1005), here none                                                |
| -6        | 11       | first offset that is not uploaded to tiered storage (KIP-1023), here none                  |

- If there is no such offset, the response has offset -1 without an error. A negative timestamp that the version does
  not have: UNSUPPORTED_VERSION(35).
- A new leader does not know yet which records of earlier epochs are committed. Until its high watermark has reached the
  start of its epoch, consumers get an error for timestamp -1, and for a timestamp without a committed record:
  OFFSET_NOT_AVAILABLE(78), before version 5 LEADER_NOT_AVAILABLE(5) (KIP-207).
- A partition that occurs twice in the request: INVALID_REQUEST(42). The leader epoch of the request is checked
  (KIP-320). If this broker does not lead the partition, the error is NOT_LEADER_OR_FOLLOWER(6), except for replica id
  -2, the debugging consumer.
"""

from collections import Counter
from typing import Any

from reference_broker.core.broker import Broker
from reference_broker.core.clock import Now
from reference_broker.core.handlers.lookup import find_partition, find_topic
from reference_broker.core.log.unified_log import TimestampAndOffset
from reference_broker.core.replication.partition import NO_EPOCH, Partition
from reference_broker.core.request import Request, RequestOutcome
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.steps import Steps

_LATEST, _EARLIEST, _MAX_TIMESTAMP, _EARLIEST_LOCAL, _LATEST_TIERED, _EARLIEST_PENDING_UPLOAD = range(-1, -7, -1)
_FIRST_VERSION = {_MAX_TIMESTAMP: 7, _EARLIEST_LOCAL: 8, _LATEST_TIERED: 9, _EARLIEST_PENDING_UPLOAD: 11}
_NOT_AVAILABLE_VERSION = 5
_READ_COMMITTED = 1
_CONSUMER, _DEBUGGING_CONSUMER = -1, -2
_NONE = -1
_Key = tuple[str, int]
_FoundRecords = dict[_Key, TimestampAndOffset | None]
"""The record that was found for a timestamp, by topic name and partition index; null if there is none."""


def handle(broker: Broker, request: Request, now: Now) -> Any:
    """Look up timestamps in steps, and then return the requested offsets."""

    def on_found(found_records: _FoundRecords, _: Now) -> None:
        broker.runtime.respond(request, _response(broker, request, found_records))

    broker.runtime.work.run(request, _look_up_all(broker, request), on_found, now)
    return RequestOutcome.DEFERRED


def _look_up_all(broker: Broker, request: Request) -> Steps[_FoundRecords]:
    """Look up all timestamps. The partitions are checked later, at the time of the response."""
    found_records: _FoundRecords = {}
    for topic in request.body.topics:
        for requested in topic.partitions:
            key = topic.name, requested.partition_index
            if (requested.timestamp >= 0 or requested.timestamp == _MAX_TIMESTAMP) and key not in found_records:
                found_records[key] = yield from _look_up(broker, key, requested.timestamp)
                yield
    return found_records


def _look_up(broker: Broker, key: _Key, timestamp: int) -> Steps[TimestampAndOffset | None]:
    """Return the record for a timestamp; null if there is none, or if the replica is removed during the lookup."""
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


def _response(broker: Broker, request: Request, found_records: _FoundRecords) -> Any:
    new = request.replies
    count = Counter(
        (topic.name, requested.partition_index) for topic in request.body.topics for requested in topic.partitions
    )
    return new.ListOffsetsResponse(
        topics=tuple(
            new.ListOffsetsTopicResponse(
                name=topic.name,
                partitions=tuple(
                    _error(request, requested, ErrorCode.invalid_request)
                    if count[topic.name, requested.partition_index] > 1
                    else _partition(
                        broker, request, topic, requested, found_records.get((topic.name, requested.partition_index))
                    )
                    for requested in {requested.partition_index: requested for requested in topic.partitions}.values()
                ),
            )
            for topic in request.body.topics
        )
    )


def _partition(broker: Broker, request: Request, topic: Any, requested: Any, found: TimestampAndOffset | None) -> Any:
    is_known = requested.timestamp >= _EARLIEST_PENDING_UPLOAD
    if not is_known or request.api_version < _FIRST_VERSION.get(requested.timestamp, 0):
        return _error(request, requested, ErrorCode.unsupported_version)
    partition = find_partition(broker, find_topic(broker, topic), requested.partition_index)
    if isinstance(partition, ErrorCode):
        return _error(request, requested, partition)
    fenced = partition.check_leader_epoch(getattr(requested, "current_leader_epoch", NO_EPOCH))
    if fenced is not ErrorCode.none:
        return _error(request, requested, fenced)
    if not partition.is_leader and request.body.replica_id != _DEBUGGING_CONSUMER:
        return _error(request, requested, ErrorCode.not_leader_or_follower)
    return _find(request, partition, requested, found)


def _find(request: Request, partition: Partition, requested: Any, found: TimestampAndOffset | None) -> Any:
    """Return the requested offset, with a timestamp only if it is the offset of a record.

    :param found: the record that was found for the timestamp; null if there is none.
    """
    is_client = request.body.replica_id == _CONSUMER
    is_committed_only = getattr(request.body, "isolation_level", 0) == _READ_COMMITTED
    committed = partition.last_stable_offset if is_committed_only else partition.high_watermark
    end_offset = committed if is_client else partition.log.log_end_offset
    is_behind = is_client and partition.epoch_start_offset > partition.high_watermark
    match requested.timestamp:
        case -1:
            if is_behind:
                return _error(request, requested, _not_available(request))
            return _found(request, requested, _NONE, end_offset, partition.leader_epoch)
        case -2 | -4:
            start_offset = partition.log_start_offset
            return _found(request, requested, _NONE, start_offset, partition.log.epochs.epoch_for_offset(start_offset))
        case -5 | -6:
            return _error(request, requested, ErrorCode.none)
    if found is not None and found.offset < end_offset:
        return _found(request, requested, found.timestamp_ms, found.offset, found.leader_epoch)
    return _error(request, requested, _not_available(request) if is_behind else ErrorCode.none)


def _not_available(request: Request) -> ErrorCode:
    has_error = request.api_version >= _NOT_AVAILABLE_VERSION
    return ErrorCode.offset_not_available if has_error else ErrorCode.leader_not_available


def _found(request: Request, requested: Any, timestamp: int, offset: int, leader_epoch: int) -> Any:
    return request.replies.ListOffsetsPartitionResponse(
        partition_index=requested.partition_index,
        error_code=ErrorCode.none,
        timestamp=timestamp,
        offset=offset,
        leader_epoch=leader_epoch,
    )


def _error(request: Request, requested: Any, error: ErrorCode) -> Any:
    """Return an error; `none` means that there is no such offset."""
    return request.replies.ListOffsetsPartitionResponse(partition_index=requested.partition_index, error_code=error)
