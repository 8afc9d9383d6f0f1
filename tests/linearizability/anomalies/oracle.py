"""Oracle of the anomalies: a second implementation of their definitions, independent of `linearizability`.

It is written from docs/anomalies.md. Each definition is a loop over rows, without arrays or shards.
"""

from collections import defaultdict

from tests.linearizability.anomalies.oracle_clusters import judge_clusters
from tests.linearizability.anomalies.oracle_groups import judge_groups
from tests.linearizability.anomalies.oracle_logs import FOREVER, NEVER
from tests.linearizability.anomalies.oracle_records import RecordAnomalies
from tests.linearizability.anomalies.oracle_responses import ResponseAnomalies
from tests.linearizability.anomalies.oracle_runs import judge_run


class Oracle:
    """Judgement of one history.

    :param run: the members of run.json.
    :param tables: {table: [row]}.
    :ivar t: rows by table.
    :ivar op: operations by op_id.
    :ivar ids: topic ids by topic.
    :ivar txn: facts by transaction, which is (process, txn_seq).
    :ivar found: {(name, verdict): [(op_ids, topic, partition, offset, value)]}.
    """

    def __init__(self, run, tables):
        self.run = run
        self.t = {
            name: tables.get(name, [])
            for name in ("operations", "records", "positions", "assignments", "states", "faults", "offsets", "inputs")
        }
        self.op = {row["op_id"]: row for row in self.t["operations"]}
        self.ids = defaultdict(set)
        for rows in self.t.values():
            for row in rows:
                if row.get("topic") is not None and row.get("topic_id") is not None:
                    self.ids[row["topic"]].add(row["topic_id"])
        self.found = defaultdict(list)
        self.decide_transactions()
        logs = [Log(self, *log) for log in self.logs()]
        for log in logs:
            log.judge()
        judge_run(self, logs)
        judge_clusters(self, logs)

    def judgement(self):
        """Return {(name, verdict): (count, the lowest ten (op_ids, topic, partition, offset, value))}."""

        def order(e):
            return (e[1] or "", -1 if e[2] is None else e[2], e[3] is None, e[3] or 0, e[0], e[4] is None, e[4] or 0)

        return {key: (len(rows), sorted(rows, key=order)[:10]) for key, rows in self.found.items()}

    # ---- topics

    def topic_of(self, row):
        """Return (topic, topic id). If the row has no id, it is the only id of the topic, or None."""
        ids = self.ids[row["topic"]]
        topic_id = row["topic_id"]
        return (row["topic"], next(iter(ids)) if topic_id is None and len(ids) == 1 else topic_id)

    def logs(self):
        """Return (topic, topic id, partition) of each log in the history."""
        return sorted(
            {
                (*self.topic_of(row), row["partition"])
                for name in ("records", "positions", "states", "offsets", "inputs", "assignments")
                for row in self.t[name]
                if row["topic"] is not None and row["partition"] is not None
            },
            key=str,
        )

    def rows_of(self, name, log):
        """Return the rows of a log in a table, without those offsets of acknowledged tombstones that may be ambiguous.

        Such an offset is ambiguous if two tombstones of a key claim it, with weaker acks, or after a loss of content.
        """
        rows = [
            row for row in self.t[name] if row["topic"] is not None and (*self.topic_of(row), row["partition"]) == log
        ]
        if name != "records":
            return rows

        def tombstone(row):
            acked = row["direction"] == "send" and self.op[row["op_id"]]["outcome"] == "ok"
            return (row["key"], row["offset"]) if acked and row["value"] is None and row["offset"] is not None else None

        claims, kept = [tombstone(row) for row in rows], self.keeps_content(log[0])
        return [
            {**row, "offset": None}
            if claim and (claims.count(claim) > 1 or not self.acks_all(row["op_id"]) or not kept)
            else row
            for row, claim in zip(rows, claims, strict=True)
        ]

    def ambiguous(self, topic, topic_id):
        """Whether rows with this topic id, which may be None, may belong to several incarnations of the topic."""
        return topic_id is None and (
            len(self.ids[topic]) > 1
            or any(
                op["f"] == "delete_topic" and op["outcome"] != "fail" and op["topic"] == topic
                for op in self.op.values()
            )
        )

    # ---- operations

    def complete(self, op_id):
        at = self.op[op_id]["complete_ns"]
        return FOREVER if at is None else at

    def invoke(self, op_id):
        return self.op[op_id]["invoke_ns"]

    def client(self, op_id, name):
        return self.run.get("clients", {}).get(str(self.op[op_id]["process"]), {}).get(name)

    def acks_all(self, op_id):
        acks = self.op[op_id]["acks"]
        if acks is None:
            configured = self.client(op_id, "acks")
            if configured in ("all", "-1", "0", "1"):
                return configured in ("all", "-1")
            return self.op[op_id]["producer_id"] is not None
        return acks == -1

    def isolation(self, op_id):
        return self.op[op_id]["isolation"] or self.client(op_id, "isolation.level")

    # ---- transactions

    def decide_transactions(self):
        """Set `txn`; `begun` is the time of the first commit request, and `open_until` the end of the transaction."""
        members = defaultdict(list)
        for op in sorted(self.op.values(), key=lambda op: op["op_id"]):
            if op["txn_seq"] is not None:
                members[op["process"], op["txn_seq"]].append(op)
        self.txn = {}
        for key, ops in members.items():
            commits = [op for op in ops if op["f"] == "commit_txn"]
            aborts = [op for op in ops if op["f"] == "abort_txn"]
            ok = [op for op in commits if op["outcome"] == "ok"]
            info = [op for op in commits if op["outcome"] == "info"]
            names = {op["txn_id"] for op in ops if op["txn_id"] is not None}
            fenced = any(
                op["f"] == "init_producer_id" and op["txn_id"] in names and op["op_id"] > ops[0]["op_id"]
                for op in self.op.values()
            )
            aborted = any(op["outcome"] == "ok" for op in aborts) or (
                not ok and not info and (bool(aborts) or any(op["outcome"] == "fail" for op in commits) or fenced)
            )
            open_until = min((self.complete(op["op_id"]) for op in ok), default=FOREVER)
            begun = min((op["invoke_ns"] for op in (*ok, *info)), default=FOREVER)
            self.txn[key] = {"committed": bool(ok), "aborted": aborted, "open_until": open_until, "begun": begun}
            if info and not ok:
                reads = self.committed_reads(key)
                if reads:
                    self.txn[key].update(committed=True, open_until=min(reads))

    def committed_reads(self, key):
        """Return when the read_committed reads of the records of a transaction completed."""
        found = []
        for log in self.logs():
            records = self.rows_of("records", log)
            first = {}
            for row in sorted((r for r in records if r["direction"] == "send"), key=lambda r: (r["op_id"], r["seq"])):
                first.setdefault(self.identity(row), row["op_id"])
            for row in records:
                if row["direction"] == "read" and self.isolation(row["op_id"]) == "read_committed":
                    sender = first.get(self.identity(row))
                    if sender is not None and self.txn_key(sender) == key:
                        found.append(self.complete(row["op_id"]))
        return found

    def txn_key(self, op_id):
        """Return the transaction of an operation, or None."""
        op = self.op[op_id]
        return None if op["txn_seq"] is None else (op["process"], op["txn_seq"])

    def identity(self, row):
        """Return the identity of a record: its value, or the key and offset of a tombstone, or else the row itself."""
        if row["value"] is not None:
            return ("value", row["value"])
        known = row["offset"] is not None and (row["direction"] == "read" or self.op[row["op_id"]]["outcome"] == "ok")
        return (
            ("tombstone", row["key"], row["offset"]) if known else ("alone", row["op_id"], row["seq"], row["direction"])
        )

    # ---- settings and faults

    def in_force(self, topic, name, aliases=()):
        """Return [(value, time from which the value applies)] of a topic property.

        :param aliases: names of the corresponding broker property.
        """

        def given(fault):
            pairs = dict(part.split("=", 1) for part in (fault["argument"] or "").split(",") if "=" in part)
            return [(pairs[n], fault["inject_ns"]) for n in (name, *aliases) if n in pairs]

        changes = [f for f in self.t["faults"] if f["kind"] == "configuration"]
        own = [v for f in changes if f["target"] == topic for v in given(f)]
        topics = self.run.get("topics", {})
        if name in topics.get(topic, {}):
            return [(topics[topic][name], NEVER), *own]
        base = [(self.run.get("cluster", {})[n], NEVER) for n in (name, *aliases) if n in self.run.get("cluster", {})]
        wide = [v for f in changes if f["target"] not in topics and f["target"] != topic for v in given(f)]
        return [*base[:1], *wide, *own]

    def content_at_risk(self, topic):
        """Return [(node, begin, end)] of faults that lose content, and when unclean elections become possible."""
        flush = [v for v, _ in self.in_force(topic, "flush.messages", ("log.flush.interval.messages",))]
        flushed = bool(flush) and all(v == "1" for v in flush)
        lost = []
        for f in self.t["faults"]:
            harmless = f["kind"] == "disk" and f["argument"] in ("EIO", "ENOSPC", "slow")
            if (f["kind"] in ("wipe", "disk") and not harmless) or (f["kind"] == "power" and not flushed):
                lost.append((int(f["target"]), f["inject_ns"], FOREVER if f["heal_ns"] is None else f["heal_ns"]))
        allowed = [at for v, at in self.in_force(topic, "unclean.leader.election.enable") if v == "true"]
        allowed += [
            f["inject_ns"] for f in self.t["faults"] if f["kind"] == "election" and "unclean" in (f["argument"] or "")
        ]
        broken = [f["inject_ns"] for f in self.t["faults"] if f["kind"] not in ("configuration", "election")]
        return lost, max(min(allowed), min(broken)) if allowed and broken else FOREVER

    def keeps_content(self, topic):
        """Whether no fault may lose content, and no unclean election is possible."""
        lost, unclean = self.content_at_risk(topic)
        return not lost and unclean == FOREVER

    def healed_after(self):
        """Return when the last fault healed: FOREVER if some fault never did, None without faults."""
        heals = [FOREVER if f["heal_ns"] is None else f["heal_ns"] for f in self.t["faults"]]
        return max(heals, default=None)


class Log(RecordAnomalies, ResponseAnomalies):
    """A partition of one topic id, with its anomalies."""

    def judge(self):
        self.judge_records()
        if not self.ambiguous:
            self.judge_responses()
            judge_groups(self)
