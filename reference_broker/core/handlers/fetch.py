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
- A follower is known by its replica id and broker epoch. One that is no replica gets UNKNOWN_LEADER_EPOCH(75), an
  earlier run of a broker NOT_LEADER_OR_FOLLOWER (KIP-903). Its first look, not what it is given later, tells how far it
  is; the high watermark in the answer is the one before that.
- Sessions (KIP-227) are refused by answering session id 0, which everybody takes for a full fetch; an incremental
  fetch of some session is FETCH_SESSION_ID_NOT_FOUND(70).

Gaps: incremental sessions; preferred read replicas (KIP-392).
"""

from collections.abc import Hashable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from reference_broker.core.broker import Broker
from reference_broker.core.clock import Now
from reference_broker.core.connection import Connection
from reference_broker.core.handlers.current_leaders import CurrentLeaders
from reference_broker.core.handlers.lookup import find_partition, find_topic
from reference_broker.core.metadata.image import TopicImage
from reference_broker.core.replication.brokers import BrokerRun
from reference_broker.core.replication.partition import NO_EPOCH, Partition
from reference_broker.core.replication.partition_reader import Isolation, PartitionReader
from reference_broker.core.request import Outcome, Request
from reference_broker.protocol.errors import ErrorCode

_CONSUMER = -1
_READ_COMMITTED = 1
_FOLLOWERS_SERVE_VERSION = 11
_LEADER_TOLD_VERSION = 16
_UNKNOWN_OFFSET = -1
_MILLISECOND = timedelta(milliseconds=1)
_MOVED = frozenset({ErrorCode.not_leader_or_follower, ErrorCode.fenced_leader_epoch})


def handle(broker: Broker, request: Request, now: Now) -> Any:
    """What there is to read, or a promise."""
    new, body = request.replies, request.body
    if getattr(body, "session_epoch", -1) > 0:
        return new.FetchResponse(error_code=ErrorCode.fetch_session_id_not_found, responses=())
    reader = _reader(broker, request)
    read = _Read(broker, request, reader, now)
    response = read.response()
    max_wait_ms = body.max_wait // _MILLISECOND
    if read.is_urgent or read.size_bytes >= body.min_bytes or max_wait_ms <= 0 or not body.topics:
        return response
    waiting = _DelayedFetch(broker, request, reader.again(), read.asked)
    broker.runtime.purgatory.wait(waiting, tuple(read.asked), now.monotonic_ms + max_wait_ms)
    return Outcome.DEFERRED


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


@dataclass(slots=True)
class _DelayedFetch:
    """A fetch that waits for data."""

    broker: Broker
    request: Request
    reader: PartitionReader
    asked: dict[Hashable, Any]

    @property
    def connection(self) -> Connection:
        return self.request.connection

    def answer(self, now: Now, happened: Hashable | None) -> bool:
        """Where one byte is enough, the one partition to which something happened tells; and reading can wait."""
        if happened is not None and not self._is_worth_reading(happened):
            return False
        read = _Read(self.broker, self.request, self.reader, now)
        response = read.response()
        if happened is not None and not read.is_urgent and read.size_bytes < self.request.body.min_bytes:
            return False
        self.broker.runtime.respond(self.request, response)
        return True

    def _is_worth_reading(self, key: Any) -> bool:
        partition = self.broker.replicas.find(key)
        return isinstance(partition, ErrorCode) or self.reader.finds_news(partition, self.asked[key])


class _Read:
    """One pass over the partitions of a fetch.

    `size_bytes` and `is_urgent` say afterwards whether the response is worth sending yet; `asked` are the elements of
    the request by partition.
    """

    def __init__(self, broker: Broker, request: Request, reader: PartitionReader, now: Now) -> None:
        self._broker = broker
        self._request = request
        self._reader = reader
        self._now = now
        self._leaders = CurrentLeaders(broker, request)
        self._left_bytes = min(request.body.max_bytes, broker.configuration.integer("fetch.max.bytes"))
        self.size_bytes = 0
        self.is_urgent = False
        self.asked: dict[Hashable, Any] = {}

    def response(self) -> Any:
        """The answer as of now."""
        new = self._request.replies
        responses = tuple(self._topic(topic) for topic in self._request.body.topics)
        return new.FetchResponse(
            error_code=ErrorCode.none, responses=responses, node_endpoints=self._leaders.endpoints()
        )

    def _topic(self, topic: Any) -> Any:
        found = find_topic(self._broker, topic)
        return self._request.replies.FetchableTopicResponse(
            topic=getattr(topic, "topic", None),
            topic_id=getattr(topic, "topic_id", None),
            partitions=tuple(self._partition(found, asked) for asked in topic.partitions),
        )

    def _partition(self, topic: TopicImage | ErrorCode, asked: Any) -> Any:
        partition = find_partition(self._broker, topic, asked.partition)
        if isinstance(topic, ErrorCode) or partition is ErrorCode.unknown_topic_or_partition:
            return self._error(asked, partition, aborted_transactions=())
        if isinstance(partition, ErrorCode):
            return self._error(asked, partition, key=(topic.name, asked.partition))
        self.asked[partition.key] = asked
        return self._read(partition, asked)

    def _read(self, partition: Partition, asked: Any) -> Any:
        """The high watermark is that from before the read, in which a follower may move it."""
        reader, high_watermark = self._reader, partition.high_watermark
        error = reader.check(partition, asked)
        if error is not ErrorCode.none:
            return self._error(asked, error, key=partition.key)
        diverging = reader.diverging_epoch(partition, asked)
        fields = {}
        if diverging is not None:
            self.is_urgent, records = True, b""
            fields["diverging_epoch"] = self._request.replies.EpochEndOffset(
                epoch=diverging[0], end_offset=diverging[1]
            )
        else:
            records = self._records(partition, asked)
            reader.note_progress(partition, asked, self._now)
        return self._request.replies.PartitionData(
            partition_index=asked.partition,
            error_code=ErrorCode.none,
            high_watermark=high_watermark,
            last_stable_offset=high_watermark,
            log_start_offset=partition.log_start_offset,
            aborted_transactions=() if reader.isolation is Isolation.COMMITTED else None,
            records=records,
            **fields,
        )

    def _records(self, partition: Partition, asked: Any) -> bytes:
        """Whole batches; the first batch of the answer whatever its size, later ones only if they fit."""
        end_offset = self._reader.end_offset(partition)
        if asked.fetch_offset > end_offset:
            self.is_urgent = True  # above what it may see: it is not made to wait for that, as in Kafka
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

    def _error(
        self,
        asked: Any,
        error: Any,
        *,
        key: tuple[str, int] | None = None,
        aborted_transactions: tuple[()] | None = None,
    ) -> Any:
        self.is_urgent = True
        fields = {}
        if key is not None and error in _MOVED and self._request.api_version >= _LEADER_TOLD_VERSION:
            fields["current_leader"] = self._leaders.of(*key)
        return self._request.replies.PartitionData(
            partition_index=asked.partition,
            error_code=error,
            high_watermark=_UNKNOWN_OFFSET,
            aborted_transactions=aborted_transactions,
            records=b"",
            **fields,
        )
