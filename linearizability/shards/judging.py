"""Judgement of a shard: the sieve removes clean records of each log, and the anomaly definitions judge the rest.

A shard of whole logs is one task. A log that is split takes several tasks. First each part is scanned alone for
suspects. If records of other parts may make more records of a part suspect, that part is scanned again, with a few
numbers about the other parts (`edges`). Then all rows that share an offset or a value with a suspect become suspects
too, until there are no more such rows in any part.

The sieve is not valid for some logs: for example, logs with transactions, compaction or retention, logs of a topic that
was deleted or created again, and logs that two nodes may have led at the same time. Such a log is judged whole, without
the sieve.
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
from linearizability.shards.sieve import Part, Reads, Sends, UnsplitColumns
from linearizability.shards.suspects import RelatedRows, Suspects, add_related, all_suspects
from linearizability.shards.walks import Walks


@dataclass(frozen=True, slots=True)
class PartScan:
    """Result of the scan of a part of a split log."""

    edge: Edge
    suspects: Suspects
    """The suspects that were found without data about other parts."""
    must_judge_whole: bool
    """Whether the part shows that the sieve is not valid for the log."""
    first_not_served_ns: int
    not_served_ns: Int64s
    has_broken_walks: bool
    """Whether a poll of some consumer did not begin where its previous poll ended."""
    crossing: Mapping[int, tuple[int, int]]
    """Per read that extends beyond the part, the first and the last `seq` of its records in the part."""


@dataclass(frozen=True, slots=True)
class ShardTask:
    """Base class of the tasks on a shard."""

    layout: Layout
    shard: int
    context: Context

    @property
    def files(self) -> ShardFiles:
        """The shard's files."""
        return ShardFiles(self.layout, self.shard)

    def may_be_sieved(self, log: int) -> bool:
        """Whether the run and the topic allow the sieve for a log. The log's rows may still make it invalid."""
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

    def unsplit_columns(self, log: int, walks: Walks, states: pa.Table, not_served_ns: Int64s) -> UnsplitColumns:
        """Return the columns of a log of which each part gets all rows."""
        own = state_columns(states.filter(pc.equal(states["log"], log)))
        known = own.end_offset != NO_OFFSET
        befores, afters = walks.covered(log)
        return UnsplitColumns(befores, afters, own.requested_ns[known], own.end_offset[known], not_served_ns)

    def shard_rows(self, records: pa.Table | None, small: dict[str, pa.Table]) -> tuple[ShardRows, OperationColumns]:
        """Return the rows of these tables in the form that every engine judges (`gather`), and their operations."""
        public = {name: self.files.public(name, table) for name, table in small.items()}
        if records is not None:
            public["records"] = records
        operations = self.files.operations(public.values())
        rows = ShardRows(
            TableSource(public), numbers(operations["op_id"], 0), lambda topic: self.context.rules(topic).compaction
        )
        return rows, operation_columns(operations, self.context.transactions, self.context.clients)

    def judged(self, records: pa.Table, small: dict[str, pa.Table]) -> ShardJudgement:
        """Return the judgement of some rows by the anomaly definitions."""
        if not records.num_rows and not any(table.num_rows for table in small.values()):
            return merge_shards(())
        rows, operations = self.shard_rows(records, small)
        return merge_shards(rows.judged(operations, self.context))

    def jumps(self, positions: pa.Table) -> Suspects:
        """Return the offsets that consumers skipped between polls."""
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
    """Task that judges a shard of whole logs."""

    def __call__(self) -> ShardJudgement:
        """Judge the shard."""
        files = self.files
        rows, small = files.part(0), {name: files.small(name) for name in tables.SMALL}
        walks = Walks(small["positions"])
        kept_sends: list[Indexes] = []
        kept_reads: list[Indexes] = []
        with_positions: list[int] = []
        for log in self.layout.shards[self.shard].logs:
            sends, reads, first_send, first_read = rows.select(log)
            kept = self._kept(log, sends, reads, walks, small)
            chosen = (np.arange(len(sends.at)), np.arange(len(reads.offset))) if kept is None else kept
            kept_sends.append(first_send + chosen[0])
            kept_reads.append(first_read + chosen[1])
            if kept is None or len(chosen[0]) or len(chosen[1]) or not walks.are_contiguous(log):
                with_positions.append(log)
        records = files.records(0, np.concatenate(kept_sends), np.concatenate(kept_reads))
        return self.judged(records, {**small, "positions": walks.of(with_positions)})

    def _kept(
        self, log: int, sends: Sends, reads: Reads, walks: Walks, small: dict[str, pa.Table]
    ) -> tuple[Indexes, Indexes] | None:
        """Return the rows of a log that are not proven clean; None if all must be judged."""
        if not self.may_be_sieved(log) or walks.overlap(log) or np.any(sends.flags & tables.IN_TRANSACTION):
            return None
        not_served = (sends.flags & tables.NOT_SERVED) != 0
        unsplit = self.unsplit_columns(log, walks, small["states"], sends.complete_ns[not_served])
        part = Part(sends, reads, unsplit)
        first_invoke_ns = int(sends.invoke_ns[not_served].min(initial=NEVER_NS))
        if leaders_conflict(part.leaders()) or may_be_outage(
            unsplit.not_served_ns, first_invoke_ns, part.served_ns(), self.context.schedule.allowed_ns
        ):
            return None
        suspects = part.suspects(Outside())
        if not walks.are_contiguous(log):
            suspects = all_suspects([suspects, self.jumps(walks.of([log]))])
        return _followed(part, suspects)


