"""Steps on groups: their offsets, and members of the classic protocol.

A member is a number, the index of its id among the ids that were assigned to the script, from 0 on; or any text that is
sent as the id. The empty id is that of no member, or of a new one.
"""

from dataclasses import dataclass
from typing import TypeAlias

from conformance.sequential.steps.base import TOPIC, Step

Member: TypeAlias = int | str

PROTOCOL_TYPE = "kafkatrial"
"""Protocol type of members. A broker interprets the metadata only of members with the type `consumer`."""


@dataclass(frozen=True, slots=True)
class OffsetCommit(Step):
    """OffsetCommit of one partition, by default without member and generation."""

    offset: int
    group: str = TOPIC
    topic: str = TOPIC
    partition: int = 0
    leader_epoch: int = -1
    metadata: str | None = ""
    generation: int = -1
    member: Member = ""
    version: int | None = None


@dataclass(frozen=True, slots=True)
class OffsetFetch(Step):
    """OffsetFetch of one partition; topic None fetches all offsets of the group (topics by name, up to version 9)."""

    group: str = TOPIC
    topic: str | None = TOPIC
    partition: int = 0
    version: int | None = None


@dataclass(frozen=True, slots=True)
class OffsetDelete(Step):
    """OffsetDelete of one partition (KIP-496)."""

    group: str = TOPIC
    topic: str = TOPIC
    partition: int = 0


@dataclass(frozen=True, slots=True)
class JoinGroup(Step):
    """JoinGroup, by default of a new member: since version 4, it receives only its id (KIP-394)."""

    member: Member = ""
    protocols: tuple[tuple[str, bytes], ...] = (("range", b"metadata"),)
    """Name and metadata of each protocol that the member supports, the preferred one first."""
    group: str = TOPIC
    version: int | None = None
    instance: str | None = None
    """Group instance id. With one, a new member is a static member, and joins with its first request (KIP-345)."""
    short_session: bool = False
    """Whether the session timeout is short, so that a script can wait for its end."""


@dataclass(frozen=True, slots=True)
class SyncGroup(Step):
    """SyncGroup of a member that sends an assignment for itself alone."""

    member: Member
    generation: int = 1
    assignment: bytes = b"assignment"
    protocol: str = "range"
    group: str = TOPIC
    version: int | None = None


@dataclass(frozen=True, slots=True)
class Heartbeat(Step):
    """Heartbeat of a member."""

    member: Member
    generation: int = 1
    group: str = TOPIC
    version: int | None = None


@dataclass(frozen=True, slots=True)
class AwaitSessionTimeout(Step):
    """Heartbeats of a member with a short session, for longer than its timeout, and then none until it is removed.

    The response has the errors of the heartbeats, and whether the member was removed early or late.
    """

    member: Member
    generation: int = 1
    group: str = TOPIC


@dataclass(frozen=True, slots=True)
class LeaveGroup(Step):
    """LeaveGroup of one member."""

    member: Member
    group: str = TOPIC
    version: int | None = None


@dataclass(frozen=True, slots=True)
class DescribeGroup(Step):
    """DescribeGroups of one group."""

    group: str = TOPIC
    version: int | None = None
    with_operations: bool = False
    """Whether the permitted operations are requested (KIP-430)."""


@dataclass(frozen=True, slots=True)
class ListGroups(Step):
    """ListGroups of the broker that coordinates a group. The response is about this group only.

    :ivar states: states of the groups to list (KIP-518); empty for all.
    :ivar types: types of the groups to list (KIP-848); empty for all.
    """

    group: str = TOPIC
    version: int | None = None
    states: tuple[str, ...] = ()
    types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ListedGroups(Step):
    """ListGroups of every broker, and DescribeGroups of the groups that a broker lists, sent to the same broker.

    The response has the number of entries of the given group, the groups that are listed twice, and the listed groups
    that are not described.
    """

    group: str = TOPIC


@dataclass(frozen=True, slots=True)
class FindCoordinators(Step):
    """One FindCoordinator request for several groups (KIP-699), and a request to each coordinator.

    The response has the errors, and the coordinators that do not serve their groups.
    """

    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DeleteGroup(Step):
    """DeleteGroups of one group."""

    group: str = TOPIC
    version: int | None = None
