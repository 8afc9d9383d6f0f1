"""The page `docs/report-tables.md`, generated from the definitions.

`python -m reports.jobs.document` prints it.
"""

import sys
from typing import Final

import pyarrow as pa

from reports.jobs.definition import Table
from reports.jobs.report import TABLES

_INTRODUCTION: Final = """# The tables of a report

The tables that `kafkatrial report` writes as `tables/NAME.parquet` and `tables/NAME.csv`, one section each; see
[the guide](report.md). This page is generated from the definitions in `reports/jobs`
(`python -m reports.jobs.document`).

- Rows are sorted by run, in the order of the table `runs`, and then by the columns that identify a row.
- A time in a column `…_ns` is in nanoseconds since the run's first event; in the tables of latencies it is a duration.
  `second` counts from the same event. A fault that began before this event has a negative time.
- Counts are exact. Quantiles are computed from logarithmic buckets with three significant digits. They differ from the
  true quantiles by at most 0.5 %, and are identical on every engine. The quantile q of n values is the value at rank
  ⌈q n⌉ in ascending order.
- The faults in force are named by their kinds in the table `faults`, such as `cut+kill`; `none` means that there were
  none.
- Reads of replicas' disks after the run (operations `read_replica`) are not responses to a client. They are left out,
  except where a table includes them explicitly.
- If a run has no table `positions`, a read is assumed to have passed only the offsets from its first record to its
  last. The positions that the [history format](history-format.md#positions) derives may cover a little more.
"""

_TYPES: Final = {
    pa.int64(): "int64",
    pa.int32(): "int32",
    pa.float64(): "double",
    pa.string(): "string",
    pa.bool_(): "bool",
}


def page() -> str:
    """Return the whole page as Markdown."""
    return "\n".join([_INTRODUCTION, *(_section(table) for table in TABLES)])


def _section(table: Table) -> str:
    rows = [f"| `{column.name}` | {_TYPES[column.type]} | {column.meaning} |" for column in table.written]
    return "\n".join(
        [
            f"## `{table.name}`: {table.title}",
            "",
            table.about,
            "",
            "| column | type | meaning |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )


if __name__ == "__main__":
    sys.stdout.write(page())
