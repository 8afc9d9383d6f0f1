"""`unavailable`: a partition is not served for longer than the allowance, though a connected quorum could serve it.

An *outage* is a time in which produces to a partition were not served and no operation on the partition succeeded; at
most five seconds lie between the end of one such produce and the start of the next. A produce was not served if it is
not ok, and its error is one for a missing leader or a missing response (REQUEST_TIMED_OUT, NETWORK_EXCEPTION,
LEADER_NOT_AVAILABLE, BROKER_NOT_AVAILABLE, KAFKA_STORAGE_ERROR). A produce that is known to have been sent only once
(`attempts`) counts only if its node is known and not struck by a fault, because its client tries no other node. A
success is an acknowledged produce, an ok read that returned records, or a leader's response in `states`.

Outages are measured within each period in which no fault begins or ends. If the first produce of an outage began
before the period, the outage is measured from the start of the period.

A node is struck while a fault names it, alone or as an end of a link (`1->2`). There are three exceptions. A `cut` that
isolates one node in both directions, on every listener, from clients and all voters, strikes only that node. A fault
that names no node, any other fault of client links, and a `configuration` (which lasts for the rest of the run) strike
every node. An election strikes no node.

An outage is judged only if the partition must be available. While nodes are struck, two conditions must hold:

- A majority of the voters that `describe_quorum` last returned is not struck.
- At least `min.insync.replicas` members of the last *stable* ISR have not been struck by any fault since the request
  that returned this ISR. An ISR is stable if no fault began or ended while its request was in progress, or within the
  allowance before that request.

While no node is struck, `replication.factor` must be at least `min.insync.replicas`. If `replication.factor` is
unknown, the largest ISR ever returned is compared instead.

The allowance after each start and end of a fault is thirty seconds plus twice the sum of `broker.session.timeout.ms`,
`controller.quorum.election.backoff.max.ms`, `controller.quorum.election.timeout.ms`,
`controller.quorum.fetch.timeout.ms` and `replica.lag.time.max.ms`, each at the highest value in force.

Choices. The partition is not judged if any of these facts is unknown, or if any fault of the run may have lost content
of the partition. Produces that ended after a deletion of the topic may have begun do not count.
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
"""Outages longer than the allowance. `first` and `last` are the op_ids of the produce that began first and of the one
that ended last. `struck` has the nodes that faults have struck. It is valid only if `if_voters_among` is null or has
all voters of the quorum (`healing.Struck`). `period_ns` is the start of the outage's period."""
_VOTERS: Final = pa.schema([pa.field("received_ns", pa.int64()), pa.field("voters", pa.list_(pa.int32()))])


def _reduce(log: PartitionLog) -> pa.Table:
    operations, schedule = log.rows.operations, log.context.schedule
    produces = np.unique(log.rows.sends.operation)
    produces = produces[operations.not_served[produces]]
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
        if (struck := _struck_since_isr(log, period)) is not None
        for outage in _outages(log, produces, period)
    ]
    return pa.Table.from_pylist(rows, schema=_OUTAGES)


def _texts(nodes: Nodes) -> list[str] | None:
    """Return node ids as texts, because a fault may name an id of any size."""
    return None if nodes is None else [str(node) for node in sorted(nodes)]


def _struck_since_isr(log: PartitionLog, period: Period) -> Struck | None:
    """Return the nodes that were struck since the last stable ISR; NOTHING if no node is struck in the period.

    Return None if the nodes or the ISR are unknown, or if too few in-sync replicas are left for acks=all.
    """
    schedule, states = log.context.schedule, log.rows.states
    needed = max([1, *log.context.settings.numbers(log.rows.topic, "min.insync.replicas")])
    if not period.struck.nodes:
        return period.struck if period.struck == NOTHING and log.isr_size >= needed else None
    stable = [
        row
        for row in np.flatnonzero(states.received_ns <= period.begin_ns)
        if states.isr[row] is not None
        and schedule.is_unchanged(int(states.requested_ns[row]), int(states.received_ns[row]))
    ]
    if not stable:
        return None
    row = max(stable, key=lambda row: int(states.requested_ns[row]))
    struck = schedule.struck_between(int(states.requested_ns[row]), period.end_ns)
    return struck if struck.nodes is not None and len(set(states.isr[row]) - struck.nodes) >= needed else None


