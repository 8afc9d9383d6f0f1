"""Requirements of a group with one member, in the classic protocol: join, synchronise, commit, leave.

A broker that does not advertise these APIs is not judged. Sources in addition to those of the requirements:
`GroupMetadataManager` and `ClassicGroup` of Apache Kafka.
"""

from collections.abc import Sequence
from typing import Final

from hypothesis import strategies as st

from conformance.requirements import sources
from conformance.requirements.requirement import Level, Requirement
from conformance.sequential.check import judges, sequential
from conformance.sequential.steps import (
    AwaitSessionTimeout,
    CreateTopic,
    DeleteGroup,
    DescribeGroup,
    Eventually,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    ListedGroups,
    ListGroups,
    OffsetCommit,
    OffsetFetch,
    Step,
    SyncGroup,
)
from conformance.sequential.strategies import every_version, many, script
from fixtures.targets.target import Capability

_Protocols = tuple[tuple[str, bytes], ...]
_Generation = tuple[bytes, bool]
"""The assignment of a generation, and whether the member repeats its JoinGroup before it sends the assignment."""

_TOPICS: Final = frozenset({Capability.TOPIC_ADMIN})
_COST: Final = 5
"""A broker may wait for more members before it begins the first generation (`group.initial.rebalance.delay.ms`)."""
_PROTOCOLS: Final = st.sampled_from(
    [(("range", b"metadata"),), (("roundrobin", b"\0preferred"), ("range", b"")), (("range", b""),)]
)
_INSTANCE: Final = "trial-instance"
_JOINS: Final = st.sampled_from(
    [*((version, None) for version in (None, *range(9))), *((version, _INSTANCE) for version in (None, 5, 6))]
)
"""Version of JoinGroup and group instance id, which exists since version 5."""
_WITH_OFFSET: Final = (CreateTopic(), OffsetCommit(0))
"""A committed offset keeps the group. A broker may remove a group that has neither offsets nor joined members at any
time, with the ids that it has assigned to new members. Before Kafka 4.0, the deletion of any topic does this."""
JOINED: Final = (*_WITH_OFFSET, JoinGroup(), JoinGroup(0))
_SHOWN: Final = (
    Eventually(DescribeGroup()),
    Eventually(DescribeGroup(with_operations=True)),
    Eventually(ListGroups()),
    *(ListGroups(states=states) for states in (("Empty",), ("Stable", "CompletingRebalance"))),
    *(ListGroups(types=types) for types in (("classic",), ("consumer",))),
)
_INSTANCES: Final = st.sampled_from([None, _INSTANCE])
_JUDGED: Final = judges("error", of=JoinGroup) | judges("error", of=SyncGroup)
_COMMITS: Final = judges("error", of=OffsetCommit) | judges("error", "committed_offset", "metadata", of=OffsetFetch)
_MEMBERS: Final = st.sampled_from([0, "unknown", ""])


def _generations(
    protocols: _Protocols, version_and_instance: tuple[int | None, str | None], generations: Sequence[_Generation]
) -> tuple[Step, ...]:
    """Return the requests of a member that leads these generations, from 1 on."""
    version, instance = version_and_instance
    join = JoinGroup(0, protocols, version=version, instance=instance)
    steps: list[Step] = [JoinGroup(protocols=protocols, version=version, instance=instance)]
    for generation, (assignment, is_repeated) in enumerate(generations, start=1):
        steps += [join] * (2 if is_repeated else 1)
        steps += [SyncGroup(0, generation, each, protocols[0][0]) for each in (assignment, b"later")]
    return tuple(steps)


def _one_generation(protocols: _Protocols, instance: str | None) -> tuple[Step, ...]:
    """Return the requests of a member that leads generation 1, with descriptions of the group."""
    first = JoinGroup(protocols=protocols, instance=instance)
    joined = (first,) if instance else (first, JoinGroup(0, protocols))
    return *joined, *_SHOWN, SyncGroup(0, protocol=protocols[0][0]), *_SHOWN, Eventually(ListedGroups())


