"""Topic ids of rows: a topic that was created again has another id, and a row may lack its id.

A null id stands for the only id of the topic name. If the name has several ids, a null is ambiguous.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from linearizability.history.reader import History
from linearizability.history.rows import Numbers, Piece, integers
from linearizability.history.schema import SCHEMAS

_TABLES: Final = tuple(name for name, schema in SCHEMAS.items() if "topic_id" in schema.names)


@dataclass(frozen=True)
class TopicIds:
    """The topic names of a run, and the ids of each."""

    ids: dict[str, tuple[str, ...]]

    @classmethod
    def of(cls, history: History) -> "TopicIds":
        """Collect the topic ids from all tables. Raises HistoryError."""
        pairs: set[tuple[str | None, str | None]] = set()
        for name in _TABLES:
            first_row = 0
            for batch in history.batches(name, ["topic", "topic_id"]):
                piece = Piece(name, batch, first_row)
                piece.check_text("topic")
                piece.check_text("topic_id")
                first_row += batch.num_rows
                distinct = batch.group_by(["topic", "topic_id"]).aggregate([])
                pairs.update(zip(*(column.to_pylist() for column in distinct.columns), strict=True))
        ids: dict[str, tuple[str, ...]] = {topic: () for topic, _ in pairs if topic is not None}
        for topic, topic_id in pairs:
            if topic is not None and topic_id is not None:
                ids[topic] = tuple(sorted((*ids[topic], topic_id)))
        return cls(dict(sorted(ids.items())))

    @property
    def ambiguous(self) -> tuple[str, ...]:
        """The names with more than one id."""
        return tuple(topic for topic, ids in self.ids.items() if len(ids) > 1)

    def fill(self, table: pa.Table) -> pa.Table:
        """Return the table with `topic_id` filled in where the name has only one id."""
        known = pc.index_in(table["topic"], value_set=pa.array(list(self._only), pa.string()))
        filled = pc.coalesce(table["topic_id"], pa.array(list(self._only.values()), pa.string()).take(known))
        return table.set_column(table.column_names.index("topic_id"), "topic_id", filled)

    def partition_codes(self, table: pa.Table) -> Numbers:
        """Return one number per row, equal for rows of one topic partition: by id, or by name if there is no id.

        The numbers of different tables of one run can be compared.
        """
        names = _codes(table["topic"], self._names)
        ids = _codes(self.fill(table)["topic_id"], self._all_ids)
        topics = np.where(ids >= 0, ids, len(self._all_ids) + names)
        codes: Numbers = topics * 2**31 + integers(table, "partition")
        return codes

    @cached_property
    def _only(self) -> dict[str, str]:
        return {topic: ids[0] for topic, ids in self.ids.items() if len(ids) == 1}

    @cached_property
    def _names(self) -> pa.Array:
        return pa.array(list(self.ids), pa.string())

    @cached_property
    def _all_ids(self) -> pa.Array:
        return pa.array(sorted({topic_id for ids in self.ids.values() for topic_id in ids}), pa.string())


def _codes(column: pa.ChunkedArray, known: pa.Array) -> Numbers:
    codes: Numbers = pc.index_in(column, value_set=known).fill_null(-1).to_numpy().astype(np.int64)
    return codes
