"""Defects of the ISR: how replicas leave it, join it and are counted, on the leader and on the controller."""

from chaos.defects.defect import Area
from reference_broker.core.clock import Now
from reference_broker.core.controller import isr as alter_partition
from reference_broker.core.controller.isr import Proposal
from reference_broker.core.metadata.image import MetadataImage
from reference_broker.core.replication.isr import IsrPhase, IsrState
from reference_broker.core.replication.partition import Partition
from reference_broker.protocol.errors import ErrorCode

_JEPSEN_2013 = "https://aphyr.com/posts/293-jepsen-kafka"

_seeds = Area.ISR.seeds
_shrunk = IsrState.shrunk


@_seeds(Partition, "maybe_shrink_isr", "replication/isr-shrinks-and-expands", "unavailable", "not-converged")
def never_shrink(self: Partition, now: Now) -> None:
    """A follower that lags stays in the ISR until its broker is fenced.

    If its broker is alive but cannot reach the leader, the high watermark never advances: every acks=all write times
    out although enough replicas are in sync.
    """


@_seeds(Partition, "is_under_min_isr", "watermark-on-min-isr", "lost-write", source=f"{_JEPSEN_2013}, KAFKA-1555")
def acknowledge_alone(self: Partition) -> bool:
    """`min.insync.replicas` is ignored: a leader that has lost all its followers accepts acks=all writes.

    The records are on one disk. If the leader fails and another replica is elected, acknowledged records are lost.
    """
    return False


@_seeds(Partition, "_effective_min_isr", "watermark-on-min-isr", "lost-write")
def count_one_replica_too_many(self: Partition) -> int:
    """The leader is counted twice when the ISR is compared with `min.insync.replicas`.

    With a minimum of two, a leader alone is enough: acknowledged records are on one disk.
    """
    return min(self.min_insync_replicas, len(self.followers) + 1) - 1


@_seeds(Partition, "_maybe_advance_high_watermark", "watermark-on-min-isr", "lost-write", source="KIP-966, KAFKA-15583")
def advance_below_min_isr(self: Partition, now: Now) -> bool:
    """The high watermark advances even while the ISR is smaller than `min.insync.replicas`.

    Records of acks=1 producers are committed and can be read while they are on fewer disks than the topic requires.
    """
    committed = self.followers.committed_offset(self.log.log_end_offset, self.isr.maximal, now)
    if committed <= self.high_watermark:
        return False
    self._set_high_watermark(committed)
    return True


@_seeds(Partition, "_may_join", "joins-isr-complete", "acknowledged-is-committed", "watermark-on-isr", "lost-write")
def expand_before_catching_up(self: Partition, node_id: int) -> bool:
    """A follower joins the ISR with its first fetch, from any offset.

    It may become leader without the records that were committed before.
    """
    return not self.isr.is_pending and self.followers._is_eligible(node_id)


@_seeds(IsrState, "shrunk", "acknowledged-is-committed", "watermark-on-isr", "lost-write", source="KIP-497")
def count_a_shrink_before_it_is_agreed(self: IsrState, replicas: frozenset[int]) -> IsrState:
    """The high watermark ignores the replicas that a pending proposal removes, before the controller has agreed.

    A leader that cannot reach the controller acknowledges alone, while the controller elects one of these replicas. The
    records that the old leader acknowledged are lost.
    """
    pending = _shrunk(self, replicas)
    return IsrState(IsrPhase.PENDING_SHRINK, pending.isr, pending.proposed, pending.proposed)


@_seeds(Partition, "is_under_min_isr", "isr-response", "unavailable")
def demand_one_replica_too_many(self: Partition) -> bool:
    """An ISR of exactly `min.insync.replicas` is treated as too small if the partition has more replicas.

    Three replicas with a minimum of two do not survive the loss of one: producers get NOT_ENOUGH_REPLICAS.
    """
    has_spare = len(self.followers) + 1 > self._effective_min_isr
    return len(self.isr.isr) < self._effective_min_isr + has_spare


@_seeds(alter_partition, "_check_eligible", "fenced-in-isr", "controller-response", source="KIP-841, KAFKA-13916")
def let_a_fenced_broker_into_the_isr(proposal: Proposal, image: MetadataImage) -> ErrorCode | None:
    """The controller accepts a proposed ISR without checking that its members are alive.

    A fenced broker is in the ISR and never catches up: the high watermark does not advance, and if all other members
    fail, no leader can be elected.
    """
    return None


@_seeds(Partition, "handle_alter_partition_error", "not-converged", source="KAFKA-12751")
def stay_pending_when_rejected(self: Partition, proposal: IsrState, error: ErrorCode, now: Now) -> None:
    """A leader whose ISR proposal was rejected continues to wait for it.

    It never proposes again in this epoch: the ISR neither shrinks nor expands.
    """
