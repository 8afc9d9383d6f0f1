"""Definition of a job: a table with a schema, and the SQL text with which every engine computes it.

The text uses only what DuckDB and Spark both support, and whole numbers, so that both return identical rows. Every row
belongs to a run by its number, `run`; times are nanoseconds since the run's first event. Quantiles are computed from
buckets with three significant digits. The counts of buckets can be added over tasks, seconds and runs. The middle of a
bucket differs from each of its values by at most 0.5 %.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

import pyarrow as pa

SECOND_NS: Final = 1_000_000_000

QUANTILE_ERROR: Final = 0.005
"""A quantile differs from the true one by at most this fraction of it."""
_SIGNIFICANT: Final = 1000
_LARGEST_DIGITS: Final = 19
"""The number of digits of the largest 64-bit integer."""

QUANTILES: Final = {"p50": 500, "p90": 900, "p99": 990, "p999": 999}
"""Quantiles in thousandths, by their names in a table."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a job's table."""

    name: str
    type: pa.DataType
    meaning: str


class FaultTimes(Enum):
    """The times of a row that determine its column `faults`."""

    SECOND = ("second", "second")
    WINDOW = ("begin_ns", "end_ns")


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the report."""

    name: str
    title: str
    about: str
    """Description of the table: its rows, and the rows that are left out."""
    columns: tuple[Column, ...]
    """The columns after the run's id, which comes first."""

    @property
    def written(self) -> tuple[Column, ...]:
        """The columns of the written table."""
        return (RUN_ID, *self.columns)

    @property
    def schema(self) -> pa.Schema:
        """The schema of the written table."""
        return pa.schema([(column.name, column.type) for column in self.written])


@dataclass(frozen=True, slots=True)
class Job(Table):
    """A table that an engine computes. Its SQL returns the column `run` and then `columns`."""

    sql: str
    order: tuple[str, ...]
    """The columns by which rows are sorted after the run, null first; together they identify a row."""
    fault_times: FaultTimes | None = None

    @property
    def written(self) -> tuple[Column, ...]:
        """The columns of the written table, with the faults in force."""
        return (RUN_ID, *self.columns, *((_FAULTS,) if self.fault_times else ()))

    @property
    def computed(self) -> pa.Schema:
        """The schema of the rows that an engine returns."""
        return pa.schema([("run", pa.int32()), *((column.name, column.type) for column in self.columns)])


RUN_ID: Final = Column(
    "run_id", pa.string(), "id of the run; if the given directory has several histories, the path inside it"
)
_FAULTS: Final = Column(
    "faults", pa.string(), "kinds of faults in force in the second or window, joined by +; `none` if there were none"
)


@dataclass(frozen=True, slots=True)
class Stage:
    """A table that several jobs read, computed once; it is not part of the report."""

    name: str
    sql: str


def number(name: str, meaning: str) -> Column:
    """Return a column of whole numbers."""
    return Column(name, pa.int64(), meaning)


def small(name: str, meaning: str) -> Column:
    """Return a column of whole numbers that fit 32 bits: processes, nodes, partitions, epochs."""
    return Column(name, pa.int32(), meaning)


def text(name: str, meaning: str) -> Column:
    """Return a column of text."""
    return Column(name, pa.string(), meaning)


SECOND: Final = number("second", "whole seconds since the run's first event")
TOPIC: Final = (
    text("topic", "topic name"),
    text("topic_id", "topic id; empty where unknown"),
    small("partition", "partition of the topic"),
)


def bucket_of(value: str) -> str:
    """Return SQL for the middle of the bucket of a non-negative number; below 1000 that is the number itself."""
    branches = [f"WHEN {value} < {_SIGNIFICANT} THEN {value}"]
    for digits in range(4, _LARGEST_DIGITS + 1):
        width = 10 ** (digits - 3)
        limit = f"WHEN {value} < {10**digits} THEN" if digits < _LARGEST_DIGITS else "ELSE"
        branches.append(f"{limit} {value} - {value} % {width} + {width // 2}")
    return f"CASE {' '.join(branches)} END"


def quantiles_of(buckets: str, group: Sequence[str], bucket: str = "bucket") -> str:
    """Return SQL for count, quantiles and maximum by group, from `bucket`, `highest` and `times` of a table.

    The quantile q of n values is the value at rank ceil(q n) in ascending order.
    """
    keys = ", ".join(group)
    chosen = ", ".join(
        f"MIN(CASE WHEN so_far * 1000 >= total * {part} THEN {bucket} END) AS {name}"
        for name, part in QUANTILES.items()
    )
    return f"""
        WITH summed AS (
          SELECT {keys}, {bucket}, SUM(times) AS times, MAX(highest) AS highest FROM {buckets}
          GROUP BY {keys}, {bucket}
        ), ranked AS (
          SELECT {keys}, {bucket}, highest,
            SUM(times) OVER (PARTITION BY {keys} ORDER BY {bucket}) AS so_far,
            SUM(times) OVER (PARTITION BY {keys}) AS total
          FROM summed
        )
        SELECT {keys}, MAX(total) AS times, {chosen}, MAX(highest) AS highest FROM ranked GROUP BY {keys}
    """


def quantile_columns(times_meaning: str, unit: str) -> tuple[Column, ...]:
    """Return the columns that `quantiles_of` returns after its keys. The names of the quantiles end with the unit."""
    return (
        number("times", times_meaning),
        *(number(f"{name}_{unit}", f"quantile {part / 1000:g}, within 0.5 %") for name, part in QUANTILES.items()),
        number(f"highest_{unit}", "the highest value, exact"),
    )
