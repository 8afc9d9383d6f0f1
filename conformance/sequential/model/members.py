"""Model of JoinGroup, SyncGroup, Heartbeat and LeaveGroup (`GroupMetadataManager`, `ClassicGroup`, KIP-394).

A script has at most one member in each group, so that no request waits for other members.
"""

from typing import Final

from conformance.sequential.expectation import Expectation
from conformance.sequential.model.cluster import Group, ModelCluster
from conformance.sequential.steps import PROTOCOL_TYPE, AwaitSessionTimeout, Heartbeat, JoinGroup, LeaveGroup, SyncGroup
from conformance.sequential.steps.groups import Member

MEMBER_ID_REQUIRED_SINCE: Final = 4
"""The version of JoinGroup since which a new member first receives its id (KIP-394)."""
UNKNOWN_MEMBER: Final = "UNKNOWN_MEMBER_ID"


def join_group(cluster: ModelCluster, step: JoinGroup) -> Expectation:
    """Assign an id to a new member, or begin a generation with the only member as its leader.

    A static member, and any member in versions before 4, begins a generation with its first request. A member that
    joins again before it has sent the assignment remains in the same generation, unless its protocols have changed.
    """
    group = cluster.groups.setdefault(step.group, Group())
    member = step.member
    if member == "":
        member, cluster.members = cluster.members, cluster.members + 1
        group.pending.add(member)
        if step.instance is None and (step.version is None or step.version >= MEMBER_ID_REQUIRED_SINCE):
            return {"error": "MEMBER_ID_REQUIRED", "member": member}
    if not isinstance(member, int) or member not in {*group.pending, group.member}:
        return {"error": UNKNOWN_MEMBER}
    is_repeated = group.member is not None and group.assignment is None and group.protocols == step.protocols
    if not is_repeated:
        group.generation += 1
    group.pending.discard(member)
    group.member, group.protocols, group.assignment = member, step.protocols, None
    group.instance, group.protocol_type = step.instance, PROTOCOL_TYPE
    protocol, metadata = group.protocols[0]
    return {
        "error": "NONE",
        "member": group.member,
        "leader": group.member,
        "generation": group.generation,
        "members": ((group.member, metadata),),
        "instances": (group.instance,),
        "skip_assignment": False,
        "protocol_type": PROTOCOL_TYPE,
        "protocol_name": protocol,
    }


def sync_group(cluster: ModelCluster, step: SyncGroup) -> Expectation:
    """Return the assignment that the leader has sent first in its generation."""
    group = cluster.groups.get(step.group, Group())
    if error := generation_error(group, step.member, step.generation):
        return {"error": error}
    protocol, _ = group.protocols[0]
    if step.protocol != protocol:
        return {"error": "INCONSISTENT_GROUP_PROTOCOL"}
    if group.assignment is None:
        group.assignment = step.assignment
    state = {"assignment": group.assignment, "protocol_type": PROTOCOL_TYPE, "protocol_name": protocol}
    return {"error": "NONE", **state}


def heartbeat(cluster: ModelCluster, step: Heartbeat) -> Expectation:
    """Accept heartbeats of the member in its generation, also before it has sent the assignment."""
    return {"error": generation_error(cluster.groups.get(step.group, Group()), step.member, step.generation) or "NONE"}


def await_session_timeout(cluster: ModelCluster, step: AwaitSessionTimeout) -> Expectation:
    """Keep the member while it sends heartbeats, and remove it after its session timeout."""
    leave_group(cluster, LeaveGroup(step.member, step.group))
    return {"heartbeats": ("NONE",), "removed": "after the session timeout"}


def leave_group(cluster: ModelCluster, step: LeaveGroup) -> Expectation:
    """Remove the member. The group is then in the next generation, without members."""
    group = cluster.groups.get(step.group, Group())
    if group.member is None or group.member != step.member:
        return {"error": UNKNOWN_MEMBER}
    group.member, group.assignment = None, None
    group.generation += 1
    return {"error": "NONE"}


def generation_error(group: Group, member: Member, generation: int) -> str | None:
    """Return the error of a request from another member than the group's, or with another generation; else None."""
    if group.member is None or group.member != member:
        return UNKNOWN_MEMBER
    return "ILLEGAL_GENERATION" if generation != group.generation else None
