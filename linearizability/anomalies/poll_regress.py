"""`poll-regress`: a consumer goes back, or is given a record again, though nobody moved it.

Choice: where what the earlier poll had read was no longer promised at the later one (an unclean election, lost
content), the log itself went back, and the consumer lawfully with it: permitted.
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
    """Per step back."""
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
    where = f"{place(log, int(back.reached[index]))}, having come to {int(back.left[index])}"
    if earlier == later:
        return Shown((later,), None, f"operation {op(log, later)} gave process {process} {where} in the same poll")
    text = f"operation {op(log, later)} gave process {process} {where} in operation {op(log, earlier)}"
    return Shown((earlier, later), None, text)


POLL_REGRESS = Definition(
    name=NAME,
    text="A consumer went back or was given an offset again, between two polls or inside one, with no seek, reset or"
    " assignment event of the process between, nor a log start answered above the position it left.",
    levels="A violation if what the earlier poll returned was still promised at the later one; else permitted.",
    counted="steps back",
    evidence="the poll that it came from and the one that went back; once, where it is one poll",
    find=find,
)
