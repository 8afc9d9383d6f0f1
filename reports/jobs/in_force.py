"""Periods in which the same kinds of faults are in force, and their labels.

In `FAULT_SLOTS`, periods are cut at the bounds of slots of equal width. So SQL finds the period of a moment by a join
on the slot number, without comparing every operation with every fault.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import pyarrow as pa

from linearizability.printable import cut
from reports.jobs.definition import SECOND_NS

NONE: Final = "none"
SLOTS_MAX: Final = 100_000
"""The approximate maximum number of slots of a run."""

FAULT_SLOTS: Final = pa.schema(
    [
        ("run", pa.int32()),
        ("slot", pa.int64()),
        ("begin_ns", pa.int64()),
        ("end_ns", pa.int64()),
        ("faults", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True)
class Fault:
    """A row of `faults`, with times since the run's first event."""

    kind: str
    begin_ns: int
    end_ns: int | None


@dataclass(frozen=True, slots=True)
class Period:
    """An interval [begin, end) in which the same kinds of faults, at least one, were in force."""

    begin_ns: int
    end_ns: int
    kinds: frozenset[str]

    @property
    def label(self) -> str:
        """The kinds joined by +: `cut+kill`. A long text is cut, because many rows have it."""
        return cut("+".join(sorted(self.kinds)))


def periods_of(faults: Sequence[Fault], end_ns: int) -> list[Period]:
    """Return the periods of a run that ends at `end_ns`; they are inside the run and do not overlap."""
    spans = [
        (max(fault.begin_ns, 0), end_ns + 1 if fault.end_ns is None else min(fault.end_ns, end_ns + 1), fault.kind)
        for fault in faults
    ]
    changes: dict[int, list[tuple[str, int]]] = {}
    for begin, end, kind in spans:
        if begin < end:
            changes.setdefault(begin, []).append((kind, 1))
            changes.setdefault(end, []).append((kind, -1))
    in_force: dict[str, int] = {}
    found: list[Period] = []
    for begin, end in pairwise(sorted(changes)):
        for kind, step in changes[begin]:
            in_force[kind] = in_force.get(kind, 0) + step
        kinds = frozenset(kind for kind, count in in_force.items() if count)
        if found and found[-1].end_ns == begin and found[-1].kinds == kinds:
            found[-1] = Period(found[-1].begin_ns, end, kinds)
        elif kinds:
            found.append(Period(begin, end, kinds))
    return found


def slot_seconds(end_ns: int) -> int:
    """Return the width of slots, in whole seconds, for a run that ends at `end_ns`."""
    return end_ns // (SLOTS_MAX * SECOND_NS) + 1


def fault_slots(run: int, periods: Sequence[Period], slot_s: int) -> pa.Table:
    """Return the periods, cut at the bounds of slots (FAULT_SLOTS)."""
    width = slot_s * SECOND_NS
    rows = [
        (run, slot, max(period.begin_ns, slot * width), min(period.end_ns, (slot + 1) * width), period.label)
        for period in periods
        for slot in range(period.begin_ns // width, (period.end_ns - 1) // width + 1)
    ]
    columns = zip(*rows, strict=True) if rows else ([] for _ in FAULT_SLOTS)
    return pa.table(
        [pa.array(list(column), field.type) for column, field in zip(columns, FAULT_SLOTS, strict=True)], FAULT_SLOTS
    )


def label_within(periods: Sequence[Period], begin_ns: int, end_ns: int) -> str:
    """Return the faults in force at any time in [begin, end), joined by +; `none` if there were none."""
    kinds: set[str] = set()
    for period in _overlapping(periods, begin_ns, end_ns):
        kinds |= period.kinds
    return cut("+".join(sorted(kinds))) or NONE


def _overlapping(periods: Sequence[Period], begin_ns: int, end_ns: int) -> Iterator[Period]:
    place = bisect_right(periods, begin_ns, key=lambda period: period.end_ns)
    while place < len(periods) and periods[place].begin_ns < end_ns:
        yield periods[place]
        place += 1
