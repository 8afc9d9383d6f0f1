"""`fenced-leader-write`: a deposed leader acknowledges a write, though its followers follow a newer leader.

With acks=1, a deposed leader that does not know about its successor yet acknowledges without its followers, which is
permitted.
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
    """Return the findings; each counts operations. Of each pair, the write in the older epoch is counted."""
    if log.ambiguous:
        return
    acked = log.once(acknowledgements)
    fenced = _after_newer(log, acked)
    acks_all = log.rows.operations.acks[acked.operation] == -1
    show = partial(_show, log, acked)
    for verdict, found in ((Verdict.VIOLATION, fenced & acks_all), (Verdict.PERMITTED, fenced & ~acks_all)):
        yield from finding(log, NAME, verdict, found, offsets=acked.offset, show=show)


def _after_newer(log: PartitionLog, acked: Acknowledgements) -> Flags:
    """Whether each write was invoked after another node had acknowledged one in a newer epoch."""
    operations = log.rows.operations
    complete_ns, invoke_ns = operations.complete_ns[acked.operation], operations.invoke_ns[acked.operation]
    after = np.zeros(len(acked.operation), np.bool_)
    for node in np.unique(acked.node):  # there are few nodes
        own = np.flatnonzero(acked.node == node)
        own = own[np.argsort(complete_ns[own], kind="stable")]
        newest = np.append(np.int32(-1), np.maximum.accumulate(acked.epoch[own]))
        newest_before = newest[np.searchsorted(complete_ns[own], invoke_ns, side="left")]
        after |= (acked.node != node) & (newest_before > acked.epoch)
    return after


def _show(log: PartitionLog, acked: Acknowledgements, index: int) -> Shown:
    operations = log.rows.operations
    newer = np.flatnonzero(
        (acked.node != acked.node[index])
        & (acked.epoch > acked.epoch[index])
        & (operations.complete_ns[acked.operation] < operations.invoke_ns[acked.operation[index]])
    )[0]
    first, fenced = int(acked.operation[newer]), int(acked.operation[index])
    text = (
        f"node {int(acked.node[index])} acknowledged operation {op(log, fenced)}"
        f" ({place(log, int(acked.offset[index]))}) in leader epoch {int(acked.epoch[index])}, though node"
        f" {int(acked.node[newer])} had acknowledged operation {op(log, first)} in epoch {int(acked.epoch[newer])}"
        " before it was sent"
    )
    return Shown((first, fenced), None, text)


FENCED_LEADER_WRITE = Definition(
    name=NAME,
    text="A node acknowledged a write in an old leader epoch: before the write was invoked, another node had"
    " acknowledged a write in a newer epoch.",
    levels="A violation with acks=all; permitted with weaker acks.",
    counted="operations: the write in the older epoch",
    evidence="the lowest write in a newer epoch that was acknowledged earlier, and the operation itself",
    find=find,
)
