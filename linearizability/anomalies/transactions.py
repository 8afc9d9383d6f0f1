"""Outcomes of the transactions of a run, which must be known before a partition can be judged alone.

A transaction consists of the operations of a process that have the same `txn_seq`.

- *Committed*: a commit is `ok`; or a commit is `info`, and a read_committed read returned a record of the transaction,
  in any partition.
- *Aborted*: an abort is `ok`; or no commit is ok or info, and one of these is true: an abort was requested (with any
  outcome), a commit failed, or an init_producer_id of the transactional id was invoked after the first operation of the
  transaction (by op_id).
- *Open* until its commit completed. If the commit is `info`, it is open until the first read_committed read of one of
  its records completed, if there is such a read. In all other cases it is open until the end of the run.

The inference needs few rows. `TRANSACTION_ROWS` has one per transaction, kind of operation and outcome, which any
engine can build by grouping. If the commit is `info`, the time of the first read_committed read is needed too.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from linearizability.anomalies.faults import NEVER_NS

Int64s = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

TRANSACTION_ROWS: Final = pa.schema(
    [
        pa.field("process", pa.int64()),
        pa.field("txn_seq", pa.int64()),
        pa.field("f", pa.string()),
        pa.field("outcome", pa.string()),
        pa.field("txn_id", pa.string()),
        pa.field("first_op_id", pa.int64()),
        pa.field("invoke_ns", pa.int64()),
        pa.field("complete_ns", pa.int64()),
    ]
)
"""Operations of transactions: a row per (process, txn_seq, f, outcome), with the lowest value of each other column."""

FENCING_ROWS: Final = pa.schema([pa.field("txn_id", pa.string()), pa.field("last_op_id", pa.int64())])
"""Per transactional id, the highest op_id of an init_producer_id."""


@dataclass(frozen=True, slots=True)
class Transactions:
    """All transactions of a run, sorted by (process, txn_seq); columns by index."""

    process: Int64s
    txn_seq: Int64s
    committed: Flags
    aborted: Flags
    undecided: Flags
    """The commit is `info` and no commit is ok: committed if a read_committed read returned one of its records."""
    commit_begun_ns: Int64s
    """When a commit that may have succeeded was first invoked, NEVER_NS if none was."""
    open_until_ns: Int64s
    first_op_id: Int64s
    """The lowest of its operations."""
    begin_ns: Int64s
    """When the first of its operations was invoked."""

    def __len__(self) -> int:
        return len(self.process)

    def index_of(self, process: Int64s, txn_seq: Int64s, known: Flags) -> npt.NDArray[np.int32]:
        """Return the index of each (process, txn_seq) where `known`, else -1. Every known one is in the table."""
        processes, process_codes = np.unique(self.process, return_inverse=True)
        sequences, sequence_codes = np.unique(self.txn_seq, return_inverse=True)
        keys = process_codes.astype(np.int64) * len(sequences) + sequence_codes
        found = np.full(len(process), -1, np.int32)
        wanted = np.searchsorted(processes, process[known]) * len(sequences) + np.searchsorted(
            sequences, txn_seq[known]
        )
        found[known] = np.searchsorted(keys, wanted)
        return found

    def with_first_reads(self, first_read_ns: Mapping[int, int]) -> "Transactions":
        """Return the transactions, with undecided ones decided by `first_read_ns`.

        :param first_read_ns: by index of a transaction, when a read_committed read first returned one of its records.
        """
        committed, open_until = self.committed.copy(), self.open_until_ns.copy()
        for index, read_ns in first_read_ns.items():
            if self.undecided[index]:
                committed[index] = True
                open_until[index] = read_ns
        return replace(self, committed=committed, open_until_ns=open_until)


_NO_FLAGS: Final[Flags] = np.empty(0, np.bool_)
_NO_NUMBERS: Final[Int64s] = np.empty(0, np.int64)
_NO_TRANSACTIONS: Final = Transactions(
    process=_NO_NUMBERS,
    txn_seq=_NO_NUMBERS,
    committed=_NO_FLAGS,
    aborted=_NO_FLAGS,
    undecided=_NO_FLAGS,
    commit_begun_ns=_NO_NUMBERS,
    open_until_ns=_NO_NUMBERS,
    first_op_id=_NO_NUMBERS,
    begin_ns=_NO_NUMBERS,
)


def transactions_from_rows(rows: pa.Table, fencing: pa.Table) -> Transactions:
    """Decide every transaction as far as operations alone can. `rows`: TRANSACTION_ROWS, `fencing`: FENCING_ROWS."""
    if not rows.num_rows:
        return _NO_TRANSACTIONS
    rows = rows.sort_by([("process", "ascending"), ("txn_seq", "ascending"), ("first_op_id", "ascending")])
    process, txn_seq = _int64s(rows, "process"), _int64s(rows, "txn_seq")
    first = np.flatnonzero(np.append(True, (np.diff(process) != 0) | (np.diff(txn_seq) != 0))[: len(process)])
    transaction = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(process))))

    def some(f: str, *outcomes: str) -> Flags:
        mask = pc.equal(rows["f"], f)
        if outcomes:
            mask = pc.and_(mask, pc.is_in(rows["outcome"], pa.array(outcomes)))
        flags = np.zeros(len(first), np.bool_)
        flags[transaction[mask.to_numpy(zero_copy_only=False)]] = True
        return flags

    commit_ok, commit_unknown = some("commit_txn", "ok"), some("commit_txn", "info")
    ended = some("abort_txn") | some("commit_txn", "fail") | _fenced(rows, first, transaction, fencing)
    return Transactions(
        process=process[first],
        txn_seq=txn_seq[first],
        committed=commit_ok,
        aborted=some("abort_txn", "ok") | (~commit_ok & ~commit_unknown & ended),
        undecided=commit_unknown & ~commit_ok,
        commit_begun_ns=_first_commit_ns(rows, transaction, len(first), "invoke_ns", "ok", "info"),
        open_until_ns=_first_commit_ns(rows, transaction, len(first), "complete_ns", "ok"),
        first_op_id=_lowest(_int64s(rows, "first_op_id"), transaction, len(first)),
        begin_ns=_lowest(_int64s(rows, "invoke_ns"), transaction, len(first)),
    )


def _fenced(rows: pa.Table, first: npt.NDArray[np.intp], transaction: npt.NDArray[np.intp], fencing: pa.Table) -> Flags:
    """Whether an init_producer_id of the transactional id was invoked after the transaction's first operation."""
    last = dict(zip(fencing["txn_id"].to_pylist(), fencing["last_op_id"].to_pylist(), strict=True))
    last_by_row = np.array([last.get(name, -1) for name in rows["txn_id"].to_pylist()], np.int64)
    last_by_transaction = np.full(len(first), -1, np.int64)
    np.maximum.at(last_by_transaction, transaction, last_by_row)
    return last_by_transaction > _lowest(_int64s(rows, "first_op_id"), transaction, len(first))


def _first_commit_ns(
    rows: pa.Table, transaction: npt.NDArray[np.intp], count: int, time: str, *outcomes: str
) -> Int64s:
    """Return the lowest time of each transaction's commits with some outcomes; NEVER_NS if there is none."""
    is_commit = pc.and_(pc.equal(rows["f"], "commit_txn"), pc.is_in(rows["outcome"], pa.array(outcomes)))
    chosen = is_commit.to_numpy(zero_copy_only=False)
    return _lowest(_int64s(rows, time)[chosen], transaction[chosen], count)


def _lowest(values: Int64s, transaction: npt.NDArray[np.intp], count: int) -> Int64s:
    """Return the lowest value of each transaction, NEVER_NS if there is none."""
    lowest = np.full(count, NEVER_NS, np.int64)
    np.minimum.at(lowest, transaction, values)
    return lowest


def _int64s(rows: pa.Table, name: str) -> Int64s:
    values: Int64s = pc.fill_null(rows[name], NEVER_NS).to_numpy().astype(np.int64)
    return values
