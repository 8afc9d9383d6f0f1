"""Derivation of the positions of reads from records and operations, for a history without the table `positions`.

A read starts where the process's previous read in that partition ended, if the process had no move since; otherwise at
its own first record. It ends after its last record. A move is an operation in `MOVES` or an assignment event. A move
during one of the two reads counts as a move between them, because its order relative to the records is unknown. Then
the derived read starts later and covers less. This can hide an anomaly, but cannot cause a false one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from linearizability.history.rows import Flags, Numbers

MOVES: Final = ("assign", "incremental_assign", "incremental_unassign", "seek", "subscribe", "unassign", "unsubscribe")
"""Operations after which a process may read from another position, as it may after every assignment event."""


@dataclass(frozen=True, slots=True)
class Reads:
    """The reads of one partition that returned records: one element each, by process and then in the order of calls."""

    process: Numbers
    begin_ns: Numbers
    end_ns: Numbers
    """When the read returned, or when it was invoked if it never returned."""
    first: Numbers
    """The offset of its first record."""
    last: Numbers
    """The offset of its last record, in the order of the result."""


def derive_befores(reads: Reads, moves_ns: Mapping[int, Numbers]) -> Numbers:
    """Return the position at which each read started. Each read ended at `last + 1`.

    `moves_ns` has the times of the moves of each process, sorted.
    """
    befores = reads.first.copy()
    continued = np.flatnonzero(_follows(reads, moves_ns))
    befores[continued] = reads.last[continued - 1] + 1
    return befores


def _follows(reads: Reads, moves_ns: Mapping[int, Numbers]) -> Flags:
    """Whether a read began where the one before it ended."""
    follows = np.zeros(len(reads.process), np.bool_)
    follows[1:] = reads.process[1:] == reads.process[:-1]
    for process in np.unique(reads.process[follows]).tolist():
        moves = moves_ns.get(process)
        if moves is not None:
            own = np.flatnonzero(follows & (reads.process == process))
            moved_before_end = np.searchsorted(moves, reads.end_ns[own], side="right")
            follows[own[moved_before_end > np.searchsorted(moves, reads.begin_ns[own - 1], side="left")]] = False
    return follows