REQUIREMENTS: Final = (
    Requirement(
        id="groups/only-member-leads-its-group",
        level=Level.MUST,
        text="The first member of a group joins with the member id that it has received. It becomes the leader and "
        "only member of generation 1, with its preferred protocol and its metadata for this protocol. SyncGroup "
        "returns the assignment that the member sent first in the generation. If the member repeats JoinGroup before "
        "it has sent an assignment, the response is the same; if it joins again after that, the next generation "
        "begins. A static member joins with its first request, and the response has its group instance id. Before v4, "
        "each new member joins with its first request.",
        sources=(sources.KIP_394, sources.KIP_345, sources.PROTOCOL),
        check=sequential(
            script(
                *_WITH_OFFSET,
                st.builds(
                    _generations,
                    _PROTOCOLS,
                    _JOINS,
                    st.lists(st.tuples(st.sampled_from([b"assignment", b""]), st.booleans()), min_size=1, max_size=3),
                ),
                JoinGroup(instance=_INSTANCE, group="trial-static"),
                *(
                    step
                    for member, version in ((2, 0), (3, 3))
                    for step in (
                        JoinGroup(group=f"trial-v{version}", version=version),
                        JoinGroup(member, group=f"trial-v{version}", version=version),
                        SyncGroup(member, group=f"trial-v{version}"),
                    )
                ),
            ),
            judges(
                "error",
                "member",
                "leader",
                "generation",
                "members",
                "instances",
                "skip_assignment",
                "protocol_type",
                "protocol_name",
                of=JoinGroup,
            )
            | judges("error", "assignment", "protocol_type", "protocol_name", of=SyncGroup),
            cost=_COST,
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="groups/member-commits-in-its-generation",
        level=Level.MUST,
        text="In a group with a member, a commit of the member in its generation is stored, and OffsetFetch returns "
        "it. Other commits are rejected, and nothing is stored: with ILLEGAL_GENERATION in another generation, with "
        "UNKNOWN_MEMBER_ID for another member id or none, and with REBALANCE_IN_PROGRESS before the assignment.",
        sources=(sources.PROTOCOL_ERRORS, sources.KIP_394),
        check=sequential(
            script(
                *JOINED,
                OffsetCommit(1, member=0, generation=1),
                SyncGroup(0),
                OffsetFetch(),
                many(
                    st.builds(OffsetCommit, st.integers(2, 9), member=_MEMBERS, generation=st.integers(-1, 2))
                    | st.just(OffsetFetch())
                ),
                OffsetCommit(10, member=0, generation=1, metadata="m"),
                *(
                    OffsetCommit(11, member=member, generation=generation)
                    for member, generation in ((0, 2), (0, 0), ("unknown", 1), ("", -1))
                ),
                OffsetFetch(),
                *every_version(OffsetCommit(12, member=0, generation=2)),
                *(
                    step
                    for commit in every_version(OffsetCommit(13, member=0, generation=1))
                    for step in (commit, OffsetFetch(), OffsetCommit(14, member=0, generation=1))
                ),
            ),
            _JUDGED | _COMMITS,
            cost=_COST,
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="groups/member-that-left-is-unknown",
        level=Level.MUST,
        text="Heartbeat and SyncGroup return NONE to a member in its generation, ILLEGAL_GENERATION in another "
        "generation, and UNKNOWN_MEMBER_ID for an unknown member id. After the only member has left, the group has no "
        "members. Then each request with the id of this member is rejected with UNKNOWN_MEMBER_ID, the offsets that "
        "it committed stay, and commits without a generation are accepted.",
        sources=(sources.PROTOCOL_ERRORS, sources.KIP_394),
        check=sequential(
            script(
                *JOINED,
                Heartbeat(0),
                *(SyncGroup(member, generation) for member, generation in ((0, 2), (0, 0), ("unknown", 1), (0, 1))),
                many(st.builds(Heartbeat, st.sampled_from([0, "unknown"]), st.integers(0, 2)), at_most=4),
                OffsetCommit(5, member=0, generation=1),
                LeaveGroup("unknown"),
                Heartbeat(0),
                LeaveGroup(0),
                many(
                    st.sampled_from(
                        [
                            Heartbeat(0),
                            Heartbeat(0, 2),
                            SyncGroup(0),
                            JoinGroup(0),
                            LeaveGroup(0),
                            OffsetCommit(6, member=0, generation=1),
                        ]
                    )
                ),
                Heartbeat(0),
                OffsetCommit(6, member=0, generation=1),
                OffsetFetch(),
                OffsetCommit(7),
                OffsetFetch(),
            ),
            _JUDGED | _COMMITS | judges("error", of=Heartbeat) | judges("error", of=LeaveGroup),
            cost=_COST,
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="groups/silent-member-is-removed",
        level=Level.MUST,
        text="A member that sends heartbeats stays in its group. One that sends none is removed after its session "
        "timeout, not before and at most ten seconds later. Then the group has no members, requests with the id of "
        "the member are rejected with UNKNOWN_MEMBER_ID, and the offsets that it committed stay.",
        sources=(sources.KIP_62, sources.PROTOCOL_ERRORS),
        check=sequential(
            script(
                *_WITH_OFFSET,
                JoinGroup(short_session=True),
                JoinGroup(0, short_session=True),
                SyncGroup(0),
                OffsetCommit(5, member=0, generation=1),
                AwaitSessionTimeout(0),
                Heartbeat(0),
                OffsetCommit(6, member=0, generation=1),
                DescribeGroup(),
                OffsetFetch(),
            ),
            _JUDGED
            | _COMMITS
            | judges("error", of=Heartbeat)
            | judges("heartbeats", "removed", of=AwaitSessionTimeout)
            | judges("error", "state", "members", of=DescribeGroup),
            cost=15,
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="groups/state-is-described",
        level=Level.MUST,
        text="DescribeGroups and ListGroups return the state of a group: Empty without members, CompletingRebalance "
        "until its leader has sent an assignment, then Stable. DescribeGroups also returns each member's client, "
        "group instance id, metadata and assignment, and the permitted operations if they are requested. ListGroups "
        "returns the groups that the broker coordinates; with a filter, only those of the given states or types. "
        "DeleteGroups returns NON_EMPTY_GROUP for a group with a member. A group without members is deleted with its "
        "offsets; then it is no longer listed, and DeleteGroups returns GROUP_ID_NOT_FOUND.",
        sources=(
            sources.PROTOCOL_ERRORS,
            sources.PROTOCOL,
            sources.KIP_345,
            sources.KIP_430,
            sources.KIP_518,
            sources.KIP_848,
        ),
        check=sequential(
            script(
                *_WITH_OFFSET,
                *_SHOWN,
                st.builds(_one_generation, _PROTOCOLS, _INSTANCES),
                many(st.sampled_from([DeleteGroup(), Heartbeat(0)]), at_most=2),
                DeleteGroup(),
                LeaveGroup(0),
                *_SHOWN,
                OffsetFetch(),
                DeleteGroup(),
                Eventually(ListGroups()),
                Eventually(ListedGroups()),
                DescribeGroup(version=5),
                DescribeGroup(),
                OffsetFetch(),
                DeleteGroup(),
            ),
            judges(
                "error",
                "state",
                "protocol_type",
                "protocol",
                "members",
                "clients",
                "instances",
                "operations",
                of=DescribeGroup,
            )
            | judges("error", "listed", "state", "type", "protocol_type", of=ListGroups)
            | judges("error", "listed", "listed_twice", "not_described", of=ListedGroups)
            | judges("error", of=DeleteGroup)
            | judges("error", "committed_offset", of=OffsetFetch),
            cost=_COST,
        ),
        needs=_TOPICS,
    ),
)
