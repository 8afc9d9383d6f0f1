"""Invariants of the quorum. In this simulation, a snapshot contains only a digest of all committed records."""

from zlib import crc32

from reference_broker.core.quorum.messages import OffsetAndEpoch
from reference_broker.core.quorum.quorum_log import QuorumLog
from reference_broker.core.quorum.raft_client import KafkaRaftClient
from reference_broker.protocol.records import decode_batches
from reference_broker.simulation.invariants.log_mirror import Batch
from reference_broker.simulation.invariants.quorum import QuorumInvariants, require
from reference_broker.simulation.invariants.violation import InvariantViolation


class Invariants(QuorumInvariants):
    """Invariants with the digests of the committed records below each end offset."""

    def __init__(self, voter_ids: tuple[int, ...], check_quorum_bound_ms: int) -> None:
        super().__init__(voter_ids, check_quorum_bound_ms)
        self.digests: dict[int, int] = {0: 0}

    def first_committed(self, node_id: int, batch: Batch) -> None:
        before = self.digests.get(batch.base_offset)
        require(before is not None, "committed-without-gap", lambda: f"node {node_id} applies {batch}")
        self.digests[batch.last_offset + 1] = crc32(str(batch).encode(), before)

    def check_snapshot_content(self, node_id: int, node: KafkaRaftClient, snapshot_id: OffsetAndEpoch) -> None:
        require(
            snapshot_digest(node.log, snapshot_id) == self.digests.get(snapshot_id.offset),
            "quorum-committed-equal",
            lambda: f"node {node_id} has another snapshot {snapshot_id}",
        )


def snapshot_digest(log: QuorumLog, snapshot_id: OffsetAndEpoch) -> int:
    data = log.snapshots.read(snapshot_id, 0, log.snapshots.size(snapshot_id))
    return int(next(record.value for _, record in decode_batches(data)))


__all__ = ["InvariantViolation", "Invariants", "require"]
