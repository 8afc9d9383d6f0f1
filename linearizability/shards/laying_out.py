"""Layout of a history by topic partition, in bounded memory and with one pass over its tables.

Independent tasks distribute rows into sorted runs (`spilling`), count them, and check them against the rules of the
format. Then the plan defines shards and parts of about `PART_ROWS` (`census`), and each part is merged from the runs
and written (`settling`). A history that breaks a rule has no layout: it is rejected with the messages of
`linearizability.history.validate`.
"""

import contextlib
import glob
import os
import shutil
import socket
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from linearizability.anomalies.gather import SHARD_FIELDS
from linearizability.anomalies.summary import settings_of
from linearizability.history.errors import HistoryError, HistoryNotWrittenError, one_line
from linearizability.history.layout import has_journal
from linearizability.history.reader import History
from linearizability.history.validate import check_columns, check_sizes, checks, shares_for
from linearizability.history.validate import pieces as rows_of
from linearizability.shards import tables
from linearizability.shards.census import merged, plan
from linearizability.shards.manifest import Layout, fingerprint_of, layout_folder
from linearizability.shards.pieces import pieces_of, shares_of, span_of
from linearizability.shards.rules import (
    SHARE_ROWS,
    CheckOperations,
    CheckRecords,
    CheckValues,
    RuleCheck,
    Span,
    Topic,
    are_ambiguous,
    only_ids,
    overlaps,
)
from linearizability.shards.running import Run, Task
from linearizability.shards.runs import HIGHEST, LOWEST, Index, canonical, with_id
from linearizability.shards.settling import Settled, SettlePart, SettleSmall, bounds_of
from linearizability.shards.spilling import Spill, Spilling

PART_ROWS: Final = 1_000_000
"""The approximate number of records in a part, which one task holds in memory."""
SPILL_FOLDER: Final = "spill"
_TASK_ROWS: Final = 2_000_000


def lay_out(history: History, run: Run, part_rows: int | None = None) -> Layout:
    """Create the layout of a history in its run directory, or in TMPDIR if the run directory cannot be written.

    Raises HistoryError for a history that breaks a rule of the format, and for disk errors.
    """
    fingerprint = fingerprint_of(history)
    folder = draft_folder(layout_folder(history))
    with removed_on_error(folder):
        check_sizes(history)
        spills, topics = _distributed(history, run, folder)
        layout, is_valid = settled(fingerprint, run, folder, spills, topics=topics, part_rows=part_rows or PART_ROWS)
        if not is_valid:
            _validate(history, run)
        return published(layout, layout_folder(history))


def draft_folder(final: Path) -> Path:
    """Create the draft folder of a layout, with `SPILL_FOLDER` in it: beside `final` or, if that fails, in TMPDIR.

    First remove the drafts in the same parent folder whose processes ran on this machine and have ended.
    """
    _remove_abandoned(final)
    folder = _draft_path(final)
    try:
        folder.mkdir()
    except OSError:
        elsewhere = Path(tempfile.gettempdir(), "kafkatrial-shards")
        _remove_abandoned(elsewhere)
        folder = _draft_path(elsewhere)
    with removed_on_error(folder):
        folder.mkdir(mode=0o700, exist_ok=True)
        (folder / SPILL_FOLDER).mkdir()
    return folder


def _draft_path(final: Path) -> Path:
    return final.with_name(f"{final.name}.{socket.gethostname()}.{os.getpid()}.{uuid.uuid4().hex}")


def _remove_abandoned(final: Path) -> None:
    """Remove the drafts of processes of this machine that have ended."""
    for folder in final.parent.glob(f"{final.name}.{glob.escape(socket.gethostname())}.*.*"):
        _, pid, _ = folder.name.rsplit(".", 2)
        if pid.isdecimal() and not _is_running(int(pid)):
            shutil.rmtree(folder, ignore_errors=True)


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # a process of another user
        return True
    return True


