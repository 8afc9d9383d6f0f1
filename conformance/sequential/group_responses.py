"""Responses of the group APIs as plain values."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from conformance.sequential.response import Response, Symbols, error_of, only_partition, plain_fields
from conformance.sequential.steps import (
    DeleteGroup,
    DescribeGroup,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    ListGroups,
    OffsetCommit,
    OffsetFetch,
    Step,
    SyncGroup,
)


def _offset_commit(step: OffsetCommit, response: Any, symbols: Symbols) -> Response:
    partition = only_partition(step, response.topics, symbols)
    return {"error": error_of(partition.error_code)}


def _offset_fetch(step: OffsetFetch, response: Any, symbols: Symbols) -> Response:
    group = response.groups[0] if hasattr(response, "groups") else response
    if hasattr(group, "error_code") and error_of(group.error_code) != "NONE":
        return {"error": error_of(group.error_code)}
    if step.topic is None:
        return {"error": "NONE", "committed": _committed_offsets(group.topics, symbols)}
    partition = only_partition(step, group.topics, symbols)
    values = {"error": error_of(partition.error_code), "metadata": partition.metadata or ""}
    return values | plain_fields(partition, "committed_offset", "committed_leader_epoch")


def _committed_offsets(topics: Any, symbols: Symbols) -> tuple[tuple[str | None, int, int], ...]:
    """Return topic, partition and offset of each partition."""
    return tuple(
        sorted(
            (symbols.script_name(topic.name), int(partition.partition_index), int(partition.committed_offset))
            for topic in topics
            for partition in topic.partitions
        )
    )


def _join_group(_step: JoinGroup, response: Any, symbols: Symbols) -> Response:
    """Return the error; beside MEMBER_ID_REQUIRED (KIP-394) the member, too, and in a new generation also its state."""
    error = error_of(response.error_code)
    if error not in {"NONE", "MEMBER_ID_REQUIRED"}:
        return {"error": error}
    values: dict[str, Any] = {"error": error, "member": symbols.saw_member_id(response.member_id)}
    if error != "NONE":
        return values
    values["leader"] = symbols.saw_member_id(response.leader)
    values["generation"] = int(response.generation_id)
    values["members"] = tuple((symbols.saw_member_id(each.member_id), each.metadata) for each in response.members)
    if hasattr(response, "skip_assignment"):
        values["skip_assignment"] = response.skip_assignment
    return values | _protocol(response)


def _protocol(response: Any) -> dict[str, Any]:
    names = ("protocol_type", "protocol_name")
    return {name: getattr(response, name) for name in names if hasattr(response, name)}


def _sync_group(_step: SyncGroup, response: Any, _symbols: Symbols) -> Response:
    error = error_of(response.error_code)
    return {"error": error} | ({"assignment": response.assignment, **_protocol(response)} if error == "NONE" else {})


def _heartbeat(_step: Heartbeat, response: Any, _symbols: Symbols) -> Response:
    return {"error": error_of(response.error_code)}


def _leave_group(step: LeaveGroup, response: Any, symbols: Symbols) -> Response:
    """Return the error of the response, or of the member."""
    if error_of(response.error_code) != "NONE" or not hasattr(response, "members"):
        return {"error": error_of(response.error_code)}
    if [each.member_id for each in response.members] != [symbols.member_id(step.member)]:
        return {"malformed": "the response has other members than the one that leaves"}
    return {"error": error_of(response.members[0].error_code)}


def _describe_group(step: DescribeGroup, response: Any, symbols: Symbols) -> Response:
    if [symbols.script_name(group.group_id) for group in response.groups] != [step.group]:
        return {"malformed": "the response has other groups than the requested one"}
    group = response.groups[0]
    return {
        "error": error_of(group.error_code),
        "state": group.group_state,
        "protocol_type": group.protocol_type,
        "protocol": group.protocol_data,
        "members": tuple(
            (symbols.saw_member_id(each.member_id), bytes(each.member_metadata), bytes(each.member_assignment))
            for each in group.members
        ),
    }


def _list_groups(step: ListGroups, response: Any, symbols: Symbols) -> Response:
    """Return the number of entries of the group, and its state and type of protocol if there is one."""
    found = [group for group in response.groups if symbols.script_name(group.group_id) == step.group]
    values: dict[str, Any] = {"error": error_of(response.error_code), "listed": len(found)}
    if len(found) != 1:
        return values
    return values | {"protocol_type": found[0].protocol_type} | _state(found[0])


def _state(group: Any) -> dict[str, Any]:
    """Return the state of a listed group; empty in versions without it (KIP-518)."""
    return {"state": group.group_state} if hasattr(group, "group_state") else {}


def _delete_group(step: DeleteGroup, response: Any, symbols: Symbols) -> Response:
    if [symbols.script_name(each.group_id) for each in response.results] != [step.group]:
        return {"malformed": "the response has other groups than the requested one"}
    return {"error": error_of(response.results[0].error_code)}


NORMALISERS: Final[Mapping[type[Step], Callable[[Any, Any, Symbols], Response]]] = {
    OffsetCommit: _offset_commit,
    OffsetFetch: _offset_fetch,
    JoinGroup: _join_group,
    SyncGroup: _sync_group,
    Heartbeat: _heartbeat,
    LeaveGroup: _leave_group,
    DescribeGroup: _describe_group,
    ListGroups: _list_groups,
    DeleteGroup: _delete_group,
}
