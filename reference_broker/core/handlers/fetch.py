"""Fetch (1), versions 4-18: batches are read, now or when there are enough of them.

- A long poll: with fewer than `min_bytes` to give, the answer waits for an append, at most `max_wait` (KIP-41's
  purgatory). An error in any partition is answered at once.
- `max_bytes` and `partition_max_bytes` are soft: the first batch of an answer is given whole, so that a consumer always
  gets on (KIP-74). Partitions are served in the order of the request. An offset inside a batch gives that whole batch.
- Consumers see what is below the high watermark, with read_committed below the last stable offset.
- Offset below the log's start or above the high watermark: OFFSET_OUT_OF_RANGE(1) with watermarks of -1.
- The client's leader epoch is checked (KIP-320); from version 13 topics go by id, unknown id UNKNOWN_TOPIC_ID(100).
- Sessions (KIP-227) are refused by answering session id 0, which every client takes for a full fetch; an incremental
  fetch of some session is FETCH_SESSION_ID_NOT_FOUND(70).

Gaps: incremental sessions; fetches of followers; reads from followers (KIP-392).
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from reference_broker.core.broker import Broker
from reference_broker.core.clock import Now
from reference_broker.core.connection import Connection
from reference_broker.core.handlers.lookup import find_partition, find_topic
from reference_broker.core.partition import NO_EPOCH, Partition
from reference_broker.core.request import Outcome, Request
from reference_broker.protocol.errors import ErrorCode

_UNKNOWN_OFFSET = -1
_READ_COMMITTED = 1
_MILLISECOND = timedelta(milliseconds=1)


def handle(broker: Broker, request: Request, now: Now) -> Any:
    """What there is to read, or a promise."""
    new, body = request.replies, request.body
    if getattr(body, "session_epoch", -1) > 0:
        return new.FetchResponse(error_code=ErrorCode.fetch_session_id_not_found, responses=())
    read = _Read(broker, request)
    response = read.response()
    max_wait_ms = body.max_wait // _MILLISECOND
    if read.failed or read.size_bytes >= body.min_bytes or max_wait_ms <= 0 or not body.topics:
        return response
    keys = [partition.key for partition in read.partitions]
    broker.purgatory.wait(_DelayedFetch(broker, request), keys, now.monotonic_ms + max_wait_ms)
    return Outcome.DEFERRED


@dataclass(slots=True)
class _DelayedFetch:
    """A fetch that waits for data."""

    broker: Broker
    request: Request

    @property
    def connection(self) -> Connection:
        return self.request.connection

    def answer(self, now: Now, *, expired: bool) -> bool:
        read = _Read(self.broker, self.request)
        response = read.response()
        ready = expired or read.failed or read.size_bytes >= self.request.body.min_bytes
        if ready:
            self.broker.respond(self.request, response)
        return ready


class _Read:
    """One pass over the partitions of a fetch.

    `size_bytes` and `failed` say afterwards whether the response is worth sending yet.
    """

    def __init__(self, broker: Broker, request: Request) -> None:
        self._broker = broker
        self._request = request
        self._left_bytes = min(request.body.max_bytes, broker.configuration.integer("fetch.max.bytes"))
        self._read_committed = request.body.isolation_level == _READ_COMMITTED
        self.size_bytes = 0
        self.failed = False
        self.partitions: list[Partition] = []

    def response(self) -> Any:
        """The answer as of now."""
        new = self._request.replies
        return new.FetchResponse(
            error_code=ErrorCode.none,
            responses=tuple(self._topic(topic) for topic in self._request.body.topics),
        )

    def _topic(self, topic: Any) -> Any:
        found = find_topic(self._broker, topic)
        return self._request.replies.FetchableTopicResponse(
            topic=getattr(topic, "topic", None),
            topic_id=getattr(topic, "topic_id", None),
            partitions=tuple(
                self._partition(find_partition(self._broker, found, asked.partition), asked)
                for asked in topic.partitions
            ),
        )

    def _partition(self, partition: Partition | ErrorCode, asked: Any) -> Any:
        if isinstance(partition, ErrorCode):
            return self._error(asked, partition, aborted_transactions=())
        self.partitions.append(partition)
        fenced = partition.check_leader_epoch(getattr(asked, "current_leader_epoch", NO_EPOCH))
        if fenced is not ErrorCode.none:
            return self._error(asked, fenced)
        end_offset = partition.last_stable_offset if self._read_committed else partition.high_watermark
        if not partition.log.log_start_offset <= asked.fetch_offset <= partition.high_watermark:
            return self._error(asked, ErrorCode.offset_out_of_range)
        records = self._records(partition, asked, end_offset)
        return self._request.replies.PartitionData(
            partition_index=asked.partition,
            error_code=ErrorCode.none,
            high_watermark=partition.high_watermark,
            last_stable_offset=partition.last_stable_offset,
            log_start_offset=partition.log.log_start_offset,
            aborted_transactions=() if self._read_committed else None,
            records=records,
        )

    def _records(self, partition: Partition, asked: Any, end_offset: int) -> bytes:
        """Whole batches; the first batch of the answer whatever its size, later ones only if they fit."""
        max_bytes = min(asked.partition_max_bytes, self._left_bytes)
        if asked.fetch_offset >= end_offset or (self.size_bytes and max_bytes <= 0):
            return b""
        whole_first_batch = not self.size_bytes
        records = partition.log.read(
            asked.fetch_offset, max(max_bytes, 0), end_offset, whole_first_batch=whole_first_batch
        )
        self.size_bytes += len(records)
        self._left_bytes -= len(records)
        return records

    def _error(self, asked: Any, error: ErrorCode, aborted_transactions: tuple[()] | None = None) -> Any:
        self.failed = True
        return self._request.replies.PartitionData(
            partition_index=asked.partition,
            error_code=error,
            high_watermark=_UNKNOWN_OFFSET,
            aborted_transactions=aborted_transactions,
            records=b"",
        )
