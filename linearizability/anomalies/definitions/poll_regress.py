"""`poll-regress`: a consumer's position goes back, or it receives a record again, without a seek or rebalance.

Choice: if the promise for the records of the earlier poll ended before the later poll (after an unclean election or a
loss of content), the log itself may have been truncated. Then the position of the consumer may validly go back too.
"""

from collections.abc import Iterable
from functools import partial

import numpy as np

from linearizability.anomalies.absence import log_starts
from linearizability.anomalies.definition import Definition, Shown, finding, op, place
from linearizability.anomalies.log import PartitionLog
from linearizability.anomalies.loss import before_end
from linearizability.anomalies.polls import Steps, steps_between, steps_inside
from linearizability.anomalies.promise import NOT_PROMISED
from linearizability.judgement import Anomaly, Verdict

NAME = "poll-regress"


def find(log: PartitionLog) -> Iterable[Anomaly]:
    """Return the findings; each counts steps back."""
    if log.ambiguous:
        return
    between, inside = log.once(steps_between), log.once(steps_inside)
    parts = [steps.take(steps.reached < steps.left) for steps in (between, inside)]
    back = Steps(*(np.concatenate([getattr(part, name) for part in parts]) for name in Steps.__slots__))
    complete_ns = log.rows.operations.complete_ns
    back = back.take(log.once(log_starts).by(complete_ns[back.later]) <= back.left)
    end_ns = log.promise.read.end_ns(complete_ns[back.earlier])
    broken = (end_ns != NOT_PROMISED) & before_end(complete_ns[back.later], end_ns)
    for verdict, found in ((Verdict.VIOLATION, broken), (Verdict.PERMITTED, ~broken)):
        yield from finding(log, NAME, verdict, found, offsets=back.reached, show=partial(_show, log, back))


def _show(log: PartitionLog, back: Steps, index: int) -> Shown:
    earlier, later = int(back.earlier[index]), int(back.later[index])
    process = int(log.rows.operations.process[later])
    where = f"{place(log, int(back.reached[index]))}, after position {int(back.left[index])}"
    if earlier == later:
        text = f"operation {op(log, later)} returned to process {process} {where} in the same poll"
        return Shown((later,), None, text)
    text = f"operation {op(log, later)} returned to process {process} {where} in operation {op(log, earlier)}"
    return Shown((earlier, later), None, text)


POLL_REGRESS = Definition(
    name=NAME,
    text="A consumer's position moved back, or the consumer received an offset again, between two polls or inside one"
    " poll. No seek, reset or assignment event of the process explains the step, and no response has a log start offset"
    " above the position from which the consumer moved back.",
    levels="A violation if the records of the earlier poll were still promised when the later poll completed; else"
    " permitted.",
    counted="steps back",
    evidence="the earlier poll and the one that moved back; one operation if they are the same poll",
    find=find,
)
