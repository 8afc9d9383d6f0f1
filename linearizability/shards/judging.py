"""Judges a shard: sieves each of its logs, and gives what stays to the definitions, with all there is of small tables.

A shard of whole logs is one task. A log that is cut takes several: each part is scanned by itself; the edges of all
parts say what each must know of the others; suspects are followed through the parts until no more rows belong to them.
What the sieve must not be used for is judged whole, as any engine would: transactions, compaction and retention,
topics that were deleted or created again, and nodes that may have led at one time.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from linearizability.anomalies.arrow import numbers, operation_columns, state_columns
from linearizability.anomalies.catalogue import ShardJudgement, merge_shards
from linearizability.anomalies.columns import NO_OFFSET, Indexes, Int64s, OperationColumns
from linearizability.anomalies.context import Context
from linearizability.anomalies.faults import NEVER_NS
from linearizability.anomalies.gather import ShardRows
from linearizability.anomalies.log import PartitionLog
from linearizability.anomalies.polls import steps_between
from linearizability.shards import tables
from linearizability.shards.edges import UNKNOWN, Edge, Key, Outside, leaders_conflict, may_be_outage
from linearizability.shards.files import PartRows, ShardFiles, TableSource
from linearizability.shards.manifest import Layout
from linearizability.shards.sieve import Part, Reads, Sends, Surroundings
from linearizability.shards.suspects import Named, Suspects, all_named, all_suspects
from linearizability.shards.walks import Walks


@dataclass(frozen=True, slots=True)
class PartScan:
    """What is said of a part of a log that is cut."""

    edge: Edge
    suspects: Suspects
    """With nothing outside it."""
    refused: bool
    """Whether the log must be judged whole."""
    first_in_vain_ns: int
    in_vain_ns: Int64s
    walks: bool
    """Whether some consumer did not go on where it had been."""
    crossing: Mapping[int, tuple[int, int]]
    """Per read that went beyond the part, its first and last `seq` in it."""


@dataclass(frozen=True, slots=True)
class ShardTask:
    """What every task on a shard is made of."""

    layout: Layout
    shard: int
    context: Context

    @property
    def files(self) -> ShardFiles:
        """The shard's files."""
        return ShardFiles(self.layout, self.shard)

    def may_be_sieved(self, log: int) -> bool:
        """Whether the run has nothing in it that a sieve does not know of."""
        context = self.context
        topic, topic_id, partition = self.layout.places[log]
        logs = [
            one for one in self.layout.shards[self.shard].logs if self.layout.places[one][::2] == (topic, partition)
        ]
        rules = context.rules(topic)
        return not (
            context.derives_positions
            or len(logs) > 1
            or context.is_ambiguous(topic, context.resolve(topic, topic_id))
            or any(deletion.topic == topic for deletion in context.deletions)
            or rules.compaction
            or rules.retention
        )

    def surroundings(self, log: int, walks: Walks, states: pa.Table, in_vain_ns: Int64s) -> Surroundings:
        """What of a log is never cut."""
        own = state_columns(states.filter(pc.equal(states["log"], log)))
        answered = own.end_offset != NO_OFFSET
        befores, afters = walks.covered(log)
        return Surroundings(befores, afters, own.asked_ns[answered], own.end_offset[answered], in_vain_ns)

    def shard_rows(self, records: pa.Table | None, small: dict[str, pa.Table]) -> tuple[ShardRows, OperationColumns]:
        """Rows put together as every engine does, and their operations."""
        public = {name: self.files.public(name, table) for name, table in small.items()}
        if records is not None:
            public["records"] = records
        operations = self.files.operations(public.values())
        rows = ShardRows(
            TableSource(public), numbers(operations["op_id"], 0), lambda topic: self.context.rules(topic).compaction
        )
        return rows, operation_columns(operations, self.context.transactions, self.context.clients)

    def judged(self, records: pa.Table, small: dict[str, pa.Table]) -> ShardJudgement:
        """What the definitions say of some rows."""
        if not records.num_rows and not any(table.num_rows for table in small.values()):
            return merge_shards(())
        rows, operations = self.shard_rows(records, small)
        return merge_shards(rows.judged(operations, self.context))

    def jumps(self, positions: pa.Table) -> Suspects:
        """The offsets over which a consumer went on its way from poll to poll."""
        rows, operations = self.shard_rows(None, {"positions": positions})
        begins, ends = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for logs in rows.shards(operations, self.context):
            for one in logs:
                steps = steps_between(PartitionLog(one, self.context))
                forward = steps.reached > steps.left
                begins.append(steps.left[forward])
                ends.append(steps.reached[forward])
        return Suspects(np.concatenate(begins), np.concatenate(ends))


