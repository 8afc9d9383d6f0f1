"""Views of the public tables for the jobs' SQL: all runs together, with optional values filled in.

Every row has its run's number `run`; times are relative to the run's first event; Kafka's -1 for unknown is null. An
unknown `topic_id` is filled in if the run has exactly one id of the topic name; otherwise it is empty. Columns named by
SQL keywords have other names: `offset` is `at_offset`, `group` is `group_id`, `before` and `after` are `begin_offset`
and `end_offset`.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa

from linearizability.history.schema import COLUMNS, Column
from reports.jobs.definition import SECOND_NS

READS_REPLICA: Final = "read_replica"
"""Reads of a node's disk after the run, which are not responses to a client."""

TIMES: Final = {
    "operations": ("invoke_ns", "complete_ns"),
    "states": ("asked_ns", "answered_ns"),
    "faults": ("inject_ns", "heal_ns"),
    "assignments": ("at_ns", "at_ns"),
}
"""The tables with times, each with the columns for the start and end of a row."""
RAW: Final = ("operations", "records", "positions", "states", "faults", "assignments")
"""The public tables that are read."""
VIEWED: Final = ("operations", "records", "positions", "states", "faults")
"""The public tables that have a view of the same name."""
_IDENTIFIED: Final = ("records", "positions", "states")
"""The tables whose rows have a topic id."""

_NAMES: Final = {
    "offset": "at_offset",
    "group": "group_id",
    "before": "begin_offset",
    "after": "end_offset",
}


RUN_FACTS: Final = pa.schema(
    [("run", pa.int32()), ("origin_ns", pa.int64()), ("slot_ns", pa.int64()), ("has_positions", pa.bool_())]
)
"""Facts about each run that the views need: the time of its first event; the width of the time slots by which
operations are joined with the faults in force; whether it has the table `positions`."""
ONLY_TOPIC_IDS: Final = pa.schema([("run", pa.int32()), ("topic", pa.string()), ("topic_id", pa.string())])
"""The ids of topics with only one id in a run."""


def raw(table: str) -> str:
    """Return the name of a public table of all runs as it was read, with an additional column `run`."""
    return f"raw_{table}"


def span_sql() -> str:
    """Return SQL for the first and last moment of every run; faults do not count."""
    parts = [
        f"SELECT run, MIN({begin}) AS first_ns, MAX(COALESCE({end}, {begin})) AS last_ns FROM {raw(name)} GROUP BY run"
        for name, (begin, end) in TIMES.items()
        if name != "faults"
    ]
    return (
        f"SELECT run, MIN(first_ns) AS first_ns, MAX(last_ns) AS last_ns FROM ({_union(parts)}) AS spans GROUP BY run"
    )


def topic_ids_sql() -> str:
    """Return SQL for the topic ids, including null, in the rows of each run."""
    parts = [f"SELECT DISTINCT run, topic, topic_id FROM {raw(name)}" for name in _IDENTIFIED]
    return f"SELECT DISTINCT run, topic, topic_id FROM ({_union(parts)}) AS ids WHERE topic IS NOT NULL"


def views(*, lacks_ids: bool, lacks_positions: bool) -> Iterator[tuple[str, str]]:
    """Yield names and SQL of the views over the raw tables, RUN_FACTS and ONLY_TOPIC_IDS.

    `lacks_ids`: some rows have no topic id and others have one. `lacks_positions`: some run has no positions.
    """
    for name in VIEWED:
        sql = _view(name, lacks_ids=lacks_ids and name in _IDENTIFIED)
        if name == "positions" and lacks_positions:
            sql = _union([sql, _derived_positions(lacks_ids=lacks_ids)])
        yield name, sql
    yield "faulted_operations", _FAULTED


def _view(name: str, *, lacks_ids: bool) -> str:
    columns = ["r.run", *(_column(name, column) for column in COLUMNS[name] if column.name != "topic_id")]
    source = f"{raw(name)} AS r"
    if name in TIMES:
        source += " JOIN run_facts AS t ON t.run = r.run"
    if name == "operations":
        ended = "(COALESCE(r.complete_ns, r.invoke_ns) - t.origin_ns)"
        columns.append(f"{_whole('(r.invoke_ns - t.origin_ns)', 't.slot_ns')} AS slot")
        columns.append(f"{_whole('(r.invoke_ns - t.origin_ns)', str(SECOND_NS))} AS second")
        columns.append(f"{_whole(ended, str(SECOND_NS))} AS end_second")
    if name == "states":
        columns.append(f"{_whole('(r.answered_ns - t.origin_ns)', str(SECOND_NS))} AS second")
    if name in _IDENTIFIED:
        columns.append(_topic_id(lacks_ids=lacks_ids) + " AS topic_id")
        source += _known_ids(lacks_ids=lacks_ids)
    return f"SELECT {', '.join(columns)} FROM {source}"


def _topic_id(*, lacks_ids: bool) -> str:
    return "COALESCE(r.topic_id, i.topic_id, '')" if lacks_ids else "COALESCE(r.topic_id, '')"


def _known_ids(*, lacks_ids: bool) -> str:
    return " LEFT JOIN only_topic_ids AS i ON i.run = r.run AND i.topic = r.topic" if lacks_ids else ""


def _column(table: str, column: Column) -> str:
    name = _NAMES.get(column.name, column.name)
    if column.name == "isr":
        return "array_join(array_sort(r.isr), ',') AS isr, cardinality(r.isr) AS isr_size"
    if table in TIMES and column.name in TIMES[table]:
        return f"r.{column.name} - t.origin_ns AS {name}"
    quoted = f"r.{column.name}"
    return f"NULLIF({quoted}, {column.unknown}) AS {name}" if column.unknown is not None else f"{quoted} AS {name}"


def _derived_positions(*, lacks_ids: bool) -> str:
    """Return SQL for positions if the table is absent: from a read's first record to its last."""
    lacking = ", ".join(f"CAST(NULL AS BIGINT) AS {name}" for name in _NOT_DERIVED)
    topic_id = _topic_id(lacks_ids=lacks_ids)
    return f"""
        SELECT r.run, r.op_id, r.topic, r.partition, MIN(r.offset) AS begin_offset, MAX(r.offset) + 1 AS end_offset,
          'read' AS cause, {lacking}, {topic_id} AS topic_id
        FROM {raw("records")} AS r JOIN run_facts AS t ON t.run = r.run{_known_ids(lacks_ids=lacks_ids)}
        WHERE r.direction = 'read' AND r.offset >= 0 AND NOT t.has_positions
        GROUP BY r.run, r.op_id, r.topic, r.partition, {topic_id}
    """


_NOT_DERIVED: Final = ("high_watermark", "last_stable_offset", "log_start_offset")

_FAULTED: Final = """
    SELECT o.*, COALESCE(s.faults, 'none') AS faults
    FROM operations AS o
    LEFT JOIN fault_slots AS s
      ON s.run = o.run AND s.slot = o.slot AND o.invoke_ns >= s.begin_ns AND o.invoke_ns < s.end_ns
"""


def _whole(value: str, unit: str) -> str:
    """Return SQL for a non-negative number divided by a unit, in whole numbers only."""
    return f"CAST(({value} - {value} % {unit}) / {unit} AS BIGINT)"


def _union(parts: Sequence[str]) -> str:
    return " UNION ALL ".join(parts)
