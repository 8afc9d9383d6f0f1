"""OffsetFetch (9), versions 1-10: what groups have committed.

- A partition without an offset is -1 with empty metadata and no error, be it that the group, or the topic, is unknown.
- From version 2 null topics ask for all that the group has; from version 8 for several groups at once (KIP-709); in
  version 10 topics go by id, unknown id UNKNOWN_TOPIC_ID(100) (KIP-848).
- `require_stable` (KIP-447) never waits: there is no transaction.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from reference_broker.core.broker import Broker
from reference_broker.core.clock import Now
from reference_broker.core.handlers.lookup import find_topic
from reference_broker.core.metadata.image import TopicImage
from reference_broker.core.replication.partition import NO_EPOCH
from reference_broker.core.request import Request
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.group_records import OffsetCommitValue

_NO_OFFSET = -1
_Committed = Mapping[tuple[str, int], OffsetCommitValue]


def handle(broker: Broker, request: Request, now: Now) -> Any:
    """The offsets asked for."""
    new, body = request.replies, request.body
    if request.api_version < 8:
        return new.OffsetFetchResponse(
            topics=_group(broker, request, body.group_id, body.topics), error_code=ErrorCode.none
        )
    return new.OffsetFetchResponse(
        groups=tuple(
            new.OffsetFetchResponseGroup(
                group_id=group.group_id,
                topics=_group(broker, request, group.group_id, group.topics),
                error_code=ErrorCode.none,
            )
            for group in body.groups
        )
    )


def _group(broker: Broker, request: Request, group: str, asked: Any) -> tuple[Any, ...]:
    committed = broker.groups.committed(group)
    if asked is not None:
        return tuple(_asked_topic(broker, request, committed, topic) for topic in asked)
    by_topic: defaultdict[str, list[int]] = defaultdict(list)
    for topic, index in committed:
        if topic in broker.image.topics:
            by_topic[topic].append(index)
    return tuple(_topic(request, committed, broker.image.topics[topic], indexes) for topic, indexes in by_topic.items())


def _asked_topic(broker: Broker, request: Request, committed: _Committed, asked: Any) -> Any:
    found = find_topic(broker, asked)
    if isinstance(found, TopicImage):
        return _topic(request, committed, found, asked.partition_indexes)
    by_id = found is ErrorCode.unknown_topic_id
    error = found if by_id else ErrorCode.none  # a name that nobody knows has no offset, and that is no error
    partitions = tuple(_partition(request, index, None, error) for index in asked.partition_indexes)
    return _new(request, "Topic")(
        name=None if by_id else asked.name, topic_id=asked.topic_id if by_id else None, partitions=partitions
    )


def _topic(request: Request, committed: _Committed, topic: TopicImage, indexes: Iterable[int]) -> Any:
    partitions = (_partition(request, index, committed.get((topic.name, index)), ErrorCode.none) for index in indexes)
    return _new(request, "Topic")(name=topic.name, topic_id=topic.topic_id, partitions=tuple(partitions))


def _partition(request: Request, index: int, committed: OffsetCommitValue | None, error: ErrorCode) -> Any:
    return _new(request, "Partition")(
        partition_index=index,
        committed_offset=_NO_OFFSET if committed is None else committed.offset,
        committed_leader_epoch=NO_EPOCH if committed is None else committed.leader_epoch,
        metadata="" if committed is None else committed.metadata,
        error_code=error,
    )


def _new(request: Request, element: str) -> Callable[..., Any]:
    """The classes are named in the plural from version 8 on."""
    make: Callable[..., Any] = getattr(
        request.replies, f"OffsetFetchResponse{element}{'s' if request.api_version >= 8 else ''}"
    )
    return make
