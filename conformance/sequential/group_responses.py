"""Responses of the group APIs as plain values."""

import ipaddress
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from conformance.sequential.response import (
    CLASSIC,
    DEAD,
    DESCRIBE,
    NO_OPERATIONS,
    Response,
    Symbols,
    error_of,
    only_partition,
    plain_fields,
)
from conformance.sequential.steps import (
    DeleteGroup,
    DescribeGroup,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    ListedGroups,
    ListGroups,
    OffsetCommit,
    OffsetDelete,
    OffsetFetch,
    Step,
    SyncGroup,
)

_OTHER_GROUPS: Final = "the response has other groups than the requested one"
_STATES_SINCE: Final = 4
_TYPES_SINCE: Final = 5
"""First versions of ListGroups with filters by state (KIP-518) and by type (KIP-848)."""
_DESCRIBED_MAX: Final = 100
"""Maximum number of groups that one request describes."""


def _offset_commit(step: OffsetCommit, response: Any, symbols: Symbols) -> Response:
    partition = only_partition(step, response.topics, symbols)
    return {"error": error_of(partition.error_code)}


def _offset_fetch(step: OffsetFetch, response: Any, symbols: Symbols) -> Response:
    groups = getattr(response, "groups", None)
    if groups is not None and [symbols.script_name(each.group_id) for each in groups] != [step.group]:
        return {"malformed": _OTHER_GROUPS}
    group = response if groups is None else groups[0]
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


def _offset_delete(step: OffsetDelete, response: Any, symbols: Symbols) -> Response:
    """Return the error of the response, or of the partition."""
    if error_of(response.error_code) != "NONE":
        return {"error": error_of(response.error_code)}
    return {"error": error_of(only_partition(step, response.topics, symbols).error_code)}


def _join_group(_step: JoinGroup, response: Any, symbols: Symbols) -> Response:
    """Return the error; with MEMBER_ID_REQUIRED (KIP-394) also the member; without an error also the generation."""
    error = error_of(response.error_code)
    if error not in {"NONE", "MEMBER_ID_REQUIRED"}:
        return {"error": error}
    values: dict[str, Any] = {"error": error, "member": symbols.saw_member_id(response.member_id)}
    if error != "NONE":
        return values
    values["leader"] = symbols.saw_member_id(response.leader)
    values["generation"] = int(response.generation_id)
    values["members"] = tuple((symbols.saw_member_id(each.member_id), each.metadata) for each in response.members)
    values |= _instances(response.members, symbols)
    if hasattr(response, "skip_assignment"):
        values["skip_assignment"] = response.skip_assignment
    return values | _protocol(response)


def _instances(members: Iterable[Any], symbols: Symbols) -> dict[str, Any]:
    """Return the group instance id of each member; nothing in versions without it (KIP-345)."""
    found = [each.group_instance_id for each in members if hasattr(each, "group_instance_id")]
    return {"instances": tuple(id_ and (symbols.script_name(id_) or id_) for id_ in found)} if found else {}


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
    if [(each.member_id, each.group_instance_id) for each in response.members] != [
        (symbols.member_id(step.member), None)
    ]:
        return {"malformed": "the response has other members than the one that leaves"}
    return {"error": error_of(response.members[0].error_code)}


def _describe_group(step: DescribeGroup, response: Any, symbols: Symbols) -> Response:
    if [symbols.script_name(group.group_id) for group in response.groups] != [step.group]:
        return {"malformed": _OTHER_GROUPS}
    group = response.groups[0]
    if error_of(group.error_code) != "NONE":
        return {"error": error_of(group.error_code)}
    return {
        "error": "NONE",
        "state": group.group_state,
        "protocol_type": group.protocol_type,
        "protocol": group.protocol_data,
        "members": tuple(
            (symbols.saw_member_id(each.member_id), bytes(each.member_metadata), bytes(each.member_assignment))
            for each in group.members
        ),
        "clients": tuple((each.client_id, _has_address(each.client_host)) for each in group.members),
        **_instances(group.members, symbols),
        **_operations(group),
    }


