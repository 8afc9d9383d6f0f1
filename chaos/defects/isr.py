"""Defects of the in-sync replicas: who leaves, who joins, who counts, on the leader and at the controller."""

from chaos.defects.defect import Area
from reference_broker.core.clock import Now
from reference_broker.core.controller import isr as proposals_of_leaders
from reference_broker.core.controller.isr import Proposal
from reference_broker.core.metadata.image import MetadataImage
from reference_broker.core.replication.isr import IsrPhase, IsrState
from reference_broker.core.replication.isr_changes import IsrChanges
from reference_broker.core.replication.partition import Partition
from reference_broker.protocol.errors import ErrorCode

_JEPSEN_2013 = "https://aphyr.com/posts/293-jepsen-kafka"

_seeds = Area.ISR.seeds
_answered = IsrChanges._answered
_check = proposals_of_leaders._check
_shrunk = IsrState.shrunk


@_seeds(Partition, "maybe_shrink_isr", "replication/isr-shrinks-and-expands", "unavailable", "not-converged")
def never_shrink(self: Partition, now: Now) -> None:
    """A follower that lags stays in the ISR until its broker is fenced.

    If its broker lives, but cannot reach the leader, the high watermark waits for it for ever: every acks=all write
    times out although enough replicas are in sync.
    """


@_seeds(Partition, "is_under_min_isr", "watermark-on-min-isr", "lost-write", source=f"{_JEPSEN_2013}, KAFKA-1555")
def acknowledge_alone(self: Partition) -> bool:
    """`min.insync.replicas` is not heeded: a leader that has lost all its followers takes acks=all writes.

    They are on one disk. If that leader ends, and another replica leads, all that was acknowledged meanwhile is lost.
    """
    return False


@_seeds(Partition, "_effective_min_isr", "watermark-on-min-isr", "lost-write")
def count_one_replica_too_many(self: Partition) -> int:
    """The leader is counted twice when the ISR is held against `min.insync.replicas`.

    With a minimum of two, a leader alone is enough: acknowledged records are on one disk.
    """
    return min(self.min_insync_replicas, len(self.followers) + 1) - 1


@_seeds(Partition, "_maybe_advance_high_watermark", "watermark-on-min-isr", "lost-write", source="KIP-966, KAFKA-15583")
def advance_below_min_isr(self: Partition, now: Now) -> bool:
    """The high watermark moves even while the ISR is smaller than `min.insync.replicas`.

    What acks=1 producers write is committed, and read, on fewer disks than the topic asks for.
    """
    committed = self.followers.committed_offset(self.log.log_end_offset, self.isr.maximal, now)
    if committed <= self.high_watermark:
        return False
    self._set_high_watermark(committed)
    return True


@_seeds(Partition, "_may_join", "joins-isr-complete", "acknowledged-is-committed", "watermark-on-isr", "lost-write")
def expand_before_catching_up(self: Partition, node_id: int) -> bool:
    """A follower joins the ISR with its first fetch, wherever that is.

    It may become leader without the records that were committed before it came.
    """
    return not self.isr.is_pending and self.followers._is_eligible(node_id)


@_seeds(IsrState, "shrunk", "acknowledged-is-committed", "watermark-on-isr", "lost-write", source="KIP-497")
def count_a_shrink_before_it_is_agreed(self: IsrState, replicas: frozenset[int]) -> IsrState:
    """Replicas that are to leave the ISR count no more as soon as the leader proposes it.

    A leader cut off from the controller acknowledges alone, while the controller elects one of those that were to
    leave. What the old leader acknowledged is lost.
    """
    pending = _shrunk(self, replicas)
    return IsrState(IsrPhase.PENDING_SHRINK, pending.isr, pending.proposed, pending.proposed)


@_seeds(Partition, "is_under_min_isr", "isr-response", "unavailable")
def demand_one_replica_too_many(self: Partition) -> bool:
    """An ISR of exactly `min.insync.replicas` is found too small.

    Three replicas with a minimum of two do not survive the loss of one: producers get NOT_ENOUGH_REPLICAS.
    """
    has_spare = len(self.followers) + 1 > self._effective_min_isr
    return len(self.isr.isr) < self._effective_min_isr + has_spare


@_seeds(proposals_of_leaders, "_check_eligible", "fenced-in-isr", "controller-response", source="KIP-841, KAFKA-13916")
def let_a_fenced_broker_into_the_isr(proposal: Proposal, image: MetadataImage) -> ErrorCode | None:
    """The controller takes a proposed ISR without looking whether its members are alive.

    A fenced broker is in sync and never catches up: the high watermark stands still, and if all others go, nobody may
    lead.
    """
    return None


@_seeds(Partition, "isr_refused", "not-converged", source="KAFKA-12751")
def stay_pending_when_refused(self: Partition, proposal: IsrState, error: ErrorCode, now: Now) -> None:
    """A leader whose ISR proposal was refused goes on waiting for it.

    It never proposes again in this epoch: the ISR neither shrinks nor grows any more.
    """
