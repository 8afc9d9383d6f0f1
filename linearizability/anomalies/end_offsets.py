"""End offsets of a log that checks rely on: results of read_uncommitted ListOffsets with a known leader epoch.

An end offset that was returned during or after the topic's deletion may be that of another log, and is ignored.
"""

from linearizability.anomalies.columns import NO_EPOCH, NO_OFFSET, Flags
from linearizability.anomalies.log import PartitionLog


def known_end_offsets(log: PartitionLog) -> Flags:
    """Whether each row of `states` has an end offset that checks rely on."""
    states = log.rows.states
    known = (states.end_offset != NO_OFFSET) & (states.leader_epoch != NO_EPOCH)
    counting: Flags = known & (states.received_ns < log.deleted_from_ns)
    return counting
