"""Jobs about operations: latency, throughput, windows without success, errors, and records per produce."""

from typing import Final

from reports.jobs.definition import (
    SECOND,
    SECOND_NS,
    TOPIC,
    FaultTimes,
    Job,
    Stage,
    bucket_of,
    number,
    quantile_columns,
    quantiles_of,
    small,
    text,
)
from reports.jobs.views import READS_REPLICA

FAULTS: Final = text(
    "faults", "kinds of faults in force when the operation was called, joined by +; `none` if there were none"
)

OPERATION_PARTITIONS: Final = Stage(
    "operation_partitions",
    """
    SELECT run, op_id, topic, topic_id, partition,
      SUM(CASE WHEN direction = 'send' THEN 1 ELSE 0 END) AS sent,
      SUM(CASE WHEN direction = 'read' THEN 1 ELSE 0 END) AS returned,
      MAX(at_offset) AS highest_offset
    FROM records GROUP BY run, op_id, topic, topic_id, partition
    """,
)

_TOOK: Final = "(complete_ns - invoke_ns)"

LATENCY_BUCKETS: Final = Stage(
    "latency_buckets",
    f"""
    SELECT run, second, f, node, faults, {bucket_of(_TOOK)} AS bucket, COUNT(*) AS times, MAX({_TOOK}) AS highest
    FROM faulted_operations WHERE outcome = 'ok' AND f <> '{READS_REPLICA}'
    GROUP BY run, second, f, node, faults, {bucket_of(_TOOK)}
    """,
)

_OPERATION: Final = text("f", "what was called: produce, poll, fetch, …")
_LATENCY: Final = quantile_columns("number of operations that succeeded", "ns")
_AS_NAMED: Final = "times, p50 AS p50_ns, p90 AS p90_ns, p99 AS p99_ns, p999 AS p999_ns, highest AS highest_ns"


def _latency(keys: tuple[str, ...]) -> str:
    chosen = ", ".join(keys)
    return f"SELECT {chosen}, {_AS_NAMED} FROM ({quantiles_of('latency_buckets', keys)}) AS quantiles"


LATENCY: Final = Job(
    "latency",
    "Latency by second, operation and node",
    "Time from the call to the return of operations that succeeded, by the second of the call.",
    (SECOND, _OPERATION, small("node", "broker that responded; null if unknown"), *_LATENCY),
    _latency(("run", "second", "f", "node")),
    ("second", "f", "node"),
    FaultTimes.SECOND,
)

LATENCY_OVERALL: Final = Job(
    "latency_overall",
    "Latency of the whole run",
    "Latency by operation over the whole run.",
    (_OPERATION, *_LATENCY),
    _latency(("run", "f")),
    ("f",),
)

LATENCY_BY_FAULT: Final = Job(
    "latency_by_fault",
    "Latency by fault in force",
    "Latency over the whole run, by the faults in force when the operation was called.",
    (_OPERATION, FAULTS, *_LATENCY),
    _latency(("run", "f", "faults")),
    ("f", "faults"),
)

THROUGHPUT: Final = Job(
    "throughput",
    "Throughput by second",
    "Operations and records by the second in which the operation returned. An operation that never returned counts in"
    " the second of its call. A record that several readers read counts once for each reader.",
    (
        SECOND,
        number("ok", "operations that succeeded"),
        number("failed", "operations that took no effect"),
        number("unknown", "operations with an unknown outcome"),
        number("acknowledged", "records of produces that succeeded"),
        number("returned", "records that reads returned"),
    ),
    f"""
    WITH moved AS (
      SELECT run, op_id, SUM(sent) AS sent, SUM(returned) AS returned FROM operation_partitions GROUP BY run, op_id
    )
    SELECT o.run, o.end_second AS second,
      SUM(CASE WHEN o.outcome = 'ok' THEN 1 ELSE 0 END) AS ok,
      SUM(CASE WHEN o.outcome = 'fail' THEN 1 ELSE 0 END) AS failed,
      SUM(CASE WHEN o.outcome = 'info' THEN 1 ELSE 0 END) AS unknown,
      SUM(CASE WHEN o.outcome = 'ok' THEN COALESCE(m.sent, 0) ELSE 0 END) AS acknowledged,
      SUM(COALESCE(m.returned, 0)) AS returned
    FROM operations AS o LEFT JOIN moved AS m ON m.run = o.run AND m.op_id = o.op_id
    WHERE o.f <> '{READS_REPLICA}'
    GROUP BY o.run, o.end_second
    """,
    ("second",),
    FaultTimes.SECOND,
)