def _followed(part: Part, suspects: Suspects) -> tuple[Indexes, Indexes]:
    """Return the rows of suspects, and all rows that share an offset or a value with them, directly or indirectly."""
    if not suspects:
        return part.rows_of(suspects)
    newest, at = part.newest()
    if newest != UNKNOWN:
        suspects = all_suspects([suspects, Suspects.at(np.array([at]))])
    sends, reads = part.rows_of(suspects)
    while True:
        suspects = add_related(suspects, [part.named_by(sends, reads)])
        more_sends, more_reads = part.rows_of(suspects)
        if len(more_sends) == len(sends) and len(more_reads) == len(reads):
            return sends, reads
        sends, reads = more_sends, more_reads


@dataclass(frozen=True, slots=True)
class ScanPart(ShardTask):
    """Task that scans a part of a split log."""

    part: int

    def __call__(self) -> PartScan:
        """Scan the part."""
        log = self.layout.shards[self.shard].logs[0]
        walks = Walks(self.files.small("positions"))
        part = _part_of(self, self.part, walks)
        loose = self.files.loose()
        not_served, first_ns = _not_served(loose)
        placed = part.sends.offset != UNKNOWN
        flags = part.sends.flags
        must_judge_whole = (
            not self.may_be_sieved(log)
            or walks.overlap(log)
            or bool(np.any(flags & tables.IN_TRANSACTION))
            or bool(np.any(loose.flags & tables.IN_TRANSACTION))
            or bool(np.any((flags & tables.NOT_SERVED != 0) & placed))
            or bool(len(part.loose.at))
            or bool(np.any((part.reads.flags & tables.COVERED) == 0))
        )
        crossing, goes_back = self._crossing(log, walks)
        must_judge_whole |= goes_back
        suspects = part.suspects(Outside())
        are_contiguous = walks.are_contiguous(log)
        if self.part == 0 and not are_contiguous and not must_judge_whole:
            suspects = all_suspects([suspects, self.jumps(walks.of([log]))])
        return PartScan(part.edge(), suspects, must_judge_whole, first_ns, not_served, not are_contiguous, crossing)

    def _crossing(self, log: int, walks: Walks) -> tuple[dict[int, tuple[int, int]], bool]:
        """Return `PartScan.crossing`, and whether one of these reads did not return records in the order of offsets."""
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
    """Task that scans a part again, with the numbers about the records outside it."""

    part: int
    outside: Outside

    def __call__(self) -> Suspects:
        """Return the suspects."""
        return _part_of(self, self.part, Walks(self.files.small("positions"))).suspects(self.outside)


@dataclass(frozen=True, slots=True)
class FollowSuspects(ShardTask):
    """Task that collects the offsets and values of the suspect rows of a part."""

    part: int
    suspects: Suspects

    def __call__(self) -> RelatedRows:
        """Return the offsets and values of the part's suspect rows. Other rows with one of these are suspect too."""
        part = _part_of(self, self.part, Walks(self.files.small("positions")))
        return part.named_by(*part.rows_of(self.suspects))


@dataclass(frozen=True, slots=True)
class JudgeCut(ShardTask):
    """Task that judges a split log after its suspects were found."""

    suspects: Suspects | None
    """None means that the whole log is judged."""
    has_broken_walks: bool
    """As in `PartScan`."""
    adopted: frozenset[Key]
    """Sends without an acknowledged offset whose value was read in some part (`Edge.adopted`)."""

    def __call__(self) -> ShardJudgement:
        """Judge the log."""
        files = self.files
        small = {name: files.small(name) for name in tables.SMALL}
        walks = Walks(small["positions"])
        records = pa.concat_tables(self._records(files, walks))
        if not records.num_rows and not self.has_broken_walks and self.suspects is not None:
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
    sends, reads, _, _ = rows.select(log)
    not_served, _ = _not_served(task.files.loose())
    return Part(sends, reads, task.unsplit_columns(log, walks, task.files.small("states"), not_served))


def _not_served(loose: Sends) -> tuple[Int64s, int]:
    """Return when unserved operations of a split log ended, and when the first of them was invoked."""
    rows = (loose.flags & tables.NOT_SERVED) != 0
    return loose.complete_ns[rows], int(loose.invoke_ns[rows].min(initial=NEVER_NS))


def first_reads_of(task: ShardTask) -> dict[int, int]:
    """Return when the undecided transactions of a shard were first read."""
    files = task.files
    parts = range(len(task.layout.shards[task.shard].parts))
    loose = [files.loose_records()] if task.layout.shards[task.shard].is_cut else []
    records = pa.concat_tables([*(files.records(part, None, None) for part in parts), *loose])
    rows, operations = task.shard_rows(records, {name: files.small(name) for name in tables.SMALL})
    return rows.first_reads(operations, task.context)


def can_judge_suspects_alone(scans: Iterable[PartScan]) -> bool:
    """Whether it is enough to judge the suspects in the parts of a log, instead of the whole log."""
    all_scans = list(scans)
    adopted = [key for scan in all_scans for key in scan.edge.adopted]
    last: dict[int, int] = {}
    for scan in all_scans:
        if any(first <= last.get(op_id, -1) for op_id, (first, _) in scan.crossing.items()):
            return False
        last |= {op_id: seq for op_id, (_, seq) in scan.crossing.items()}
    return not any(scan.must_judge_whole for scan in all_scans) and len(adopted) == len(set(adopted))
