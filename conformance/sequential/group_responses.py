"""Responses of the group APIs as plain values."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from conformance.sequential.response import Response, Symbols, error_of, only_partition, plain_fields
from conformance.sequential.steps import Heartbeat, JoinGroup, LeaveGroup, OffsetCommit, OffsetFetch, Step, SyncGroup


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


NORMALISERS: Final[Mapping[type[Step], Callable[[Any, Any, Symbols], Response]]] = {
    OffsetCommit: _offset_commit,
    OffsetFetch: _offset_fetch,
    JoinGroup: _join_group,
    SyncGroup: _sync_group,
    Heartbeat: _heartbeat,
    LeaveGroup: _leave_group,
}
