"""OffsetCommit (8), versions 2-10: a group's offsets are written down, and count once they are committed themselves.

- Unknown partition: UNKNOWN_TOPIC_OR_PARTITION(3), from version 10 by topic id UNKNOWN_TOPIC_ID(100). The others go to
  the coordinator, and share its error:
- NOT_COORDINATOR(16), COORDINATOR_LOAD_IN_PROGRESS(14), and what may become of the append (`group_coordinator`).
- There are no members, so only a commit without a generation (-1) is lawful, as of a simple consumer or an
  administrator. With one it is UNKNOWN_MEMBER_ID(25) where the group has offsets; where there is no such group,
  GROUP_ID_NOT_FOUND(69) from version 9, ILLEGAL_GENERATION(22) before it.
- Metadata longer than `offset.metadata.max.bytes`: OFFSET_METADATA_TOO_LARGE(12), for that partition alone.

Gaps: offsets never expire (`offsets.retention.minutes`).
"""

from collections.abc import Mapping
from typing import Any

from reference_broker.core.broker import Broker
from reference_broker.core.clock import Now
from reference_broker.core.group_offsets import Commit, GroupOffsets
from reference_broker.core.handlers.lookup import find_topic
from reference_broker.core.replication.partition import NO_EPOCH
from reference_broker.core.request import Outcome, Request
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.group_records import OffsetCommitKey, OffsetCommitValue

_GROUP_NOT_FOUND_VERSION = 9


def handle(broker: Broker, request: Request, now: Now) -> Any:
    """What became of each offset."""
    known, errors = _sort_out(broker, request)
    if not known:
        return _response(request, errors, ErrorCode.none)
    group = broker.groups.find(request.body.group_id)
    refused = group if isinstance(group, ErrorCode) else _refuse_member(group, request)
    if isinstance(group, ErrorCode) or refused is not None:
        return _response(request, errors, refused or ErrorCode.none)
    metadata_max_bytes = broker.configuration.integer("offset.metadata.max.bytes")
    commits = []
    for topic, asked in known:
        if len(asked.committed_metadata or "") > metadata_max_bytes:
            errors[id(asked)] = ErrorCode.offset_metadata_too_large
        else:
            commits.append(_commit(request.body.group_id, topic, asked, now))

    def settled(error: ErrorCode, _: Now) -> None:
        broker.runtime.respond(request, _response(request, errors, error))

    broker.groups.commit(group, commits, settled, now)
    return Outcome.DEFERRED


def _sort_out(broker: Broker, request: Request) -> tuple[list[tuple[str, Any]], dict[int, ErrorCode]]:
    """The elements whose partition exists, each with its topic, and the errors of the others by their identity."""
    known, errors = [], {}
    for topic in request.body.topics:
        found = find_topic(broker, topic)
        for asked in topic.partitions:
            if isinstance(found, ErrorCode):
                errors[id(asked)] = found
            elif asked.partition_index in found.partitions:
                known.append((found.name, asked))
            else:
                errors[id(asked)] = ErrorCode.unknown_topic_or_partition
    return known, errors


def _refuse_member(group: GroupOffsets, request: Request) -> ErrorCode | None:
    if request.body.generation_id_or_member_epoch < 0:
        return None
    if group.exists(request.body.group_id):
        return ErrorCode.unknown_member_id
    is_told = request.api_version >= _GROUP_NOT_FOUND_VERSION
    return ErrorCode.group_id_not_found if is_told else ErrorCode.illegal_generation


def _commit(group: str, topic: str, asked: Any, now: Now) -> Commit:
    key = OffsetCommitKey(group=group, topic=topic, partition=asked.partition_index)
    value = OffsetCommitValue(
        offset=asked.committed_offset,
        leader_epoch=getattr(asked, "committed_leader_epoch", NO_EPOCH),
        metadata=asked.committed_metadata or "",
        commit_timestamp=now.wall_ms,
    )
    return key, value


def _response(request: Request, errors: Mapping[int, ErrorCode], of_others: ErrorCode) -> Any:
    """`errors` are by the identity of the request's elements."""
    new = request.replies
    return new.OffsetCommitResponse(
        topics=tuple(
            new.OffsetCommitResponseTopic(
                name=getattr(topic, "name", None),
                topic_id=getattr(topic, "topic_id", None),
                partitions=tuple(
                    new.OffsetCommitResponsePartition(
                        partition_index=asked.partition_index, error_code=errors.get(id(asked), of_others)
                    )
                    for asked in topic.partitions
                ),
            )
            for topic in request.body.topics
        )
    )
