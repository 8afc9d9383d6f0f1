"""OffsetCommit (8), versions 2-10: write the offsets of a group.

Follows: org.apache.kafka.coordinator.group.OffsetMetadataManager (KIP-848).

- An offset takes effect once its record is committed in `__consumer_offsets`.
- Unknown topic name or partition: UNKNOWN_TOPIC_OR_PARTITION(3). From version 10 topics have ids; unknown id:
  UNKNOWN_TOPIC_ID(100).
- If the commit of the group fails, all known partitions have its error: NOT_COORDINATOR(16),
  COORDINATOR_LOAD_IN_PROGRESS(14), or an error of the append (`group_coordinator`).
- Groups have no members here. So the generation must be -1, as in commits by simple consumers and admin clients. With
  another generation the error is UNKNOWN_MEMBER_ID(25) if the group has offsets. If it has none, the error is
  GROUP_ID_NOT_FOUND(69), before version 9 ILLEGAL_GENERATION(22).
- Metadata of more characters than `offset.metadata.max.bytes`: OFFSET_METADATA_TOO_LARGE(12) for that partition alone.

Gaps: offsets never expire (`offsets.retention.minutes`).
"""

from collections.abc import Mapping
from typing import Any

from reference_broker.core.broker import Broker
from reference_broker.core.clock import Now
from reference_broker.core.group_offsets import Commit, GroupOffsets
from reference_broker.core.handlers.lookup import find_topic
from reference_broker.core.replication.partition import NO_EPOCH
from reference_broker.core.request import Request, RequestOutcome
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.group_records import OffsetCommitKey, OffsetCommitValue

_GROUP_NOT_FOUND_VERSION = 9


def handle(broker: Broker, request: Request, now: Now) -> Any:
    """Commit the offsets, and return the error or success of each."""
    known, errors = _known_partitions(broker, request)
    if not known:
        return _response(request, errors, ErrorCode.none)
    group = broker.groups.find(request.body.group_id)
    error = group if isinstance(group, ErrorCode) else _validate_offset_commit(group, request)
    if isinstance(group, ErrorCode) or error is not None:
        return _response(request, errors, error or ErrorCode.none)
    metadata_max_bytes = broker.configuration.integer("offset.metadata.max.bytes")
    commits = []
    for topic, requested in known:
        if len(requested.committed_metadata or "") > metadata_max_bytes:
            errors[id(requested)] = ErrorCode.offset_metadata_too_large
        else:
            commits.append(_commit(request.body.group_id, topic, requested, now))

    def on_committed(error: ErrorCode, _: Now) -> None:
        broker.runtime.respond(request, _response(request, errors, error))

    broker.groups.commit(group, commits, on_committed, now)
    return RequestOutcome.DEFERRED


def _known_partitions(broker: Broker, request: Request) -> tuple[list[tuple[str, Any]], dict[int, ErrorCode]]:
    """Divide the request's partitions into those that exist and those that do not.

    Return each existing partition with its topic name, and the errors of the others by `id()` of the request's element.
    """
    known, errors = [], {}
    for topic in request.body.topics:
        found = find_topic(broker, topic)
        for requested in topic.partitions:
            if isinstance(found, ErrorCode):
                errors[id(requested)] = found
            elif requested.partition_index in found.partitions:
                known.append((found.name, requested))
            else:
                errors[id(requested)] = ErrorCode.unknown_topic_or_partition
    return known, errors


def _validate_offset_commit(group: GroupOffsets, request: Request) -> ErrorCode | None:
    if request.body.generation_id_or_member_epoch < 0:
        return None
    if group.exists(request.body.group_id):
        return ErrorCode.unknown_member_id
    has_error = request.api_version >= _GROUP_NOT_FOUND_VERSION
    return ErrorCode.group_id_not_found if has_error else ErrorCode.illegal_generation


def _commit(group: str, topic: str, requested: Any, now: Now) -> Commit:
    key = OffsetCommitKey(group=group, topic=topic, partition=requested.partition_index)
    value = OffsetCommitValue(
        offset=requested.committed_offset,
        leader_epoch=getattr(requested, "committed_leader_epoch", NO_EPOCH),
        metadata=requested.committed_metadata or "",
        commit_timestamp=now.wall_ms,
    )
    return key, value


def _response(request: Request, errors: Mapping[int, ErrorCode], error: ErrorCode) -> Any:
    """Return the response.

    :param errors: errors of single partitions, by `id()` of the request's elements.
    :param error: error of the other partitions.
    """
    new = request.replies
    return new.OffsetCommitResponse(
        topics=tuple(
            new.OffsetCommitResponseTopic(
                name=getattr(topic, "name", None),
                topic_id=getattr(topic, "topic_id", None),
                partitions=tuple(
                    new.OffsetCommitResponsePartition(
                        partition_index=requested.partition_index, error_code=errors.get(id(requested), error)
                    )
                    for requested in topic.partitions
                ),
            )
            for topic in request.body.topics
        )
    )
