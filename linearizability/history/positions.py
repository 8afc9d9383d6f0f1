"""What reads covered, where a history does not say: positions derived from records and operations.

A read starts where the process's last one in that partition ended, if the process had no assign, seek or assignment
event since, else at its own first record; it ends after its last record. A move that falls inside the last read or this
one counts as since, because nobody knows whether it came before or after the records: the derived read then starts
later, and covers less, which can hide an anomaly and never make one up.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from linearizability.history.rows import Flags, Numbers

MOVES: Final = ("assign", "incremental_assign", "incremental_unassign", "seek", "subscribe", "unassign", "unsubscribe")
"""Operations that assign or seek: after them a process may read from elsewhere. So it may after every event."""


@dataclass(frozen=True, slots=True)
class Reads:
    """The reads of one partition that returned records, one element each, by process and then in the order of calls."""

    process: Numbers
    begin_ns: Numbers
    end_ns: Numbers
    """When it returned; when it was invoked, if it never did."""
    first: Numbers
    """The offset of its first record."""
    last: Numbers
    """And of its last one, in the order in which it gave them."""


def derive_befores(reads: Reads, moves_ns: Mapping[int, Numbers]) -> Numbers:
    """Where each read started, `moves_ns` being, per process and sorted, when it was assigned or sought.

    Each ended at `last + 1`.
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
            by_now = np.searchsorted(moves, reads.end_ns[own], side="right")
            follows[own[by_now > np.searchsorted(moves, reads.begin_ns[own - 1], side="left")]] = False
    return follows
