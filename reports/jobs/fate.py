"""Jobs about records: delivery, duplicates, order by producer, and distribution over partitions."""

from typing import Final

import pyarrow as pa

from reports.jobs.definition import TOPIC, Column, Job, Stage, number, small, text
from reports.jobs.views import READS_REPLICA
from reports.jobs.work import FAULTS

_PLACE: Final = "run, topic, topic_id, partition"
_IN_PLACE: Final = " AND ".join(f"{{0}}.{key} = {{1}}.{key}" for key in _PLACE.split(", "))
_OF_CLIENTS: Final = (
    "NOT EXISTS (SELECT 1 FROM operations AS o WHERE o.run = {0}.run AND o.op_id = {0}.op_id AND o.f = '"
    + READS_REPLICA
    + "')"
)

PLACES: Final = Stage(
    "places",
    f"""
    SELECT {_PLACE}, ROW_NUMBER() OVER (ORDER BY {_PLACE}) AS place
    FROM (SELECT DISTINCT {_PLACE} FROM operation_partitions) AS known
    """,
)
"""Topic partitions by number, so that large tables are not grouped and joined by names."""

# A value is unique among the sends of a partition: grouping by it combines a send with its reads, without a join.
SENDS: Final = Stage(
    "sends",
    f"""
    WITH transactions AS (
      SELECT run, process, txn_seq,
        MAX(CASE WHEN outcome = 'ok' THEN 2 WHEN outcome = 'info' THEN 1 ELSE 0 END) AS ended
      FROM operations WHERE f = 'commit_txn' AND txn_seq IS NOT NULL GROUP BY run, process, txn_seq
    ), met AS (
      SELECT r.run, p.place, MAX(CASE WHEN r.direction = 'send' THEN r.op_id END) AS op_id,
        MAX(CASE WHEN r.direction = 'send' THEN r.seq END) AS seq,
        MAX(CASE WHEN r.direction = 'send' THEN r.at_offset END) AS at_offset,
        SUM(CASE WHEN r.direction = 'read' THEN 1 ELSE 0 END) AS reads,
        MIN(CASE WHEN r.direction = 'read' THEN r.at_offset END) AS lowest,
        MAX(CASE WHEN r.direction = 'read' THEN r.at_offset END) AS highest
      FROM records AS r JOIN places AS p ON {_IN_PLACE.format("p", "r")}
      WHERE r.value IS NOT NULL AND {_OF_CLIENTS.format("r")}
      GROUP BY r.run, p.place, r.value
    )
    SELECT m.run, m.place, m.op_id, m.seq, m.at_offset, o.process, o.producer_id, o.acks, o.faults,
      CASE WHEN o.outcome = 'fail' THEN 'failed'
        WHEN o.outcome = 'info' THEN 'unknown'
        WHEN o.txn_seq IS NULL OR t.ended = 2 THEN 'acknowledged'
        WHEN t.ended = 1 THEN 'unknown'
        ELSE 'aborted' END AS fate,
      m.reads, m.lowest, m.highest
    FROM met AS m
    JOIN faulted_operations AS o ON o.run = m.run AND o.op_id = m.op_id
    LEFT JOIN transactions AS t ON t.run = o.run AND t.process = o.process AND t.txn_seq = o.txn_seq
    """,
)

