"""The definitions once more: slow, obvious, one row at a time, written from the design and not from the kernel.

Every function here is a sentence of the definitions as a loop. It knows no arrays, no sorting tricks and no shards.
"""

from collections import defaultdict
from itertools import pairwise, product

from tests.linearizability.anomalies.oracle_of_clusters import judge_clusters
from tests.linearizability.anomalies.oracle_of_groups import judge_groups
from tests.linearizability.anomalies.oracle_of_runs import judge_run

FOREVER = 2**63 - 1
NEVER = -(2**63)
DAY_MS = 24 * 3_600_000


class Oracle:
    """Judges a history given as {table: [row dicts]} and run.json's members."""

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
        """{(name, verdict): (count, lowest ten (op_ids, topic, partition, offset, value))}."""

        def order(e):
            return (e[1] or "", -1 if e[2] is None else e[2], e[3] is None, e[3] or 0, e[0], e[4] is None, e[4] or 0)

        return {key: (len(rows), sorted(rows, key=order)[:10]) for key, rows in self.found.items()}

    # ---- names

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
            said = self.client(op_id, "acks")
            if said in ("all", "-1", "0", "1"):
                return said in ("all", "-1")
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
        """[(value, since)] of a property on a topic."""

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
        """[(node, begin, end)] of faults that lost content, and from when an unclean election was possible."""
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


