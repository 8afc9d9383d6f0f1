"""Which topic a row means: a topic created again under its name has another id, and a row may not know the id.

A null id stands for the name's only one. Where a name has several, a null does not say which.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from linearizability.history.reader import History
from linearizability.history.rows import Numbers, integers
from linearizability.history.schema import SCHEMAS

_TABLES: Final = tuple(name for name, schema in SCHEMAS.items() if "topic_id" in schema.names)


@dataclass(frozen=True, slots=True)
class TopicIds:
    """The ids by which a run knows each topic name."""

    ids: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, history: History) -> "TopicIds":
        """Gather them from every table. Raises HistoryError."""
        pairs = [history.table(name, ["topic", "topic_id"]) for name in _TABLES]
        distinct = pa.concat_tables(pairs).drop_null().group_by(["topic", "topic_id"]).aggregate([])
        ids: dict[str, tuple[str, ...]] = {}
        for topic, topic_id in sorted(zip(*(column.to_pylist() for column in distinct.columns), strict=True)):
            ids[topic] = (*ids.get(topic, ()), topic_id)
        return cls(ids)

    @property
    def ambiguous(self) -> tuple[str, ...]:
        """The names with more than one id."""
        return tuple(topic for topic, ids in self.ids.items() if len(ids) > 1)

    def fill(self, table: pa.Table) -> pa.Table:
        """The table with `topic_id` filled in wherever the name has one id only."""
        sure = {topic: ids[0] for topic, ids in self.ids.items() if len(ids) == 1}
        known = pc.index_in(table["topic"], value_set=pa.array(list(sure), pa.string()))
        filled = pc.coalesce(table["topic_id"], pa.array(list(sure.values()), pa.string()).take(known))
        return table.set_column(table.column_names.index("topic_id"), "topic_id", filled)

    def partition_codes(self, table: pa.Table) -> Numbers:
        """One number per row, equal for rows of one topic partition: by id, or by name where there is no id."""
        topic_ids = self.fill(table)["topic_id"]
        names = pc.if_else(pc.is_valid(topic_ids), pa.scalar(None, pa.string()), table["topic"])
        by_id, by_name = _codes(topic_ids), _codes(names)
        topics = np.where(by_id >= 0, by_id, by_id.max(initial=-1) + 1 + by_name)
        partitions = integers(table, "partition")
        codes: Numbers = topics * (partitions.max(initial=0) + 1) + partitions
        return codes


def _codes(column: pa.ChunkedArray) -> Numbers:
    found = pc.index_in(column, value_set=pc.unique(column).drop_null())
    codes: Numbers = found.fill_null(-1).to_numpy().astype(np.int64)
    return codes
