"""Engine that judges a history by its shards: first the summary of the run, then each shard, then checks across shards.

The caller chooses where tasks run (`running.Run`): in this process, in several, or on a cluster. The judgement equals
that of `linearizability.check.judge_history`, including its evidence.
"""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from linearizability.anomalies.catalogue import ShardJudgement, judge_run, merge_first_reads
from linearizability.anomalies.context import Context
from linearizability.anomalies.summary import (
    SUMMARY_FIELDS,
    Summary,
    context_of,
    judgement_of,
    merge_summaries,
    settings_of,
    summarise,
)
from linearizability.history.reader import History
from linearizability.judgement import Judgement
from linearizability.shards.edges import UNKNOWN, is_harmless, leaders_conflict, may_be_outage, merge_leaders, outsides
from linearizability.shards.judging import (
    FollowSuspects,
    JudgeCut,
    JudgeShard,
    PartScan,
    ScanPart,
    ShardTask,
    SuspectsOfPart,
    can_judge_suspects_alone,
    first_reads_of,
)
from linearizability.shards.laying_out import lay_out
from linearizability.shards.manifest import Layout, current_layout, layout_folder
from linearizability.shards.pieces import Piece, pieces_of, read_piece, shares_of
from linearizability.shards.results import Keeping, kept_result, key_of, result_file
from linearizability.shards.running import Run, Task
from linearizability.shards.suspects import RelatedRows, Suspects, add_related, all_suspects

_SUMMARISED: Final = ("operations", "states", "offsets", "inputs", "assignments")
_TASK_ROWS: Final = 500_000
"""The approximate number of rows that one task summarises."""


def judge_in_shards(history: History, run: Run) -> Judgement:
    """Judge a history by its layout, which is created if there is none. Raises HistoryError."""
    with laid_out(history, run) as layout:
        return judge_layout(history, layout, run)


@contextmanager
def laid_out(history: History, run: Run) -> Iterator[Layout]:
    """Yield the layout of a history; remove it afterwards if it is not in its final place. Raises HistoryError."""
    layout = current_layout(history) or lay_out(history, run)
    try:
        yield layout
    finally:
        if layout.folder != layout_folder(history):
            shutil.rmtree(layout.folder, ignore_errors=True)


