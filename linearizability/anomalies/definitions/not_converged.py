"""`not-converged`: after all faults have healed, the ISR is not full again or replicas differ (log matching, KIP-101).

Each period without a fault of a node, a link or a setting is judged separately.

- ISR: a period after a fault is a finding if the ISR was requested at least once after the allowance, but no response
  in the whole period has a full ISR. Topics whose replicas may have been moved or removed on request are not judged.
- Replicas: the last `read_replica` of each node's disk is compared with those of the other nodes, between the highest
  log start and the lowest log end. A read counts only if it was invoked before any fault, after the allowance, or after
  a response with a full ISR in that period. An earlier read may show a suffix that a restarted node is about to
  truncate.

The allowance after each start and end of a fault is thirty seconds plus twice the sum of `broker.session.timeout.ms`,
`controller.quorum.election.backoff.max.ms`, `controller.quorum.election.timeout.ms`,
`controller.quorum.fetch.timeout.ms` and `replica.lag.time.max.ms`, each at the highest value in force.

Choices. The ISR is full at `replication.factor` members or, if that is unknown, at the largest size ever returned. In a
compacted topic, a record that only some replicas have is a difference only if it is the last one of its key and no
tombstone. In a topic with retention, the comparison begins at the highest offset among the first records of the
replicas.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from linearizability.anomalies.columns import NO_EPOCH, NO_NODE, NO_OFFSET, Flags, Indexes, Int64s, RecordColumns
from linearizability.anomalies.definition import Definition, Shown, finding, op, place
from linearizability.anomalies.healing import BEGINNING_NS, Period
from linearizability.anomalies.log import PartitionLog
from linearizability.judgement import Anomaly, Verdict

NAME = "not-converged"


@dataclass(frozen=True, slots=True)
class _IncompleteIsr:
    """An ISR that stayed incomplete."""

    isr: tuple[int, ...]
    requested_ns: int
    since_ns: int


@dataclass(frozen=True, slots=True)
class _Replicas:
    """The rows read from the disks of two or more nodes, between two offsets."""

    operations: Indexes
    """Each node's read, ascending."""
    rows: RecordColumns
    start: int
    end: int


def find(log: PartitionLog) -> Iterable[Anomaly]:
    """Return the finding, if any; it counts periods without a full ISR and offsets at which replicas differ."""
    if log.ambiguous or not (len(log.rows.states) or log.rows.operations.reads_disk.any()):
        return
    found: list[tuple[int, _IncompleteIsr | _Replicas]] = [(NO_OFFSET, isr) for isr in _incomplete_isrs(log)]
    for replicas in _all_replicas(log):
        found += [(int(offset), replicas) for offset in _differing(log, replicas)]
    offsets = np.array([offset for offset, _ in found], np.int64)
    everything = np.ones(len(found), np.bool_)
    yield from finding(log, NAME, Verdict.VIOLATION, everything, offsets=offsets, show=partial(_show, log, found))


def _incomplete_isrs(log: PartitionLog) -> Iterator[_IncompleteIsr]:
    states, schedule = log.rows.states, log.context.schedule
    seen = [int(row) for row in np.argsort(states.requested_ns, kind="stable") if states.isr[row] is not None]
    if log.context.may_move_replicas(log.rows.topic) or not seen:
        return
    requested_ns = states.requested_ns[seen]
    for period in schedule.whole:
        if period.begin_ns == BEGINNING_NS or period.begin_ns + schedule.allowed_ns >= period.end_ns:
            continue
        begin, end = np.searchsorted(requested_ns, [period.begin_ns + 1, period.end_ns])
        own = [row for row in seen[begin:end] if states.received_ns[row] < period.end_ns]
        late = [row for row in own if states.requested_ns[row] > period.begin_ns + schedule.allowed_ns]
        if late and not any(len(states.isr[row]) >= log.isr_size for row in own):
            yield _IncompleteIsr(states.isr[late[-1]], int(states.requested_ns[late[-1]]), period.begin_ns)


def _all_replicas(log: PartitionLog) -> Iterator[_Replicas]:
    """Yield, per period, the common part of the nodes' disks, from the last read of each disk that counts."""
    operations = log.rows.operations
    reads: Indexes = np.flatnonzero(operations.reads_disk & (operations.node != NO_NODE))
    invoke_ns, complete_ns = operations.invoke_ns[reads], operations.complete_ns[reads]
    for period in log.context.schedule.whole if len(reads) else ():
        inside = (invoke_ns > period.begin_ns) & (complete_ns < period.end_ns)
        if inside.any():
            own = reads[inside & (invoke_ns > _settled_ns(log, period))]
            last = {int(operations.node[read]): int(read) for read in own}
            yield from _common_part(log, np.array(sorted(last.values()), np.intp))


