"""OffsetFetch (9), versions 1-10: what groups have committed.

- A partition without an offset is -1 with empty metadata and no error, be it that the group, or the topic, is unknown.
- From version 2 null topics ask for all that the group has; from version 8 for several groups at once (KIP-709); in
  version 10 topics go by id, unknown id UNKNOWN_TOPIC_ID(100) (KIP-848).
- `require_stable` (KIP-447, from version 7): no commit may be under way. The answer waits until all that is written is
  committed.
- A group that has occurred before in the request: INVALID_REQUEST(42). Kafka fetches its offsets again.
- A group that another broker coordinates: NOT_COORDINATOR(16), one whose offsets are being read
  COORDINATOR_LOAD_IN_PROGRESS(14): of each group, before version 8 of the whole, in version 1 of every partition.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from reference_broker.core.broker import Broker
from reference_broker.core.clock import Now
from reference_broker.core.group_offsets import GroupOffsets
from reference_broker.core.handlers.lookup import find_topic
from reference_broker.core.metadata.image import TopicImage
from reference_broker.core.replication.partition import NO_EPOCH
from reference_broker.core.request import Outcome, Request
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.group_records import OffsetCommitValue

_NO_OFFSET = -1
_SEVERAL_GROUPS_VERSION = 8
_ERROR_OF_THE_WHOLE_VERSION = 2
_REPEATED: tuple[tuple[Any, ...], ErrorCode] = ((), ErrorCode.invalid_request)
_Committed = Mapping[tuple[str, int], OffsetCommitValue]


def handle(broker: Broker, request: Request, now: Now) -> Any:
    """The offsets asked for."""
    if not getattr(request.body, "require_stable", False):
        return _response(broker, request, {})
    groups = [broker.groups.find(group.group_id) for group in _asked_groups(request)]

    def settled(errors: Mapping[int, ErrorCode], _: Now) -> None:
        broker.runtime.respond(request, _response(broker, request, errors))

    broker.groups.await_stable([group for group in groups if isinstance(group, GroupOffsets)], settled, now)
    return Outcome.DEFERRED


def _asked_groups(request: Request) -> Any:
    """Elements with a `group_id` and `topics`, of which the request itself is one in older versions."""
    return request.body.groups if request.api_version >= _SEVERAL_GROUPS_VERSION else (request.body,)


def _response(broker: Broker, request: Request, unstable: Mapping[int, ErrorCode]) -> Any:
    """`unstable`: why what is written could not be waited for, by partition of `__consumer_offsets`."""
    new = request.replies
    fetched: set[str] = set()
    answers = []
    for group in _asked_groups(request):
        is_repeated = group.group_id in fetched
        answers.append(_REPEATED if is_repeated else _group(broker, request, group, unstable))
        fetched.add(group.group_id)
    if request.api_version < _SEVERAL_GROUPS_VERSION:
        [(topics, error)] = answers
        return new.OffsetFetchResponse(topics=topics, error_code=error)
    return new.OffsetFetchResponse(
        groups=tuple(
            new.OffsetFetchResponseGroup(group_id=asked.group_id, topics=topics, error_code=error)
            for asked, (topics, error) in zip(request.body.groups, answers, strict=True)
        )
    )


def _group(
    broker: Broker, request: Request, asked: Any, unstable: Mapping[int, ErrorCode]
) -> tuple[tuple[Any, ...], ErrorCode]:
    """The topics of one group, and its error."""
    found = broker.groups.find(asked.group_id)
    if isinstance(found, GroupOffsets):
        error = unstable.get(found.partition.index, ErrorCode.none)
        if error is ErrorCode.none:
            return _topics(broker, request, found.committed(asked.group_id), asked.topics), error
    else:
        error = found
    if request.api_version >= _ERROR_OF_THE_WHOLE_VERSION:
        return (), error
    return tuple(
        _new(request, "Topic")(
            name=topic.name,
            partitions=tuple(_partition(request, index, None, error) for index in topic.partition_indexes),
        )
        for topic in asked.topics
    ), error


def _topics(broker: Broker, request: Request, committed: _Committed, asked: Any) -> tuple[Any, ...]:
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
