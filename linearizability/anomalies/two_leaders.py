"""`two-leaders`: a leader epoch belongs to one node (KIP-101: what an epoch is for)."""

from collections.abc import Iterable
from functools import partial

import numpy as np

from linearizability.anomalies.acknowledgements import Acknowledgements, acknowledgements, nowhere
from linearizability.anomalies.columns import NO_OFFSET, Int32s
from linearizability.anomalies.definition import Definition, Shown, finding, op, place
from linearizability.anomalies.log import PartitionLog
from linearizability.judgement import Anomaly, Verdict

NAME = "two-leaders"


def find(log: PartitionLog) -> Iterable[Anomaly]:
    """Per leader epoch."""
    if log.ambiguous:
        return
    told = log.once(acknowledgements)
    epochs, group = np.unique(told.epoch, return_inverse=True)
    lowest, highest = np.full(len(epochs), np.iinfo(np.int32).max), np.full(len(epochs), -1)
    np.minimum.at(lowest, group, told.node)
    np.maximum.at(highest, group, told.node)
    show = partial(_show, log, told, epochs)
    yield from finding(log, NAME, Verdict.VIOLATION, lowest < highest, offsets=nowhere(len(epochs)), show=show)


def _show(log: PartitionLog, told: Acknowledgements, epochs: Int32s, index: int) -> Shown:
    rows = np.flatnonzero(told.epoch == epochs[index])
    first = rows[0]
    other = rows[np.flatnonzero(told.node[rows] != told.node[first])[0]]
    one, two = int(told.operation[first]), int(told.operation[other])
    text = (
        f"in leader epoch {int(epochs[index])} of {place(log, NO_OFFSET)}, node {int(told.node[first])} acknowledged"
        f" operation {op(log, one)}, and node {int(told.node[other])} operation {op(log, two)}"
    )
    return Shown((one, two), None, text)


TWO_LEADERS = Definition(
    name=NAME,
    text="Two nodes acknowledged writes to a partition in one leader epoch.",
    levels="Always a violation.",
    counted="leader epochs",
    evidence="the lowest operation acknowledged in that epoch, and the lowest by another node",
    find=find,
)
