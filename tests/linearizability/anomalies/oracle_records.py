"""Oracle of the anomalies of records, each as a loop over the records of one log."""

import re
from collections import defaultdict
from itertools import pairwise, product

from tests.linearizability.anomalies.oracle_logs import FOREVER, NEVER, LogFacts, within

RESTART = re.compile("kill|shutdown|down|power|wipe|disk (?!slow)")


class RecordAnomalies(LogFacts):
    """Anomalies of the records of one log. Only phantom-read and corrupt-record apply to an ambiguous log."""

    def judge_records(self):
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
        sightings = defaultdict(list)  # {offset: [(op_id, identity, time, end of the promise, is promised at all)]}
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
                final = {row["offset"] for row in r["reads"] if row["offset"] is not None and self.is_final(row)}
                ops = [min(row["op_id"] for row in r["reads"] if row["offset"] == offset) for offset in offsets[:2]]
                is_certain = idempotent and len(final) > 1
                self.add(
                    "duplicate",
                    "violation" if is_certain and not self.may_be_undetected_retry(r, sorted(final)) else "permitted",
                    ops,
                    offsets[0],
                    r["value"],
                )

    def may_be_undetected_retry(self, r, offsets):
        """Whether each copy but the first may be a retry to a leader that had lost its producer state in a restart."""
        op = self.o.op[r["op"]]
        properties = self.o.run["clients"].get(str(op["process"]), {})
        names = ("max.in.flight.requests.per.connection", "max.in.flight")
        if op["txn_seq"] is not None or op["producer_epoch"] == 0 or "1" in [properties.get(name) for name in names]:
            return False
        return all(self.may_have_restarted_between(op, r, a, b) for a, b in pairwise(offsets))

    def may_have_restarted_between(self, op, r, one, other):
        """Whether the leader of the copy at offset `other` may have restarted while the produce was in flight."""

        def copy(offset):
            return [row for row in r["reads"] if row["offset"] == offset and self.is_final(row)]

        def epoch(offset):
            return max((row["leader_epoch"] for row in copy(offset) if row["leader_epoch"] is not None), default=None)

        if None not in (epoch(one), epoch(other)) and epoch(one) >= epoch(other):
            return False
        read_at = min(self.o.complete(row["op_id"]) for row in copy(other))
        until = min(self.o.complete(r["op"]), read_at)
        for fault in self.o.t["faults"]:
            healed = FOREVER if fault["heal_ns"] is None else fault["heal_ns"]
            restarts = RESTART.search(f"{fault['kind']} {fault['argument']}")
            if not restarts or fault["inject_ns"] >= until or healed <= op["invoke_ns"]:
                continue
            leaders = self.leaders_in(epoch(other)) or self.replicas
            if leaders is None or not fault["target"].isdigit() or int(fault["target"]) in leaders:
                return True
        return False

    def leaders_in(self, epoch):
        """Return the nodes that led in an epoch according to the history."""
        reported = [
            s
            for s in self.states
            if s["source"] in ("list_offsets", "fetch") and s["error"] is None and s["leader_epoch"] is not None
        ]
        pairs = {(s["leader_epoch"], s["node"]) for s in reported}
        pairs |= {(row["leader_epoch"], self.o.op[row["op_id"]]["node"]) for row in self.sends}
        return {node for of_epoch, node in pairs if of_epoch == epoch and None not in (of_epoch, node)}

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
                row = min(rows, key=lambda row: (row["offset"] is None, row["offset"] or 0, row["op_id"]))
                self.add("corrupt-record", "violation", (row["op_id"],), row["offset"], r["value"])

    def offset_mismatch(self):
        for r in self.all.values():
            offsets = {row["offset"] for row in r["reads"] if row["offset"] is not None}
            acked_offset = r["acked_offset"]
            if not offsets or acked_offset is None or acked_offset in offsets:
                continue
            missed = self.losses(r, acked_offset, misses_elsewhere=True)
            if missed:
                end = r["ack_end"] if self.o.t["faults"] else max(r["ack_end"], r["read_end"])
                verdict = "violation" if any(within(self.o.complete(op), end) for op in missed) else "permitted"
                reader = min(row["op_id"] for row in r["reads"] if row["offset"] == r["offset"])
                self.add("offset-mismatch", verdict, (r["op"], reader), r["offset"], r["value"])

    def settled(self, r):
        """Whether a record was certainly in the log at the end of the run."""
        if r["acked"] and self.o.acks_all(r["op"]) and self.promise_end(r["acked_at"], self.min_isr) == FOREVER:
            return True
        return any(self.is_final(row) for row in r["reads"])

    def is_final(self, row):
        """Whether the record of a read row was certainly in the log at the end of the run."""
        healed = self.o.healed_after()
        kept = self.promise_end(self.o.complete(row["op_id"]), 1) == FOREVER
        return kept or ((healed is None or self.o.invoke(row["op_id"]) > healed) and not self.superseded(row))

    def superseded(self, row):
        """Whether a record of a newer epoch was read at or below the offset of a row."""
        if row["offset"] is None or row["leader_epoch"] is None:
            return False
        others = (other for r in self.all.values() for other in r["reads"])
        return any(
            other["offset"] is not None
            and other["offset"] <= row["offset"]
            and other["leader_epoch"] is not None
            and other["leader_epoch"] > row["leader_epoch"]
            for other in others
        )

    def producer(self, op_id):
        """Return the identity of the producer of an operation."""
        op = self.o.op[op_id]
        if op["producer_id"] is None:
            return (op["process"],)
        opened = [
            one
            for one, other in self.o.op.items()
            if other["f"] == "init_producer_id" and other["process"] == op["process"] and one < op_id
        ]
        return (op["process"], op["producer_id"], op["producer_epoch"], len(opened) if op["producer_id"] == -1 else 0)

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
                if self.o.op[late["op"]]["producer_id"] == -1:
                    strict = before and early["acked"]
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
