"""Changes of a partition's leader, in-sync replicas, replicas and epochs.

Follows: org.apache.kafka.controller.PartitionChangeBuilder (KIP-455, KIP-704).

`partition_change` takes a partition and a requested change, and returns the record of the change, or null if nothing
changes. In this order:

1. A reassignment whose target replicas are all in sync is completed: removing and adding replicas become empty.
2. A leader is elected. The present leader stays if it is in the requested ISR and acceptable; otherwise the first
   acceptable member of the ISR is elected, in replica order. `PREFERRED` tries the first replica before all others.
   If no member of the ISR is acceptable, `UNCLEAN` elects the first acceptable replica. The ISR then has only this
   replica, and the recovery state is RECOVERING.
3. The ISR becomes the requested ISR. If the requested ISR is empty, the present ISR stays, because its last member has
   all committed records. This is Kafka's behaviour without KIP-966. Kafka with KIP-966 may have written an empty ISR;
   the eligible leader replicas then take its place.

Epochs (`image.changed`): the partition epoch grows with every record. The leader epoch grows with every record that
sets a leader: a new leader, `NO_LEADER`, or the same leader when replicas were removed. The leader epoch does not grow
when the ISR shrinks (KAFKA-15021, since metadata version 3.6).
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
    """Rule by which a leader is elected."""

    PREFERRED = auto()
    ONLINE = auto()
    UNCLEAN = auto()


class LeaderRecoveryState(IntEnum):
    """Recovery of the leader after an unclean election (KIP-704)."""

    UNCHANGED = -1
    RECOVERED = 0
    RECOVERING = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedChange:
    """Requested values of a partition's fields; null keeps the present value.

    :param directories: new directories of replicas, by broker id; the directories of other replicas stay.
    :param election: rule of the election, if a leader must be elected.
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
    """Facts about brokers that a partition change depends on.

    :param is_acceptable: returns whether a broker may lead the partition.
    :param directory: returns the directory of a new replica on a broker.
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
    partition: PartitionRecord, requested: RequestedChange, candidates: Candidates
) -> PartitionChangeRecord | None:
    """Return the record that makes the requested change; null if nothing changes."""
    target = _with_reassignment_completed(_target(partition, requested))
    leader, is_unclean = _elect(partition, target, requested.election, candidates.is_acceptable)
    is_elected = leader != partition.leader
    is_unclean = is_unclean and is_elected
    has_lost_replicas = not set(partition.replicas) <= set(target.replicas)
    directories = _directories(partition, target.replicas, requested, candidates)
    record = PartitionChangeRecord(
        partition_id=partition.partition_id,
        topic_id=partition.topic_id,
        leader=leader if is_elected or has_lost_replicas else NO_LEADER_CHANGE,
        isr=(leader,) if is_unclean else _unless_same(target.isr or partition.isr, partition.isr),
        leader_recovery_state=_recovery_state(partition, requested, is_unclean=is_unclean),
        directories=_unless_same(directories, partition.directories),
        replicas=_unless_same(target.replicas, partition.replicas),
        removing_replicas=_unless_same(target.removing, partition.removing_replicas),
        adding_replicas=_unless_same(target.adding, partition.adding_replicas),
    )
    without_change = PartitionChangeRecord(partition_id=partition.partition_id, topic_id=partition.topic_id)
    return None if record == without_change else record


def is_reassigning(partition: PartitionRecord) -> bool:
    """Whether replicas are being added or removed (KIP-455)."""
    return bool(partition.removing_replicas or partition.adding_replicas)


def _target(partition: PartitionRecord, requested: RequestedChange) -> _Target:
    return _Target(
        isr=(partition.isr or partition.eligible_leader_replicas or ()) if requested.isr is None else requested.isr,
        replicas=partition.replicas if requested.replicas is None else requested.replicas,
        removing=partition.removing_replicas if requested.removing is None else requested.removing,
        adding=partition.adding_replicas if requested.adding is None else requested.adding,
    )


def _with_reassignment_completed(target: _Target) -> _Target:
    """Complete the reassignment if all replicas are in sync, except for those that it removes.

    Otherwise return the target unchanged.
    """
    isr = tuple(replica for replica in target.isr if replica not in target.removing)
    replicas = tuple(replica for replica in target.replicas if replica not in target.removing)
    is_complete = (target.removing or target.adding) and isr and replicas and set(replicas) <= set(isr)
    return _Target(isr, replicas, (), ()) if is_complete else target


def _elect(
    partition: PartitionRecord, target: _Target, election: Election, is_acceptable: Callable[[int], bool]
) -> tuple[int, bool]:
    """Return the leader or `NO_LEADER`, and whether the leader is outside the ISR."""
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


def _recovery_state(partition: PartitionRecord, requested: RequestedChange, *, is_unclean: bool) -> int:
    state = partition.leader_recovery_state
    if requested.leader_recovery_state is not None and requested.leader_recovery_state != state:
        return requested.leader_recovery_state
    if is_unclean and state != LeaderRecoveryState.RECOVERING:
        return LeaderRecoveryState.RECOVERING
    return LeaderRecoveryState.UNCHANGED


def _directories(
    partition: PartitionRecord, replicas: Replicas, requested: RequestedChange, candidates: Candidates
) -> tuple[UUID | None, ...]:
    known = dict(zip(partition.replicas, partition.directories, strict=True)) | dict(requested.directories)
    return tuple(known[replica] if replica in known else candidates.directory(replica) for replica in replicas)


def _unless_same(value: _T, before: _T) -> _T | None:
    return None if value == before else value
