"""Lays a history out by topic partition, in bounded memory: a census, a plan, and two passes of independent tasks.

The census counts what each log has; the plan makes shards and parts of about `PART_ROWS`; the first pass spills rows to
slots (`spilling`); the second sorts each slot and writes its files (`settling`). The history is held to the rules of
the format before any of it, so that a layout stands for a history that may be judged.
"""

import contextlib
import shutil
import tempfile
import uuid
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from linearizability.anomalies.arrow import PLACE_FIELDS, Place, numbers, place_codes
from linearizability.anomalies.gather import SHARD_FIELDS
from linearizability.anomalies.promise import topic_rules
from linearizability.anomalies.summary import settings_of
from linearizability.history.errors import HistoryError, one_line
from linearizability.history.layout import has_journal
from linearizability.history.reader import History
from linearizability.history.validate import checks
from linearizability.shards.manifest import Layout, Part, Shard, fingerprint_of, layout_folder
from linearizability.shards.pieces import Piece, pieces_of, read_piece, shares_of
from linearizability.shards.running import Run, Task
from linearizability.shards.settling import SettlePart, SettleSmall
from linearizability.shards.spilling import Slots, Spilling, dealt

PART_ROWS: Final = 1_000_000
"""Records of a part: what one task holds in memory."""
_TASK_ROWS: Final = 2_000_000


@dataclass(frozen=True, slots=True)
class Counted:
    """What a census says of one log."""

    rows: int = 0
    reads: int = 0
    lowest: int = 2**63 - 1
    highest: int = -1

    def with_more(self, other: "Counted") -> "Counted":
        """Both together."""
        return Counted(
            self.rows + other.rows,
            self.reads + other.reads,
            min(self.lowest, other.lowest),
            max(self.highest, other.highest),
        )


Census = dict[Place, Counted]


def lay_out(history: History, run: Run, part_rows: int | None = None) -> Layout:
    """Make the layout of a history in its run directory, or, where nothing can be written there, beside it.

    Raises HistoryError for a history that breaks a rule of the format, and where the disk refuses.
    """
    _validate(history, run)
    folder = _draft(layout_folder(history))
    try:
        made = _lay_out(history, run, folder, part_rows or PART_ROWS)
    except (OSError, pa.ArrowException) as error:
        shutil.rmtree(folder, ignore_errors=True)
        reason = error.strerror if isinstance(error, OSError) and error.strerror else one_line(error)
        raise HistoryError(f"{folder}: cannot lay the history out: {reason}") from None
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return made


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


def _draft(final: Path) -> Path:
    folder = final.with_name(f"{final.name}.{uuid.uuid4().hex}")
    try:
        folder.mkdir()
    except OSError:
        return Path(tempfile.mkdtemp(prefix="kafkatrial-shards-"))
    return folder


