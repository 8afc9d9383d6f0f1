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
- Times in `_ns` are nanoseconds since the run's first event, and `second` counts from this event. A fault may have
  begun before it, at a negative time.
- Counts are exact. Quantiles are computed from logarithmic buckets with three significant digits: at most 0.5 % off,
  and identical on every engine. Of n values the quantile q is the one at place ⌈q n⌉.
- Faults in force are those of the table `faults` by kind: `cut+kill`, or `none`.
- Reads of replicas' disks after the run (operations `read_replica`) are not responses to a client; they are left out
  except where a table includes them explicitly.
- If a run has no table `positions`, a read is assumed to have passed only the offsets from its first record to its
  last. The positions that the format defines may cover a little more.
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