def _has_address(client_host: str) -> bool:
    """Whether the host of a client is an IP address as Java prints it: after a slash, which may follow a name."""
    try:
        ipaddress.ip_address(client_host.rpartition("/")[2])
    except ValueError:
        return False
    return True


def _operations(group: Any) -> dict[str, Any]:
    """Return whether there are permitted operations, or a text if DESCRIBE is not one of them; nothing before v3."""
    found = getattr(group, "authorized_operations", None)
    if found is None:
        return {}
    if found == NO_OPERATIONS:
        return {"operations": False}
    return {"operations": True if found & DESCRIBE else f"{found}, without DESCRIBE"}


def _list_groups(step: ListGroups, response: Any, symbols: Symbols) -> Response:
    """Return the number of entries of the group, and its state and type if there is one entry.

    A version without the filter that a step has lists all groups, so the number is left out.
    """
    if (step.types and response.__version__ < _TYPES_SINCE) or (step.states and response.__version__ < _STATES_SINCE):
        return {"error": error_of(response.error_code)}
    found = [group for group in response.groups if symbols.script_name(group.group_id) == step.group]
    values: dict[str, Any] = {"error": error_of(response.error_code), "listed": len(found)}
    if len(found) != 1:
        return values
    return values | {"protocol_type": found[0].protocol_type} | _state(found[0])


def _state(group: Any) -> dict[str, Any]:
    """Return the state and the type of a listed group, in the versions that have them (KIP-518, KIP-848)."""
    fields = {"state": "group_state", "type": "group_type"}
    return {name: getattr(group, field) for name, field in fields.items() if hasattr(group, field)}


def to_describe(listed: Any) -> tuple[str, ...]:
    """Return the ids of listed groups that DescribeGroups can describe: those of the classic protocol, at most 100."""
    classic = (group.group_id for group in listed.groups if getattr(group, "group_type", CLASSIC) == CLASSIC)
    return tuple(classic)[:_DESCRIBED_MAX]


def listed_groups(step: ListedGroups, returned: Sequence[tuple[Any, Any]], symbols: Symbols) -> Response:
    """Return how often the group is listed, which groups are listed twice, and which ones are not described.

    Other clients may delete groups between the two requests, so a script repeats the step (`Eventually`).

    :param returned: the responses of each broker to ListGroups and to DescribeGroups of these groups.
    """
    errors = {error_of(listed.error_code) for listed, _ in returned} - {"NONE"}
    groups = Counter(group.group_id for listed, _ in returned for group in listed.groups)
    return {
        "error": min(errors, default="NONE"),
        "listed": groups[symbols.real(step.group)],
        "listed_twice": tuple(sorted(group for group, count in groups.items() if count > 1)),
        "not_described": tuple(
            sorted(id_ for listed, described in returned for id_ in {*to_describe(listed)} - _existing(described))
        ),
    }


def _existing(described: Any) -> set[str]:
    """Return the ids of the described groups that exist. Versions before 6 describe any other group as dead."""
    return {
        group.group_id
        for group in described.groups
        if error_of(group.error_code) == "NONE" and group.group_state != DEAD
    }


def _delete_group(step: DeleteGroup, response: Any, symbols: Symbols) -> Response:
    if [symbols.script_name(each.group_id) for each in response.results] != [step.group]:
        return {"malformed": _OTHER_GROUPS}
    return {"error": error_of(response.results[0].error_code)}


NORMALISERS: Final[Mapping[type[Step], Callable[[Any, Any, Symbols], Response]]] = {
    OffsetCommit: _offset_commit,
    OffsetFetch: _offset_fetch,
    OffsetDelete: _offset_delete,
    JoinGroup: _join_group,
    SyncGroup: _sync_group,
    Heartbeat: _heartbeat,
    LeaveGroup: _leave_group,
    DescribeGroup: _describe_group,
    ListGroups: _list_groups,
    DeleteGroup: _delete_group,
}
