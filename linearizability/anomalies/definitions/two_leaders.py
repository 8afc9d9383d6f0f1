"""`two-leaders`: two nodes acknowledged writes in one leader epoch, which belongs to one node (KIP-101)."""

from collections.abc import Iterable
from functools import partial

import numpy as np

from linearizability.anomalies.acknowledgements import Acknowledgements, acknowledgements, no_offsets
from linearizability.anomalies.columns import NO_OFFSET, Int32s
from linearizability.anomalies.definition import Definition, Shown, finding, op, place
from linearizability.anomalies.log import PartitionLog
from linearizability.judgement import Anomaly, Verdict

NAME = "two-leaders"


def find(log: PartitionLog) -> Iterable[Anomaly]:
    """Return the findings; each counts leader epochs."""
    if log.ambiguous:
        return
    acked = log.once(acknowledgements)
    epochs, group = np.unique(acked.epoch, return_inverse=True)
    lowest, highest = np.full(len(epochs), np.iinfo(np.int32).max), np.full(len(epochs), -1)
    np.minimum.at(lowest, group, acked.node)
    np.maximum.at(highest, group, acked.node)
    show = partial(_show, log, acked, epochs)
    yield from finding(log, NAME, Verdict.VIOLATION, lowest < highest, offsets=no_offsets(len(epochs)), show=show)


def _show(log: PartitionLog, acked: Acknowledgements, epochs: Int32s, index: int) -> Shown:
    rows = np.flatnonzero(acked.epoch == epochs[index])
    first = rows[0]
    other = rows[np.flatnonzero(acked.node[rows] != acked.node[first])[0]]
    one, two = int(acked.operation[first]), int(acked.operation[other])
    text = (
        f"in leader epoch {int(epochs[index])} of {place(log, NO_OFFSET)}, node {int(acked.node[first])} acknowledged"
        f" operation {op(log, one)}, and node {int(acked.node[other])} acknowledged operation {op(log, two)}"
    )
    return Shown((one, two), None, text)


TWO_LEADERS = Definition(
    name=NAME,
    text="Two nodes acknowledged writes to a partition in one leader epoch.",
    levels="Always a violation.",
    counted="leader epochs",
    evidence="the lowest operation that was acknowledged in that epoch, and the lowest one that another node"
    " acknowledged",
    find=find,
)
