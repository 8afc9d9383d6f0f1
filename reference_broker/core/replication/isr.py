"""The in-sync replicas of a partition, as its leader knows them and wants them (KIP-497, KIP-841, KIP-903).

Only the controller changes an ISR. A leader proposes (AlterPartition) and until it is told, it counts with the worst:

| state          | the ISR is     | the high watermark waits for (maximal ISR)           |
|----------------|----------------|------------------------------------------------------|
| COMMITTED      | as committed   | the ISR                                              |
| PENDING_EXPAND | last committed | the ISR and the one that is to join                  |
| PENDING_SHRINK | last committed | the ISR, those that are to leave included            |

One proposal is under way at a time. It ends with the controller's answer, or with newer metadata, which always wins.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from types import MappingProxyType
from typing import Self

from reference_broker.protocol.errors import ErrorCode


class IsrPhase(Enum):
    """Whether a change is under way, and which."""

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
"""COMMITTED to COMMITTED: newer metadata."""


class Reaction(Enum):
    """What a leader does when its proposal is refused."""

    REVERT = auto()
    """Back to the committed state: the controller says that it did not, and never will, carry it out."""
    AWAIT_METADATA = auto()
    """Stay pending: this leader's view is old, and newer metadata is on its way."""
    RETRY = auto()
    """Propose the same again."""


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
"""By the error of one partition in AlterPartition's answer; any other: `Reaction.RETRY`."""


@dataclass(frozen=True, slots=True)
class IsrState:
    """An ISR and what is proposed for it. Made by the class methods and by `expanded`, `shrunk` and `reverted`.

    :param isr: as last committed.
    :param proposed: as it is to become; the same where nothing is under way.
    :param maximal: those that the high watermark waits for.
    """

    phase: IsrPhase
    isr: frozenset[int]
    proposed: frozenset[int]
    maximal: frozenset[int]

    @classmethod
    def committed(cls, isr: Iterable[int]) -> Self:
        """As the controller says."""
        members = frozenset(isr)
        return cls(IsrPhase.COMMITTED, members, members, members)

    @property
    def is_pending(self) -> bool:
        """A proposal is under way."""
        return self.phase is not IsrPhase.COMMITTED

    def expanded(self, replica: int) -> Self:
        """A replica is proposed. It counts from now on: that is stricter, so it is safe whatever becomes of it."""
        return self._pending(IsrPhase.PENDING_EXPAND, self.isr | {replica})

    def shrunk(self, replicas: frozenset[int]) -> Self:
        """Replicas are to leave. They count until the controller has agreed, for one of them may be the next leader."""
        return self._pending(IsrPhase.PENDING_SHRINK, self.isr - replicas)

    def reverted(self) -> Self:
        """As if nothing had been proposed."""
        return type(self).committed(self.isr)

    def _pending(self, phase: IsrPhase, proposed: frozenset[int]) -> Self:
        assert phase in TRANSITIONS[self.phase], f"{phase.name} out of {self.phase.name}"
        return type(self)(phase, self.isr, proposed, self.isr | proposed)