DELIVERY: Final = Job(
    "delivery",
    "Acknowledged, read, lost",
    "Records that were sent, by the faults in force when their produce was called. Tombstones, which have no value, are"
    " left out. A record of a transaction counts as acknowledged if the transaction was committed. An acknowledged"
    " record counts as lost if reads passed its offset and none returned it, even if Kafka permits the loss because of"
    " retention, compaction or acks. The table `anomalies` has the violations.",
    (
        FAULTS,
        small("acks", "acks of the produce; -1 is all"),
        number("sent", "records that were sent: the sum of `acknowledged`, `unknown`, `failed` and `aborted`"),
        number("acknowledged", "records that were acknowledged"),
        number("unknown", "records with an unknown outcome"),
        number("failed", "records that were not written"),
        number("aborted", "records that were written in a transaction that was not committed"),
        number("read", "acknowledged records that a read returned"),
        number("lost", "acknowledged records that no read returned although a read passed their offset"),
        number("unread", "acknowledged records whose offset no read passed"),
        number("turned_up", "records with an unknown outcome that a read returned"),
    ),
    f"""
    WITH ordered AS (
      SELECT p.run, n.place, p.begin_offset, p.end_offset, MAX(p.end_offset) OVER (
        PARTITION BY n.place ORDER BY p.begin_offset, p.end_offset
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reached
      FROM positions AS p JOIN places AS n ON {_IN_PLACE.format("n", "p")}
      WHERE p.cause = 'read' AND p.end_offset > p.begin_offset AND {_OF_CLIENTS.format("p")}
    ), numbered AS (
      SELECT place, begin_offset, end_offset, SUM(CASE WHEN begin_offset <= reached THEN 0 ELSE 1 END) OVER (
        PARTITION BY place ORDER BY begin_offset, end_offset ROWS UNBOUNDED PRECEDING) AS stretch
      FROM ordered
    ), covered AS (
      SELECT place, MIN(begin_offset) AS begin_offset, MAX(end_offset) AS end_offset
      FROM numbered GROUP BY place, stretch
    ), missing AS (
      SELECT s.run, s.faults, s.acks, COUNT(*) AS lost
      FROM sends AS s JOIN covered AS c
        ON c.place = s.place AND s.at_offset >= c.begin_offset AND s.at_offset < c.end_offset
      WHERE s.fate = 'acknowledged' AND s.reads = 0
      GROUP BY s.run, s.faults, s.acks
    ), counted AS (
      SELECT run, faults, acks, COUNT(*) AS sent,
        SUM(CASE WHEN fate = 'acknowledged' THEN 1 ELSE 0 END) AS acknowledged,
        SUM(CASE WHEN fate = 'unknown' THEN 1 ELSE 0 END) AS unknown,
        SUM(CASE WHEN fate = 'failed' THEN 1 ELSE 0 END) AS failed,
        SUM(CASE WHEN fate = 'aborted' THEN 1 ELSE 0 END) AS aborted,
        SUM(CASE WHEN fate = 'acknowledged' AND reads > 0 THEN 1 ELSE 0 END) AS read,
        SUM(CASE WHEN fate = 'unknown' AND reads > 0 THEN 1 ELSE 0 END) AS turned_up
      FROM sends GROUP BY run, faults, acks
    )
    SELECT c.run, c.faults, c.acks, c.sent, c.acknowledged, c.unknown, c.failed, c.aborted, c.read,
      COALESCE(m.lost, 0) AS lost, c.acknowledged - c.read - COALESCE(m.lost, 0) AS unread, c.turned_up
    FROM counted AS c LEFT JOIN missing AS m
      ON m.run = c.run AND m.faults = c.faults AND COALESCE(m.acks, -9) = COALESCE(c.acks, -9)
    """,
    ("faults", "acks"),
)

PRODUCERS: Final = Job(
    "producers",
    "Duplicates and order by producer",
    "The records of each client, and how many are duplicated or out of order. Without idempotence Kafka permits both.",
    (
        small("process", "the client"),
        Column("idempotent", pa.bool_(), "whether the client produced with a producer id"),
        number("sent", "records that the client sent, without tombstones"),
        number("acknowledged", "records that were acknowledged"),
        number("read", "records that a read returned"),
        number("duplicated", "records that were read at more than one offset"),
        number("out_of_order", "records at a lower offset than an earlier record of the client in the same partition"),
    ),
    """
    WITH placed AS (
      SELECT run, process, producer_id IS NOT NULL AS idempotent, fate, reads, lowest, highest,
        COALESCE(lowest, at_offset) AS stands_at,
        MAX(COALESCE(lowest, at_offset)) OVER (
          PARTITION BY process, place ORDER BY op_id, seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
      FROM sends
    )
    SELECT run, process, idempotent, COUNT(*) AS sent,
      SUM(CASE WHEN fate = 'acknowledged' THEN 1 ELSE 0 END) AS acknowledged,
      SUM(CASE WHEN reads > 0 THEN 1 ELSE 0 END) AS read,
      SUM(CASE WHEN highest > lowest THEN 1 ELSE 0 END) AS duplicated,
      SUM(CASE WHEN stands_at < before THEN 1 ELSE 0 END) AS out_of_order
    FROM placed GROUP BY run, process, idempotent
    """,
    ("process", "idempotent"),
)

