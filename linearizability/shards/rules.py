"""Check of a history against the rules of its format, while `laying_out` reads it, so that tables are read only once.

`linearizability.history.validate` defines the rules and reports the row and the rule that it breaks. This module only
proves that `validate` would find nothing, from rows that `laying_out` has in memory anyway. Without a proof, `validate`
runs.

The *span* of a task is the range of its op_ids or values. Rows of two tasks can break a rule together only if the spans
overlap. Then only the rows in the overlap are read again.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from linearizability.anomalies.arrow import OPERATION_FIELDS, PLACE_FIELDS, numbers, place_codes
from linearizability.anomalies.columns import Flags, Int32s, Int64s
from linearizability.history.errors import HistoryError
from linearizability.history.reader import History
from linearizability.history.rows import Piece as Rows
from linearizability.history.rows import first_repeat
from linearizability.history.schema import COLUMNS
from linearizability.history.topic_ids import TopicIds
from linearizability.history.validate import Share, check_columns, check_operations, check_row
from linearizability.shards import tables
from linearizability.shards.manifest import Layout
from linearizability.shards.pieces import Piece, read_piece

SHARE_ROWS: Final = 5_000_000
"""The approximate number of rows that are read again at once."""
Span = tuple[int, int]
"""The lowest and the highest op_id or value of a task."""
Topic = tuple[str, str | None]
"""A topic's name and id."""


class BrokenError(Exception):
    """Error for rows that may break a rule."""


_REQUIRED: Final = tuple(c.name for c in COLUMNS["operations"] if c.required and c.name in OPERATION_FIELDS)


def check_rows(name: str, table: pa.Table, operations: pa.Table | None) -> None:
    """Check each row against the rules for a single row. Raises BrokenError.

    `operations` are those in the range of the table's op_ids, sorted by op_id; None for a table without op_ids. Another
    task checks their rules. Here only their columns that are joined with the rows are checked for nulls.
    """
    rows, op_ids = Rows(name, table), np.empty(0, np.int64)
    if operations is not None:
        if any(operations[column].null_count for column in _REQUIRED):
            raise BrokenError
        op_ids = numbers(operations["op_id"], 0)
    try:
        check_columns(rows)
        check_row(rows, op_ids, TopicIds({}))
    except HistoryError:
        raise BrokenError from None


def topics_of(table: pa.Table) -> set[Topic]:
    """Return the topics of some rows, by name and id."""
    distinct = table.select(["topic", "topic_id"]).group_by(["topic", "topic_id"], use_threads=False).aggregate([])
    pairs = zip(distinct["topic"].to_pylist(), distinct["topic_id"].to_pylist(), strict=True)
    return {(topic, topic_id) for topic, topic_id in pairs if topic is not None}


def are_ambiguous(topics: Iterable[Topic]) -> bool:
    """Whether some name has several ids, or some id several names, so that a name does not identify partitions."""
    known = {(topic, topic_id) for topic, topic_id in topics if topic_id is not None}
    return any(len(known) != len(set(side)) for side in zip(*known, strict=True))


def only_ids(topics: Iterable[Topic]) -> dict[str, str]:
    """Return the id of each topic that has only one, by name."""
    known = {(topic, topic_id) for topic, topic_id in topics if topic_id is not None}
    ids_of = Counter(topic for topic, _ in known)
    return {topic: topic_id for topic, topic_id in known if ids_of[topic] == 1}


class RecordRules:
    """Rules between the records of one operation, for the records of one task."""

    def __init__(self) -> None:
        self._parts: list[tuple[Int64s, Int32s, Flags, Int32s]] = []

    def add(self, op_id: Int64s, seq: Int32s, is_read: Flags, log: Int32s) -> None:
        """Add records."""
        self._parts.append((op_id, seq, is_read, log))

    @property
    def span(self) -> Span | None:
        """The lowest and the highest op_id of the records; None without records."""
        known = [op_id for op_id, *_ in self._parts if len(op_id)]
        return (min(int(one.min()) for one in known), max(int(one.max()) for one in known)) if known else None

    def hold(self) -> bool:
        """Whether no two records have the same place in an operation, and no operation sends to two partitions."""
        if not self._parts:
            return True
        op_id, seq, is_read, log = (np.concatenate(column) for column in zip(*self._parts, strict=True))
        if first_repeat(op_id, is_read.astype(np.int64), seq.astype(np.int64)) is not None:
            return False
        sends, logs = op_id[~is_read], log[~is_read]
        if np.any(np.diff(sends) < 0):
            order = np.argsort(sends, kind="stable")
            sends, logs = sends[order], logs[order]
        return not np.any((np.diff(sends) == 0) & (np.diff(logs) != 0))


