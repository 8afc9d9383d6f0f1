"""What is proposed to the controller is sent again as it was found, whatever has changed since."""

from types import SimpleNamespace
from typing import Any

from reference_broker.core.clock import Now
from reference_broker.core.replication.alter_partition_manager import AlterPartitionManager
from tests.reference_broker.replication.group import Group

NOW = Now(0, 0)


def test_a_proposal_that_nobody_answered_stays_in_the_epochs_in_which_it_was_made() -> None:
    """A follower that was caught up then may have lost its log since (KIP-903), or the partition may have moved."""
    group = Group(2)
    group.run()
    partition = group.partition(1)
    asked: list[Any] = []
    timers: Any = SimpleNamespace(set=lambda _, action: waiting.append(action))
    waiting: list[Any] = []
    changes = AlterPartitionManager(1, timers, lambda *question: asked.append(question), lambda: 7)
    changes.propose(partition, partition.isr.shrunk(frozenset({2})), NOW)

    before = partition.leader_epoch, partition.partition_epoch
    group.elect(1)
    partition.followers.assign((1,))
    assert (partition.leader_epoch, partition.partition_epoch) > before
    (first, answered, _), *_ = asked
    answered(None, NOW)
    waiting.pop()(NOW)
    assert [request for request, *_ in asked] == [first, first]
    (said,) = first.topics[0].partitions
    assert (said.leader_epoch, said.partition_epoch) == before
