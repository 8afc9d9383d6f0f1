"""Suspect records, which checks may have to report, and the other records with the same offsets or values."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from linearizability.anomalies.columns import Int64s

_NONE: Final = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class Suspects:
    """Suspect records: those in some ranges of offsets, and those with some values."""

    begins: Int64s = field(default_factory=lambda: _NONE)
    ends: Int64s = field(default_factory=lambda: _NONE)
    values: Int64s = field(default_factory=lambda: _NONE)

    def __bool__(self) -> bool:
        return bool(len(self.begins) or len(self.values))

    @classmethod
    def at(cls, offsets: Int64s, values: Int64s = _NONE) -> "Suspects":
        """Return the suspects at some offsets or with some values."""
        distinct = np.unique(offsets)
        return cls(distinct, distinct + 1, np.unique(values))


def all_suspects(parts: Iterable[Suspects]) -> Suspects:
    """Merge suspects and remove duplicates."""
    every = [Suspects(), *parts]
    ranges = np.stack([np.concatenate([getattr(one, name) for one in every]) for name in ("begins", "ends")])
    begins, ends = np.unique(ranges, axis=1)
    return Suspects(begins, ends, np.unique(np.concatenate([one.values for one in every])))


@dataclass(frozen=True, slots=True)
class RelatedRows:
    """Offsets and values of suspect rows: as suspects, and as parallel arrays of values and offsets (`places`)."""

    suspects: Suspects
    values: Int64s
    places: Int64s


def add_related(suspects: Suspects, parts: Iterable[RelatedRows]) -> Suspects:
    """Return the suspects, and the records in any part of a log that have the same offset or value.

    If a value has two offsets, all records from the lower to the higher offset are suspects too, because the record
    with this value is out of order with them.
    """
    related = list(parts)
    values, places = (
        np.concatenate([_NONE, *(getattr(one, name) for one in related)]) for name in ("values", "places")
    )
    order = np.lexsort((places, values))
    values, places = values[order], places[order]
    begins = np.flatnonzero(np.append(True, np.diff(values) != 0)[: len(values)])
    low, high = places[begins], places[np.append(begins[1:], len(values))[: len(begins)] - 1]
    moved = low < high
    return all_suspects([suspects, *(one.suspects for one in related), Suspects(low[moved], high[moved] + 1)])
