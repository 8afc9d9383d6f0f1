"""`commit-lost`: an acknowledged commit of a group offset is there afterwards.

What counts as a commit, and when it had ended, `group_offsets` says.
"""

from collections.abc import Iterable
from functools import partial

import numpy as np

from linearizability.anomalies.columns import NO_OFFSET
from linearizability.anomalies.definition import Definition, Shown, finding, op, place
from linearizability.anomalies.finding import Finding
from linearizability.anomalies.group_offsets import Stale, level, stale_fetches
from linearizability.anomalies.log import PartitionLog

NAME = "commit-lost"


def find(log: PartitionLog) -> Iterable[Finding]:
    """Per group and partition, at the offset that should have been found."""
    if log.ambiguous:
        return
    stale = list(stale_fetches(log, lost=True))
    offsets = np.array([one.committed for one in stale], np.int64)
    everything = np.ones(len(stale), np.bool_)
    yield from finding(log, NAME, level(log), everything, offsets=offsets, show=partial(_show, log, stale))


def _show(log: PartitionLog, all_stale: list[Stale], index: int) -> Shown:
    stale = all_stale[index]
    text = (
        f"operation {op(log, stale.commit)} committed offset {stale.committed} of group {stale.group} in"
        f" {place(log, NO_OFFSET)}, but operations {op(log, stale.first)} and {op(log, stale.second)}, which came after"
        f" it, did not find it: the first found no offset"
    )
    return Shown((stale.commit, stale.first, stale.second), None, text)


COMMIT_LOST = Definition(
    name=NAME,
    text="Two fetches after healing both found no group offset, though a commit had been acknowledged before them.",
    levels="A violation; permitted where `__consumer_offsets` could have lost content.",
    counted="groups and partitions",
    evidence="the newest commit acknowledged before the first fetch, and the two lowest such fetches",
    find=find,
)
