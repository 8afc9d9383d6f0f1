"""Completion of a reassignment: all target replicas are in sync. A cancellation is not checked."""

from uuid import UUID

import pytest

from reference_broker.protocol.metadata_records import PartitionRecord
from reference_broker.simulation.invariants.metadata import MetadataInvariants
from reference_broker.simulation.invariants.violation import InvariantViolation

TOPIC_ID = UUID(int=1)


def partition(replicas, isr, removing=(), adding=()):
    return PartitionRecord(
        partition_id=0,
        topic_id=TOPIC_ID,
        replicas=replicas,
        isr=isr,
        removing_replicas=removing,
        adding_replicas=adding,
        leader=isr[0],
        leader_recovery_state=0,
        leader_epoch=0,
        partition_epoch=0,
        directories=tuple(UUID(int=100 + replica) for replica in replicas),
    )


def check_moved(before, now):
    MetadataInvariants._check_moved("a-0", before, now)


def test_a_completion_without_all_target_replicas_in_the_isr_is_a_violation():
    before = partition((1, 3, 2), (3,), removing=(2,), adding=(1,))
    check_moved(before, partition((1, 3), (3, 1)))
    with pytest.raises(InvariantViolation, match="moved-in-sync"):
        check_moved(before, partition((1, 3), (3,)))


@pytest.mark.parametrize(
    ("removing", "adding", "replicas"), [((2,), (1,), (3, 2)), ((2,), (2,), (1, 3)), ((), (1,), (3, 2))]
)
def test_a_cancellation_needs_no_replica_in_sync(removing, adding, replicas):
    check_moved(partition((1, 3, 2), (3,), removing=removing, adding=adding), partition(replicas, (3,)))
