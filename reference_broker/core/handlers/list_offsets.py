"""ListOffsets (2), versions 1-11: where a log begins, ends, or passes a time.

- A timestamp ≥ 0: the first offset whose record is not older, -1 where there is none (KIP-79).
- -1 the high watermark, with read_committed the last stable offset; -2 the log start; from version 7 -3, the record
  with the largest timestamp (KIP-734); from 8 -4, the local log start (KIP-405); from 9 -5, the end of what is tiered
  (KIP-1005), and from 11 -6, the earliest not yet uploaded (KIP-1023): nothing is tiered here, so both are -1. In an
  older version a special timestamp is UNSUPPORTED_VERSION(35).
- A partition twice in the request: INVALID_REQUEST(42). The client's leader epoch is checked (KIP-320).
"""

from collections import Counter
from typing import Any

from reference_broker.core.broker import Broker
from reference_broker.core.clock import Now
from reference_broker.core.handlers.lookup import find_partition, find_topic
from reference_broker.core.partition import NO_EPOCH, Partition
from reference_broker.core.request import Request
from reference_broker.protocol.errors import ErrorCode

_LATEST, _EARLIEST, _MAX_TIMESTAMP, _EARLIEST_LOCAL, _LATEST_TIERED, _EARLIEST_PENDING_UPLOAD = range(-1, -7, -1)
_FIRST_VERSION = {_MAX_TIMESTAMP: 7, _EARLIEST_LOCAL: 8, _LATEST_TIERED: 9, _EARLIEST_PENDING_UPLOAD: 11}
_READ_COMMITTED = 1
_NONE = -1


def handle(broker: Broker, request: Request, now: Now) -> Any:
    """The offset that each partition was asked for."""
    new = request.replies
    times = Counter((topic.name, asked.partition_index) for topic in request.body.topics for asked in topic.partitions)
    return new.ListOffsetsResponse(
        topics=tuple(
            new.ListOffsetsTopicResponse(
                name=topic.name,
                partitions=tuple(
                    _error(request, asked, ErrorCode.invalid_request)
                    if times[topic.name, asked.partition_index] > 1
                    else _partition(broker, request, topic, asked)
                    for asked in {asked.partition_index: asked for asked in topic.partitions}.values()
                ),
            )
            for topic in request.body.topics
        )
    )


def _partition(broker: Broker, request: Request, topic: Any, asked: Any) -> Any:
    partition = find_partition(broker, find_topic(broker, topic), asked.partition_index)
    if isinstance(partition, ErrorCode):
        return _error(request, asked, partition)
    fenced = partition.check_leader_epoch(getattr(asked, "current_leader_epoch", NO_EPOCH))
    if fenced is not ErrorCode.none:
        return _error(request, asked, fenced)
    known = asked.timestamp >= _EARLIEST_PENDING_UPLOAD
    if not known or request.api_version < _FIRST_VERSION.get(asked.timestamp, 0):
        return _error(request, asked, ErrorCode.unsupported_version)
    timestamp, offset, leader_epoch = _find(partition, asked.timestamp, getattr(request.body, "isolation_level", 0))
    return request.replies.ListOffsetsPartitionResponse(
        partition_index=asked.partition_index,
        error_code=ErrorCode.none,
        timestamp=timestamp,
        offset=offset,
        leader_epoch=leader_epoch,
    )


def _find(partition: Partition, timestamp: int, isolation_level: int) -> tuple[int, int, int]:
    """Timestamp, offset and leader epoch; a place that no record stands for has no timestamp."""
    end_offset = partition.last_stable_offset if isolation_level == _READ_COMMITTED else partition.high_watermark
    match timestamp:
        case -1:
            return _NONE, end_offset, partition.leader_epoch
        case -2 | -4:
            return _NONE, partition.log.log_start_offset, partition.leader_epoch
        case -5 | -6:
            return _NONE, _NONE, NO_EPOCH
        case -3:
            found = partition.log.max_timestamp()
        case _:
            found = partition.log.offset_for_timestamp(timestamp)
    if found is None or found.offset >= end_offset:
        return _NONE, _NONE, NO_EPOCH
    return found.timestamp_ms, found.offset, found.leader_epoch


def _error(request: Request, asked: Any, error: ErrorCode) -> Any:
    return request.replies.ListOffsetsPartitionResponse(partition_index=asked.partition_index, error_code=error)
