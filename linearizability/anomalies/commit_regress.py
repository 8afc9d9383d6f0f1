"""`commit-regress`: a group offset is one that some commit wrote last.

What counts as a commit, and when it may stand last, `group_offsets` says. Not judged where a client commits by itself
(`enable.auto.commit`), because nobody records what.
"""

from collections.abc import Iterable
from functools import partial

import numpy as np

from linearizability.anomalies.columns import NO_OFFSET
from linearizability.anomalies.definition import Definition, Shown, finding, op, place
from linearizability.anomalies.finding import Finding
from linearizability.anomalies.group_offsets import Stale, level, stale_fetches
from linearizability.anomalies.log import PartitionLog

NAME = "commit-regress"


def find(log: PartitionLog) -> Iterable[Finding]:
    """Per group and partition, at the offset that should have been found."""
    if any(client.get("enable.auto.commit") == "true" for client in log.context.clients.values()):
        return
    stale = list(stale_fetches(log, lost=False))
    offsets = np.array([one.committed for one in stale], np.int64)
    everything = np.ones(len(stale), np.bool_)
    yield from finding(log, NAME, level(log), everything, offsets=offsets, show=partial(_show, log, stale))


def _show(log: PartitionLog, all_stale: list[Stale], index: int) -> Shown:
    stale = all_stale[index]
    text = (
        f"operation {op(log, stale.commit)} committed offset {stale.committed} of group {stale.group} in"
        f" {place(log, NO_OFFSET)}, but operations {op(log, stale.first)} and {op(log, stale.second)}, which came after"
        f" it, did not find it: the first found offset {stale.found}, which no commit wrote that may stand last"
    )
    return Shown((stale.commit, stale.first, stale.second), None, text)


COMMIT_REGRESS = Definition(
    name=NAME,
    text="Two fetches after healing both found a group offset that no commit which may stand last has written, though a"
    " commit had been acknowledged before them.",
    levels="A violation; permitted where `__consumer_offsets` could have lost content.",
    counted="groups and partitions",
    evidence="the newest commit acknowledged before the first fetch, and the two lowest such fetches",
    find=find,
)
