"""Positions of consumers in a shard's logs: the ranges that reads covered, and whether polls were contiguous."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from linearizability.anomalies.arrow import numbers
from linearizability.anomalies.columns import Flags, Int64s
from linearizability.shards.edges import UNKNOWN


class Walks:
    """The positions of a shard; the table is sorted by log and op_id."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table
        self._log = table["log"].to_numpy()
        self._op_id = numbers(table["op_id"], 0)
        self._before, self._after = numbers(table["before"], UNKNOWN), numbers(table["after"], UNKNOWN)
        self._process, self._polls = table["process"].to_numpy(), table["polls"].to_numpy().astype(np.bool_)
        self._is_read: Flags = pc.equal(table["cause"], "read").to_numpy(zero_copy_only=False).astype(np.bool_)

    def of(self, logs: Sequence[int]) -> pa.Table:
        """Return the rows of some logs."""
        return self._table.filter(pa.array(np.isin(self._log, list(logs))))

    def _own(self, log: int) -> slice:
        begin, end = np.searchsorted(self._log, [log, log + 1]).tolist()
        return slice(begin, end)

    def covered(self, log: int) -> tuple[Int64s, Int64s]:
        """Return the starts and the ends of the ranges of offsets that reads covered."""
        own = self._own(log)
        before, after = self._before[own], self._after[own]
        covers = self._is_read[own] & (before < after)
        return before[covers], after[covers]

    def crossing(self, log: int, begin: int, end: int) -> Int64s:
        """Return the reads that covered offsets inside and outside [begin, end)."""
        own = self._own(log)
        before, after = self._before[own], self._after[own]
        within = self._is_read[own] & (before < end) & (after > begin)
        found: Int64s = np.unique(self._op_id[own][within & ((before < begin) | (after > end))])
        return found

    def overlap(self, log: int) -> bool:
        """Whether one read covered an offset twice, so that the ranges cannot be counted."""
        own = self._own(log)
        before, after, op_id = self._before[own], self._after[own], self._op_id[own]
        rows = np.flatnonzero(self._is_read[own] & (before < after))
        if np.all(np.diff(op_id[rows]) > 0):
            return False
        rows = rows[np.lexsort((before[rows], op_id[rows]))]
        same = np.diff(op_id[rows]) == 0
        return bool(np.any(same & (before[rows[1:]] < after[rows[:-1]])))

    def are_contiguous(self, log: int) -> bool:
        """Whether each poll of a consumer began exactly where its previous poll ended."""
        own = self._own(log)
        rows = np.flatnonzero(self._polls[own])
        op_id, process = self._op_id[own][rows], self._process[own][rows]
        if not np.all(self._is_read[own][rows]) or not np.all(np.diff(op_id) > 0):
            return False
        if len(process) and process.min() != process.max():
            order = np.argsort(process, kind="stable")
            rows, process = rows[order], process[order]
        before, after = self._before[own][rows], self._after[own][rows]
        return bool(np.all((before[1:] == after[:-1]) | (np.diff(process) != 0)))
