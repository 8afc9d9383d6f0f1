"""Requests of the group APIs, built from steps."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from conformance.sequential.layout import Names, milliseconds, one_topic
from conformance.sequential.steps import (
    PROTOCOL_TYPE,
    DeleteGroup,
    DescribeGroup,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    ListGroups,
    OffsetCommit,
    OffsetDelete,
    OffsetFetch,
    Step,
    SyncGroup,
)
from fixtures.clients.messages import ApiKey


def _offset_commit(step: OffsetCommit, names: Names) -> dict[str, Any]:
    partition = {
        "committed_offset": step.offset,
        "committed_leader_epoch": step.leader_epoch,
        "committed_metadata": step.metadata,
    }
    return {
        "group_id": names.real(step.group),
        "generation_id_or_member_epoch": step.generation,
        "generation_id": step.generation,
        "member_id": names.member_id(step.member),
        "retention_time": milliseconds(-1),
        "topics": [one_topic(step, names, partition)],
    }


def _offset_fetch(step: OffsetFetch, names: Names) -> dict[str, Any]:
    group, topics = names.real(step.group), None
    if step.topic is not None:
        name = names.real(step.topic)
        topics = [{"name": name, "topic_id": names.topic_id(step.topic), "partition_indexes": (step.partition,)}]
    return {"group_id": group, "topics": topics, "groups": [{"group_id": group, "topics": topics}]}


def _offset_delete(step: OffsetDelete, names: Names) -> dict[str, Any]:
    return {"group_id": names.real(step.group), "topics": [one_topic(step, names, {})]}


def _join_group(step: JoinGroup, names: Names) -> dict[str, Any]:
    session_timeout_ms = names.short_session_timeout_ms if step.short_session else names.session_timeout_ms
    return {
        "group_id": names.real(step.group),
        "session_timeout": milliseconds(session_timeout_ms),
        "rebalance_timeout": milliseconds(names.session_timeout_ms),
        "member_id": names.member_id(step.member),
        "group_instance_id": None if step.instance is None else names.real(step.instance),
        "protocol_type": PROTOCOL_TYPE,
        "protocols": [{"name": name, "metadata": metadata} for name, metadata in step.protocols],
        "reason": None,
    }


def _sync_group(step: SyncGroup, names: Names) -> dict[str, Any]:
    return {
        **_in_generation(step, names),
        "protocol_type": PROTOCOL_TYPE,
        "protocol_name": step.protocol,
        "assignments": [{"member_id": names.member_id(step.member), "assignment": step.assignment}],
    }


def _in_generation(step: SyncGroup | Heartbeat, names: Names) -> dict[str, Any]:
    return {
        "group_id": names.real(step.group),
        "generation_id": step.generation,
        "member_id": names.member_id(step.member),
        "group_instance_id": None,
    }


def _leave_group(step: LeaveGroup, names: Names) -> dict[str, Any]:
    member = {"member_id": names.member_id(step.member), "group_instance_id": None, "reason": None}
    return {"group_id": names.real(step.group), **member, "members": [member]}


def _describe_group(step: DescribeGroup, names: Names) -> dict[str, Any]:
    return {"groups": (names.real(step.group),), "include_authorized_operations": step.with_operations}


def _list_groups(step: ListGroups, _names: Names) -> dict[str, Any]:
    return {"states_filter": step.states, "types_filter": step.types}


def _delete_group(step: DeleteGroup, names: Names) -> dict[str, Any]:
    return {"groups_names": (names.real(step.group),)}


REQUESTS: Final[Mapping[type[Step], tuple[ApiKey, Callable[[Any, Names], dict[str, Any]]]]] = {
    OffsetCommit: (ApiKey.OFFSET_COMMIT, _offset_commit),
    OffsetFetch: (ApiKey.OFFSET_FETCH, _offset_fetch),
    OffsetDelete: (ApiKey.OFFSET_DELETE, _offset_delete),
    JoinGroup: (ApiKey.JOIN_GROUP, _join_group),
    SyncGroup: (ApiKey.SYNC_GROUP, _sync_group),
    Heartbeat: (ApiKey.HEARTBEAT, _in_generation),
    LeaveGroup: (ApiKey.LEAVE_GROUP, _leave_group),
    DescribeGroup: (ApiKey.DESCRIBE_GROUPS, _describe_group),
    ListGroups: (ApiKey.LIST_GROUPS, _list_groups),
    DeleteGroup: (ApiKey.DELETE_GROUPS, _delete_group),
}
