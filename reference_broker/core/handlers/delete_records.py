"""DeleteRecords (21), versions 0-2: advance the log start offset on all live replicas.

Follows: org.apache.kafka.server.purgatory.DelayedDeleteRecords (KIP-107).

- Offset -1 is the high watermark. Any other negative offset, and an offset above the high watermark, returns
  OFFSET_OUT_OF_RANGE(1). An offset below the log start offset changes nothing. The response has the low watermark: the
  lowest log start offset of all live replicas.
- Followers learn the new log start offset by fetching. If a live follower has not reached it within the timeout of the
  request, the error is REQUEST_TIMED_OUT(7). If the broker is no longer the leader, the error is
  NOT_LEADER_OR_FOLLOWER(6). If its replica is removed, the error is UNKNOWN_TOPIC_OR_PARTITION(3).
- Further errors: POLICY_VIOLATION(44) for a topic without `delete` in its cleanup policy, INVALID_TOPIC_EXCEPTION(17)
  for an internal topic.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from reference_broker.core.broker import Broker
from reference_broker.core.clock import Now
from reference_broker.core.connection import Connection
from reference_broker.core.handlers.lookup import find_partition, find_topic
from reference_broker.core.replication.partition import Partition
from reference_broker.core.request import Request, RequestOutcome
from reference_broker.core.topic_names import INTERNAL_TOPICS
from reference_broker.protocol.durations import milliseconds
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.steps import Pace, Steps

_HIGH_WATERMARK = -1
_UNKNOWN_OFFSET = -1


@dataclass(slots=True)
class _Result:
    """Result of one partition.

    :param key: topic name and index of the partition; null if this broker does not have it.
    :param required_offset: offset that all live replicas must reach; null once the result is final.
    """

    topic: Any
    index: int
    key: tuple[str, int] | None = None
    error: ErrorCode = ErrorCode.none
    low_watermark: int = _UNKNOWN_OFFSET
    required_offset: int | None = None


def handle(broker: Broker, request: Request, now: Now) -> Steps[Any]:
    """Delete records, and respond when all live replicas have deleted them, or at the timeout."""
    results = []
    pace = Pace()
    for topic in request.body.topics:
        for requested in topic.partitions:
            if pace.is_due():
                yield
            results.append(_delete(broker, topic, requested, now))
    waiting = _DelayedDeleteRecords(broker, request, results)
    if waiting.is_settled():
        return waiting.response()
    keys = [result.key for result in results if result.required_offset is not None]
    timeout_ms = milliseconds(request.body.timeout)
    broker.runtime.purgatory.watch(waiting, keys, now.monotonic_ms + timeout_ms)
    return RequestOutcome.DEFERRED


def _delete(broker: Broker, topic: Any, requested: Any, now: Now) -> _Result:
    result = _Result(topic, requested.partition_index)
    partition = find_partition(broker, find_topic(broker, topic), requested.partition_index)
    if isinstance(partition, ErrorCode):
        result.error = partition
        return result
    before_offset = partition.high_watermark if requested.offset == _HIGH_WATERMARK else requested.offset
    result.key, result.error = partition.key, _validate(partition, before_offset)
    if result.error is ErrorCode.none:
        partition.delete_records_on_leader(before_offset, now)
        result.required_offset = before_offset
    return result


def _validate(partition: Partition, before_offset: int) -> ErrorCode:
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
class _DelayedDeleteRecords:
    """A DeleteRecords request that waits for followers."""

    broker: Broker
    request: Request
    results: list[_Result]

    @property
    def connection(self) -> Connection:
        return self.request.connection

    def is_settled(self) -> bool:
        """Update the results of the partitions that wait for followers. Return whether all results are final."""
        for result in self.results:
            if result.required_offset is not None and result.key is not None:
                self._update(result, self.broker.replicas.find(result.key), result.required_offset)
        return all(result.required_offset is None for result in self.results)

    @staticmethod
    def _update(result: _Result, partition: Partition | ErrorCode, required_offset: int) -> None:
        if isinstance(partition, ErrorCode):
            result.error, result.required_offset = ErrorCode.unknown_topic_or_partition, None
        elif not partition.is_leader:
            result.error, result.required_offset = ErrorCode.not_leader_or_follower, None
        elif partition.low_watermark >= required_offset:
            result.low_watermark, result.required_offset = partition.low_watermark, None

    def try_complete(self, now: Now, changed_key: Hashable | None) -> bool:
        """Complete the request if all results are final, or at the deadline. Return whether it is completed.

        :param changed_key: the partition that has changed; null at the deadline.
        """
        if not self.is_settled() and changed_key is not None:
            return False
        for result in self.results:
            if result.required_offset is not None:
                result.error = ErrorCode.request_timed_out
        self.broker.runtime.respond(self.request, self.response())
        return True

    def response(self) -> Any:
        """Return the low watermark or error of each partition."""
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
