"""AlterPartition requests are retried unchanged, even if the partition has changed meanwhile."""

from types import SimpleNamespace
from typing import Any

from reference_broker.core.clock import Now
from reference_broker.core.replication.alter_partition_manager import AlterPartitionManager
from tests.reference_broker.replication.group import Group

NOW = Now(0, 0)


def test_proposal_without_response_is_retried_with_its_original_epochs() -> None:
    """If the follower loses its log (KIP-903) or is removed, the old epochs let the controller reject the proposal."""
    group = Group(2)
    group.run()
    partition = group.partition(1)
    sent: list[Any] = []
    timers: Any = SimpleNamespace(set=lambda _, action: waiting.append(action))
    waiting: list[Any] = []
    changes = AlterPartitionManager(1, timers, lambda *arguments: sent.append(arguments), lambda: 7)
    changes.propose(partition, partition.isr.shrunk(frozenset({2})), NOW)

    before = partition.leader_epoch, partition.partition_epoch
    group.elect(1)
    partition.followers.assign((1,))
    assert (partition.leader_epoch, partition.partition_epoch) > before
    (first, on_response, _), *_ = sent
    on_response(None, NOW)
    waiting.pop()(NOW)
    assert [request for request, *_ in sent] == [first, first]
    (proposed,) = first.topics[0].partitions
    assert (proposed.leader_epoch, proposed.partition_epoch) == before