@dataclass(frozen=True, slots=True)
class JudgeShard(ShardTask):
    """One task: a shard of whole logs."""

    def __call__(self) -> ShardJudgement:
        """What is said of it."""
        files = self.files
        rows, small = files.part(0), {name: files.small(name) for name in tables.SMALL}
        walks = Walks(small["positions"])
        kept_sends: list[Indexes] = []
        kept_reads: list[Indexes] = []
        with_positions: list[int] = []
        for log in self.layout.shards[self.shard].logs:
            sends, reads, first_send, first_read = rows.of(log)
            kept = self._kept(log, sends, reads, walks, small)
            chosen = (np.arange(len(sends.at)), np.arange(len(reads.offset))) if kept is None else kept
            kept_sends.append(first_send + chosen[0])
            kept_reads.append(first_read + chosen[1])
            if kept is None or len(chosen[0]) or len(chosen[1]) or not walks.lead_on(log):
                with_positions.append(log)
        records = files.records(0, np.concatenate(kept_sends), np.concatenate(kept_reads))
        return self.judged(records, {**small, "positions": walks.of(with_positions)})

    def _kept(
        self, log: int, sends: Sends, reads: Reads, walks: Walks, small: dict[str, pa.Table]
    ) -> tuple[Indexes, Indexes] | None:
        """The rows of a log that are not proven clean; None where all must be judged."""
        if not self.may_be_sieved(log) or walks.overlap(log) or np.any(sends.flags & tables.IN_TRANSACTION):
            return None
        in_vain = (sends.flags & tables.IN_VAIN) != 0
        around = self.surroundings(log, walks, small["states"], sends.complete_ns[in_vain])
        part = Part(sends, reads, around)
        first_invoke_ns = int(sends.invoke_ns[in_vain].min(initial=NEVER_NS))
        if leaders_conflict(part.leaders()) or may_be_outage(
            around.in_vain_ns, first_invoke_ns, part.served_ns(), self.context.schedule.allowed_ns
        ):
            return None
        suspects = part.suspects(Outside())
        if not walks.lead_on(log):
            suspects = all_suspects([suspects, self.jumps(walks.of([log]))])
        return _followed(part, suspects)


def _followed(part: Part, suspects: Suspects) -> tuple[Indexes, Indexes]:
    """The rows of suspects, and of all that has an offset or a value in common with one of these."""
    if not suspects:
        return part.rows_of(suspects)
    newest, at = part.newest()
    if newest != UNKNOWN:
        suspects = all_suspects([suspects, Suspects.at(np.array([at]))])
    sends, reads = part.rows_of(suspects)
    while True:
        suspects = all_named(suspects, [part.named_by(sends, reads)])
        more_sends, more_reads = part.rows_of(suspects)
        if len(more_sends) == len(sends) and len(more_reads) == len(reads):
            return sends, reads
        sends, reads = more_sends, more_reads


@dataclass(frozen=True, slots=True)
class ScanPart(ShardTask):
    """One task: a part of a log that is cut, by itself."""

    part: int

    def __call__(self) -> PartScan:
        """What is said of it."""
        log = self.layout.shards[self.shard].logs[0]
        walks = Walks(self.files.small("positions"))
        part = _part_of(self, self.part, walks)
        loose = self.files.loose()
        in_vain, first_ns = _in_vain(loose)
        placed = part.sends.offset != UNKNOWN
        flags = part.sends.flags
        refused = (
            not self.may_be_sieved(log)
            or walks.overlap(log)
            or bool(np.any(flags & tables.IN_TRANSACTION))
            or bool(np.any(loose.flags & tables.IN_TRANSACTION))
            or bool(np.any((flags & tables.IN_VAIN != 0) & placed))
            or bool(len(part.loose.at))
            or bool(np.any((part.reads.flags & tables.COVERED) == 0))
        )
        crossing, goes_back = self._crossing(log, walks)
        refused |= goes_back
        suspects = part.suspects(Outside())
        leads_on = walks.lead_on(log)
        if self.part == 0 and not leads_on and not refused:
            suspects = all_suspects([suspects, self.jumps(walks.of([log]))])
        return PartScan(part.edge(), suspects, refused, first_ns, in_vain, not leads_on, crossing)

    def _crossing(self, log: int, walks: Walks) -> tuple[dict[int, tuple[int, int]], bool]:
        """`PartScan.crossing`, and whether one of these reads did not return everything in the order of offsets."""
        own = self.layout.shards[self.shard].parts[self.part]
        beyond = walks.crossing(log, own.begin, own.end)
        if not len(beyond):
            return {}, False
        op_id, seq, flags = self.files.order_of_reads(self.part)
        rows = np.flatnonzero(np.isin(op_id, beyond))
        rows = rows[np.lexsort((seq[rows], op_id[rows]))]
        begins = np.flatnonzero(np.diff(op_id[rows], prepend=op_id[rows][:1] - 1))
        ends = np.append(begins[1:], len(rows))[: len(begins)] - 1
        ranges = zip(seq[rows[begins]].tolist(), seq[rows[ends]].tolist(), strict=True)
        return dict(zip(op_id[rows[begins]].tolist(), ranges, strict=True)), bool(np.any(flags[rows] & tables.BACK))