def _lay_out(history: History, run: Run, folder: Path, part_rows: int) -> Layout:
    fingerprint = fingerprint_of(history)
    pieces = [piece for name in SHARD_FIELDS for piece in pieces_of(history, name)]
    shares = shares_of(pieces, -(-sum(piece.rows for piece in pieces) // _TASK_ROWS) or 1) if pieces else []
    census: Census = {}
    positions = 0
    for counted, own_positions in run([partial(_census, history, share) for share in shares]):
        positions += own_positions
        for place, more in counted.items():
            census[place] = census.get(place, Counted()).with_more(more)
    layout = replace(plan(census, part_rows), folder=folder, fingerprint=fingerprint, positions=positions)
    (folder / "spill").mkdir()
    settings = settings_of(history.run, history.table("faults"))
    compacted = frozenset(topic for topic, _, _ in layout.places if topic_rules(settings, topic).compaction)
    spilled = dealt(run([Spilling(history, layout, share, compacted, number) for number, share in enumerate(shares)]))
    slots = Slots(layout)
    small: list[SettleSmall] = []
    parts: list[SettlePart] = []
    for number, shard in enumerate(layout.shards):
        layout.shard_folder(number).mkdir()
        of_shard = spilled.get(slots.shard(number), {})
        small.append(SettleSmall(layout, number, of_shard))
        parts += [
            SettlePart(layout, number, part, spilled.get(slots.part(number, part), {}), of_shard)
            for part in range(len(shard.parts))
        ]
    settling: list[Task[None]] = [*small, *parts]
    for _ in run(settling):
        pass
    shutil.rmtree(folder / "spill")
    layout.write()
    return _published(layout, layout_folder(history))


def _published(layout: Layout, final: Path) -> Layout:
    """Put the layout where the next one who judges looks for it, unless the history may still grow."""
    if layout.folder.parent != final.parent or has_journal(final.parent):
        return layout
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(final)
    layout.folder.rename(final)
    return replace(layout, folder=final)


def _census(history: History, pieces: Sequence[Piece]) -> tuple[Census, int]:
    """What some pieces say of each log, and how many positions they hold."""
    census: Census = defaultdict(Counted)
    positions = 0
    for piece in pieces:
        is_record = piece.table == "records"
        positions += piece.rows if piece.table == "positions" else 0
        columns = [*PLACE_FIELDS, *(("offset", "direction") if is_record else ())]
        for table in read_piece(history, piece, columns):
            placed = table
            if piece.table == "states":
                placed = table.filter(pc.and_(pc.is_valid(table["topic"]), pc.is_valid(table["partition"])))
            places, codes = place_codes(placed)
            if not is_record:
                for place in places:
                    census[place] = census[place]
                continue
            offset, is_read = numbers(placed["offset"], -1), pc.equal(placed["direction"], "read").to_numpy()
            rows, reads = np.bincount(codes), np.bincount(codes, is_read, len(places))
            lowest, highest = np.full(len(places), 2**63 - 1), np.full(len(places), -1)
            known = offset >= 0
            np.minimum.at(lowest, codes[known], offset[known])
            np.maximum.at(highest, codes[known], offset[known])
            for number, place in enumerate(places):
                more = Counted(int(rows[number]), int(reads[number]), int(lowest[number]), int(highest[number]))
                census[place] = census[place].with_more(more)
    return dict(census), positions


def plan(census: Census, part_rows: int) -> Layout:
    """Shards of about so many rows: small partitions together, a large one by itself, in ranges of offsets."""
    places = tuple(sorted(census, key=lambda place: (place[0], place[2], place[1] is not None, place[1] or "")))
    by_partition: dict[tuple[str, int], list[int]] = defaultdict(list)
    for number, (topic, _, partition) in enumerate(places):
        by_partition[topic, partition].append(number)
    shards: list[Shard] = []
    waiting: list[int] = []
    rows = 0
    for logs in by_partition.values():
        own = sum(census[places[log]].rows for log in logs)
        if own > part_rows and len(logs) == 1:
            shards.append(_cut(logs[0], census[places[logs[0]]], part_rows))
            continue
        if waiting and rows + own > part_rows:
            shards.append(_whole(waiting, rows))
            waiting, rows = [], 0
        waiting += logs
        rows += own
    if waiting:
        shards.append(_whole(waiting, rows))
    total, reads = sum(one.rows for one in census.values()), sum(one.reads for one in census.values())
    return Layout(Path(), "", places, tuple(shards), total, reads, 0)


def _whole(logs: Sequence[int], rows: int) -> Shard:
    return Shard(tuple(logs), (Part(0, 2**63 - 1, rows),))


def _cut(log: int, counted: Counted, part_rows: int) -> Shard:
    """One log in ranges of the same width: offsets are dense."""
    count = -(-counted.rows // part_rows)
    width = -(-(counted.highest + 1 - counted.lowest) // count)
    begins = [counted.lowest + number * width for number in range(count)]
    ends = [*begins[1:], 2**63 - 1]
    begins[0] = 0
    parts = (Part(begin, end, counted.rows // count) for begin, end in zip(begins, ends, strict=True))
    return Shard((log,), tuple(part for part in parts if part.begin < part.end))
