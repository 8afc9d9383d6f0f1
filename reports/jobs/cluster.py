"""Jobs about partitions over time: leaders, in-sync replicas, ends of logs, and consumer lag."""

from typing import Final

from reports.jobs.definition import SECOND, TOPIC, Job, Stage, number, small, text
from reports.jobs.views import READS_REPLICA

_KEYS: Final = "run, topic, topic_id, partition"

KNOWN_ENDS: Final = Stage(
    "known_ends",
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
    ) AS sources
    GROUP BY {_KEYS}, second
    """,
)

PROGRESS: Final = Job(
    "progress",
    "Watermarks and ends by second",
    "The highest offset of each kind that was returned for a partition in a second; null if none was returned.",
    (
        *TOPIC,
        SECOND,
        number("high_watermark", "high watermark that a broker returned"),
        number("last_stable_offset", "last stable offset that a broker returned"),
        number("log_start_offset", "log start offset that a broker returned"),
        number("log_end_offset", "log end offset of a replica that its broker returned"),
        number("acknowledged_end", "the offset after the highest acknowledged one"),
        number("read_end", "the furthest position that a reader reached"),
    ),
    f"""
    SELECT {_KEYS}, second, high_watermark, last_stable_offset, log_start_offset, log_end_offset, acknowledged_end,
      read_end
    FROM known_ends
    WHERE COALESCE(high_watermark, last_stable_offset, log_start_offset, log_end_offset, acknowledged_end, read_end)
      IS NOT NULL
    """,
    ("topic", "topic_id", "partition", "second"),
)

LAG: Final = Job(
    "consumer_lag",
    "Consumer lag by second",
    "The distance from the position of a group, or of a process without a group, to the log end. The position is the"
    " furthest one that was reached in the second. The log end is the highest high watermark or acknowledged end up to"
    " that second.",
    (
        text("reader", "the consumer group, or `process N` for a process without a group"),
        *TOPIC,
        SECOND,
        number("position", "the next offset to read"),
        number("end_offset", "the highest log end that was known"),
        number("lag", "end_offset - position; 0 if the position is above the log end"),
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
      SELECT {_KEYS}, second, NULL, NULL, GREATEST(high_watermark, acknowledged_end) FROM known_ends
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
    "The state of a partition according to the responses of brokers, one row for each period without a change. A"
    " response is ignored if its leader epoch is older than that of an earlier response. Within an epoch, nodes learn"
    " of a change one after the other, so two states may alternate for a short time.",
    (
        *TOPIC,
        number("begin_ns", "time of the first response with this state"),
        number("end_ns", "time of the first response with another state; if there is none, of the last response"),
        small("leader", "the leader; null or -1 if there is none"),
        small("leader_epoch", "leader epoch"),
        text("isr", "in-sync replicas, ascending, separated by commas"),
        small("isr_size", "number of in-sync replicas"),
        number("answers", "number of responses with this state"),
    ),
    f"""
    WITH responses AS (
      SELECT {_KEYS}, answered_ns, asked_ns, node, leader, leader_epoch, isr, isr_size,
        MAX(leader_epoch) OVER (PARTITION BY {_KEYS} ORDER BY {_ORDER} ROWS UNBOUNDED PRECEDING) AS newest
      FROM states WHERE topic IS NOT NULL AND partition IS NOT NULL AND isr IS NOT NULL
    ), valid AS (
      SELECT {_KEYS}, answered_ns, asked_ns, node, leader, leader_epoch, isr, isr_size,
        CONCAT(COALESCE(CAST(leader AS STRING), ''), '/', COALESCE(CAST(leader_epoch AS STRING), ''), '/', isr) AS state
      FROM responses WHERE leader_epoch IS NULL OR leader_epoch = newest
    ), compared AS (
      SELECT *, LAG(state) OVER (PARTITION BY {_KEYS} ORDER BY {_ORDER}) AS state_before FROM valid
    ), numbered AS (
      SELECT *, SUM(CASE WHEN state = state_before THEN 0 ELSE 1 END) OVER (
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
