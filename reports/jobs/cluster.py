"""Jobs about partitions over time: who led, who was in sync, how far logs had come, and how far readers were behind."""

from typing import Final

from reports.jobs.definition import SECOND, TOPIC, Job, Stage, number, small, text
from reports.jobs.views import READS_REPLICA

_KEYS: Final = "run, topic, topic_id, partition"

ANSWERED_ENDS: Final = Stage(
    "answered_ends",
    f"""
    SELECT {_KEYS}, second, MAX(high_watermark) AS high_watermark, MAX(last_stable_offset) AS last_stable_offset,
      MAX(log_start_offset) AS log_start_offset, MAX(log_end_offset) AS log_end_offset,
      MAX(acknowledged_end) AS acknowledged_end, MAX(read_end) AS read_end
    FROM (
      SELECT {_KEYS}, second, high_watermark, last_stable_offset, log_start_offset, log_end_offset,
        CAST(NULL AS BIGINT) AS acknowledged_end, CAST(NULL AS BIGINT) AS read_end
      FROM states WHERE topic IS NOT NULL AND partition IS NOT NULL
      UNION ALL
      SELECT p.run, p.topic, p.topic_id, p.partition, o.end_second, p.high_watermark, p.last_stable_offset,
        p.log_start_offset, NULL, NULL, CASE WHEN p.cause = 'read' THEN p.end_offset END
      FROM positions AS p JOIN operations AS o ON o.run = p.run AND o.op_id = p.op_id
      WHERE o.f <> '{READS_REPLICA}'
      UNION ALL
      SELECT m.run, m.topic, m.topic_id, m.partition, o.end_second, NULL, NULL, NULL, NULL, m.highest_offset + 1, NULL
      FROM operation_partitions AS m JOIN operations AS o ON o.run = m.run AND o.op_id = m.op_id
      WHERE m.sent > 0 AND o.outcome = 'ok'
    ) AS answers
    GROUP BY {_KEYS}, second
    """,
)

PROGRESS: Final = Job(
    "progress",
    "Watermarks and ends by second",
    "The highest that was answered of a partition in a second; null where nothing was.",
    (
        *TOPIC,
        SECOND,
        number("high_watermark", "as brokers answered"),
        number("last_stable_offset", "as brokers answered"),
        number("log_start_offset", "as brokers answered"),
        number("log_end_offset", "of a replica, as it answered"),
        number("acknowledged_end", "above the highest offset that was acknowledged"),
        number("read_end", "the furthest position that a reader came to"),
    ),
    f"""
    SELECT {_KEYS}, second, high_watermark, last_stable_offset, log_start_offset, log_end_offset, acknowledged_end,
      read_end
    FROM answered_ends
    WHERE COALESCE(high_watermark, last_stable_offset, log_start_offset, log_end_offset, acknowledged_end, read_end)
      IS NOT NULL
    """,
    ("topic", "topic_id", "partition", "second"),
)

LAG: Final = Job(
    "consumer_lag",
    "Consumer lag by second",
    "How far the furthest position of a group, or of a reader without one, in that second lay below the highest"
    " watermark or acknowledged offset known by then.",
    (
        text("reader", "the consumer group; `process N` where there is none"),
        *TOPIC,
        SECOND,
        number("position", "the next offset that it would read"),
        number("end_offset", "the highest end that was known"),
        number("lag", "end_offset - position; 0 where the position is ahead"),
    ),
    f"""
    WITH moves AS (
      SELECT p.run, p.topic, p.topic_id, p.partition, o.end_second AS second,
        COALESCE(o.group_id, CONCAT('process ', CAST(o.process AS STRING))) AS reader, MAX(p.end_offset) AS position
      FROM positions AS p JOIN operations AS o ON o.run = p.run AND o.op_id = p.op_id
      WHERE o.f <> '{READS_REPLICA}' AND p.cause = 'read'
      GROUP BY p.run, p.topic, p.topic_id, p.partition, o.end_second,
        COALESCE(o.group_id, CONCAT('process ', CAST(o.process AS STRING)))
    ), events AS (
      SELECT {_KEYS}, second, reader, position, CAST(NULL AS BIGINT) AS end_offset FROM moves
      UNION ALL
      SELECT {_KEYS}, second, NULL, NULL, GREATEST(high_watermark, acknowledged_end) FROM answered_ends
    ), known AS (
      SELECT {_KEYS}, second, reader, position,
        MAX(end_offset) OVER (PARTITION BY {_KEYS} ORDER BY second) AS end_offset
      FROM events
    )
    SELECT run, reader, topic, topic_id, partition, second, position, end_offset,
      GREATEST(end_offset - position, 0) AS lag
    FROM known WHERE reader IS NOT NULL AND end_offset IS NOT NULL
    """,
    ("reader", "topic", "topic_id", "partition", "second"),
)

_ORDER: Final = "answered_ns, asked_ns, node, leader_epoch, leader, isr"

LEADERSHIP: Final = Job(
    "leadership",
    "Leaders and in-sync replicas",
    "What brokers answered of a partition, from one change to the next. An answer in an older leader epoch than one"
    " already seen is passed over; within an epoch nodes learn of a change one after the other, so short spells may"
    " alternate.",
    (
        *TOPIC,
        number("begin_ns", "the first answer that said so"),
        number("end_ns", "the first answer that said otherwise; the last of all where none did"),
        small("leader", "node that leads; null or -1 if none"),
        small("leader_epoch", "its leader epoch"),
        text("isr", "in-sync replicas, ascending, with commas"),
        small("isr_size", "how many"),
        number("answers", "how many said so"),
    ),
    f"""
    WITH answers AS (
      SELECT {_KEYS}, answered_ns, asked_ns, node, leader, leader_epoch, isr, isr_size,
        MAX(leader_epoch) OVER (PARTITION BY {_KEYS} ORDER BY {_ORDER} ROWS UNBOUNDED PRECEDING) AS newest
      FROM states WHERE topic IS NOT NULL AND partition IS NOT NULL AND isr IS NOT NULL
    ), valid AS (
      SELECT {_KEYS}, answered_ns, asked_ns, node, leader, leader_epoch, isr, isr_size,
        CONCAT(COALESCE(CAST(leader AS STRING), ''), '/', COALESCE(CAST(leader_epoch AS STRING), ''), '/', isr) AS said
      FROM answers WHERE leader_epoch IS NULL OR leader_epoch = newest
    ), compared AS (
      SELECT *, LAG(said) OVER (PARTITION BY {_KEYS} ORDER BY {_ORDER}) AS said_before FROM valid
    ), numbered AS (
      SELECT *, SUM(CASE WHEN said = said_before THEN 0 ELSE 1 END) OVER (
        PARTITION BY {_KEYS} ORDER BY {_ORDER} ROWS UNBOUNDED PRECEDING) AS spell
      FROM compared
    ), spells AS (
      SELECT {_KEYS}, spell, MIN(answered_ns) AS begin_ns, MAX(answered_ns) AS last_ns, MAX(leader) AS leader,
        MAX(leader_epoch) AS leader_epoch, MAX(isr) AS isr, MAX(isr_size) AS isr_size, COUNT(*) AS answers
      FROM numbered GROUP BY {_KEYS}, spell
    )
    SELECT {_KEYS}, begin_ns, COALESCE(LEAD(begin_ns) OVER (PARTITION BY {_KEYS} ORDER BY spell), last_ns) AS end_ns,
      leader, leader_epoch, isr, isr_size, answers
    FROM spells
    """,
    ("topic", "topic_id", "partition", "begin_ns", "end_ns", "leader_epoch", "leader", "isr", "answers"),
)
