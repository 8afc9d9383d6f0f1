"""In-sync replicas of a partition: committed, proposed and maximal ISR of the leader.

Follows: kafka.cluster.Partition (KIP-497, KIP-841, KIP-903).

Only the controller changes an ISR. A leader sends a proposal (AlterPartition). Until the proposal has a result, the
high watermark waits for all replicas of the old and the proposed ISR:

| phase          | proposal                | the high watermark waits for (maximal ISR)             |
|----------------|-------------------------|--------------------------------------------------------|
| COMMITTED      | none                    | the committed ISR                                      |
| PENDING_EXPAND | to add a replica        | the committed ISR and the replica to add               |
| PENDING_SHRINK | to remove replicas      | the committed ISR, including the replicas to remove    |

A partition has at most one pending proposal. It ends with the controller's response, or when newer metadata replaces
the ISR.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from types import MappingProxyType
from typing import Self

from reference_broker.protocol.errors import ErrorCode


class IsrPhase(Enum):
    """Kind of the pending proposal, if there is one."""

    COMMITTED = auto()
    PENDING_EXPAND = auto()
    PENDING_SHRINK = auto()


TRANSITIONS: Mapping[IsrPhase, frozenset[IsrPhase]] = MappingProxyType(
    {
        IsrPhase.COMMITTED: frozenset({IsrPhase.COMMITTED, IsrPhase.PENDING_EXPAND, IsrPhase.PENDING_SHRINK}),
        IsrPhase.PENDING_EXPAND: frozenset({IsrPhase.COMMITTED}),
        IsrPhase.PENDING_SHRINK: frozenset({IsrPhase.COMMITTED}),
    }
)
"""Metadata causes the transition from COMMITTED to COMMITTED."""


class Reaction(Enum):
    """Reaction of a leader to the rejection of its proposal."""

    REVERT = auto()
    """Revert to the committed state: the controller has not applied the change, and will not apply it."""
    AWAIT_METADATA = auto()
    """Stay pending: this leader's metadata is outdated, and newer metadata will arrive."""
    RETRY = auto()
    """Propose the same ISR again, with the current epochs."""


REACTIONS: Mapping[ErrorCode, Reaction] = MappingProxyType(
    {
        ErrorCode.operation_not_attempted: Reaction.REVERT,
        ErrorCode.ineligible_replica: Reaction.REVERT,
        ErrorCode.unknown_topic_or_partition: Reaction.AWAIT_METADATA,
        ErrorCode.unknown_topic_id: Reaction.AWAIT_METADATA,
        ErrorCode.fenced_leader_epoch: Reaction.AWAIT_METADATA,
        ErrorCode.invalid_update_version: Reaction.AWAIT_METADATA,
        ErrorCode.invalid_request: Reaction.AWAIT_METADATA,
        ErrorCode.new_leader_elected: Reaction.AWAIT_METADATA,
    }
)
"""Reaction by the partition's error in the AlterPartition response; `Reaction.RETRY` for any other error."""


@dataclass(frozen=True, slots=True)
class IsrState:
    """An ISR and the proposal to change it, created by `committed`, `expanded`, `shrunk` and `reverted`.

    :param isr: the last committed ISR.
    :param proposed: the ISR of the pending proposal; the same as `isr` if there is no proposal.
    :param maximal: the replicas that the high watermark waits for.
    """

    phase: IsrPhase
    isr: frozenset[int]
    proposed: frozenset[int]
    maximal: frozenset[int]

    @classmethod
    def committed(cls, isr: Iterable[int]) -> Self:
        """Return the state for an ISR that the controller has committed."""
        members = frozenset(isr)
        return cls(IsrPhase.COMMITTED, members, members, members)

    @property
    def is_pending(self) -> bool:
        """Whether the proposal has no result yet."""
        return self.phase is not IsrPhase.COMMITTED

    def expanded(self, replica: int) -> Self:
        """Return the state that proposes to add a replica.

        The high watermark waits for the replica from now on, which is safe whether the proposal is accepted or not.
        """
        return self._pending(IsrPhase.PENDING_EXPAND, self.isr | {replica})

    def shrunk(self, replicas: frozenset[int]) -> Self:
        """Return the state that proposes to remove replicas.

        The high watermark waits for these replicas until the controller has committed the change, because one of them
        may become the leader before that.
        """
        return self._pending(IsrPhase.PENDING_SHRINK, self.isr - replicas)

    def reverted(self) -> Self:
        """Return the committed state, without the proposal."""
        return type(self).committed(self.isr)

    def _pending(self, phase: IsrPhase, proposed: frozenset[int]) -> Self:
        assert phase in TRANSITIONS[self.phase], f"no transition from {self.phase.name} to {phase.name}"
        return type(self)(phase, self.isr, proposed, self.isr | proposed)
