"""The public tables as the jobs' SQL sees them: all runs together, with what the format leaves open settled.

Every row has its run's `run`; times are relative to the run's first event; Kafka's -1 for unknown is null; a
`topic_id` that a row does not know is filled in where the topic's name has one only, and empty where nobody knows it.
SQL's own words get other names: `offset` is `at_offset`, `group` is `group_id`, `before` and `after` are `begin_offset`
and `end_offset`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from linearizability.history.schema import COLUMNS, Column
from reports.jobs.definition import SECOND_NS

READS_REPLICA: Final = "read_replica"
"""What a harness read from a node's disk after the run is no answer to a client."""

TIMES: Final = {
    "operations": ("invoke_ns", "complete_ns"),
    "states": ("asked_ns", "answered_ns"),
    "faults": ("inject_ns", "heal_ns"),
    "assignments": ("at_ns", "at_ns"),
}
"""The tables that say when, each with the column of a row's begin and end."""
VIEWED: Final = ("operations", "records", "positions", "states", "faults")
_IDENTIFIED: Final = ("records", "positions", "states")

_NAMES: Final = {
    "offset": "at_offset",
    "group": "group_id",
    "before": "begin_offset",
    "after": "end_offset",
}


@dataclass(frozen=True, slots=True)
class RunOfViews:
    """What the views must know of one run."""

    number: int
    origin_ns: int
    slot_s: int
    """The width of the slots by which operations find the faults in force."""
    has_positions: bool


def raw(table: str, run: int) -> str:
    """The name of a public table of one run, as it is on disk."""
    return f"raw_{table}_{run}"


def span_sql(runs: Sequence[int]) -> str:
    """First and last moment of every table that tells any, by run."""
    parts = [
        f"SELECT {run} AS run, MIN({begin}) AS first_ns, MAX(COALESCE({end}, {begin})) AS last_ns FROM {raw(name, run)}"
        for run in runs
        for name, (begin, end) in TIMES.items()
        if name != "faults"
    ]
    return (
        f"SELECT run, MIN(first_ns) AS first_ns, MAX(last_ns) AS last_ns FROM ({_union(parts)}) AS spans GROUP BY run"
    )


def topic_ids_sql(runs: Sequence[int]) -> str:
    """The ids by which rows know each topic, by run."""
    parts = [
        f"SELECT DISTINCT {run} AS run, topic, topic_id FROM {raw(name, run)} WHERE topic_id IS NOT NULL"
        for run in runs
        for name in _IDENTIFIED
    ]
    return f"SELECT DISTINCT run, topic, topic_id FROM ({_union(parts)}) AS ids WHERE topic IS NOT NULL"


def views(runs: Sequence[RunOfViews]) -> Iterator[tuple[str, str]]:
    """Names and SQL of the views, over the raw tables and `only_topic_ids` (run, topic, topic_id)."""
    for name in VIEWED:
        yield name, _union([_of_run(name, run) for run in runs])
    yield "faulted_operations", _FAULTED


def _of_run(name: str, run: RunOfViews) -> str:
    if name == "positions" and not run.has_positions:
        return _derived_positions(run)
    columns = ", ".join(_column(name, column, run) for column in COLUMNS[name] if column.name != "topic_id")
    source = f"{raw(name, run.number)} AS r"
    if name in _IDENTIFIED:
        columns += ", COALESCE(r.topic_id, i.topic_id, '') AS topic_id"
        source += f" LEFT JOIN only_topic_ids AS i ON i.run = {run.number} AND i.topic = r.topic"
    if name == "operations":
        since = f"(r.invoke_ns - {run.origin_ns})"
        columns += f", {_whole(since, SECOND_NS)} AS second, {_whole(since, run.slot_s * SECOND_NS)} AS slot"
        ended = f"(COALESCE(r.complete_ns, r.invoke_ns) - {run.origin_ns})"
        columns += f", {_whole(ended, SECOND_NS)} AS end_second"
    if name == "states":
        columns += f", {_whole(f'(r.answered_ns - {run.origin_ns})', SECOND_NS)} AS second"
    return f"SELECT {run.number} AS run, {columns} FROM {source}"


def _column(table: str, column: Column, run: RunOfViews) -> str:
    name = _NAMES.get(column.name, column.name)
    if column.name == "isr":
        return "array_join(array_sort(r.isr), ',') AS isr, cardinality(r.isr) AS isr_size"
    if table in TIMES and column.name in TIMES[table]:
        return f"r.{column.name} - {run.origin_ns} AS {name}"
    quoted = f"r.{column.name}"
    return f"NULLIF({quoted}, {column.unknown}) AS {name}" if column.unknown is not None else f"{quoted} AS {name}"


def _derived_positions(run: RunOfViews) -> str:
    """Where the table is absent: from a read's first record to its last, a little less than the format says."""
    lacking = ", ".join(f"CAST(NULL AS BIGINT) AS {name}" for name in _UNTOLD)
    return f"""
        SELECT {run.number} AS run, r.op_id, r.topic, r.partition, MIN(r.offset) AS begin_offset,
          MAX(r.offset) + 1 AS end_offset, 'read' AS cause, {lacking},
          COALESCE(r.topic_id, i.topic_id, '') AS topic_id
        FROM {raw("records", run.number)} AS r
        LEFT JOIN only_topic_ids AS i ON i.run = {run.number} AND i.topic = r.topic
        WHERE r.direction = 'read' AND r.offset >= 0
        GROUP BY r.op_id, r.topic, r.partition, COALESCE(r.topic_id, i.topic_id, '')
    """


_UNTOLD: Final = ("high_watermark", "last_stable_offset", "log_start_offset")

_FAULTED: Final = """
    SELECT o.*, COALESCE(s.faults, 'none') AS faults
    FROM operations AS o
    LEFT JOIN fault_slots AS s
      ON s.run = o.run AND s.slot = o.slot AND o.invoke_ns >= s.begin_ns AND o.invoke_ns < s.end_ns
"""


def _whole(value: str, unit: int) -> str:
    """SQL for how often a unit fits into a number that is not negative, without a fraction on the way."""
    return f"CAST(({value} - {value} % {unit}) / {unit} AS BIGINT)"


def _union(parts: Sequence[str]) -> str:
    return " UNION ALL ".join(parts)
