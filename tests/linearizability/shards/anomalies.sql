-- Oracle of nine anomalies in SQL, for DuckDB. It shares no code with the checks. Each query counts the violations of
-- the anomaly named above it. The views `operations`, `records` and `positions` are the public tables. The counts are
-- correct for a history with no faults, no transactions, no settings that delete records, and no acknowledged send
-- without an offset.

-- lost-write
WITH covered AS (
  SELECT p.op_id, p.topic, p.partition, unnest(range(p.before, p.after)) AS "offset"
  FROM positions p WHERE p.cause = 'read'
), sent AS (
  SELECT r.topic, r.partition, r."offset", r.value
  FROM records r JOIN operations o USING (op_id)
  WHERE r.direction = 'send' AND o.outcome = 'ok' AND o.acks = -1
)
SELECT count(DISTINCT (s.partition, s.value))
FROM sent s JOIN covered c USING (topic, partition, "offset")
ANTI JOIN records r
ON r.direction = 'read' AND r.op_id = c.op_id AND r.partition = s.partition AND r.value = s.value;

-- divergent-offset
SELECT count(*) FROM (
  SELECT r.partition, r."offset"
  FROM records r JOIN operations o USING (op_id)
  WHERE r."offset" IS NOT NULL AND (r.direction = 'read' OR o.outcome = 'ok')
  GROUP BY r.topic, r.partition, r."offset" HAVING min(r.value) <> max(r.value)
);

-- duplicate
SELECT count(*) FROM (
  SELECT value FROM records WHERE direction = 'read'
  GROUP BY topic, partition, value HAVING min("offset") <> max("offset")
);

-- phantom-read
SELECT count(DISTINCT (r.partition, r.value)) FROM records r ANTI JOIN records s
ON s.direction = 'send' AND s.topic = r.topic AND s.partition = r.partition AND s.value = r.value
WHERE r.direction = 'read';

-- corrupt-record
SELECT count(DISTINCT (partition, value)) FROM records WHERE direction = 'read' AND NOT intact;

-- producer-order
SELECT count(*) FROM (
  SELECT r."offset", max(r."offset") OVER (
    PARTITION BY r.topic, r.partition, o.process, o.producer_id, o.producer_epoch ORDER BY r.op_id, r.seq
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
  ) AS highest
  FROM records r JOIN operations o USING (op_id)
  WHERE r.direction = 'send' AND r."offset" IS NOT NULL
) WHERE highest > "offset";

-- realtime-order
WITH events AS (
  SELECT r.topic, r.partition, o.invoke_ns AS at_ns, 0 AS is_completion, r."offset" AS own, CAST(NULL AS BIGINT) AS acknowledged
  FROM records r JOIN operations o USING (op_id) WHERE r.direction = 'send' AND o.outcome = 'ok'
  UNION ALL
  SELECT r.topic, r.partition, o.complete_ns, 1, NULL, r."offset"
  FROM records r JOIN operations o USING (op_id) WHERE r.direction = 'send' AND o.outcome = 'ok'
)
SELECT count(*) FROM (
  SELECT own, max(acknowledged) OVER (
    PARTITION BY topic, partition ORDER BY at_ns, is_completion ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
  ) AS highest FROM events
) WHERE highest > own;

-- poll-regress
SELECT count(*) FROM (
  SELECT p.before, lag(p.after) OVER (PARTITION BY p.topic, p.partition, o.process ORDER BY p.op_id) AS previous_after
  FROM positions p JOIN operations o USING (op_id) WHERE o.f = 'poll'
) WHERE before < previous_after;

-- poll-skip
SELECT count(*) FROM (
  SELECT p.before, lag(p.after) OVER (PARTITION BY p.topic, p.partition, o.process ORDER BY p.op_id) AS previous_after
  FROM positions p JOIN operations o USING (op_id) WHERE o.f = 'poll'
) WHERE before > previous_after;
