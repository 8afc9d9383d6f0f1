"""`unavailable`: a partition that a connected quorum could serve is served, within what Kafka takes for a change.

An *outage* is a time in which produces to a partition ended in vain, each begun at most five seconds after others had
ended, and no operation on the partition succeeded. In vain: not ok, with an error that says that nobody was there
(REQUEST_TIMED_OUT, NETWORK_EXCEPTION, LEADER_NOT_AVAILABLE, BROKER_NOT_AVAILABLE, KAFKA_STORAGE_ERROR). A produce that
is known to have been sent once (`attempts`) counts only where a node that no fault strikes answered it, since its
client looks for no other. A success: an acknowledged produce, an ok read that returned records, a leader's answer in
`states`.

Outages are measured within each time in which no fault begins or ends, from its beginning on. A node is struck while a
fault names it, alone or as an end of a link (`1->2`), but a `cut` that isolates one node, both ways, on every listener,
from clients and all voters, strikes that node alone. A target that names no node strikes every node, and so do any
other fault of clients' links and a `configuration`, the latter for the rest of the run. While nodes are struck two
things must be known: that a majority of the voters that `describe_quorum` last answered before is not struck; and that
enough in-sync replicas for `min.insync.replicas` are not, of the last ISR answered when nothing had changed for as long
as is allowed, by any fault from then on. While none is struck, an ISR that large must have been answered at some time,
or `replication.factor` must say so.

Allowed, after each beginning and end of a fault, are thirty seconds and twice the sum of `broker.session.timeout.ms`,
`controller.quorum.election.backoff.max.ms`, `controller.quorum.election.timeout.ms`,
`controller.quorum.fetch.timeout.ms` and `replica.lag.time.max.ms`, of each the highest in force.

Choices. Where any of that is not told, nothing is said; nor after content was lost, nor of a topic that was deleted.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa

from linearizability.anomalies.columns import OK, Flags, Indexes, Int32s, Int64s
from linearizability.anomalies.definition import op
from linearizability.anomalies.faults import NEVER_NS
from linearizability.anomalies.healing import BEGINNING_NS, NOTHING, Nodes, Period, Struck
from linearizability.anomalies.log import PartitionLog
from linearizability.anomalies.whole_run import Facts, RunDefinition, WholeRun, run_finding
from linearizability.judgement import Anomaly, Evidence, Verdict

NAME = "unavailable"
PAUSE_NS: Final = 5_000_000_000
_QUORUM: Final = "metadata-quorum"

_OUTAGES: Final = pa.schema(
    [
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("first", pa.int64()),
        pa.field("last", pa.int64()),
        pa.field("begin_ns", pa.int64()),
        pa.field("end_ns", pa.int64()),
        pa.field("struck", pa.list_(pa.string())),
        pa.field("if_voters_among", pa.list_(pa.string())),
        pa.field("period_ns", pa.int64()),
    ]
)
"""Outages longer than is allowed: the produce that began first and the one that ended last, by op_id; from when to
when; which nodes faults struck in that period, and among which the voters must be for that (`healing.Struck`); when it
began."""
_VOTERS: Final = pa.schema([pa.field("answered_ns", pa.int64()), pa.field("voters", pa.list_(pa.int32()))])


def _reduce(log: PartitionLog) -> pa.Table:
    operations, schedule = log.rows.operations, log.context.schedule
    produces = np.unique(log.rows.sends.operation)
    produces = produces[operations.in_vain[produces]]
    if log.ambiguous or log.rules.losses or not len(produces):
        return _OUTAGES.empty_table()
    long_ones = (one for one in schedule.periods if one.end_ns - one.begin_ns > schedule.allowed_ns)
    rows = [
        {
            **outage,
            "topic": log.rows.topic,
            "partition": log.rows.partition,
            "struck": _texts(period.struck.nodes),
            "if_voters_among": _texts(struck.if_voters_among),
        }
        for period in long_ones
        if (struck := _survived(log, period)) is not None
        for outage in _outages(log, produces, period)
    ]
    return pa.Table.from_pylist(rows, schema=_OUTAGES)


def _texts(nodes: Nodes) -> list[str] | None:
    """Node ids as a fault may name them, however high."""
    return None if nodes is None else [str(node) for node in sorted(nodes)]


def _survived(log: PartitionLog, period: Period) -> Struck | None:
    """What is struck since the ISR was last known, if enough in-sync replicas are left for acks=all."""
    schedule, states = log.context.schedule, log.rows.states
    needed = max([1, *log.context.settings.numbers(log.rows.topic, "min.insync.replicas")])
    if not period.struck.nodes:
        return period.struck if period.struck == NOTHING and log.isr_size >= needed else None
    calm = [
        row
        for row in np.flatnonzero(states.answered_ns <= period.begin_ns)
        if states.isr[row] is not None and schedule.is_calm(int(states.asked_ns[row]), int(states.answered_ns[row]))
    ]
    if not calm:
        return None
    row = max(calm, key=lambda row: int(states.asked_ns[row]))
    struck = schedule.struck_between(int(states.asked_ns[row]), period.end_ns)
    return struck if struck.nodes is not None and len(set(states.isr[row]) - struck.nodes) >= needed else None


def _outages(log: PartitionLog, produces: Int32s, period: Period) -> Iterator[dict[str, Any]]:
    operations = log.rows.operations
    of_struck = np.isin(operations.node[produces], list(period.struck.nodes or ())) | (operations.node[produces] < 0)
    invoke_ns, complete_ns = operations.invoke_ns[produces], operations.complete_ns[produces]
    counts = ~(operations.sent_once[produces] & of_struck)
    counts &= (complete_ns > period.begin_ns) & (complete_ns < min(period.end_ns, log.deleted_from_ns))
    own, served_ns = produces[counts], log.once(_served_ns)
    if not len(own):
        return
    since = np.searchsorted(served_ns, complete_ns[counts], side="right")
    begin_ns = np.maximum(np.append(BEGINNING_NS, served_ns)[since], np.maximum(invoke_ns[counts], period.begin_ns))
    order = np.lexsort((own, begin_ns, since))
    for rows in np.split(order, np.flatnonzero(_pauses(since[order], begin_ns[order], complete_ns[counts][order])) + 1):
        last = rows[np.lexsort((own[rows], complete_ns[counts][rows]))[-1]]
        end_ns = int(complete_ns[counts][last])
        if end_ns - int(begin_ns[rows[0]]) > log.context.schedule.allowed_ns:
            yield {
                "first": op(log, int(own[rows[0]])),
                "last": op(log, int(own[last])),
                "begin_ns": int(begin_ns[rows[0]]),
                "end_ns": end_ns,
                "period_ns": period.begin_ns,
            }


def _pauses(since: Indexes, begin_ns: Int64s, complete_ns: Int64s) -> Flags:
    """After which produces, by when they began, an outage ends: a success, or a pause."""
    ended_ns = complete_ns.copy()
    for success in np.unique(since):
        own = since == success
        ended_ns[own] = np.maximum.accumulate(complete_ns[own])
    pauses: Flags = (np.diff(since) != 0) | (begin_ns[1:] > ended_ns[:-1] + PAUSE_NS)
    return pauses


def _served_ns(log: PartitionLog) -> Int64s:
    """When an operation on the partition had succeeded, ascending."""
    operations, states = log.rows.operations, log.rows.states
    used = np.unique(np.concatenate([log.rows.sends.operation, log.rows.reads.operation]))
    good = used[(operations.outcome[used] == OK) & ~operations.reads_disk[used]]
    completed = operations.complete_ns[good]
    return np.sort(np.concatenate([completed[completed != NEVER_NS], states.answered_ns[states.from_leader]]))


def _voters(log: PartitionLog) -> pa.Table:
    states = log.rows.states
    rows = [
        {"answered_ns": int(states.answered_ns[row]), "voters": sorted({*states.isr[row]} - {None})}
        for row in np.flatnonzero(states.of_quorum)
        if states.isr[row] is not None
    ]
    return pa.Table.from_pylist(rows, schema=_VOTERS)


def find(run: WholeRun) -> Iterable[Anomaly]:
    """Per outage."""
    told = sorted((row["answered_ns"], row["voters"]) for row in run.facts[_QUORUM].to_pylist())
    evidence = [_evidence(row) for row in run.facts[NAME].to_pylist() if _is_connected(told, row)]
    yield from run_finding(NAME, Verdict.VIOLATION, evidence)


def _is_connected(told: list[tuple[int, list[int]]], row: dict[str, Any]) -> bool:
    """Whether a majority of the voters is not struck; `told`: the voters and when they were answered, ascending."""
    struck = set(map(int, row["struck"]))
    if not struck:
        return True
    voters = next(
        (set(voters) for answered_ns, voters in reversed(told) if answered_ns <= row["period_ns"]), set[int]()
    )
    among = voters if row["if_voters_among"] is None else set(map(int, row["if_voters_among"]))
    return voters <= among and 2 * len(voters - struck) > len(voters)


def _evidence(row: dict[str, Any]) -> Evidence:
    struck = f"faults struck only nodes {', '.join(row['struck'])}" if row["struck"] else "no fault struck any node"
    text = (
        f"every produce to {row['topic']}-{row['partition']} from operation {row['first']} to operation {row['last']}"
        f" ended in vain, for {(row['end_ns'] - row['begin_ns']) / 1e9:.1f} s, and nothing on it succeeded, while"
        f" {struck}"
    )
    op_ids = tuple(dict.fromkeys((row["first"], row["last"])))
    return Evidence(op_ids, row["topic"], row["partition"], None, None, text)


OUTAGE_FACTS: Final = Facts(NAME, _OUTAGES, _reduce)
VOTER_FACTS: Final = Facts(_QUORUM, _VOTERS, _voters)

UNAVAILABLE = RunDefinition(
    name=NAME,
    text="For longer than the settings allow (thirty seconds and twice the sum of their timeouts) every produce to a"
    " partition ended because nobody was there to serve it, by its error, and no operation on the partition succeeded,"
    " while no fault began or ended, a majority of the voters of the metadata quorum was not struck by one, and enough"
    " in-sync replicas for `min.insync.replicas` were not either.",
    levels="A violation. Nothing is said where `states` does not tell of voters and ISR while a fault lasts, nor after"
    " content was lost or a setting changed.",
    counted="outages, by partition",
    evidence="the produce that began first, and the one that ended last",
    find=find,
)
