"""OffsetFetch (9), versions 1-10: the committed offsets of groups.

Follows: org.apache.kafka.coordinator.group.OffsetMetadataManager (KIP-447, KIP-709, KIP-848).

- For a partition without an offset, the response has offset -1, empty metadata and no error, even if the group or the
  topic name is unknown.
- From version 2 null topics select all offsets of the group. From version 8 a request can have several groups
  (KIP-709). In version 10 topics have ids; unknown id: UNKNOWN_TOPIC_ID(100) (KIP-848).
- `require_stable` (KIP-447, from version 7): the response waits until all offsets that were written before the request
  are committed.
- A group that occurs again in the request: INVALID_REQUEST(42). Kafka fetches its offsets again.
- A group with another coordinator: NOT_COORDINATOR(16). A group whose offsets are being loaded:
  COORDINATOR_LOAD_IN_PROGRESS(14). The error is in the group's element from version 8, at the top level in versions 2
  to 7, and in each partition in version 1.
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
from reference_broker.core.request import Request, RequestOutcome
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.group_records import OffsetCommitValue
from reference_broker.protocol.steps import Pace, Steps

_NO_OFFSET = -1
_SEVERAL_GROUPS_VERSION = 8
_TOP_LEVEL_ERROR_VERSION = 2
_REPEATED: tuple[tuple[Any, ...], ErrorCode] = ((), ErrorCode.invalid_request)
"""Topics and error of a group that occurs again."""
_Committed = Mapping[tuple[str, int], OffsetCommitValue]
"""Committed offsets of a group, by topic name and partition index."""


def handle(broker: Broker, request: Request, now: Now) -> Any:
    """Return the requested offsets."""
    if not getattr(request.body, "require_stable", False):
        return _response(broker, request, {})
    groups = [broker.groups.find(group.group_id) for group in _requested_groups(request)]

    def on_stable(errors: Mapping[int, ErrorCode], later: Now) -> None:
        broker.runtime.work.run(request, _response(broker, request, errors), respond, later)

    def respond(response: Any, _: Now) -> None:
        broker.runtime.respond(request, response)

    broker.groups.await_stable([group for group in groups if isinstance(group, GroupOffsets)], on_stable, now)
    return RequestOutcome.DEFERRED


def _requested_groups(request: Request) -> Any:
    """Return the elements that have `group_id` and `topics`. Before version 8 this is only the request body."""
    return request.body.groups if request.api_version >= _SEVERAL_GROUPS_VERSION else (request.body,)


def _response(broker: Broker, request: Request, unstable: Mapping[int, ErrorCode]) -> Steps[Any]:
    """Return the response.

    :param unstable: errors that occurred while the request waited for stable offsets, by partition of
        `__consumer_offsets`.
    """
    new = request.replies
    fetched: set[str] = set()
    results = []
    pace = Pace()
    for group in _requested_groups(request):
        if pace.is_due():
            yield
        is_repeated = group.group_id in fetched
        results.append(_REPEATED if is_repeated else _group(broker, request, group, unstable))
        fetched.add(group.group_id)
    if request.api_version < _SEVERAL_GROUPS_VERSION:
        [(topics, error)] = results
        return new.OffsetFetchResponse(topics=topics, error_code=error)
    return new.OffsetFetchResponse(
        groups=tuple(
            new.OffsetFetchResponseGroup(group_id=requested.group_id, topics=topics, error_code=error)
            for requested, (topics, error) in zip(request.body.groups, results, strict=True)
        )
    )


def _group(
    broker: Broker, request: Request, requested: Any, unstable: Mapping[int, ErrorCode]
) -> tuple[tuple[Any, ...], ErrorCode]:
    """Return the topics of one group, and its error."""
    found = broker.groups.find(requested.group_id)
    if isinstance(found, GroupOffsets):
        error = unstable.get(found.partition.index, ErrorCode.none)
        if error is ErrorCode.none:
            return _topics(broker, request, found.committed(requested.group_id), requested.topics), error
    else:
        error = found
    if request.api_version >= _TOP_LEVEL_ERROR_VERSION:
        return (), error
    return tuple(
        _new(request, "Topic")(
            name=topic.name,
            partitions=tuple(_partition(request, index, None, error) for index in topic.partition_indexes),
        )
        for topic in requested.topics
    ), error


def _topics(broker: Broker, request: Request, committed: _Committed, requested: Any) -> tuple[Any, ...]:
    if requested is not None:
        return tuple(_requested_topic(broker, request, committed, topic) for topic in requested)
    by_topic: defaultdict[str, list[int]] = defaultdict(list)
    for topic, index in committed:
        if topic in broker.image.topics:
            by_topic[topic].append(index)
    return tuple(_topic(request, committed, broker.image.topics[topic], indexes) for topic, indexes in by_topic.items())


def _requested_topic(broker: Broker, request: Request, committed: _Committed, requested: Any) -> Any:
    found = find_topic(broker, requested)
    if isinstance(found, TopicImage):
        return _topic(request, committed, found, requested.partition_indexes)
    by_id = found is ErrorCode.unknown_topic_id
    error = found if by_id else ErrorCode.none  # an unknown name has no offset, which is not an error
    partitions = tuple(_partition(request, index, None, error) for index in requested.partition_indexes)
    return _new(request, "Topic")(
        name=None if by_id else requested.name, topic_id=requested.topic_id if by_id else None, partitions=partitions
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
    """Return kio's class of an element of the response. From version 8 the class name is in the plural."""
    make: Callable[..., Any] = getattr(
        request.replies, f"OffsetFetchResponse{element}{'s' if request.api_version >= 8 else ''}"
    )
    return make