@dataclass(frozen=True, slots=True)
class SuspectsOfPart(ShardTask):
    """One task: what is suspect in a part for what stands outside it."""

    part: int
    outside: Outside

    def __call__(self) -> Suspects:
        """Those."""
        return _part_of(self, self.part, Walks(self.files.small("positions"))).suspects(self.outside)


@dataclass(frozen=True, slots=True)
class FollowSuspects(ShardTask):
    """One task: what else of a part belongs to suspects."""

    part: int
    suspects: Suspects

    def __call__(self) -> Named:
        """What they have in common with others."""
        part = _part_of(self, self.part, Walks(self.files.small("positions")))
        return part.named_by(*part.rows_of(self.suspects))


@dataclass(frozen=True, slots=True)
class JudgeCut(ShardTask):
    """One task: a log that is cut, once its suspects are known."""

    suspects: Suspects | None
    """None: everything."""
    walks: bool
    """Whether some consumer did not go on where it had been."""
    adopted: frozenset[Key]
    """Sends that were not told an offset, and stand in some part."""

    def __call__(self) -> ShardJudgement:
        """What is said of it."""
        files = self.files
        small = {name: files.small(name) for name in tables.SMALL}
        walks = Walks(small["positions"])
        records = pa.concat_tables(self._records(files, walks))
        if not records.num_rows and not self.walks and self.suspects is not None:
            small["positions"] = walks.of([])
        return self.judged(records, small)

    def _records(self, files: ShardFiles, walks: Walks) -> Iterator[pa.Table]:
        for number in range(len(self.layout.shards[self.shard].parts)):
            if self.suspects is None:
                yield files.records(number, None, None)
            elif self.suspects:
                yield files.records(number, *_part_of(self, number, walks).rows_of(self.suspects))
        loose = files.loose()
        fresh = [
            (op_id, seq) not in self.adopted
            for op_id, seq in zip(loose.op_id.tolist(), loose.seq.tolist(), strict=True)
        ]
        wanted = np.array(fresh, np.bool_)
        if self.suspects is not None:
            wanted &= (loose.flags & (tables.OK | tables.TOMBSTONE) != 0) | np.isin(loose.value, self.suspects.values)
        yield files.loose_records().filter(pa.array(wanted))


def _part_of(task: ShardTask, number: int, walks: Walks) -> Part:
    log = task.layout.shards[task.shard].logs[0]
    rows: PartRows = task.files.part(number)
    sends, reads, _, _ = rows.of(log)
    in_vain, _ = _in_vain(task.files.loose())
    return Part(sends, reads, task.surroundings(log, walks, task.files.small("states"), in_vain))


def _in_vain(loose: Sends) -> tuple[Int64s, int]:
    """When operations of a log that is cut ended in vain, and when the first of these was invoked."""
    rows = (loose.flags & tables.IN_VAIN) != 0
    return loose.complete_ns[rows], int(loose.invoke_ns[rows].min(initial=NEVER_NS))


def first_reads_of(task: ShardTask) -> dict[int, int]:
    """When the undecided transactions of a shard were first read."""
    files = task.files
    parts = range(len(task.layout.shards[task.shard].parts))
    loose = [files.loose_records()] if task.layout.shards[task.shard].is_cut else []
    records = pa.concat_tables([*(files.records(part, None, None) for part in parts), *loose])
    rows, operations = task.shard_rows(records, {name: files.small(name) for name in tables.SMALL})
    return rows.first_reads(operations, task.context)


def one_log(scans: Iterable[PartScan]) -> bool:
    """Whether the parts of a log may be judged by their suspects."""
    whole = list(scans)
    adopted = [key for scan in whole for key in scan.edge.adopted]
    last: dict[int, int] = {}
    for scan in whole:
        if any(first <= last.get(op_id, -1) for op_id, (first, _) in scan.crossing.items()):
            return False
        last |= {op_id: seq for op_id, (_, seq) in scan.crossing.items()}
    return not any(scan.refused for scan in whole) and len(adopted) == len(set(adopted))
