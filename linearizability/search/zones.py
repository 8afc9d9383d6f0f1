"""Zone check of a register to which no value is written twice, from its columns, in the time to sort them.

The value of a read identifies its write, because no value is written twice. A write and its reads form a *cluster*. The
*zone* of a cluster lies between its earliest completion and its latest invocation. In a valid order, the operations of
a cluster are together, because a value never returns after it was overwritten.

If the earliest completion of a cluster precedes its latest invocation, the zone is *forward*: the register certainly
had the value throughout the zone. Otherwise the zone is *backward*: the register may have had the value for only a
moment in the zone. The history is linearizable unless

- a read returned a value that was not written, or whose write failed;
- a read completed before its write was invoked;
- two forward zones overlap; or
- a backward zone lies inside a forward zone.

After P. Gibbons and E. Korach, Testing shared memories (1997). Committed offsets, configurations and epochs are such
registers, if the test writes no value twice.
"""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from linearizability.history.errors import HistoryError

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

NEVER = np.iinfo(np.int64).max
"""The completion time of operations that never completed."""
_ALWAYS = np.iinfo(np.int64).min


class Ending(IntEnum):
    """The outcome of an operation, as a number for a column."""

    OK = 0
    FAIL = 1
    INFO = 2


@dataclass(frozen=True, slots=True)
class RegisterColumns:
    """A history of one register: rows are operations, in any order.

    The columns are `is_write`, `value` (written or read), `invoke_ns`, `complete_ns` (ignored where `ending` is not OK)
    and `ending`, of `Ending`. Only reads that are OK count.
    """

    is_write: Bools
    value: Ints
    invoke_ns: Ints
    complete_ns: Ints
    ending: npt.NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class Conflict:
    """Reason why no order exists: some rows that exclude each other, and a sentence."""

    rows: tuple[int, ...]
    text: str


def find_conflict(columns: RegisterColumns, initial: int) -> Conflict | None:
    """Return a conflict in the history of a register; None if the history is linearizable.

    Raises HistoryError for a value that is written twice, or a completion before its invocation. The message names the
    rows.

    :param initial: the value before any write.
    """
    ends = np.where(columns.ending == Ending.OK, columns.complete_ns, NEVER)
    _check_times(columns, ends)
    writes = np.flatnonzero(columns.is_write)
    reads = np.flatnonzero(~columns.is_write & (columns.ending == Ending.OK))
    writes = writes[np.argsort(columns.value[writes], kind="stable")]
    written = columns.value[writes]
    _check_unique_writes(columns, writes, written, initial)
    # Cluster 0 belongs to the initial value, cluster i + 1 to the write in row writes[i].
    index = np.searchsorted(written, columns.value[reads])
    found = index < len(written)
    found[found] = written[index[found]] == columns.value[reads][found]
    cluster = np.where(found, index + 1, 0)
    unwritten = reads[~found & (columns.value[reads] != initial)]
    if len(unwritten):
        return _conflict(columns, unwritten[:1], "reads a value that was not written")
    failed = (
        reads[found & (columns.ending[writes[np.maximum(cluster - 1, 0)]] == Ending.FAIL)] if len(writes) else reads
    )
    if len(writes) and len(failed):
        return _conflict(columns, failed[:1], "reads a value whose write failed")
    begins = np.concatenate(([_ALWAYS], columns.invoke_ns[writes]))
    first_end = np.concatenate(([_ALWAYS], ends[writes]))
    early = reads[ends[reads] < begins[cluster]]
    if len(early):
        return _conflict(columns, early[:1], "completed before the write of its value was invoked")
    last_begin = begins.copy()
    np.minimum.at(first_end, cluster, ends[reads])
    np.maximum.at(last_begin, cluster, columns.invoke_ns[reads])
    members = (columns, ends, writes, reads, cluster)
    return _overlapping(first_end, last_begin, members)


_Members = tuple[RegisterColumns, Ints, Ints, Ints, Ints]


def _overlapping(first_end: Ints, last_begin: Ints, members: _Members) -> Conflict | None:
    """Return a conflict between two clusters, each of which must come before the other; None if there is none."""
    forward = np.flatnonzero(first_end < last_begin)
    forward = forward[np.argsort(first_end[forward], kind="stable")]
    if not len(forward):
        return None
    reach = np.maximum.accumulate(last_begin[forward])
    crossing = np.flatnonzero(reach[:-1] > first_end[forward[1:]])
    if len(crossing):
        later = crossing[0] + 1
        earlier = int(np.argmax(last_begin[forward[:later]]))
        return _between(int(forward[earlier]), int(forward[later]), members)
    backward = np.flatnonzero(first_end >= last_begin)
    index = np.searchsorted(first_end[forward], last_begin[backward], side="left") - 1
    inside = (index >= 0) & (first_end[backward] < last_begin[forward[np.maximum(index, 0)]])
    if not np.any(inside):
        return None
    chosen = int(np.flatnonzero(inside)[0])
    return _between(int(forward[index[chosen]]), int(backward[chosen]), members)


def _between(first: int, second: int, members: _Members) -> Conflict:
    """Return the conflict between two clusters: the rows that require each to come before the other."""
    columns, ends, writes, reads, cluster = members
    rows: list[int] = []
    for number in (first, second):
        own = reads[cluster == number]
        if number:
            own = np.concatenate((writes[number - 1 : number], own))
        rows += [int(own[np.argmin(ends[own])]), int(own[np.argmax(columns.invoke_ns[own])])]
    text = f"rows {sorted(set(rows))}: each of two values would have to be overwritten by the other"
    return Conflict(tuple(dict.fromkeys(rows)), text)


def _conflict(columns: RegisterColumns, rows: Ints, what: str) -> Conflict:
    row = int(rows[0])
    return Conflict((row,), f"row {row}, the read of {columns.value[row]}, {what}")


def _check_times(columns: RegisterColumns, ends: Ints) -> None:
    wrong = np.flatnonzero(ends < columns.invoke_ns)
    if len(wrong):
        row = int(wrong[0])
        raise HistoryError(f"row {row} completes at {ends[row]}, before it was invoked at {columns.invoke_ns[row]}")


def _check_unique_writes(columns: RegisterColumns, writes: Ints, written: Ints, initial: int) -> None:
    same = np.flatnonzero(written[1:] == written[:-1])
    if len(same):
        first, second = sorted((int(writes[same[0]]), int(writes[same[0] + 1])))
        raise HistoryError(f"rows {first} and {second} both write {columns.value[first]}; use models.register instead")
    again = writes[written == initial]
    if len(again):
        raise HistoryError(f"row {int(again[0])} writes {initial}, the initial value; use models.register instead")