@contextlib.contextmanager
def removed_on_error(folder: Path) -> Iterator[None]:
    """Remove an incomplete layout after any error; raise a disk error as a HistoryError."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        shutil.rmtree(folder, ignore_errors=True)
        reason = error.strerror if isinstance(error, OSError) and error.strerror else one_line(error)
        raise HistoryNotWrittenError(f"{folder}: cannot sort the history by topic partition: {reason}") from None
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _validate(history: History, run: Run) -> None:
    for message in run([partial(_broken_rule, history, number) for number in range(len(checks(history)))]):
        if message is not None:
            raise HistoryError(message)


def _broken_rule(history: History, number: int) -> str | None:
    try:
        checks(history)[number]()
    except HistoryError as error:
        return str(error)
    return None


def _distributed(history: History, run: Run, folder: Path) -> tuple[list[Spill], frozenset[Topic]]:
    """Distribute all rows of a valid history into sorted runs. Return the spills of the tasks, and all topics.

    Raises HistoryError.
    """
    if not _faults_keep_rules(history):  # before `settings_of` reads the faults
        _validate(history, run)
    pieces = [piece for name in SHARD_FIELDS for piece in pieces_of(history, name)]
    shares = shares_of(pieces, -(-sum(piece.rows for piece in pieces) // _TASK_ROWS) or 1) if pieces else []
    settings = settings_of(history.run, history.table("faults"))
    spilling = [
        Spilling(history, folder / SPILL_FOLDER, share, settings, number) for number, share in enumerate(shares)
    ]
    tasks: list[Task[Any]] = [CheckOperations(history), *spilling]
    operations, *spills = run(tasks)
    found = _check_rules(history, run, operations, spills)
    if not found.keeps_rules:
        _validate(history, run)
        assert all(spill.is_whole for spill in spills)
    return spills, found.topics


def check_rules(history: History, run: Run, spills: Sequence[Spill]) -> RuleCheck:
    """Check a history against all rules except that values are unique. Its rows have been distributed to `spills`.

    The result also has the topics of the history.
    """
    (operations,) = run([CheckOperations(history)])
    found = _check_rules(history, run, operations, spills)
    return replace(found, keeps_rules=found.keeps_rules and _faults_keep_rules(history))


def _faults_keep_rules(history: History) -> bool:
    try:
        for piece in rows_of(history, "faults"):
            check_columns(piece)
    except HistoryError:
        return False
    return True


def _check_rules(history: History, run: Run, operations: RuleCheck, spills: Sequence[Spill]) -> RuleCheck:
    topics = operations.topics.union(*(spill.topics for spill in spills))
    proven = operations.keeps_rules and all(spill.keeps_rules for spill in spills) and not are_ambiguous(topics)
    return RuleCheck(proven and _records_keep_rules(history, run, spills), topics)


def _records_keep_rules(history: History, run: Run, spills: Sequence[Spill]) -> bool:
    """Whether the records of each operation keep the rules, even if several tasks have read them.

    Each task has checked only the records that it read. Therefore the records of an operation are checked again if its
    op_id is in the spans of several tasks.
    """
    pieces = [(piece, span_of(history, piece)) for piece in pieces_of(history, "records")]
    checking: list[Task[bool]] = []
    for span in overlaps([spill.op_ids for spill in spills if spill.op_ids is not None]):
        own = [piece for piece, other in pieces if _meet(span, other)]
        shares = shares_for(sum(piece.rows for piece in own), SHARE_ROWS)
        checking += [CheckRecords(history, own, span, share) for share in shares]
    return all(run(checking))


def _meet(one: Span, other: Span) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]


def settled(
    fingerprint: str, run: Run, folder: Path, spills: Sequence[Spill], *, topics: Iterable[Topic], part_rows: int
) -> tuple[Layout, bool]:
    """Write the layout of distributed rows. Return it, and whether no value was sent to a partition twice."""
    own_id = only_ids(topics)
    census = merged((spill.census for spill in spills), own_id)
    places = sorted(census, key=canonical)
    index = Index([([with_id(place, own_id) for place in spill.places], spill.files) for spill in spills], places)
    layout = replace(
        plan(census, part_rows, index.stretches),
        folder=folder,
        fingerprint=fingerprint,
        positions=sum(spill.positions for spill in spills),
    )
    everything = (LOWEST, HIGHEST)
    small: list[SettleSmall] = []
    parts: list[SettlePart] = []
    for number, shard in enumerate(layout.shards):
        layout.shard_folder(number).mkdir()
        loose = dict.fromkeys(("sends", "operations"), (LOWEST, 0)) if shard.is_cut else {}
        of_shard = index.of(shard.logs, {**dict.fromkeys(tables.SMALL, everything), **loose})
        small.append(SettleSmall(layout, number, of_shard))
        for part in range(len(shard.parts)):
            own = index.of(shard.logs, bounds_of(shard, part))
            parts.append(SettlePart(layout, number, part, own, of_shard))
    tasks: list[Task[Any]] = [*small, *parts]
    results = list(run(tasks))[len(small) :]
    shutil.rmtree(folder / SPILL_FOLDER)
    return layout, _values_are_unique(run, layout, parts, results)


def _values_are_unique(run: Run, layout: Layout, parts: Sequence[SettlePart], results: Sequence[Settled]) -> bool:
    if not all(result.keeps_rules for result in results):
        return False
    spans: dict[int, dict[int, Span]] = {}
    for task, result in zip(parts, results, strict=True):
        if result.values is not None:
            spans.setdefault(task.shard, {})[task.part] = result.values
    checking: list[Task[bool]] = []
    for shard, by_part in spans.items():
        for span in overlaps(list(by_part.values())):
            own = [part for part, other in by_part.items() if _meet(span, other)]
            shares = shares_for(max(1, sum(layout.shards[shard].parts[part].rows for part in own)), SHARE_ROWS)
            checking += [CheckValues(layout, shard, own, span, share) for share in shares]
    return all(run(checking))


def published(layout: Layout, final: Path) -> Layout:
    """Move the layout to its final place for later judgements, unless it is in TMPDIR or the history may still grow."""
    layout.write()
    if layout.folder.parent != final.parent or has_journal(final.parent):
        return layout
    former = _draft_path(final)
    with contextlib.suppress(FileNotFoundError):
        final.rename(former)  # atomic: a reader never sees an incomplete layout
    layout.folder.rename(final)
    shutil.rmtree(former, ignore_errors=True)
    return replace(layout, folder=final)
