"""Acknowledged produce operations whose broker and leader epoch are known.

The epoch of a send (column `leader_epoch`) is known only if its client requested the epoch on the same connection
before and after the produce. Other produces are not judged by epoch.
"""

from dataclasses import dataclass

import numpy as np

from linearizability.anomalies.columns import NO_EPOCH, NO_NODE, NO_OFFSET, OK, Indexes, Int32s, Int64s
from linearizability.anomalies.log import PartitionLog


@dataclass(frozen=True, slots=True)
class Acknowledgements:
    """Acknowledged produces, one element per operation, in the order of the operations."""

    operation: Indexes
    epoch: Int32s
    node: Int32s
    offset: Int64s
    """The lowest acknowledged offset, NO_OFFSET where unknown."""


def acknowledgements(log: PartitionLog) -> Acknowledgements:
    """Return the acknowledged produces of a log whose node and epoch are known."""
    sends, operations = log.rows.sends, log.rows.operations
    sender = sends.operation
    known = np.flatnonzero(
        (operations.outcome[sender] == OK) & (sends.leader_epoch != NO_EPOCH) & (operations.node[sender] != NO_NODE)
    )
    first = sends.first_rows(known, sender)
    operation = sender[first].astype(np.intp)
    return Acknowledgements(operation, sends.leader_epoch[first], operations.node[operation], sends.offset[first])


def no_offsets(count: int) -> Int64s:
    """Return an array of `count` times NO_OFFSET."""
    return np.full(count, NO_OFFSET, np.int64)