def _common_part(log: PartitionLog, reads: Indexes) -> Iterator[_Replicas]:
    """Yield the common part of the reads of two or more nodes; nothing for fewer, or if the range of any is unknown."""
    positions = log.rows.positions.take(log.rows.positions.is_read)
    positions = positions.take(np.isin(positions.operation, reads))
    if len(reads) < 2 or not np.array_equal(np.sort(positions.operation), reads):
        return
    rows = log.rows.reads.take(np.isin(log.rows.reads.operation, reads) & (log.rows.reads.offset != NO_OFFSET))
    start = max(int(positions.before.max()), int(positions.log_start_offset.max()))
    if log.rules.retention:
        firsts = (rows.offset[rows.operation == read] for read in reads)
        start = max([start, *(int(offsets.min()) for offsets in firsts if len(offsets))])
    end = int(positions.after.min())
    yield _Replicas(reads, rows.take((rows.offset >= start) & (rows.offset < end)), start, end)


def _settled_ns(log: PartitionLog, period: Period) -> int:
    """Return the time in a period after which the replicas must be equal."""
    if period.begin_ns == BEGINNING_NS:
        return BEGINNING_NS
    states = log.rows.states
    full_isr_ns = [
        int(states.received_ns[row])
        for row in np.flatnonzero(states.requested_ns > period.begin_ns)
        if states.isr[row] is not None and len(states.isr[row]) >= log.isr_size
    ]
    return min([*full_isr_ns, period.begin_ns + log.context.schedule.allowed_ns])


def _differing(log: PartitionLog, replicas: _Replicas) -> Int64s:
    """Return the offsets at which replicas differ."""
    rows = replicas.rows
    offsets, group = np.unique(rows.offset, return_inverse=True)
    held = np.unique(np.stack([group, rows.operation]), axis=1)[0]
    missing = np.bincount(held, minlength=len(offsets)) < len(replicas.operations)
    if log.rules.compaction:
        missing &= _is_last_of_key(rows, group, len(offsets))
    differs = missing | _has_several(group, np.where(rows.valued, rows.value, -1), len(offsets))
    differs |= _has_several(group, rows.valued.astype(np.int64), len(offsets))
    differs |= _has_several(group, rows.corrupt.astype(np.int64), len(offsets))
    known = rows.leader_epoch != NO_EPOCH
    differs |= _has_several(group[known], rows.leader_epoch[known].astype(np.int64), len(offsets))
    return offsets[differs]


def _has_several(group: Indexes, values: Int64s, count: int) -> Flags:
    """Whether each group has more than one value."""
    low, high = np.full(count, np.iinfo(np.int64).max), np.full(count, np.iinfo(np.int64).min)
    np.minimum.at(low, group, values)
    np.maximum.at(high, group, values)
    several: Flags = high > low
    return several


def _is_last_of_key(rows: RecordColumns, group: Indexes, count: int) -> Flags:
    """Whether, per offset, some replica has a record with a value there, and no replica has a later one of its key."""
    order = np.lexsort((group, rows.key))
    ends = np.append(np.diff(rows.key[order]) != 0, True) if len(order) else np.zeros(0, np.bool_)
    last_group = np.full(int(rows.key.max(initial=-1)) + 2, -1)
    last_group[rows.key[order[ends]]] = group[order[ends]]
    found = np.zeros(count, np.bool_)
    found[group[rows.valued & (last_group[rows.key] == group)]] = True
    return found


def _show(log: PartitionLog, found: Sequence[tuple[int, _IncompleteIsr | _Replicas]], index: int) -> Shown:
    offset, what = found[index]
    if isinstance(what, _IncompleteIsr):
        text = (
            f"the last fault had ended at {what.since_ns} ns, and at {what.requested_ns} ns the ISR of"
            f" {place(log, NO_OFFSET)} was still {list(what.isr)}, instead of {log.isr_size} replicas"
        )
        return Shown((), None, text)
    reads = [int(read) for read in what.operations]
    holds = ", ".join(f"node {int(log.rows.operations.node[read])} has {_held(what, read, offset)}" for read in reads)
    text = (
        f"at {place(log, offset)} {holds} on its disk, as operations {', '.join(str(op(log, read)) for read in reads)}"
        f" read; all held the log from {what.start} to {what.end}"
    )
    return Shown(reads, None, text)


def _held(replicas: _Replicas, read: int, offset: int) -> str:
    rows = replicas.rows
    own = np.flatnonzero((rows.operation == read) & (rows.offset == offset))
    if not len(own):
        return "nothing"
    row = own[0]
    what = f"value {int(rows.value[row])}" if rows.valued[row] else "a tombstone"
    broken = ", damaged," if rows.corrupt[row] else ""
    return f"{what}{broken} of epoch {int(rows.leader_epoch[row])}"


NOT_CONVERGED = Definition(
    name=NAME,
    text="After healing, the ISR of a partition does not become full within the allowance (thirty seconds plus twice"
    " the sum of the timeouts in force), or replicas differ. Replicas differ at an offset between the highest log start"
    " and the lowest log end if their disks, as `read_replica` found them, have records with different values, epochs"
    " or checksums there, or if only some disks have a record there.",
    levels="A violation. The ISR is not judged if it was not requested after the allowance; replicas are not judged if"
    " fewer than two disks were read.",
    counted="periods without a fault in which the ISR stayed incomplete, and offsets at which replicas differ",
    evidence="the reads of all replicas' disks; none for an incomplete ISR, because responses are rows of `states`",
    find=find,
)
