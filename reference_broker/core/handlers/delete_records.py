"""DeleteRecords (21), versions 0-2: the log start moves up (KIP-107), and is told when all live replicas have moved it.

- Offset -1 is the high watermark. Above that, or another negative number: OFFSET_OUT_OF_RANGE(1). Below the log start:
  nothing happens. The answer is the low watermark, the least log start of all live replicas.
- Followers learn of it by fetching. If they have not within the request's timeout: REQUEST_TIMED_OUT(7); if leadership
  is lost meanwhile: NOT_LEADER_OR_FOLLOWER(6).
- A topic without `delete` in its cleanup policy: POLICY_VIOLATION(44). An internal topic: INVALID_TOPIC_EXCEPTION(17).
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from reference_broker.core.broker import Broker
from reference_broker.core.clock import Now
from reference_broker.core.connection import Connection
from reference_broker.core.handlers.lookup import find_partition, find_topic
from reference_broker.core.replication.partition import Partition
from reference_broker.core.request import Outcome, Request
from reference_broker.core.topic_names import INTERNAL_TOPICS
from reference_broker.protocol.durations import milliseconds
from reference_broker.protocol.errors import ErrorCode

_HIGH_WATERMARK = -1
_UNKNOWN_OFFSET = -1


@dataclass(slots=True)
class _Result:
    """One partition. `waits_for` is null once it is settled."""

    topic: Any
    index: int
    key: tuple[str, int] | None = None
    error: ErrorCode = ErrorCode.none
    low_watermark: int = _UNKNOWN_OFFSET
    waits_for: int | None = None


def handle(broker: Broker, request: Request, now: Now) -> Any:
    """The low watermark of each partition, afterwards."""
    results = [_delete(broker, topic, asked, now) for topic in request.body.topics for asked in topic.partitions]
    waiting = _DelayedDeletion(broker, request, results)
    if waiting.is_settled():
        return waiting.response()
    keys = [result.key for result in results if result.waits_for is not None]
    timeout_ms = milliseconds(request.body.timeout)
    broker.runtime.purgatory.wait(waiting, keys, now.monotonic_ms + timeout_ms)
    return Outcome.DEFERRED


def _delete(broker: Broker, topic: Any, asked: Any, now: Now) -> _Result:
    result = _Result(topic, asked.partition_index)
    partition = find_partition(broker, find_topic(broker, topic), asked.partition_index)
    if isinstance(partition, ErrorCode):
        result.error = partition
        return result
    before_offset = partition.high_watermark if asked.offset == _HIGH_WATERMARK else asked.offset
    result.key, result.error = partition.key, _refuse(partition, before_offset)
    if result.error is ErrorCode.none:
        partition.delete_records_before(before_offset, now)
        result.waits_for = before_offset
    return result


def _refuse(partition: Partition, before_offset: int) -> ErrorCode:
    if partition.topic in INTERNAL_TOPICS:
        return ErrorCode.invalid_topic_exception
    if not partition.is_leader:
        return ErrorCode.not_leader_or_follower
    if not partition.log.config.deletes:
        return ErrorCode.policy_violation
    if not 0 <= before_offset <= partition.high_watermark:
        return ErrorCode.offset_out_of_range
    return ErrorCode.none


@dataclass(slots=True)
class _DelayedDeletion:
    """A deletion that waits for followers."""

    broker: Broker
    request: Request
    results: list[_Result]

    @property
    def connection(self) -> Connection:
        return self.request.connection

    def is_settled(self) -> bool:
        """Look at those that wait. True if none is left."""
        for result in self.results:
            if result.waits_for is not None and result.key is not None:
                self._look_at(result, self.broker.replicas.find(result.key), result.waits_for)
        return all(result.waits_for is None for result in self.results)

    @staticmethod
    def _look_at(result: _Result, partition: Partition | ErrorCode, waits_for: int) -> None:
        if isinstance(partition, ErrorCode):
            result.error, result.waits_for = ErrorCode.unknown_topic_or_partition, None
        elif not partition.is_leader:
            result.error, result.waits_for = ErrorCode.not_leader_or_follower, None
        elif partition.low_watermark >= waits_for:
            result.low_watermark, result.waits_for = partition.low_watermark, None

    def answer(self, now: Now, happened: Hashable | None) -> bool:
        """The purgatory asks."""
        if not self.is_settled() and happened is not None:
            return False
        for result in self.results:
            if result.waits_for is not None:
                result.error = ErrorCode.request_timed_out
        self.broker.runtime.respond(self.request, self.response())
        return True

    def response(self) -> Any:
        """What became of each partition."""
        new = self.request.replies
        by_topic: dict[int, list[Any]] = {id(topic): [] for topic in self.request.body.topics}
        for result in self.results:
            by_topic[id(result.topic)].append(
                new.DeleteRecordsPartitionResult(
                    partition_index=result.index, low_watermark=result.low_watermark, error_code=result.error
                )
            )
        return new.DeleteRecordsResponse(
            topics=tuple(
                new.DeleteRecordsTopicResult(name=topic.name, partitions=tuple(by_topic[id(topic)]))
                for topic in self.request.body.topics
            )
        )