LOAD: Final = Job(
    "partition_load",
    "Records by partition",
    "Numbers of records, including tombstones and records of any outcome.",
    (
        *TOPIC,
        number("sent", "records that were sent to the partition"),
        number("share_ppm", "share of the records sent to its topic, in millionths"),
        number("returned", "records that reads returned from the partition, including reads of replicas' disks"),
        number("highest_offset", "the highest offset that was acknowledged or read"),
    ),
    f"""
    WITH counted AS (
      SELECT {_PLACE}, SUM(sent) AS sent, SUM(returned) AS returned, MAX(highest_offset) AS highest_offset
      FROM operation_partitions GROUP BY {_PLACE}
    ), totals AS (
      SELECT run, topic, topic_id, SUM(sent) AS sent FROM counted GROUP BY run, topic, topic_id
    )
    SELECT c.run, c.topic, c.topic_id, c.partition, c.sent,
      CASE WHEN t.sent = 0 THEN 0
        ELSE CAST((c.sent * 1000000 - c.sent * 1000000 % t.sent) / t.sent AS BIGINT) END AS share_ppm,
      c.returned, c.highest_offset
    FROM counted AS c JOIN totals AS t ON t.run = c.run AND t.topic = c.topic AND t.topic_id = c.topic_id
    """,
    ("topic", "topic_id", "partition"),
)

_KEYS_SHOWN: Final = 10

KEYS: Final = Job(
    "keys",
    "The most frequent keys",
    f"The {_KEYS_SHOWN} most frequent keys of each topic, and the number of keys. Records without a key are left out.",
    (
        TOPIC[0],
        TOPIC[1],
        number(
            "place", "rank of the key; 1 is the most frequent, and of equally frequent keys the lower one comes first"
        ),
        text("key", "record key"),
        number("sent", "records that were sent with this key"),
        number("keyed", "records of the topic that were sent with any key"),
        number("keys", "number of different keys in the topic"),
    ),
    f"""
    WITH counted AS (
      SELECT run, topic, topic_id, key, COUNT(*) AS sent FROM records
      WHERE direction = 'send' AND key IS NOT NULL GROUP BY run, topic, topic_id, key
    ), ranked AS (
      SELECT run, topic, topic_id, key, sent,
        ROW_NUMBER() OVER (PARTITION BY run, topic, topic_id ORDER BY sent DESC, key) AS place,
        SUM(sent) OVER (PARTITION BY run, topic, topic_id) AS keyed,
        COUNT(*) OVER (PARTITION BY run, topic, topic_id) AS keys
      FROM counted
    )
    SELECT run, topic, topic_id, place, key, sent, keyed, keys FROM ranked WHERE place <= {_KEYS_SHOWN}
    """,
    ("topic", "topic_id", "place"),
)

FAULTS_IN_RUN: Final = Job(
    "faults",
    "Faults",
    "The injected faults of the run.",
    (
        number("fault_id", "number of the fault in the run"),
        text("kind", "kill, power, disk, cut, …"),
        text("target", "a node, a link, a topic"),
        text("argument", "parameter of the fault, such as a duration or a setting"),
        number("inject_ns", "when the fault began"),
        number("heal_ns", "when the fault ended; null if it never did"),
    ),
    "SELECT run, fault_id, kind, target, argument, inject_ns, heal_ns FROM faults",
    ("inject_ns", "fault_id"),
)