class Log:
    """One topic partition of one topic id."""

    def __init__(self, oracle, topic, topic_id, partition):
        self.o = oracle
        self.topic, self.topic_id, self.partition = topic, topic_id, partition
        key = (topic, topic_id, partition)
        self.records = oracle.rows_of("records", key)
        self.sends = sorted((r for r in self.records if r["direction"] == "send"), key=lambda r: (r["op_id"], r["seq"]))
        self.reads = [r for r in self.records if r["direction"] == "read"]
        self.states = oracle.rows_of("states", key)
        self.offsets, self.inputs = oracle.rows_of("offsets", key), oracle.rows_of("inputs", key)
        self.assignments = oracle.rows_of("assignments", key)
        self.positions = oracle.rows_of("positions", key) if oracle.t["positions"] else None
        self.all_positions = self.positions or []
        self.ambiguous = oracle.ambiguous(topic, topic_id)
        self.ranges = self.find_ranges()
        self.read_rules()
        self.compaction = any("compact" in v.split(",") for v, _ in oracle.in_force(topic, "cleanup.policy"))
        policies = [v for v, _ in oracle.in_force(topic, "cleanup.policy")]
        self.retention = (not policies or any("delete" in v.split(",") for v in policies)) and (
            any(0 <= int(v) < 7 * DAY_MS for v, _ in oracle.in_force(topic, "retention.ms", ("log.retention.ms",)))
            or any(int(v) >= 0 for v, _ in oracle.in_force(topic, "retention.bytes", ("log.retention.bytes",)))
        )
        self.build()

    def add(self, name, verdict, op_ids, offset, value):
        self.o.found[name, verdict].append((tuple(op_ids), self.topic, self.partition, offset, value))

    # ---- coverage: [(op_id, before, after, last_stable_offset)]

    def find_ranges(self):
        if self.positions is not None:
            return [
                (p["op_id"], p["before"], p["after"], p["last_stable_offset"])
                for p in self.positions
                if p["cause"] == "read" and p["before"] < p["after"]
            ]
        ranges, last = [], {}
        moves = ("assign", "seek", "subscribe", "unsubscribe", "unassign", "incremental_assign", "incremental_unassign")
        for op_id in sorted({r["op_id"] for r in self.reads if r["offset"] is not None}):
            rows = sorted(
                (r for r in self.reads if r["op_id"] == op_id and r["offset"] is not None), key=lambda r: r["seq"]
            )
            process = self.o.op[op_id]["process"]
            before, after = rows[0]["offset"], rows[-1]["offset"] + 1
            end = self.o.op[op_id]["complete_ns"]
            end = self.o.invoke(op_id) if end is None else end
            if process in last:
                previous, reached = last[process]
                moments = [a["at_ns"] for a in self.o.t["assignments"] if a["process"] == process]
                moments += [o["invoke_ns"] for o in self.o.op.values() if o["process"] == process and o["f"] in moves]
                if not any(self.o.invoke(previous) <= at <= end for at in moments):
                    before = reached
            last[process] = (op_id, after)
            if before < after:
                ranges.append((op_id, before, after, None))
        return ranges

    def covering(self, offset):
        """{op_id: lowest last stable offset} of the reads that cover an offset; ranges of a read that meet are one."""
        merged = []
        for op_id, before, after, stable in sorted(self.ranges, key=lambda r: (r[0], r[1])):
            if merged and merged[-1][0] == op_id and before <= merged[-1][2]:
                merged[-1][2] = max(merged[-1][2], after)
                merged[-1][3] = min(merged[-1][3], FOREVER if stable is None else stable)
            else:
                merged.append([op_id, before, after, FOREVER if stable is None else stable])
        return {op_id: stable for op_id, before, after, stable in merged if before <= offset < after}

    # ---- the promise table

    def read_rules(self):
        o, topic = self.o, self.topic
        self.min_isr = max(1, min((int(v) for v, _ in o.in_force(topic, "min.insync.replicas")), default=1))
        isrs = [s for s in self.states if s["isr"] is not None]
        factor = [int(v) for n in ("replication.factor", "default.replication.factor") for v, _ in o.in_force(topic, n)]
        size = factor[0] if factor else max((len(s["isr"]) for s in isrs), default=0)
        full = [s for s in isrs if len(s["isr"]) >= size > 0]
        replicas = {n for s in isrs for n in s["isr"]} if full else None
        lost, self.unclean = o.content_at_risk(topic)
        self.lost = [
            (node, begin, min((s["answered_ns"] for s in full if s["asked_ns"] >= heal), default=FOREVER))
            for node, begin, heal in lost
            if replicas is None or node in replicas
        ]

    def promise_end(self, committed, threshold):
        """When the promise of a commit ended: FOREVER if it did not, NEVER if it was none."""
        if committed == FOREVER and self.unclean < FOREVER:
            return NEVER
        for at in sorted({committed, self.unclean, *(t for _, begin, over in self.lost for t in (begin, over))}):
            if committed <= at < FOREVER:
                nodes = {n for n, begin, over in self.lost if begin <= at < over}
                if len(nodes) >= threshold or self.unclean <= at:
                    return NEVER if at == committed else at
        return FOREVER

    # ---- records

    def build(self):
        self.all = {}
        for row in self.sends:
            self.all.setdefault(self.o.identity(row), {"send": row, "reads": []})
        for row in self.reads:
            self.all.setdefault(self.o.identity(row), {"send": None, "reads": []})["reads"].append(row)
        for identity, r in self.all.items():
            send = r["send"]
            r["identity"] = identity
            r["value"] = identity[1] if identity[0] == "value" else None
            r["op"] = send["op_id"] if send else None
            r["acked"] = bool(send) and self.o.op[r["op"]]["outcome"] == "ok"
            r["acked_at"] = self.o.complete(r["op"]) if r["acked"] else FOREVER
            r["acked_offset"] = send["offset"] if r["acked"] else None
            offsets = [row["offset"] for row in r["reads"] if row["offset"] is not None]
            r["read"] = bool(r["reads"])
            r["offset"] = min(offsets) if offsets else r["acked_offset"]
            r["first_read"] = min((self.o.complete(row["op_id"]) for row in r["reads"]), default=FOREVER)
            r["txn"] = self.o.txn.get(self.o.txn_key(r["op"])) if send else None
            r["aborted"] = bool(r["txn"]) and r["txn"]["aborted"]
            surely_unsent = (
                r["value"] is not None and self.o.run["complete"] and r["value"] not in self.sent_elsewhere()
            )
            r["committed"] = (r["acked"] or (r["read"] and (bool(send) or surely_unsent))) and (
                r["txn"] is None or r["txn"]["committed"]
            )
            r["key"] = (send or r["reads"][-1])["key"]
            r["strong"] = r["acked"] and r["committed"] and self.o.acks_all(r["op"])
            r["ack_end"] = self.promise_end(r["acked_at"], self.min_isr) if r["strong"] else NEVER
            r["read_end"] = self.promise_end(r["first_read"], 1) if r["read"] and r["committed"] else NEVER
            r["known_from"] = min(r["acked_at"], r["first_read"])
            r["known_op"] = r["op"] if send else min(row["op_id"] for row in r["reads"])

    def sent_elsewhere(self):
        """Values sent under this name and partition of which it is not clear to which topic id."""
        return {
            row["value"]
            for row in self.o.t["records"]
            if row["direction"] == "send"
            and row["topic"] == self.topic
            and row["partition"] == self.partition
            and (self.ambiguous or self.o.ambiguous(*self.o.topic_of(row)))
        }

    # ---- lawful absence

    def log_start_by(self, at):
        o = self.o
        starts = [
            p["log_start_offset"]
            for p in self.all_positions
            if p["log_start_offset"] is not None and o.invoke(p["op_id"]) <= at
        ]
        starts += [
            s["log_start_offset"] for s in self.states if s["log_start_offset"] is not None and s["asked_ns"] <= at
        ]
        starts += [
            op["offset"] if op["offset"] >= 0 else FOREVER
            for op in o.op.values()
            if op["f"] == "delete_records"
            and op["outcome"] != "fail"
            and op["invoke_ns"] <= at
            and op["offset"] is not None
            and op["topic"] == self.topic
            and op["partition"] == self.partition
            and o.topic_of(op)[1] in (self.topic_id, None)
        ]
        return max(starts, default=NEVER)

    def deleted_by(self, at):
        o = self.o
        used = {row["op_id"] for row in (*self.records, *self.all_positions)}
        first = min((o.invoke(op_id) for op_id in used), default=FOREVER)
        for op in o.op.values():
            if (
                op["f"] == "delete_topic"
                and op["outcome"] != "fail"
                and op["topic"] == self.topic
                and op["invoke_ns"] <= at
            ):
                done = op["complete_ns"] if op["outcome"] == "ok" and op["complete_ns"] is not None else FOREVER
                if op["topic_id"] == self.topic_id if op["topic_id"] is not None else first <= done:
                    return True
        return False

    def compacted_by(self, r, at):
        if not self.compaction or r["key"] is None:
            return False
        if r["value"] is None:
            return True
        here = FOREVER if r["offset"] is None else r["offset"]
        for other in self.all.values():
            places = [other["offset"], other["acked_offset"], *(row["offset"] for row in other["reads"])]
            there = max((place for place in places if place is not None), default=FOREVER)
            never_there = other["aborted"] or (
                other["send"] and self.o.op[other["op"]]["outcome"] == "fail" and not other["read"]
            )
            sent = self.o.invoke(other["op"]) if other["send"] else NEVER
            if other["key"] == r["key"] and there > here and not never_there and sent <= at:
                return True
        return False

    def absent_at(self, r, offset, at):
        return r["aborted"] or offset < self.log_start_by(at) or self.deleted_by(at) or self.compacted_by(r, at)

    def absent_from(self, r, offset, op_id, stable):
        if self.absent_at(r, offset, self.o.complete(op_id)):
            return True
        returned = [row["offset"] for row in self.reads if row["op_id"] == op_id and row["offset"] is not None]
        if self.retention and offset < min(returned, default=FOREVER):
            return True
        if self.o.isolation(op_id) != "read_uncommitted":
            if offset >= stable:
                return True
            if r["txn"] and self.o.invoke(op_id) <= r["txn"]["open_until"]:
                return True
        return False

    # ---- losses

    def counts(self, r, op_id):
        if r["acked"]:
            return self.o.complete(op_id) >= self.o.invoke(r["op"])
        return self.o.invoke(op_id) >= r["first_read"]

    def losses(self, r, offset, misses_elsewhere=False):
        """(op_id, promised) of the reads that show a record missing at an offset."""
        witnesses = {}
        returned = {row["op_id"] for row in r["reads"]}
        suspects = [
            (op, stable) for op, stable in self.covering(offset).items() if misses_elsewhere or op not in returned
        ]
        if not misses_elsewhere:
            suspects += [
                (row["op_id"], FOREVER)
                for row in self.reads
                if row["offset"] == offset and self.o.identity(row) != r["identity"]
            ]
        for op_id, stable in suspects:
            if self.counts(r, op_id) and not self.absent_from(r, offset, op_id, stable):
                witnesses[op_id] = witnesses.get(op_id, False) or self.promised_at(r, op_id)
        return witnesses

    def promised_at(self, r, op_id):
        at = self.o.complete(op_id)
        by_read = self.o.invoke(op_id) >= r["first_read"] and within(at, r["read_end"])
        return (r["strong"] and within(at, r["ack_end"])) or by_read

    def end_losses(self, r):
        """Whether answered ends show it lost, one bool (promised) for each."""
        epochs = [row["leader_epoch"] for row in (*self.records, *self.states) if row["leader_epoch"] is not None]
        healed = self.o.healed_after()
        for s in self.states:
            if (
                s["source"] == "list_offsets"
                and s["isolation"] == "read_uncommitted"
                and s["error"] is None
                and s["high_watermark"] is not None
                and s["leader_epoch"] is not None
                and s["leader_epoch"] == max(epochs)
                and (healed is None or s["asked_ns"] > healed)
                and s["high_watermark"] <= r["offset"]
                and s["asked_ns"] >= r["known_from"]
                and not self.retention
                and not self.absent_at(r, r["offset"], s["answered_ns"])
            ):
                at = s["answered_ns"]
                yield (s["asked_ns"] >= r["acked_at"] and within(at, r["ack_end"])) or (
                    s["asked_ns"] >= r["first_read"] and within(at, r["read_end"])
                )

    # ---- the anomalies

    def judge(self):
        self.phantom_read()
        self.corrupt_record()
        if not self.ambiguous:
            self.lost_write_and_unseen()
            self.divergent_offset()
            self.duplicate()
            self.offset_mismatch()
            self.producer_order()
            self.realtime_order()
            self.aborted_read()
            self.precommitted_read()
            self.answers()
            self.read_above_watermark()
            self.epoch_regress()
            self.leaders()
            self.polls()
            judge_groups(self)

    def lost_write_and_unseen(self):
        for r in self.all.values():
            lost = False
            if r["committed"] and not r["aborted"] and r["offset"] is not None:
                reads, ends = self.losses(r, r["offset"]), list(self.end_losses(r))
                lost = bool(reads or ends)
                if lost:
                    promised = any(reads.values()) or any(ends)
                    shown = [op for op, was in reads.items() if was or not promised]
                    op_ids = (r["known_op"], min(shown)) if shown else (r["known_op"],)
                    self.add("lost-write", "violation" if promised else "permitted", op_ids, r["offset"], r["value"])
            self.unseen(r, lost)

    def unseen(self, r, lost):
        if lost or r["read"] or not r["strong"] or r["ack_end"] != FOREVER:
            return
        if r["offset"] is None and r["value"] is None:
            return
        end = FOREVER - 1
        if r["offset"] is None:
            may_be_gone = self.log_start_by(end) > 0 or (self.compaction and r["key"] is not None)
            may_be_gone = may_be_gone or r["aborted"] or self.deleted_by(end)
        else:
            if any(self.counts(r, op_id) for op_id in self.covering(r["offset"])):
                return
            may_be_gone = self.absent_at(r, r["offset"], end)
        if not may_be_gone and not self.retention:
            self.add("unseen", "unknown", (r["op"],), r["offset"], r["value"])

    def divergent_offset(self):
        sightings = defaultdict(list)
        for row in self.reads:
            if row["offset"] is not None:
                at = self.o.complete(row["op_id"])
                sightings[row["offset"]].append((row["op_id"], self.o.identity(row), at, self.promise_end(at, 1), True))
        for r in self.all.values():
            if r["acked"] and r["committed"] and r["acked_offset"] is not None:
                sightings[r["acked_offset"]].append((r["op"], r["identity"], r["acked_at"], r["ack_end"], r["strong"]))
        for offset, seen in sightings.items():
            if len({s[1] for s in seen}) < 2:
                continue
            broken = any(
                a[1] != b[1] and a[4] and b[4] and a[2] <= b[2] and within(b[2], a[3]) for a, b in product(seen, seen)
            )
            shown = [s for s in seen if s[4] or not broken]
            first = min(s[0] for s in shown)

            def by_value(identity):
                return (identity[0] != "value", identity[1] if identity[0] == "value" else 0)

            one = min((s[1] for s in shown if s[0] == first), key=by_value)
            other = min(s[0] for s in shown if s[1] != one)
            self.o.found["divergent-offset", "violation" if broken else "permitted"].append(
                ((first, other), self.topic, self.partition, offset, one[1] if one[0] == "value" else None)
            )

    def duplicate(self):
        for r in self.all.values():
            offsets = sorted({row["offset"] for row in r["reads"] if row["offset"] is not None})
            if r["value"] is not None and len(offsets) > 1:
                idempotent = r["send"] and self.o.op[r["op"]]["producer_id"] is not None
                stays = {row["offset"] for row in r["reads"] if row["offset"] is not None and self.stays(row)}
                ops = [min(row["op_id"] for row in r["reads"] if row["offset"] == o) for o in offsets[:2]]
                self.add(
                    "duplicate",
                    "violation" if idempotent and len(stays) > 1 else "permitted",
                    ops,
                    offsets[0],
                    r["value"],
                )

    def phantom_read(self):
        verdict = "violation" if self.o.run["complete"] else "unknown"
        elsewhere = self.sent_elsewhere()
        for r in self.all.values():
            if r["value"] is None or not r["read"]:
                continue
            if r["send"] is None:
                if r["value"] not in elsewhere:
                    self.add(
                        "phantom-read", verdict, (min(row["op_id"] for row in r["reads"]),), r["offset"], r["value"]
                    )
            else:
                early = [row["op_id"] for row in r["reads"] if self.o.complete(row["op_id"]) < self.o.invoke(r["op"])]
                if early:
                    self.add("phantom-read", verdict, (min(early), r["op"]), r["offset"], r["value"])

    def corrupt_record(self):
        for r in self.all.values():
            rows = [row for row in r["reads"] if row["intact"] is False]
            if rows:
                offset = min((row["offset"] for row in rows if row["offset"] is not None), default=None)
                self.add("corrupt-record", "violation", (min(row["op_id"] for row in rows),), offset, r["value"])

    def offset_mismatch(self):
        for r in self.all.values():
            offsets = {row["offset"] for row in r["reads"] if row["offset"] is not None}
            place = r["acked_offset"]
            if not offsets or place is None or place in offsets:
                continue
            missed = self.losses(r, place, misses_elsewhere=True)
            if missed:
                end = r["ack_end"] if self.o.t["faults"] else max(r["ack_end"], r["read_end"])
                verdict = "violation" if any(within(self.o.complete(op), end) for op in missed) else "permitted"
                reader = min(row["op_id"] for row in r["reads"] if row["offset"] == r["offset"])
                self.add("offset-mismatch", verdict, (r["op"], reader), r["offset"], r["value"])

    def settled(self, r):
        if r["acked"] and self.o.acks_all(r["op"]) and self.promise_end(r["acked_at"], self.min_isr) == FOREVER:
            return True
        return any(self.stays(row) for row in r["reads"])

    def stays(self, row):
        """Whether what a read row shows is sure to have stood there at the end."""
        healed = self.o.healed_after()
        kept = self.promise_end(self.o.complete(row["op_id"]), 1) == FOREVER
        return kept or healed is None or self.o.invoke(row["op_id"]) > healed

    def producer(self, op_id):
        o = self.o.op[op_id]
        if o["producer_id"] is None:
            return (o["process"],)
        return (o["process"], o["producer_id"], o["producer_epoch"])

    def producer_order(self):
        sent = [r for r in self.all.values() if r["send"] and r["offset"] is not None]
        for late in sent:
            verdicts = defaultdict(list)
            for early in sent:
                if self.producer(early["op"]) != self.producer(late["op"]) or early["offset"] <= late["offset"]:
                    continue
                before = (early["op"], early["send"]["seq"]) < (late["op"], late["send"]["seq"])
                known = early["acked"] and early["acked_at"] < self.o.invoke(late["op"])
                strict = before if self.o.op[late["op"]]["producer_id"] is not None else known
                if before:
                    verdicts["permitted"].append(early["op"])
                    if strict and self.settled(early) and self.settled(late):
                        verdicts["violation"].append(early["op"])
            for verdict in ("violation", "permitted"):
                if verdicts[verdict]:
                    self.add(
                        "producer-order", verdict, (min(verdicts[verdict]), late["op"]), late["offset"], late["value"]
                    )
                    break

    def realtime_order(self):
        usable = [r for r in self.all.values() if r["committed"] and r["offset"] is not None and r["send"]]
        for late in usable:
            verdicts = defaultdict(list)
            for early in usable:
                if (
                    early["acked"]
                    and early["acked_at"] < self.o.invoke(late["op"])
                    and early["offset"] > late["offset"]
                ):
                    verdicts["permitted"].append(early["op"])
                    end = max(early["ack_end"], early["read_end"])
                    if (
                        end != NEVER
                        and max(late["ack_end"], late["read_end"]) != NEVER
                        and within(late["known_from"], end)
                    ):
                        verdicts["violation"].append(early["op"])
            for verdict in ("violation", "permitted"):
                if verdicts[verdict]:
                    self.add(
                        "realtime-order", verdict, (min(verdicts[verdict]), late["op"]), late["offset"], late["value"]
                    )
                    break

    def aborted_read(self):
        for r in self.all.values():
            failed = r["send"] and self.o.op[r["op"]]["outcome"] == "fail"
            wrong = [
                row
                for row in r["reads"]
                if failed or (r["aborted"] and self.o.isolation(row["op_id"]) == "read_committed")
            ]
            if wrong:
                offset, reader = min((FOREVER if w["offset"] is None else w["offset"], w["op_id"]) for w in wrong)
                offset = None if offset == FOREVER else offset
                self.add("aborted-read", "violation", (r["op"], reader), offset, r["value"])

    def precommitted_read(self):
        for r in self.all.values():
            if r["txn"] is None or r["aborted"]:
                continue
            begun = r["txn"]["begun"]
            early = [
                (FOREVER if row["offset"] is None else row["offset"], row["op_id"])
                for row in r["reads"]
                if self.o.isolation(row["op_id"]) == "read_committed" and self.o.complete(row["op_id"]) < begun
            ]
            if early:
                offset, reader = min(early)
                verdict = "unknown" if begun == FOREVER and not self.o.run["complete"] else "violation"
                offset = None if offset == FOREVER else offset
                self.add("precommitted-read", verdict, (r["op"], reader), offset, r["value"])

    def ends(self):
        """Answered read_uncommitted ends of a known epoch, of a topic that is still there."""
        return [
            s
            for s in self.states
            if s["source"] == "list_offsets"
            and s["isolation"] == "read_uncommitted"
            and s["error"] is None
            and s["high_watermark"] is not None
            and s["leader_epoch"] is not None
            and not self.deleted_by(s["answered_ns"])
        ]

    def newest_epoch(self):
        epochs = [row["leader_epoch"] for row in (*self.records, *self.states) if row["leader_epoch"] is not None]
        return max(epochs, default=-1)

    def epoch_of(self, r):
        read = [row["leader_epoch"] for row in r["reads"] if row["leader_epoch"] is not None]
        own = [r["send"]["leader_epoch"]] if r["send"] and r["send"]["leader_epoch"] is not None else []
        return max(read) if read else own[0] if own else self.newest_epoch()

    def answers(self):
        for s in self.ends():
            missed = [
                r
                for r in self.all.values()
                if r["committed"]
                and r["acked"]
                and r["offset"] is not None
                and r["acked_at"] < s["asked_ns"]
                and r["offset"] >= s["high_watermark"]
                and self.epoch_of(r) <= s["leader_epoch"]
            ]
            promised = [r for r in missed if r["ack_end"] != NEVER and within(s["answered_ns"], r["ack_end"])]
            if missed:
                r = min(promised or missed, key=lambda r: (r["op"], r["offset"]))
                verdict = "violation" if promised else "permitted"
                self.add("stale-end-offset", verdict, (r["op"],), s["high_watermark"], r["value"])
        for late in self.states:
            fell = [
                late[mark]
                for mark in ("high_watermark", "last_stable_offset", "log_start_offset")
                for early in self.states
                if all(
                    s["source"] in ("list_offsets", "fetch")
                    and s["error"] is None
                    and s["leader_epoch"] is not None
                    and s[mark] is not None
                    for s in (early, late)
                )
                and (early["leader_epoch"], early["node"]) == (late["leader_epoch"], late["node"])
                and early["answered_ns"] < late["asked_ns"]
                and early[mark] > late[mark]
            ]
            if fell:
                self.add("watermark-regress", "violation", (), fell[0], None)

    def read_above_watermark(self):
        for r in self.all.values():
            gone = []
            for row in r["reads"]:
                if row["offset"] is None:
                    continue
                at = self.o.complete(row["op_id"])
                epoch = self.newest_epoch() if row["leader_epoch"] is None else row["leader_epoch"]
                others = [
                    (self.o.complete(other["op_id"]), other["op_id"])
                    for other in self.reads
                    if other["offset"] == row["offset"]
                    and self.o.identity(other) != r["identity"]
                    and self.o.complete(other["op_id"]) >= at
                ]
                answers = [
                    s["answered_ns"]
                    for s in self.ends()
                    if s["asked_ns"] >= at and s["high_watermark"] <= row["offset"] and s["leader_epoch"] >= epoch
                ]
                times = [when for when, _ in others] + answers
                if any(when != FOREVER for when in times):
                    broken = self.promise_end(at, 1) != NEVER and within(min(times), self.promise_end(at, 1))
                    op_ids = (row["op_id"], *([min(op for _, op in others)] if others else []))
                    gone.append((not broken, row["offset"], row["op_id"], op_ids))
            if gone:
                permitted, offset, _, op_ids = min(gone)
                verdict = "permitted" if permitted else "violation"
                self.add("read-above-watermark", verdict, op_ids, offset, r["value"])

    def epoch_regress(self):
        seen = [
            (row["offset"], row["leader_epoch"], row["op_id"], self.promise_end(self.o.complete(row["op_id"]), 1))
            for row in self.reads
            if row["offset"] is not None and row["leader_epoch"] is not None
        ]
        for offset in {s[0] for s in seen}:
            pairs = [(low, high) for high in seen for low in seen if high[0] == offset]
            pairs = [(low, high) for low, high in pairs if low[0] < high[0] and low[1] > high[1]]
            broken = [(low, high) for low, high in pairs if low[3] == high[3] != NEVER]
            if pairs:
                first = min((high[2], high[1]) for _, high in broken or pairs)
                of_first = [(low, high) for low, high in pairs if (high[2], high[1]) == first]
                same = [low for low, high in of_first if low[3] == high[3]]
                lower = min(same or [low for low, _ in of_first], key=lambda low: (low[2], low[0]))
                self.add("epoch-regress", "violation" if broken else "permitted", (lower[2], first[0]), offset, None)

    def leaders(self):
        told = {}
        for row in self.sends:
            o = self.o.op[row["op_id"]]
            if o["outcome"] == "ok" and o["node"] is not None and row["leader_epoch"] is not None:
                told.setdefault(row["op_id"], []).append(row)
        acks = []
        for op_id, rows in sorted(told.items()):
            first = min(rows, key=lambda row: FOREVER if row["offset"] is None else row["offset"])
            acks.append((op_id, first["leader_epoch"], self.o.op[op_id]["node"], first["offset"]))
        for epoch in {ack[1] for ack in acks}:
            own = [ack for ack in acks if ack[1] == epoch]
            other = [ack for ack in own if ack[2] != own[0][2]]
            if other:
                self.add("two-leaders", "violation", (own[0][0], other[0][0]), None, None)
        for op_id, epoch, node, offset in acks:
            newer = [
                a[0] for a in acks if a[1] > epoch and a[2] != node and self.o.complete(a[0]) < self.o.invoke(op_id)
            ]
            if newer:
                verdict = "violation" if self.o.acks_all(op_id) else "permitted"
                self.add("fenced-leader-write", verdict, (newer[0], op_id), offset, None)

    def moved(self, earlier, later):
        """Whether a consumer was, or may have been, moved between two of its polls."""
        o, process = self.o, self.o.op[later]["process"]
        moves = ("assign", "seek", "subscribe", "unsubscribe", "unassign", "incremental_assign", "incremental_unassign")
        moments = [a["at_ns"] for a in o.t["assignments"] if a["process"] == process]
        moments += [p["invoke_ns"] for p in o.op.values() if p["process"] == process and p["f"] in moves]
        end = o.op[later]["complete_ns"]
        end = o.invoke(later) if end is None else end
        return any(o.invoke(earlier) <= at <= end for at in moments)

    def polls(self):
        o = self.o
        polls = sorted(op_id for op_id, op in o.op.items() if op["f"] == "poll")
        gave = {
            op_id: [
                row["offset"]
                for row in sorted((r for r in self.reads if r["op_id"] == op_id), key=lambda r: r["seq"])
                if row["offset"] is not None
            ]
            for op_id in polls
        }
        steps = []  # (earlier, later, left, reached)
        for process in {o.op[op_id]["process"] for op_id in polls}:
            stays = []
            for op_id in (op for op in polls if o.op[op]["process"] == process):
                if self.positions is not None:
                    own = [p for p in self.positions if p["op_id"] == op_id]
                    own.sort(key=lambda p: (p["before"], p["after"]))
                    one_way = all(p["cause"] == "read" for p in own)
                    one_way = one_way and all(one["after"] == two["before"] for one, two in pairwise(own))
                    if own:
                        stays.append((op_id, own[0]["before"], own[-1]["after"], one_way))
                elif gave[op_id]:
                    stays.append((op_id, gave[op_id][0], gave[op_id][-1] + 1, True))
            for one, two in pairwise(stays):
                if one[3] and two[3] and not self.moved(one[0], two[0]):
                    steps.append((one[0], two[0], one[2], two[1]))
        inside = [
            (op_id, op_id, one + 1, two)
            for op_id in polls
            for one, two in pairwise(gave[op_id])
            if not self.moved(op_id, op_id)
            and not any(p["op_id"] == op_id and p["cause"] != "read" for p in self.all_positions)
        ]
        for earlier, later, left, reached in [*steps, *inside]:
            at = o.complete(later)
            if reached < left and self.log_start_by(at) <= left:
                end = self.promise_end(o.complete(earlier), 1)
                verdict = "violation" if end != NEVER and within(at, end) else "permitted"
                self.add("poll-regress", verdict, (earlier,) if earlier == later else (earlier, later), reached, None)
        self.poll_skip(polls, gave, steps if self.positions is not None else [])

    def poll_skip(self, polls, gave, steps):
        o, jumps = self.o, defaultdict(list)
        for r in self.all.values():
            if not r["read"] or not r["committed"] or r["aborted"] or r["offset"] is None:
                continue
            here = r["offset"]
            for op_id, stable in self.covering(here).items():
                returned = any(row["op_id"] == op_id for row in r["reads"]) or here in gave.get(op_id, ())
                if op_id in polls and not returned:
                    begins = [before for op, before, after, _ in self.ranges if op == op_id and before <= here < after]
                    begins = [self.merged_begin(op_id, here)] if begins else begins
                    left = max([offset + 1 for offset in gave[op_id] if offset < here] + begins)
                    jumps["inside", op_id, left].append((r, op_id, stable))
            for number, (_, later, left, reached) in enumerate(steps):
                if left <= here < reached:
                    jumps["between", number, left].append((r, later, FOREVER))
        for (_, _, left), skipped in jumps.items():
            missed = []
            for r, op_id, stable in skipped:
                if not self.counts(r, op_id) or self.absent_from(r, r["offset"], op_id, stable):
                    continue
                at = o.complete(op_id)
                promised = (r["strong"] and within(at, r["ack_end"])) or (
                    o.invoke(op_id) >= r["first_read"] and within(at, r["read_end"])
                )
                if self.log_start_by(at) <= left:
                    first = min(row["op_id"] for row in r["reads"])
                    missed.append((not promised, r["offset"], first, r["value"] is None, r["value"] or 0, op_id, r))
            if missed:
                permitted, offset, first, *_, op_id, r = min(missed, key=lambda m: m[:-1])
                self.add("poll-skip", "permitted" if permitted else "violation", (first, op_id), offset, r["value"])

    def merged_begin(self, op_id, offset):
        """Where the stretch of a read begins in which an offset lies."""
        begin = offset
        while any(op == op_id and before <= begin - 1 < after for op, before, after, _ in self.ranges):
            begin -= 1
        return begin


def within(at, end):
    """Whether a promise that ends then is in force at a time."""
    return at < end or end == FOREVER
