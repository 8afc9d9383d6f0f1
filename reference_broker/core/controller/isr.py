"""Whether a leader may change its in-sync replicas: AlterPartition (KIP-497, KIP-841, KIP-903, KIP-704).

The checks of one partition, in Kafka's order (`ReplicationControlManager.validateAlterPartitionData`):

| what is wrong                                                               | error                            |
|-----------------------------------------------------------------------------|----------------------------------|
| a topic id that does not exist                                              | UNKNOWN_TOPIC_ID(100)            |
| a partition that does not exist                                             | UNKNOWN_TOPIC_OR_PARTITION(3)    |
| a leader or partition epoch above the controller's: it is deposed           | NOT_CONTROLLER(41)               |
| a leader epoch below                                                        | FENCED_LEADER_EPOCH(74)          |
| another broker leads                                                        | INVALID_REQUEST(42)              |
| a partition epoch below                                                     | INVALID_UPDATE_VERSION(95)       |
| a member that is no replica, twice or none; the leader not among them       | INVALID_REQUEST(42)              |
| more than one member of a leader that recovers, or recovered, recovers now  | INVALID_REQUEST(42)              |
| a member not registered, fenced, shutting down, or of another broker epoch  | INELIGIBLE_REPLICA(107)          |

A change that completes a reassignment may move the leader: it is made, and answered NEW_LEADER_ELECTED(108).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from reference_broker.core.controller.elections import Elections
from reference_broker.core.controller.partition_changes import (
    Election,
    LeaderRecoveryState,
    Wanted,
    partition_change,
)
from reference_broker.core.metadata.image import MetadataImage, TopicImage, changed
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.metadata_records import NO_LEADER_CHANGE, PartitionChangeRecord, PartitionRecord

_ANY_EPOCH = -1


@dataclass(frozen=True, slots=True)
class Proposal:
    """The in-sync replicas that a leader wants, and the state that it has of its partition.

    :param isr: broker ids and broker epochs; epoch -1 is not checked.
    """

    broker_id: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[tuple[int, int], ...]
    leader_recovery_state: int

    @property
    def members(self) -> tuple[int, ...]:
        """The broker ids."""
        return tuple(broker_id for broker_id, _ in self.isr)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of a proposal: the partition as it is afterwards, unless there is an error."""

    code: ErrorCode
    partition: PartitionRecord | None = None
    change: PartitionChangeRecord | None = None


def proposals(broker_id: int, partitions: Any) -> Iterator[tuple[int, Proposal]]:
    """Partition index and proposal of each of kio's PartitionData."""
    for asked in partitions:
        if hasattr(asked, "new_isr_with_epochs"):
            isr = tuple((member.broker_id, member.broker_epoch) for member in asked.new_isr_with_epochs)
        else:
            isr = tuple((member, _ANY_EPOCH) for member in asked.new_isr)
        yield (
            asked.partition_index,
            Proposal(broker_id, asked.leader_epoch, asked.partition_epoch, isr, asked.leader_recovery_state),
        )


def judge(topic: TopicImage, index: int, proposal: Proposal, elections: Elections) -> Verdict:
    """What becomes of a proposal for a partition of a topic that exists."""
    partition = topic.partitions.get(index)
    if partition is None:
        return Verdict(ErrorCode.unknown_topic_or_partition)
    code = _check(partition, proposal) or _check_eligible(proposal, elections.image)
    if code is not None:
        return Verdict(code)
    wanted = Wanted(
        isr=proposal.members,
        leader_recovery_state=proposal.leader_recovery_state,
        election=Election.UNCLEAN if elections.may_be_unclean(topic.name) else Election.ONLINE,
    )
    change = partition_change(partition, wanted, elections.candidates(partition))
    if change is None:
        return Verdict(ErrorCode.none, partition)
    if change.leader not in {NO_LEADER_CHANGE, proposal.broker_id}:
        return Verdict(ErrorCode.new_leader_elected, change=change)
    return Verdict(ErrorCode.none, changed(partition, change), change)


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
