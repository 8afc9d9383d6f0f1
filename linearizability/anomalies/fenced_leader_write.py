"""`fenced-leader-write`: a deposed leader's acks=all write is never acknowledged, since its followers left it.

With acks=1 a leader that does not know yet that it was deposed acknowledges alone, and lawfully.
"""

from collections.abc import Iterable
from functools import partial

import numpy as np

from linearizability.anomalies.acknowledgements import Acknowledgements, acknowledgements
from linearizability.anomalies.columns import Flags
from linearizability.anomalies.definition import Definition, Shown, finding, op, place
from linearizability.anomalies.log import PartitionLog
from linearizability.judgement import Anomaly, Verdict

NAME = "fenced-leader-write"


def find(log: PartitionLog) -> Iterable[Anomaly]:
    """Per operation: the write in the older epoch."""
    if log.ambiguous:
        return
    told = log.once(acknowledgements)
    fenced = _after_newer(log, told)
    acks_all = log.rows.operations.acks[told.operation] == -1
    show = partial(_show, log, told)
    for verdict, found in ((Verdict.VIOLATION, fenced & acks_all), (Verdict.PERMITTED, fenced & ~acks_all)):
        yield from finding(log, NAME, verdict, found, offsets=told.offset, show=show)


def _after_newer(log: PartitionLog, told: Acknowledgements) -> Flags:
    """Which writes were invoked after another node had acknowledged one in a newer epoch. Nodes are few."""
    operations = log.rows.operations
    complete_ns, invoke_ns = operations.complete_ns[told.operation], operations.invoke_ns[told.operation]
    after = np.zeros(len(told.operation), np.bool_)
    for node in np.unique(told.node):
        own = np.flatnonzero(told.node == node)
        own = own[np.argsort(complete_ns[own], kind="stable")]
        newest = np.append(np.int32(-1), np.maximum.accumulate(told.epoch[own]))
        by_then = newest[np.searchsorted(complete_ns[own], invoke_ns, side="left")]
        after |= (told.node != node) & (by_then > told.epoch)
    return after


def _show(log: PartitionLog, told: Acknowledgements, index: int) -> Shown:
    operations = log.rows.operations
    newer = np.flatnonzero(
        (told.node != told.node[index])
        & (told.epoch > told.epoch[index])
        & (operations.complete_ns[told.operation] < operations.invoke_ns[told.operation[index]])
    )[0]
    first, fenced = int(told.operation[newer]), int(told.operation[index])
    text = (
        f"node {int(told.node[index])} acknowledged operation {op(log, fenced)} ({place(log, int(told.offset[index]))})"
        f" in leader epoch {int(told.epoch[index])}, though node {int(told.node[newer])} had acknowledged operation"
        f" {op(log, first)} in epoch {int(told.epoch[newer])} before it was sent"
    )
    return Shown((first, fenced), None, text)


FENCED_LEADER_WRITE = Definition(
    name=NAME,
    text="A node acknowledged a write in a leader epoch older than one in which another node had acknowledged a write"
    " before this one was invoked.",
    levels="A violation with acks=all; permitted with weaker ones.",
    counted="operations: the write in the older epoch",
    evidence="the lowest write in a newer epoch that was acknowledged before, and the operation itself",
    find=find,
)
