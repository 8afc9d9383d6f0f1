"""Oracle of the anomalies: a second implementation of the definitions, row by row and without arrays or shards.

It is written from the description of the anomalies, independently of the package. Each function is one definition as a
loop.
"""

from collections import defaultdict

from tests.linearizability.anomalies.oracle_clusters import judge_clusters
from tests.linearizability.anomalies.oracle_groups import judge_groups
from tests.linearizability.anomalies.oracle_logs import FOREVER, NEVER
from tests.linearizability.anomalies.oracle_records import RecordAnomalies
from tests.linearizability.anomalies.oracle_responses import ResponseAnomalies
from tests.linearizability.anomalies.oracle_runs import judge_run


class Oracle:
    """Judgement of one history: `run` has the members of run.json, and `tables` is {table: [row]}."""

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
        """Return {(name, verdict): (count, lowest ten (op_ids, topic, partition, offset, value))}."""

        def order(e):
            return (e[1] or "", -1 if e[2] is None else e[2], e[3] is None, e[3] or 0, e[0], e[4] is None, e[4] or 0)

        return {key: (len(rows), sorted(rows, key=order)[:10]) for key, rows in self.found.items()}

    # ---- topics

    def topic_of(self, row):
        ids = self.ids[row["topic"]]
        topic_id = row["topic_id"]
        return (row["topic"], next(iter(ids)) if topic_id is None and len(ids) == 1 else topic_id)

    def logs(self):
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
        return topic_id is None and (
            len(self.ids[topic]) > 1
            or any(
                o["f"] == "delete_topic" and o["outcome"] != "fail" and o["topic"] == topic for o in self.op.values()
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
        members = defaultdict(list)
        for o in sorted(self.op.values(), key=lambda o: o["op_id"]):
            if o["txn_seq"] is not None:
                members[o["process"], o["txn_seq"]].append(o)
        self.txn = {}
        for key, ops in members.items():
            commits = [o for o in ops if o["f"] == "commit_txn"]
            aborts = [o for o in ops if o["f"] == "abort_txn"]
            ok = [o for o in commits if o["outcome"] == "ok"]
            info = [o for o in commits if o["outcome"] == "info"]
            names = {o["txn_id"] for o in ops if o["txn_id"] is not None}
            fenced = any(
                o["f"] == "init_producer_id" and o["txn_id"] in names and o["op_id"] > ops[0]["op_id"]
                for o in self.op.values()
            )
            aborted = any(o["outcome"] == "ok" for o in aborts) or (
                not ok and not info and (bool(aborts) or any(o["outcome"] == "fail" for o in commits) or fenced)
            )
            open_until = min((self.complete(o["op_id"]) for o in ok), default=FOREVER)
            begun = min((o["invoke_ns"] for o in (*ok, *info)), default=FOREVER)
            self.txn[key] = {"committed": bool(ok), "aborted": aborted, "open_until": open_until, "begun": begun}
            if info and not ok:
                reads = self.committed_reads(key)
                if reads:
                    self.txn[key].update(committed=True, open_until=min(reads))

    def committed_reads(self, key):
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
        o = self.op[op_id]
        return None if o["txn_seq"] is None else (o["process"], o["txn_seq"])

    def identity(self, row):
        if row["value"] is not None:
            return ("value", row["value"])
        known = row["offset"] is not None and (row["direction"] == "read" or self.op[row["op_id"]]["outcome"] == "ok")
        return (
            ("tombstone", row["key"], row["offset"]) if known else ("alone", row["op_id"], row["seq"], row["direction"])
        )

    # ---- settings and faults

    def in_force(self, topic, name, aliases=()):
        """Return [(value, time from which the value applies)] of a property of a topic."""

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
        """Return [(node, begin, end)] of faults that lost content, and when an unclean election became possible."""
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
        lost, unclean = self.content_at_risk(topic)
        return not lost and unclean == FOREVER

    def healed_after(self):
        heals = [FOREVER if f["heal_ns"] is None else f["heal_ns"] for f in self.t["faults"]]
        return max(heals, default=None)


class Log(RecordAnomalies, ResponseAnomalies):
    """A topic partition of one topic id, with its anomalies."""

    def judge(self):
        self.judge_records()
        if not self.ambiguous:
            self.judge_responses()
            judge_groups(self)