def _outages(log: PartitionLog, produces: Int32s, period: Period) -> Iterator[dict[str, Any]]:
    """Yield the outages of a period that are longer than the allowance, with their columns of `_OUTAGES`.

    :param produces: the produces that were not served.
    """
    operations = log.rows.operations
    maybe_struck = np.isin(operations.node[produces], list(period.struck.nodes or ())) | (operations.node[produces] < 0)
    invoke_ns, complete_ns = operations.invoke_ns[produces], operations.complete_ns[produces]
    counts = ~(operations.sent_once[produces] & maybe_struck)
    counts &= (complete_ns > period.begin_ns) & (complete_ns < min(period.end_ns, log.deleted_from_ns))
    own, served_ns = produces[counts], log.once(_served_ns)
    if not len(own):
        return
    since = np.searchsorted(served_ns, complete_ns[counts], side="right")  # per produce, the successes until it ended
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
    """For each produce except the last: whether an outage ends, by a success or a pause, before the next produce.

    :param since: the number of successes before the end of each produce. Produces are sorted by it, then by start.
    """
    ended_ns = complete_ns.copy()
    for success in np.unique(since):
        own = since == success
        ended_ns[own] = np.maximum.accumulate(complete_ns[own])
    pauses: Flags = (np.diff(since) != 0) | (begin_ns[1:] > ended_ns[:-1] + PAUSE_NS)
    return pauses


def _served_ns(log: PartitionLog) -> Int64s:
    """Return the times at which operations on the partition succeeded, ascending."""
    operations, states = log.rows.operations, log.rows.states
    used = np.unique(np.concatenate([log.rows.sends.operation, log.rows.reads.operation]))
    good = used[(operations.outcome[used] == OK) & ~operations.reads_disk[used]]
    completed = operations.complete_ns[good]
    return np.sort(np.concatenate([completed[completed != NEVER_NS], states.received_ns[states.from_leader]]))


def _voters(log: PartitionLog) -> pa.Table:
    states = log.rows.states
    rows = [
        {"received_ns": int(states.received_ns[row]), "voters": sorted({*states.isr[row]} - {None})}
        for row in np.flatnonzero(states.describes_quorum)
        if states.isr[row] is not None
    ]
    return pa.Table.from_pylist(rows, schema=_VOTERS)


def find(run: WholeRun) -> Iterable[Anomaly]:
    """Return the findings; each counts outages."""
    voters = sorted((row["received_ns"], row["voters"]) for row in run.facts[_QUORUM].to_pylist())
    evidence = [_evidence(row) for row in run.facts[NAME].to_pylist() if _is_connected(voters, row)]
    yield from run_finding(NAME, Verdict.VIOLATION, evidence)


def _is_connected(known: list[tuple[int, list[int]]], row: dict[str, Any]) -> bool:
    """Whether a majority of the voters is not struck; `known`: voters with the time of the response, ascending."""
    struck = set(map(int, row["struck"]))
    if not struck:
        return True
    voters = next((set(voters) for at_ns, voters in reversed(known) if at_ns <= row["period_ns"]), set[int]())
    among = voters if row["if_voters_among"] is None else set(map(int, row["if_voters_among"]))
    return voters <= among and 2 * len(voters - struck) > len(voters)


def _evidence(row: dict[str, Any]) -> Evidence:
    struck = f"faults struck only nodes {', '.join(row['struck'])}" if row["struck"] else "no fault struck any node"
    text = (
        f"every produce to {row['topic']}-{row['partition']} from operation {row['first']} to operation {row['last']}"
        f" was not served, for {(row['end_ns'] - row['begin_ns']) / 1e9:.1f} s, and nothing on the partition succeeded,"
        f" while {struck}"
    )
    op_ids = tuple(dict.fromkeys((row["first"], row["last"])))
    return Evidence(op_ids, row["topic"], row["partition"], None, None, text)


UNAVAILABLE = RunDefinition(
    name=NAME,
    text="A partition was not available for longer than the allowance (thirty seconds plus twice the sum of the"
    " timeouts in force). In that time no fault began or ended, and a majority of the voters of the metadata quorum and"
    " at least `min.insync.replicas` in-sync replicas were not struck by any fault.",
    levels="A violation. Not judged in three cases: a fault strikes a node while `states` has no voters or no ISR; a"
    " fault of the run may have lost content of the partition; a setting was changed earlier in the run.",
    counted="outages, by partition",
    evidence="the first produce of the outage to begin, and the last one to end",
    find=find,
    facts=(Facts(NAME, _OUTAGES, _reduce), Facts(_QUORUM, _VOTERS, _voters)),
)
