"""Oracle of the anomalies of returned end offsets, leader epochs and consumer positions, each as a loop."""

from collections import defaultdict
from itertools import pairwise

from tests.linearizability.anomalies.oracle_logs import FOREVER, NEVER, LogFacts, within


class ResponseAnomalies(LogFacts):
    """Anomalies of one log that is not ambiguous."""

    def judge_responses(self):
        self.end_offsets()
        self.read_above_watermark()
        self.epoch_regress()
        self.leaders()
        self.polls()

    def end_offsets(self):
        """Find stale-end-offset and watermark-regress."""
        for s in self.ends():
            missed = [
                r
                for r in self.all.values()
                if r["committed"]
                and r["acked"]
                and r["offset"] is not None
                and r["acked_at"] < s["asked_ns"]
                and r["offset"] >= s["high_watermark"]
                and (self.acked_in(r) <= s["leader_epoch"] or self.node_of(r["op"]) == s["node"] is not None)
            ]
            promised = [r for r in missed if r["ack_end"] != NEVER and within(s["answered_ns"], r["ack_end"])]
            if missed:
                r = min(promised or missed, key=lambda r: (r["op"], r["offset"], r["send"]["seq"]))
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
                others = [
                    (self.o.complete(other["op_id"]), other["op_id"])
                    for other in self.reads
                    if other["offset"] == row["offset"]
                    and self.o.identity(other) != r["identity"]
                    and self.o.complete(other["op_id"]) >= at
                ]
                below = [
                    s["answered_ns"]
                    for s in self.ends()
                    if s["asked_ns"] >= at
                    and s["high_watermark"] <= row["offset"]
                    and (
                        s["leader_epoch"] == self.newest_epoch() or self.node_of(row["op_id"]) == s["node"] is not None
                    )
                ]
                times = [when for when, _ in others] + below
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
        """Find two-leaders and fenced-leader-write."""
        acknowledged = {}
        for row in self.sends:
            op = self.o.op[row["op_id"]]
            if op["outcome"] == "ok" and op["node"] is not None and row["leader_epoch"] is not None:
                acknowledged.setdefault(row["op_id"], []).append(row)
        acks = []  # [(op_id, leader epoch, node, lowest offset)]
        for op_id, rows in sorted(acknowledged.items()):
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

    def may_have_moved(self, earlier, later):
        """Whether a seek or an assignment may have moved the position of a consumer between two of its polls."""
        o, process = self.o, self.o.op[later]["process"]
        moves = ("assign", "seek", "subscribe", "unsubscribe", "unassign", "incremental_assign", "incremental_unassign")
        moments = [a["at_ns"] for a in o.t["assignments"] if a["process"] == process]
        moments += [p["invoke_ns"] for p in o.op.values() if p["process"] == process and p["f"] in moves]
        end = o.op[later]["complete_ns"]
        end = o.invoke(later) if end is None else end
        return any(o.invoke(earlier) <= at <= end for at in moments)

    def polls(self):
        """Find poll-regress and poll-skip."""
        o = self.o
        polls = sorted(op_id for op_id, op in o.op.items() if op["f"] == "poll")
        returned_offsets = {
            op_id: [
                row["offset"]
                for row in sorted((r for r in self.reads if r["op_id"] == op_id), key=lambda r: r["seq"])
                if row["offset"] is not None
            ]
            for op_id in polls
        }
        steps = []  # [(earlier poll, later poll, end offset of the earlier, begin offset of the later)]
        for process in {o.op[op_id]["process"] for op_id in polls}:
            ranges = []  # [(poll, begin offset, end offset, whether it moved only by reading)]
            for op_id in (op for op in polls if o.op[op]["process"] == process):
                if self.positions is not None:
                    own = [p for p in self.positions if p["op_id"] == op_id]
                    own.sort(key=lambda p: (p["before"], p["after"]))
                    is_forward = all(p["cause"] == "read" for p in own)
                    is_forward = is_forward and all(one["after"] == two["before"] for one, two in pairwise(own))
                    if own:
                        ranges.append((op_id, own[0]["before"], own[-1]["after"], is_forward))
                elif returned_offsets[op_id]:
                    ranges.append((op_id, returned_offsets[op_id][0], returned_offsets[op_id][-1] + 1, True))
            for one, two in pairwise(ranges):
                if one[3] and two[3] and not self.may_have_moved(one[0], two[0]):
                    steps.append((one[0], two[0], one[2], two[1]))
        inside = [
            (op_id, op_id, one + 1, two)
            for op_id in polls
            for one, two in pairwise(returned_offsets[op_id])
            if not self.may_have_moved(op_id, op_id)
            and not any(p["op_id"] == op_id and p["cause"] != "read" for p in self.all_positions)
        ]
        for earlier, later, left, reached in [*steps, *inside]:
            at = o.complete(later)
            if reached < left and self.log_start_by(at) <= left:
                end = self.promise_end(o.complete(earlier), 1)
                verdict = "violation" if end != NEVER and within(at, end) else "permitted"
                self.add("poll-regress", verdict, (earlier,) if earlier == later else (earlier, later), reached, None)
        self.poll_skip(polls, returned_offsets, steps if self.positions is not None else [])

    def poll_skip(self, polls, returned_offsets, steps):
        o, jumps = self.o, defaultdict(list)  # {jump: [(skipped record, poll, last stable offset)]}
        for r in self.all.values():
            if not r["read"] or not r["committed"] or r["aborted"] or r["offset"] is None:
                continue
            here = r["offset"]
            for op_id, stable in self.covering(here).items():
                returned = any(row["op_id"] == op_id for row in r["reads"]) or here in returned_offsets.get(op_id, ())
                if op_id in polls and not returned:
                    begins = [before for op, before, after, _ in self.ranges if op == op_id and before <= here < after]
                    begins = [self.merged_begin(op_id, here)] if begins else begins
                    left = max([offset + 1 for offset in returned_offsets[op_id] if offset < here] + begins)
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
        """Return the begin of the contiguous range of a read around an offset."""
        begin = offset
        while any(op == op_id and before <= begin - 1 < after for op, before, after, _ in self.ranges):
            begin -= 1
        return begin
