"""What becomes of a partition: its leader, in-sync replicas, replicas and epochs, as Kafka's `PartitionChangeBuilder`.

One function, `partition_change`, takes a partition and what is wanted of it, and gives the record that does it, or null
where nothing changes. In this order:

1. A reassignment whose replicas are all in sync is completed: removing and adding replicas become empty (KIP-455).
2. A leader is elected. The one there is stays, if it is in the wanted ISR and acceptable; else the first acceptable
   replica of the ISR in the order of the replicas. `PREFERRED` asks the first replica before all others. `UNCLEAN`
   takes, if the ISR has none, any acceptable replica: it alone is then in sync, and recovering (KIP-704).
3. The ISR becomes the wanted one, unless that is empty: its last member stays in it while the partition has no leader,
   since it alone has all that is committed. That is what Kafka does without KIP-966; in a log that Kafka wrote with
   it, an ISR may be empty, and the eligible leader replicas are as good.

Epochs (`image.changed`): the partition epoch grows with every record. The leader epoch grows with every record that
gives a leader: one that is elected, also "none", or the same one again where replicas were taken away. It does not grow
when the ISR shrinks (KAFKA-15021, from metadata version 3.6 on).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum, auto
from typing import TypeVar
from uuid import UUID

from reference_broker.protocol.metadata_records import (
    NO_LEADER,
    NO_LEADER_CHANGE,
    PartitionChangeRecord,
    PartitionRecord,
)

Replicas = tuple[int, ...]
_T = TypeVar("_T")


class Election(Enum):
    """How a leader may be found."""

    PREFERRED = auto()
    ONLINE = auto()
    UNCLEAN = auto()


class LeaderRecoveryState(IntEnum):
    """Whether a leader has yet to recover from an unclean election (KIP-704)."""

    UNCHANGED = -1
    RECOVERED = 0
    RECOVERING = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a partition is to be; null for what it is already.

    :param directories: of replicas, by broker, where they have come to lie in another one.
    """

    isr: Replicas | None = None
    replicas: Replicas | None = None
    removing: Replicas | None = None
    adding: Replicas | None = None
    leader_recovery_state: int | None = None
    directories: Mapping[int, UUID] = field(default_factory=dict)
    election: Election = Election.ONLINE


@dataclass(frozen=True, slots=True)
class Candidates:
    """What there is to know of brokers.

    :param is_acceptable: whether a broker may lead the partition.
    :param directory: where a broker puts a new replica.
    """

    is_acceptable: Callable[[int], bool]
    directory: Callable[[int], UUID | None]


@dataclass(frozen=True, slots=True)
class _Target:
    isr: Replicas
    replicas: Replicas
    removing: Replicas
    adding: Replicas


def partition_change(
    partition: PartitionRecord, wanted: Wanted, candidates: Candidates
) -> PartitionChangeRecord | None:
    """The record that makes a partition what is wanted."""
    target = _with_reassignment_completed(_target(partition, wanted))
    leader, is_unclean = _elect(partition, target, wanted.election, candidates.is_acceptable)
    is_elected = leader != partition.leader
    is_unclean = is_unclean and is_elected
    has_lost_replicas = not set(partition.replicas) <= set(target.replicas)
    directories = _directories(partition, target.replicas, wanted, candidates)
    record = PartitionChangeRecord(
        partition_id=partition.partition_id,
        topic_id=partition.topic_id,
        leader=leader if is_elected or has_lost_replicas else NO_LEADER_CHANGE,
        isr=(leader,) if is_unclean else _unless_same(target.isr or partition.isr, partition.isr),
        leader_recovery_state=_recovery_state(partition, wanted, is_unclean=is_unclean),
        directories=_unless_same(directories, partition.directories),
        replicas=_unless_same(target.replicas, partition.replicas),
        removing_replicas=_unless_same(target.removing, partition.removing_replicas),
        adding_replicas=_unless_same(target.adding, partition.adding_replicas),
    )
    nothing = PartitionChangeRecord(partition_id=partition.partition_id, topic_id=partition.topic_id)
    return None if record == nothing else record


def is_reassigning(partition: PartitionRecord) -> bool:
    """Whether replicas are being added or removed (KIP-455)."""
    return bool(partition.removing_replicas or partition.adding_replicas)


def _target(partition: PartitionRecord, wanted: Wanted) -> _Target:
    return _Target(
        isr=(partition.isr or partition.eligible_leader_replicas or ()) if wanted.isr is None else wanted.isr,
        replicas=partition.replicas if wanted.replicas is None else wanted.replicas,
        removing=partition.removing_replicas if wanted.removing is None else wanted.removing,
        adding=partition.adding_replicas if wanted.adding is None else wanted.adding,
    )


def _with_reassignment_completed(target: _Target) -> _Target:
    """The target itself, unless all replicas that are to stay are in sync."""
    isr = tuple(replica for replica in target.isr if replica not in target.removing)
    replicas = tuple(replica for replica in target.replicas if replica not in target.removing)
    is_complete = (target.removing or target.adding) and isr and replicas and set(replicas) <= set(isr)
    return _Target(isr, replicas, (), ()) if is_complete else target


def _elect(
    partition: PartitionRecord, target: _Target, election: Election, is_acceptable: Callable[[int], bool]
) -> tuple[int, bool]:
    """The leader, and whether it comes from outside of the ISR."""
    in_order = (partition.leader, *target.replicas)
    if election is Election.PREFERRED:
        in_order = (target.replicas[0], *in_order)
    for replica in in_order:
        if replica in target.isr and is_acceptable(replica):
            return replica, False
    if election is Election.UNCLEAN:
        for replica in target.replicas:
            if is_acceptable(replica):
                return replica, True
    return NO_LEADER, False


def _recovery_state(partition: PartitionRecord, wanted: Wanted, *, is_unclean: bool) -> int:
    state = partition.leader_recovery_state
    if wanted.leader_recovery_state is not None and wanted.leader_recovery_state != state:
        return wanted.leader_recovery_state
    if is_unclean and state != LeaderRecoveryState.RECOVERING:
        return LeaderRecoveryState.RECOVERING
    return LeaderRecoveryState.UNCHANGED


def _directories(
    partition: PartitionRecord, replicas: Replicas, wanted: Wanted, candidates: Candidates
) -> tuple[UUID | None, ...]:
    known = dict(zip(partition.replicas, partition.directories, strict=True)) | dict(wanted.directories)
    return tuple(known[replica] if replica in known else candidates.directory(replica) for replica in replicas)


def _unless_same(value: _T, before: _T) -> _T | None:
    return None if value == before else value