def judge_layout(history: History, layout: Layout, run: Run) -> Judgement:
    """Judge a history by its existing layout."""
    settings = settings_of(history.run, history.table("faults"))
    pieces = [piece for name in _SUMMARISED for piece in pieces_of(history, name)]
    shares = shares_of(pieces, -(-sum(piece.rows for piece in pieces) // _TASK_ROWS)) if pieces else []
    ids = frozenset((topic, topic_id) for topic, topic_id, _ in layout.places if topic_id is not None)
    own = Summary(records=layout.records, reads=layout.reads, positions=layout.positions, topic_ids=ids)
    summary = merge_summaries([*run([partial(_summarise, history, share) for share in shares]), own])
    context = _decided(layout, context_of(history.run, settings, summary), run)
    return judgement_of(history.run, summary, judge_run(_shards(layout, context, run), summary.transactional, context))


def _summarise(history: History, pieces: list[Piece]) -> Summary:
    return merge_summaries(
        summarise(piece.table, table)
        for piece in pieces
        for table in read_piece(history, piece, SUMMARY_FIELDS[piece.table])
    )


def _decided(layout: Layout, context: Context, run: Run) -> Context:
    """Return the context with outcomes for the transactions that only reads can decide."""
    if not context.transactions.undecided.any():
        return context
    first: dict[int, int] = {}
    for found in run(
        [partial(first_reads_of, ShardTask(layout, shard, context)) for shard in range(len(layout.shards))]
    ):
        merge_first_reads(first, found)
    return replace(context, transactions=context.transactions.with_first_reads(first))


def _shards(layout: Layout, context: Context, run: Run) -> Iterator[ShardJudgement]:
    """Yield the judgement of every shard: first those with a stored result, last those that are split."""
    key = key_of(layout)
    kept = {number: kept_result(layout, number, key) for number in range(len(layout.shards))}
    yield from (judgement for judgement in kept.values() if judgement is not None)
    waiting = [number for number, judgement in kept.items() if judgement is None]
    whole = [number for number in waiting if not layout.shards[number].is_cut]
    cut = [number for number in waiting if layout.shards[number].is_cut]
    parts = [(number, part) for number in cut for part in range(len(layout.shards[number].parts))]
    tasks: list[Task[PartScan | ShardJudgement]] = [
        *(ScanPart(layout, number, context, part) for number, part in parts),
        *(Keeping(JudgeShard(layout, number, context), result_file(layout, number), key) for number in whole),
    ]
    scans: dict[int, list[PartScan]] = {number: [] for number in cut}
    for (number, _), scan in zip([*parts, *((number, 0) for number in whole)], run(tasks), strict=True):
        if isinstance(scan, PartScan):
            scans[number].append(scan)
        else:
            yield scan
    judging = _cut(layout, context, run, scans)
    yield from run([Keeping(task, result_file(layout, task.shard), key) for task in judging])


def _cut(layout: Layout, context: Context, run: Run, scans: Mapping[int, Sequence[PartScan]]) -> Iterator[JudgeCut]:
    """Yield the tasks that judge split logs, after all their parts were scanned."""
    suspects: dict[int, Suspects] = {}
    adopted = {number: frozenset(key for scan in own for key in scan.edge.adopted) for number, own in scans.items()}
    for number, own in scans.items():
        if _may_be_judged_by_suspects(own, context):
            suspects[number] = all_suspects(scan.suspects for scan in own)
        else:
            yield JudgeCut(layout, number, context, None, True, adopted[number])
    rescans = [
        SuspectsOfPart(layout, number, context, part, outside)
        for number in suspects
        for edges in [[scan.edge for scan in scans[number]]]
        for part, (edge, outside) in enumerate(zip(edges, outsides(edges), strict=True))
        if not is_harmless(edge, outside)
    ]
    for task, more in zip(rescans, run(rescans), strict=True):
        suspects[task.shard] = all_suspects([suspects[task.shard], more])
    for number, found in suspects.items():
        newest, at = max(scan.edge.newest for scan in scans[number])
        if found and newest != UNKNOWN:
            suspects[number] = all_suspects([found, Suspects.at(np.array([at]))])
    _follow(layout, context, run, suspects)
    for number, found in suspects.items():
        yield JudgeCut(
            layout, number, context, found, any(scan.has_broken_walks for scan in scans[number]), adopted[number]
        )


def _may_be_judged_by_suspects(scans: Sequence[PartScan], context: Context) -> bool:
    one, edges = scans[0], [scan.edge for scan in scans]
    served_ns = np.max([edge.served_ns for edge in edges], axis=0)
    return (
        can_judge_suspects_alone(scans)
        and not leaders_conflict(merge_leaders(edge.leaders for edge in edges))
        and not may_be_outage(one.not_served_ns, one.first_not_served_ns, served_ns, context.schedule.allowed_ns)
    )


def _follow(layout: Layout, context: Context, run: Run, suspects: dict[int, Suspects]) -> None:
    """Add to `suspects` all records that share an offset or a value with a suspect, in any part of its log."""
    open_ones = [number for number, found in suspects.items() if found]
    while open_ones:
        tasks = [
            FollowSuspects(layout, number, context, part, suspects[number])
            for number in open_ones
            for part in range(len(layout.shards[number].parts))
        ]
        more: dict[int, list[RelatedRows]] = {number: [] for number in open_ones}
        for task, found in zip(tasks, run(tasks), strict=True):
            more[task.shard].append(found)
        named = {number: add_related(suspects[number], own) for number, own in more.items()}
        open_ones = [number for number in open_ones if _size(named[number]) != _size(suspects[number])]
        suspects.update(named)


def _size(suspects: Suspects) -> tuple[int, int]:
    return len(suspects.begins), len(suspects.values)