@dataclass(frozen=True, slots=True)
class RuleCheck:
    """The result of a check of rows: of the operations alone, or of all tables."""

    keeps_rules: bool
    topics: frozenset[Topic]


@dataclass(frozen=True, slots=True)
class CheckOperations:
    """Task that checks the operations by themselves."""

    history: History

    def __call__(self) -> RuleCheck:
        """Return whether the operations keep the rules, and their topics."""
        try:
            check_operations(self.history)
        except HistoryError:
            return RuleCheck(False, frozenset())
        batches = self.history.batches("operations", ["topic", "topic_id"])
        return RuleCheck(True, frozenset[Topic]().union(*map(topics_of, batches)))


@dataclass(frozen=True, slots=True)
class CheckRecords:
    """Task that checks the records of those operations whose records several tasks may have read."""

    history: History
    pieces: Sequence[Piece]
    span: Span
    share: Share

    def __call__(self) -> bool:
        """Whether the records keep the rules."""
        kept = [
            table.filter(pa.array(_is_inside(numbers(table["op_id"], 0), self.span, self.share)))
            for piece in self.pieces
            for table in read_piece(self.history, piece, ["op_id", "seq", "direction", *PLACE_FIELDS])
        ]
        rows, rules = pa.concat_tables(kept), RecordRules()
        _, log = place_codes(rows)
        is_read = pc.equal(rows["direction"], "read").to_numpy()
        rules.add(numbers(rows["op_id"], 0), numbers(rows["seq"], 0).astype(np.int32), is_read, log.astype(np.int32))
        return rules.hold()


def values_repeat(sends: pa.Table, log: Int32s) -> bool:
    """Whether a value is sent to a log twice. `sends` are rows of SENDS; tombstones among them are ignored."""
    valued = (sends["flags"].to_numpy() & tables.TOMBSTONE) == 0
    return first_repeat(log[valued].astype(np.int64), sends["value"].to_numpy()[valued]) is not None


@dataclass(frozen=True, slots=True)
class CheckValues:
    """Task that checks the values that several parts of a split log may contain."""

    layout: Layout
    shard: int
    parts: Sequence[int]
    span: Span
    share: Share

    def __call__(self) -> bool:
        """Whether no value was sent twice."""
        kept = []
        for part in self.parts:
            path = self.layout.part_file(self.shard, part, "sends")
            rows = pq.read_table(path, columns=["offset", "value", "flags"], partitioning=None, use_threads=False)
            offset, value = rows["offset"].to_numpy(), rows["value"].to_numpy()
            kept.append(rows.filter(pa.array(_is_inside(value, self.span, self.share) & (offset >= 0))))
        sends = pa.concat_tables(kept)
        return not values_repeat(sends, np.zeros(sends.num_rows, np.int32))


def _is_inside(numbers: Int64s, span: Span, share: Share) -> Flags:
    """Whether each number is in a span and in a share."""
    low, high = span
    return (numbers >= low) & (numbers <= high) & share.holds(numbers)


def overlaps(spans: Sequence[Span]) -> list[Span]:
    """Return the numbers that are in more than one span, as disjoint spans."""
    found: list[Span] = []
    reached: int | None = None
    for low, high in sorted(spans):
        if reached is not None and low <= reached:
            common = (low, min(high, reached))
            if found and common[0] <= found[-1][1]:
                found[-1] = (found[-1][0], max(found[-1][1], common[1]))
            else:
                found.append(common)
        reached = high if reached is None else max(reached, high)
    return found
