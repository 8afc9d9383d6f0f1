"""The answered end offsets that count: of a read_uncommitted ListOffsets, with the epoch of the leader that answered.

An answer that came when the topic was being deleted, or later, says nothing of this log.
"""

from linearizability.anomalies.columns import NO_EPOCH, NO_OFFSET, Flags
from linearizability.anomalies.log import PartitionLog


def answered_ends(log: PartitionLog) -> Flags:
    """Per row of states."""
    states = log.rows.states
    known = (states.end_offset != NO_OFFSET) & (states.leader_epoch != NO_EPOCH)
    counting: Flags = known & (states.answered_ns < log.deleted_from_ns)
    return counting
