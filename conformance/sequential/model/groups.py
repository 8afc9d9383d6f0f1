"""Model of group offsets (`OffsetMetadataManager`, KIP-211, KIP-320), and of the state of groups."""

from typing import Final

from conformance.sequential.expectation import Expectation, OneOf
from conformance.sequential.model.cluster import CommittedOffset, Group, ModelCluster
from conformance.sequential.model.members import UNKNOWN_MEMBER, generation_error
from conformance.sequential.model.unknown import BY_ID_SINCE, unknown_partition
from conformance.sequential.response import CLASSIC, DEAD
from conformance.sequential.steps import (
    DeleteGroup,
    DescribeGroup,
    FindCoordinators,
    ListedGroups,
    ListGroups,
    OffsetCommit,
    OffsetDelete,
    OffsetFetch,
)
from fixtures.clients.requests import CLIENT_ID

_NOT_DEAD_SINCE: Final = 6
"""First version of DescribeGroups in which a group may not be found (KIP-1043)."""
_GROUP_NOT_FOUND_SINCE: Final = 9
"""First version of OffsetCommit in which a group may not be found (KIP-848)."""
_NO_GENERATION: Final = "ILLEGAL_GENERATION"
_NO_GROUP: Final = OneOf(
    (_NO_GENERATION, "GROUP_ID_NOT_FOUND"), "the second one since Kafka 4.0, in newer versions of the API"
)


def offset_commit(cluster: ModelCluster, step: OffsetCommit) -> Expectation:
    """Store the offset in place of the previous one; a rejected commit changes nothing."""
    if cluster.partition(step.topic, step.partition) is None:
        return {"error": unknown_partition(cluster, step)}
    if step.generation >= 0 and not _exists(cluster, step.group):
        is_new_version = step.version is None or step.version >= _GROUP_NOT_FOUND_SINCE
        return {"error": _NO_GROUP if is_new_version else _NO_GENERATION}
    if error := _group_error(cluster.groups.get(step.group, Group()), step):
        return {"error": error}
    key = (step.group, cluster.topics[step.topic].id, step.partition)
    cluster.committed[key] = CommittedOffset(step.offset, step.leader_epoch, step.metadata or "")
    return {"error": "NONE"}


def _exists(cluster: ModelCluster, group: str) -> bool:
    return group in cluster.groups or any(committer == group for committer, _, _ in cluster.committed)


def _group_error(group: Group, step: OffsetCommit) -> str | None:
    """Return the error of a commit that the group does not accept (`ClassicGroup.validateOffsetCommit`).

    In a group without members, a commit without generation is accepted, whatever its member, and one with a generation
    is rejected. In a group with a member, only its commits in its generation are accepted, after it has received its
    assignment.
    """
    if group.member is None:
        return None if step.generation < 0 else UNKNOWN_MEMBER
    if error := generation_error(group, step.member, step.generation):
        return error
    return "REBALANCE_IN_PROGRESS" if group.assignment is None else None


def offset_fetch(cluster: ModelCluster, step: OffsetFetch) -> Expectation:
    """Return the last commit; offset -1, no metadata and no error if there is none.

    For a topic that does not exist, the same is expected of a version that names topics. Nothing is expected of a
    version that may identify topics by id.
    """
    if step.topic is None:
        return {"error": "NONE", "committed": _all_committed(cluster, step.group)}
    topic = cluster.topics.get(step.topic)
    if topic is None and (step.version is None or step.version >= BY_ID_SINCE[OffsetFetch]):
        return {}
    found = None if topic is None else cluster.committed.get((step.group, topic.id, step.partition))
    if found is None:
        return {"error": "NONE", "committed_offset": -1, "committed_leader_epoch": -1, "metadata": ""}
    return {
        "error": "NONE",
        "committed_offset": found.offset,
        "committed_leader_epoch": found.leader_epoch,
        "metadata": found.metadata,
    }


