"""Defects of the in-sync replicas: who leaves, who joins, who counts, on the leader and at the controller."""

from typing import Any

from chaos.defects.defect import Area
from reference_broker.core.clock import Now
from reference_broker.core.controller import isr as proposals_of_leaders
from reference_broker.core.controller.isr import Proposal
from reference_broker.core.metadata.image import MetadataImage
from reference_broker.core.replication.isr import IsrPhase, IsrState
from reference_broker.core.replication.isr_changes import IsrChanges
from reference_broker.core.replication.partition import Partition
from reference_broker.core.replication.requests import Proposal as Proposed
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.metadata_records import PartitionRecord

_JEPSEN_2013 = "https://aphyr.com/posts/293-jepsen-kafka"

_seeds = Area.ISR.seeds
_answered = IsrChanges._answered
_check = proposals_of_leaders._check
_shrunk = IsrState.shrunk


@_seeds(Partition, "maybe_shrink_isr", "replication/isr-shrinks-and-heals", "unavailable", "not-converged")
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


@_seeds(Partition, "is_under_min_isr", "unavailable")
def demand_one_replica_too_many(self: Partition) -> bool:
    """An ISR of exactly `min.insync.replicas` is found too small.

    Three replicas with a minimum of two do not survive the loss of one: producers get NOT_ENOUGH_REPLICAS.
    """
    has_spare = len(self.followers) + 1 > self._effective_min_isr
    return len(self.isr.isr) < self._effective_min_isr + has_spare


@_seeds(Partition, "_maybe_advance_high_watermark", "watermark-on-min-isr", "lost-write", source="KIP-966, KAFKA-15583")
def advance_below_min_isr(self: Partition, now: Now) -> bool:
    """The high watermark moves even while the ISR is smaller than `min.insync.replicas`.

    What acks=1 producers write is committed, and read, on fewer disks than the topic asks for.
    """
    committed = self.followers.committed_offset(self.log.log_end_offset, self.isr.maximal, now)
    if committed <= self.high_watermark:
        return False
    self.high_watermark = committed
    return True


@_seeds(Partition, "_may_join", "joins-isr-complete", "acknowledged-is-committed", "watermark-on-isr", "lost-write")
def expand_before_catching_up(self: Partition, node_id: int) -> bool:
    """A follower joins the ISR with its first fetch, wherever that is.

    It may become leader without the records that were committed before it came.
    """
    return not self.isr.is_pending and self.followers._is_eligible(node_id)


@_seeds(
    Partition,
    "_may_join",
    "acknowledged-is-committed",
    "watermark-on-isr",
    "lost-write",
    "committed-stays",
    source="KAFKA-7128",
)
def expand_at_the_high_watermark(self: Partition, node_id: int) -> bool:
    """A follower joins the ISR of a new leader at its high watermark, before it has all up to the start of the epoch.

    A new leader's high watermark trails: records between it and the start of the epoch are committed already. The
    follower may lead without them.
    """
    return not self.isr.is_pending and self.followers.may_join(node_id, self.high_watermark)


@_seeds(IsrState, "shrunk", "acknowledged-is-committed", "watermark-on-isr", "lost-write", source="KIP-497")
def count_a_shrink_before_it_is_agreed(self: IsrState, replicas: frozenset[int]) -> IsrState:
    """Replicas that are to leave the ISR count no more as soon as the leader proposes it.

    A leader cut off from the controller acknowledges alone, while the controller elects one of those that were to
    leave. What the old leader acknowledged is lost.
    """
    pending = _shrunk(self, replicas)
    return IsrState(IsrPhase.PENDING_SHRINK, pending.isr, pending.proposed, pending.proposed)


@_seeds(IsrState, "expanded", "acknowledged-is-committed", "watermark-on-isr", "lost-write", source="KIP-497")
def count_an_expansion_once_it_is_agreed(self: IsrState, replica: int) -> IsrState:
    """A replica that is to join the ISR does not count before the controller's answer has come.

    The controller may have agreed, and elected it, while the leader still commits without it.
    """
    return IsrState(IsrPhase.PENDING_EXPAND, self.isr, self.isr | {replica}, self.isr)


@_seeds(
    proposals_of_leaders, "_check", "acknowledged-is-committed", "watermark-on-isr", "lost-write", source="KAFKA-1382"
)
def accept_a_proposal_of_an_old_partition_epoch(partition: PartitionRecord, proposal: Proposal) -> ErrorCode | None:
    """The controller does not look at the partition epoch of an ISR proposal.

    A proposal that was made before the controller itself changed the ISR brings back a replica which has left since,
    and need not have what is committed.
    """
    code = _check(partition, proposal)
    return None if code is ErrorCode.invalid_update_version else code


@_seeds(proposals_of_leaders, "_check_eligible", "fenced-in-isr", source="KIP-841, KAFKA-13916")
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


@_seeds(IsrChanges, "_answered", "not-converged")
def give_a_proposal_up_when_nobody_answers(
    self: IsrChanges, sent: dict[tuple[str, int], Proposed], response: Any, now: Now
) -> None:
    """An ISR proposal whose answer is lost with the controller is not sent again.

    The leader waits for its answer in all its life; the ISR stays as it is.
    """
    self._is_under_way = False
    if response is None or response.error_code is not ErrorCode.none:
        for key in sent:
            self._proposals.pop(key, None)
        return
    _answered(self, sent, response, now)
