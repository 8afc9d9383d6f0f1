"""AlterPartition: changes of the in-sync replicas by the leader.

Follows: org.apache.kafka.controller.ReplicationControlManager (KIP-497, KIP-704, KIP-841, KIP-903).

The checks of one partition, in the order of `validateAlterPartitionData`:

| problem                                                                     | error                            |
|-----------------------------------------------------------------------------|----------------------------------|
| the topic id is unknown                                                     | UNKNOWN_TOPIC_ID(100)            |
| the partition is unknown                                                    | UNKNOWN_TOPIC_OR_PARTITION(3)    |
| the leader epoch or partition epoch is newer than the controller's          | NOT_CONTROLLER(41)               |
| the leader epoch is older than the controller's                             | FENCED_LEADER_EPOCH(74)          |
| the sender is not the leader                                                | INVALID_REQUEST(42)              |
| the partition epoch is older than the controller's                          | INVALID_UPDATE_VERSION(95)       |
| the ISR is empty, has duplicates or non-replicas, or lacks the leader       | INVALID_REQUEST(42)              |
| the state is RECOVERING with several members, or after RECOVERED            | INVALID_REQUEST(42)              |
| a member is unregistered, fenced, shutting down or has another broker epoch | INELIGIBLE_REPLICA(107)          |

If a change completes a reassignment, it may also change the leader. Then the change is applied, but the response is
NEW_LEADER_ELECTED(108).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from reference_broker.core.controller.elections import Elections
from reference_broker.core.controller.partition_changes import (
    Election,
    LeaderRecoveryState,
    RequestedChange,
    partition_change,
)
from reference_broker.core.metadata.image import MetadataImage, TopicImage, changed
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.metadata_records import NO_LEADER_CHANGE, PartitionChangeRecord, PartitionRecord

_ANY_EPOCH = -1


@dataclass(frozen=True, slots=True)
class Proposal:
    """The in-sync replicas that a leader proposes, and its view of the partition.

    :param isr: broker ids with broker epochs; epoch -1 is not checked.
    """

    broker_id: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[tuple[int, int], ...]
    leader_recovery_state: int

    @property
    def members(self) -> tuple[int, ...]:
        """Broker ids of the proposed ISR."""
        return tuple(broker_id for broker_id, _ in self.isr)


@dataclass(frozen=True, slots=True)
class AlterPartitionResult:
    """Result of a proposal.

    :param partition: the partition after the change; null with an error.
    :param change: the record of the change; null if nothing changes, or with an error other than NEW_LEADER_ELECTED.
    """

    code: ErrorCode
    partition: PartitionRecord | None = None
    change: PartitionChangeRecord | None = None


def parse_proposals(broker_id: int, partitions: Any) -> Iterator[tuple[int, Proposal]]:
    """Yield the partition index and the proposal of each element.

    :param broker_id: the broker that sent the request.
    :param partitions: kio's PartitionData of an AlterPartition request.
    """
    for data in partitions:
        if hasattr(data, "new_isr_with_epochs"):
            isr = tuple((member.broker_id, member.broker_epoch) for member in data.new_isr_with_epochs)
        else:
            isr = tuple((member, _ANY_EPOCH) for member in data.new_isr)
        yield (
            data.partition_index,
            Proposal(broker_id, data.leader_epoch, data.partition_epoch, isr, data.leader_recovery_state),
        )


def alter_partition(topic: TopicImage, index: int, proposal: Proposal, elections: Elections) -> AlterPartitionResult:
    """Validate a proposal for a partition of an existing topic, and return its result."""
    partition = topic.partitions.get(index)
    if partition is None:
        return AlterPartitionResult(ErrorCode.unknown_topic_or_partition)
    code = _check(partition, proposal) or _check_eligible(proposal, elections.image)
    if code is not None:
        return AlterPartitionResult(code)
    change_request = RequestedChange(
        isr=proposal.members,
        leader_recovery_state=proposal.leader_recovery_state,
        election=Election.UNCLEAN
        if elections.unclean_leader_election_enabled_for_topic(topic.name)
        else Election.ONLINE,
    )
    change = partition_change(partition, change_request, elections.candidates(partition))
    if change is None:
        return AlterPartitionResult(ErrorCode.none, partition)
    if change.leader not in {NO_LEADER_CHANGE, proposal.broker_id}:
        return AlterPartitionResult(ErrorCode.new_leader_elected, change=change)
    return AlterPartitionResult(ErrorCode.none, changed(partition, change), change)


def _check(partition: PartitionRecord, proposal: Proposal) -> ErrorCode | None:
    members = proposal.members
    is_recovering = proposal.leader_recovery_state == LeaderRecoveryState.RECOVERING
    has_recovered = partition.leader_recovery_state == LeaderRecoveryState.RECOVERED
    checks = (
        (proposal.leader_epoch > partition.leader_epoch, ErrorCode.not_controller),
        (proposal.partition_epoch > partition.partition_epoch, ErrorCode.not_controller),
        (proposal.leader_epoch < partition.leader_epoch, ErrorCode.fenced_leader_epoch),
        (proposal.broker_id != partition.leader, ErrorCode.invalid_request),
        (proposal.partition_epoch < partition.partition_epoch, ErrorCode.invalid_update_version),
        (not members or len(set(members)) < len(members), ErrorCode.invalid_request),
        (not set(members) <= set(partition.replicas), ErrorCode.invalid_request),
        (partition.leader not in members, ErrorCode.invalid_request),
        (is_recovering and (len(members) > 1 or has_recovered), ErrorCode.invalid_request),
    )
    return next((code for is_wrong, code in checks if is_wrong), None)


def _check_eligible(proposal: Proposal, image: MetadataImage) -> ErrorCode | None:
    for broker_id, broker_epoch in proposal.isr:
        broker = image.brokers.get(broker_id)
        if broker is None or not image.is_active(broker_id):
            return ErrorCode.ineligible_replica
        if broker_epoch not in {_ANY_EPOCH, broker.broker_epoch}:
            return ErrorCode.ineligible_replica
    return None