def offset_delete(cluster: ModelCluster, step: OffsetDelete) -> Expectation:
    """Delete the last commit of a group without members, if there is one; its other commits stay (KIP-496)."""
    if not _exists(cluster, step.group):
        return {"error": "GROUP_ID_NOT_FOUND"}
    if cluster.partition(step.topic, step.partition) is None:
        return {"error": unknown_partition(cluster, step)}
    cluster.committed.pop((step.group, cluster.topics[step.topic].id, step.partition), None)
    return {"error": "NONE"}


def _all_committed(cluster: ModelCluster, group: str) -> tuple[tuple[str, int, int], ...]:
    """Return topic, partition and offset of each commit of the group."""
    names = {topic.id: name for name, topic in cluster.topics.items()}
    return tuple(
        sorted(
            (names[topic_id], partition, found.offset)
            for (committer, topic_id, partition), found in cluster.committed.items()
            if committer == group and topic_id in names
        )
    )


def describe_group(cluster: ModelCluster, step: DescribeGroup) -> Expectation:
    """Return the state of the group, and its member; protocol, metadata and assignment only once it is stable."""
    if not _exists(cluster, step.group):
        return _not_found(step)
    group = cluster.groups.get(step.group, Group())
    described = {
        "error": "NONE",
        "state": _state(group),
        "protocol_type": group.protocol_type,
        "operations": step.with_operations,
    }
    if group.member is None:
        return {**described, "protocol": "", "members": ()}
    protocol, metadata = group.protocols[0]
    is_stable = group.assignment is not None
    return {
        **described,
        "protocol": protocol if is_stable else "",
        "members": ((group.member, metadata if is_stable else b"", group.assignment or b""),),
        "clients": ((CLIENT_ID, True),),
        "instances": (group.instance,),
    }


def _not_found(step: DescribeGroup) -> Expectation:
    """Return the response about a group that does not exist: it is dead, or there is an error since v6 (KIP-1043)."""
    if step.version is not None and step.version < _NOT_DEAD_SINCE:
        return {"error": "NONE", "state": DEAD, "members": ()}
    error = OneOf(("NONE", "GROUP_ID_NOT_FOUND"), "the second one since Kafka 4.0, in newer versions of the API")
    return {"error": error, "state": DEAD}


def list_groups(cluster: ModelCluster, step: ListGroups) -> Expectation:
    """List the group with its state, unless it was deleted, or has another state or type than those to list."""
    group = cluster.groups.get(step.group, Group())
    is_wanted = _state(group) in (step.states or {_state(group)}) and CLASSIC in (step.types or {CLASSIC})
    if not _exists(cluster, step.group) or not is_wanted:
        return {"error": "NONE", "listed": 0}
    return {
        "error": "NONE",
        "listed": 1,
        "state": _state(group),
        "type": CLASSIC,
        "protocol_type": group.protocol_type,
    }


def listed_groups(cluster: ModelCluster, step: ListedGroups) -> Expectation:
    """Return that only the coordinator lists the group, and that each broker describes the groups that it lists."""
    return {"error": "NONE", "listed": int(_exists(cluster, step.group)), "listed_twice": (), "not_described": ()}


def find_coordinators(_cluster: ModelCluster, _step: FindCoordinators) -> Expectation:
    """Every group has a coordinator that serves it, whether or not the group exists."""
    return {"errors": (), "differences": ()}


def delete_group(cluster: ModelCluster, step: DeleteGroup) -> Expectation:
    """Delete a group without members, and its commits."""
    if not _exists(cluster, step.group):
        return {"error": "GROUP_ID_NOT_FOUND"}
    if cluster.groups.get(step.group, Group()).member is not None:
        return {"error": "NON_EMPTY_GROUP"}
    cluster.groups.pop(step.group, None)
    for key in [key for key in cluster.committed if key[0] == step.group]:
        del cluster.committed[key]
    return {"error": "NONE"}


def _state(group: Group) -> str:
    if group.member is None:
        return "Empty"
    return "CompletingRebalance" if group.assignment is None else "Stable"