AVAILABILITY: Final = Job(
    "availability",
    "Windows without success",
    "Windows of a second or longer between two successes of one kind of operation. The first window begins at the first"
    " call of this kind, and the last window ends when the last operation of this kind returned. A window without calls"
    " means that the clients were idle, not that the cluster failed.",
    (
        _OPERATION,
        number("begin_ns", "start of the window: a success, or the first call of this kind"),
        number("end_ns", "end of the window: a success, or the return of the last operation of this kind"),
        number("called", "operations of this kind that were called in the window"),
        number("not_ok", "operations that were called in the window and never succeeded"),
    ),
    f"""
    WITH successes AS (
      SELECT run, f, MIN(complete_ns) AS first_ns, MAX(complete_ns) AS last_ns
      FROM operations WHERE outcome = 'ok' GROUP BY run, f, end_second
    ), ends AS (
      SELECT run, f, MIN(invoke_ns) AS begin_ns, MAX(COALESCE(complete_ns, invoke_ns)) AS end_ns
      FROM operations GROUP BY run, f
    ), marks AS (
      SELECT run, f, first_ns, last_ns FROM successes
      UNION ALL SELECT run, f, begin_ns, begin_ns FROM ends
      UNION ALL SELECT run, f, end_ns, end_ns FROM ends
    ), steps AS (
      SELECT run, f, first_ns AS end_ns, MAX(last_ns) OVER (
        PARTITION BY run, f ORDER BY first_ns, last_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS begin_ns
      FROM marks
    ), windows AS (
      SELECT DISTINCT run, f, begin_ns, end_ns FROM steps WHERE end_ns - begin_ns >= {SECOND_NS}
    ), seconds AS (
      SELECT DISTINCT run, f, second FROM operations
    ), touched AS (
      SELECT w.run, w.f, w.begin_ns, w.end_ns, s.second FROM windows AS w JOIN seconds AS s
        ON s.run = w.run AND s.f = w.f
          AND (s.second + 1) * {SECOND_NS} > w.begin_ns AND s.second * {SECOND_NS} < w.end_ns
    ), calls AS (
      SELECT t.run, t.f, t.begin_ns, t.end_ns, COUNT(*) AS called,
        SUM(CASE WHEN o.outcome = 'ok' THEN 0 ELSE 1 END) AS not_ok
      FROM touched AS t JOIN operations AS o ON o.run = t.run AND o.f = t.f AND o.second = t.second
        AND o.invoke_ns >= t.begin_ns AND o.invoke_ns < t.end_ns
      GROUP BY t.run, t.f, t.begin_ns, t.end_ns
    )
    SELECT w.run, w.f, w.begin_ns, w.end_ns, COALESCE(c.called, 0) AS called, COALESCE(c.not_ok, 0) AS not_ok
    FROM windows AS w LEFT JOIN calls AS c
      ON c.run = w.run AND c.f = w.f AND c.begin_ns = w.begin_ns AND c.end_ns = w.end_ns
    WHERE w.f <> '{READS_REPLICA}'
    """,
    ("f", "begin_ns"),
    FaultTimes.WINDOW,
)

ERRORS: Final = Job(
    "errors",
    "Errors",
    "Operations by the Kafka error that they returned, and by the faults in force when they were called.",
    (
        _OPERATION,
        text("error", "Kafka error name; null for an operation that is not ok and has no error"),
        text("outcome", "fail: it took no effect; info: unknown; ok: it took effect despite the error"),
        FAULTS,
        number("operations", "number of operations"),
        number("first_ns", "when the first of these operations was called"),
        number("last_ns", "when the last of these operations was called"),
    ),
    """
    SELECT run, f, error, outcome, faults, COUNT(*) AS operations, MIN(invoke_ns) AS first_ns, MAX(invoke_ns) AS last_ns
    FROM faulted_operations WHERE error IS NOT NULL OR outcome <> 'ok'
    GROUP BY run, f, error, outcome, faults
    """,
    ("f", "error", "outcome", "faults"),
)

BATCHES: Final = Job(
    "batches",
    "Records per produce",
    "Number of records that a produce sends to one partition. The history format has no sizes in bytes.",
    (TOPIC[0], TOPIC[1], *quantile_columns("number of produces, each counted once per partition", "records")),
    "SELECT run, topic, topic_id, times, p50 AS p50_records, p90 AS p90_records, p99 AS p99_records,"
    " p999 AS p999_records, highest AS highest_records FROM ("
    + quantiles_of(
        f"""(SELECT run, topic, topic_id, {bucket_of("sent")} AS bucket, COUNT(*) AS times, MAX(sent) AS highest
        FROM operation_partitions WHERE sent > 0 GROUP BY run, topic, topic_id, {bucket_of("sent")}) AS buckets""",
        ("run", "topic", "topic_id"),
    )
    + ") AS quantiles",
    ("topic", "topic_id"),
)
