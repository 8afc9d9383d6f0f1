"""The page `docs/report-tables.md`, made from the definitions so that it cannot say anything else.

`python -m reports.jobs.document` prints it.
"""

import sys
from typing import Final

import pyarrow as pa

from reports.jobs.definition import Table
from reports.jobs.report import TABLES

_INTRODUCTION: Final = """# The tables of a report

What `kafkatrial report` writes as `tables/NAME.parquet` and `tables/NAME.csv`, one section each; [the guide](report.md)
tells how to make one. This page is made from the definitions in `reports/jobs` (`python -m reports.jobs.document`).

- Rows stand by run, in the order of the table `runs`, and then by the columns that know a row.
- Times in `_ns` are nanoseconds since the run's first event, and `second` counts from it. A fault may lie before.
- Counts are exact. Quantiles are of logarithmic buckets with three significant digits: at most 0.5 % from the true one,
  and the same on every engine. Of n values the quantile q is the one at place ⌈q n⌉.
- Faults in force are those of the table `faults` by kind: `cut+kill`, or `none`.
- What a harness read from replicas' disks after the run (operations `read_replica`) is no answer to a client, and is
  left out but where a table says otherwise.
- Where a run has no table `positions`, a read passed over what lies between its first record and its last: a little
  less than the format says.
"""

_TYPES: Final = {
    pa.int64(): "int64",
    pa.int32(): "int32",
    pa.float64(): "double",
    pa.string(): "string",
    pa.bool_(): "bool",
}


def page() -> str:
    """The whole page as Markdown."""
    return "\n".join([_INTRODUCTION, *(_section(table) for table in TABLES)])


def _section(table: Table) -> str:
    rows = [f"| `{column.name}` | {_TYPES[column.type]} | {column.meaning} |" for column in table.told]
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
