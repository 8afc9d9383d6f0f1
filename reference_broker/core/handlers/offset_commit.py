"""OffsetCommit (8), versions 2-10: a group's offsets are written down.

- There are no members, so only a commit without a generation (-1) is lawful, as of a simple consumer or an
  administrator. With one it is UNKNOWN_MEMBER_ID(25) where the group has offsets; where there is no such group,
  GROUP_ID_NOT_FOUND(69) from version 9, ILLEGAL_GENERATION(22) before it.
- Metadata longer than `offset.metadata.max.bytes`: OFFSET_METADATA_TOO_LARGE(12), for that partition alone.
- Commits that together are larger than a batch may be: INVALID_COMMIT_OFFSET_SIZE(28).
- Unknown partition: UNKNOWN_TOPIC_OR_PARTITION(3), from version 10 by topic id UNKNOWN_TOPIC_ID(100).

Gaps: offsets never expire (`offsets.retention.minutes`).
"""

from collections.abc import Mapping
from typing import Any

from reference_broker.core.broker import Broker
from reference_broker.core.clock import Now
from reference_broker.core.controller import ControllerError
from reference_broker.core.handlers.lookup import find_partition, find_topic
from reference_broker.core.log.errors import AppendError
from reference_broker.core.replication.partition import NO_EPOCH, Partition
from reference_broker.core.request import Request
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.group_records import OffsetCommitKey, OffsetCommitValue


def handle(broker: Broker, request: Request, now: Now) -> Any:
    """What became of each offset."""
    refused = _refuse_member(broker, request) or _ensure_offsets_topic(broker, now)
    errors: dict[int, ErrorCode] = {}
    commits = []
    for topic in request.body.topics:
        found = find_topic(broker, topic)
        for asked in topic.partitions:
            partition = find_partition(broker, found, asked.partition_index)
            errors[id(asked)] = refused or _check(broker, partition, asked)
            if errors[id(asked)] is ErrorCode.none and isinstance(partition, Partition):
                commits.append(_commit(request.body.group_id, partition, asked, now))
    try:
        broker.groups.commit(commits, request.body.group_id, now)
    except AppendError:
        too_large = ErrorCode.invalid_commit_offset_size
        errors = {key: too_large if error is ErrorCode.none else error for key, error in errors.items()}
    return _response(request, errors)


def _response(request: Request, errors: Mapping[int, ErrorCode]) -> Any:
    """`errors` are by the identity of the request's elements."""
    new = request.replies
    return new.OffsetCommitResponse(
        topics=tuple(
            new.OffsetCommitResponseTopic(
                name=getattr(topic, "name", None),
                topic_id=getattr(topic, "topic_id", None),
                partitions=tuple(
                    new.OffsetCommitResponsePartition(
                        partition_index=asked.partition_index, error_code=errors[id(asked)]
                    )
                    for asked in topic.partitions
                ),
            )
            for topic in request.body.topics
        )
    )


def _refuse_member(broker: Broker, request: Request) -> ErrorCode | None:
    body = request.body
    generation = body.generation_id_or_member_epoch
    if not broker.groups.exists(body.group_id) and generation >= 0:
        return ErrorCode.group_id_not_found if request.api_version >= 9 else ErrorCode.illegal_generation
    return ErrorCode.unknown_member_id if generation >= 0 else None


def _ensure_offsets_topic(broker: Broker, now: Now) -> ErrorCode | None:
    try:
        broker.ensure_offsets_topic(now)
    except ControllerError:
        return ErrorCode.coordinator_not_available
    return None


def _check(broker: Broker, partition: Partition | ErrorCode, asked: Any) -> ErrorCode:
    if isinstance(partition, ErrorCode):
        return partition
    metadata_max_bytes = broker.configuration.integer("offset.metadata.max.bytes")
    too_large = len(asked.committed_metadata or "") > metadata_max_bytes
    return ErrorCode.offset_metadata_too_large if too_large else ErrorCode.none


def _commit(group: str, partition: Partition, asked: Any, now: Now) -> tuple[OffsetCommitKey, OffsetCommitValue | None]:
    key = OffsetCommitKey(group=group, topic=partition.topic, partition=partition.index)
    value = OffsetCommitValue(
        offset=asked.committed_offset,
        leader_epoch=getattr(asked, "committed_leader_epoch", NO_EPOCH),
        metadata=asked.committed_metadata or "",
        commit_timestamp=now.wall_ms,
    )
    return key, value
