"""Facts about one log for the oracle: its records, the reads that cover them, and when a record may be absent."""

FOREVER = 2**63 - 1
NEVER = -(2**63)
DAY_MS = 24 * 3_600_000


class LogFacts:
    """Facts about a log, which is a partition of one topic id.

    :ivar ambiguous: whether rows of this topic id may belong to several incarnations of the topic.
    :ivar retention: whether old records may be deleted during the run.
    :ivar lost: [(node, begin, end)] of replicas without all their content; each ends with the next full ISR.
    :ivar unclean: the time from which unclean elections are possible.
    :ivar all: {identity: facts about a record}.
    """

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
        """Return the offsets that reads passed; without `positions`, derive them from the returned records."""
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
                moments += [
                    op["invoke_ns"] for op in self.o.op.values() if op["process"] == process and op["f"] in moves
                ]
                if not any(self.o.invoke(previous) <= at <= end for at in moments):
                    before = reached
            last[process] = (op_id, after)
            if before < after:
                ranges.append((op_id, before, after, None))
        return ranges

    def covering(self, offset):
        """Return {op_id: lowest last stable offset} of the reads that cover an offset. Adjacent ranges count as one."""
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
        """Set the facts that decide how long a record is promised."""
        o, topic = self.o, self.topic
        self.min_isr = max(1, min((int(v) for v, _ in o.in_force(topic, "min.insync.replicas")), default=1))
        isrs = [s for s in self.states if s["isr"] is not None]
        factor = [int(v) for n in ("replication.factor", "default.replication.factor") for v, _ in o.in_force(topic, n)]
        size = factor[0] if factor else max((len(s["isr"]) for s in isrs), default=0)
        full = [s for s in isrs if len(s["isr"]) >= size > 0]
        self.replicas = {n for s in isrs for n in s["isr"]} if full else None
        lost, self.unclean = o.content_at_risk(topic)
        self.lost = [
            (node, begin, min((s["answered_ns"] for s in full if s["asked_ns"] >= heal), default=FOREVER))
            for node, begin, heal in lost
            if self.replicas is None or node in self.replicas
        ]

    def promise_end(self, committed, threshold):
        """Return when the promise to keep a record ended: FOREVER if it did not, NEVER if there was none.

        :param committed: when the record was acknowledged or read.
        :param threshold: number of replicas that must have lost content at the same time.
        """
        if committed == FOREVER:
            lossy = {n for n, _, over in self.lost if over == FOREVER}
            return NEVER if len(lossy) >= threshold or self.unclean < FOREVER else FOREVER
        for at in sorted({committed, self.unclean, *(t for _, begin, over in self.lost for t in (begin, over))}):
            if committed <= at < FOREVER:
                nodes = {n for n, begin, over in self.lost if begin <= at < over}
                if len(nodes) >= threshold or self.unclean <= at:
                    return NEVER if at == committed else at
        return FOREVER

    # ---- records

    def build(self):
        """Set `all`."""
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
            is_surely_unsent = (
                r["value"] is not None and self.o.run["complete"] and r["value"] not in self.sent_elsewhere()
            )
            r["committed"] = (r["acked"] or (r["read"] and (bool(send) or is_surely_unsent))) and (
                r["txn"] is None or r["txn"]["committed"]
            )
            keys = {row["key"] for row in ([send] if send else r["reads"])}
            r["key"] = keys.pop() if len(keys) == 1 else None
            r["strong"] = r["acked"] and r["committed"] and self.o.acks_all(r["op"])
            r["ack_end"] = self.promise_end(r["acked_at"], self.min_isr) if r["strong"] else NEVER
            r["read_end"] = self.promise_end(r["first_read"], 1) if r["read"] and r["committed"] else NEVER
            r["known_from"] = min(r["acked_at"], r["first_read"])
            r["known_op"] = r["op"] if send else min(row["op_id"] for row in r["reads"])

    def sent_elsewhere(self):
        """Return the values that may have been sent to this log, because a topic id is ambiguous."""
        return {
            row["value"]
            for row in self.o.t["records"]
            if row["direction"] == "send"
            and row["topic"] == self.topic
            and row["partition"] == self.partition
            and (self.ambiguous or self.o.ambiguous(*self.o.topic_of(row)))
        }

    # ---- permitted absence

    def log_start_by(self, at):
        """Return the highest log start offset that was returned, or requested to be set, until a time."""
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
        """Whether the topic may have been deleted until a time."""
        o = self.o
        used = {row["op_id"] for row in (*self.records, *self.all_positions)}
        times = [o.invoke(op_id) for op_id in used] + [state["asked_ns"] for state in self.states]
        first = min(times, default=FOREVER)
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
        """Whether compaction may have removed a record until a time."""
        if not self.compaction or r["key"] is None:
            return False
        if r["value"] is None:
            return True
        own_offset = FOREVER if r["offset"] is None else r["offset"]
        for other in self.all.values():
            offsets = [other["offset"], other["acked_offset"], *(row["offset"] for row in other["reads"])]
            highest = max((offset for offset in offsets if offset is not None), default=FOREVER)
            is_never_stored = other["aborted"] or (
                other["send"] and self.o.op[other["op"]]["outcome"] == "fail" and not other["read"]
            )
            sent = self.o.invoke(other["op"]) if other["send"] else NEVER
            if other["key"] == r["key"] and highest > own_offset and not is_never_stored and sent <= at:
                return True
        return False

    def absent_at(self, r, offset, at):
        """Whether a record may be absent from the log at a time."""
        return r["aborted"] or offset < self.log_start_by(at) or self.deleted_by(at) or self.compacted_by(r, at)

    def absent_from(self, r, offset, op_id, stable):
        """Whether a read may validly omit a record, given the last stable offset of the read."""
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
        """Whether a read is late enough to show that a record is missing."""
        if r["acked"]:
            return self.o.complete(op_id) >= self.o.invoke(r["op"])
        return self.o.invoke(op_id) >= r["first_read"]

    def losses(self, r, offset, misses_elsewhere=False):
        """Return {op_id: is promised} for the reads that show a record missing at an offset.

        :param misses_elsewhere: whether to include reads that returned the record, at whatever offset.
        """
        losses = {}
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
                losses[op_id] = losses.get(op_id, False) or self.promised_at(r, op_id)
        return losses

    def promised_at(self, r, op_id):
        """Whether a record was promised when a read completed."""
        at = self.o.complete(op_id)
        by_read = self.o.invoke(op_id) >= r["first_read"] and within(at, r["read_end"])
        return (r["strong"] and within(at, r["ack_end"])) or by_read

    def end_losses(self, r):
        """Yield, for each returned end offset that shows a record lost, whether the record was promised."""
        epochs = [row["leader_epoch"] for row in (*self.records, *self.states) if row["leader_epoch"] is not None]
        healed = self.o.healed_after()
        after_healing = [row for row in r["reads"] if healed is None or self.o.invoke(row["op_id"]) > healed]
        if r["acked"] and any(row["offset"] == r["offset"] for row in after_healing):
            return
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

    def ends(self):
        """Return the states with a read_uncommitted end offset and a known epoch, until the topic was deleted."""
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

    def acked_in(self, r):
        """Return the leader epoch of a record's acknowledgement; if it is unknown, the newest epoch of the log."""
        epoch = r["send"]["leader_epoch"] if r["send"] else None
        return self.newest_epoch() if epoch is None else epoch

    def node_of(self, op_id):
        return self.o.op[op_id]["node"]


def within(at, end):
    """Whether a promise that ends at `end` is in force at the time `at`."""
    return at < end or end == FOREVER
