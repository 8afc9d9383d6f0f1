"""Oracle of not-converged and unavailable: clusters that do not recover from a fault, row by row."""

import re
from itertools import pairwise

from tests.linearizability.anomalies.oracle_logs import FOREVER, NEVER

SECOND = 1_000_000_000
DEFAULTS_MS = {
    "broker.session.timeout.ms": 9_000,
    "controller.quorum.election.backoff.max.ms": 1_000,
    "controller.quorum.election.timeout.ms": 1_000,
    "controller.quorum.fetch.timeout.ms": 2_000,
    "replica.lag.time.max.ms": 30_000,
}
NOT_SERVED_ERRORS = (
    "BROKER_NOT_AVAILABLE",
    "KAFKA_STORAGE_ERROR",
    "LEADER_NOT_AVAILABLE",
    "NETWORK_EXCEPTION",
    "REQUEST_TIMED_OUT",
)
ALL_NODES = "all"


def judge_clusters(o, logs):
    for log in logs:
        if not log.ambiguous:
            not_converged(o, log)
            unavailable(o, log, logs)


def allowed_ns(o):
    """Return the time that the cluster may take to recover after a fault begins or ends."""
    total = 0
    for name, default in DEFAULTS_MS.items():
        values = [int(value) for value, _ in o.in_force("", name)]
        total += max(values, default=default)
    return 30 * SECOND + 2 * total * 1_000_000


def heal_ns(f):
    """Return when the effect of a fault ends; that of a changed setting never does."""
    return FOREVER if f["heal_ns"] is None or f["kind"] == "configuration" else f["heal_ns"]


def affected_by(f):
    """Return the nodes that a fault affects, or ALL_NODES.

    In tests, a target is a node, a topic, or links such as `1->2` with commas between them.
    """
    if f["kind"] == "configuration":
        return ALL_NODES
    if f["kind"] == "election":
        return set()
    links = [set(link.split("->")) for link in f["target"].split(",")]
    ends = set.union(*links)
    if "client" in ends:
        # A cut of client links affects only one node if it cuts this node off in both directions, on every listener.
        shared = set.intersection(*links) - {"client"}
        is_on_every_listener = f["kind"] == "cut" and "listener" not in (f["argument"] or "")
        reversed_links = {"->".join(reversed(link.split("->"))) for link in f["target"].split(",")}
        if not is_on_every_listener or len(shared) != 1 or reversed_links != set(f["target"].split(",")):
            return ALL_NODES
        ends = shared
    return {int(node) for node in ends}


def affected(o, begin, end):
    """Return the nodes that a fault affects at any time in a period, or ALL_NODES."""
    nodes = set()
    for f in o.t["faults"]:
        if f["inject_ns"] < end and heal_ns(f) > begin:
            if affected_by(f) == ALL_NODES:
                return ALL_NODES
            nodes |= affected_by(f)
    return nodes


def edges(o):
    """Return the times at which faults begin or end."""
    return {f[edge] for f in o.t["faults"] for edge in ("inject_ns", "heal_ns")} - {None}


def periods(o):
    """Return [(begin, end, affected nodes)] of the periods in which no fault begins or ends."""
    bounds = [NEVER, *sorted(edges(o)), FOREVER]
    return [(begin, end, affected(o, begin, end)) for begin, end in pairwise(bounds)]


def isr_size(o, log):
    """Return the size of a full ISR: the replication factor or, if it is unknown, the size of the largest ISR."""
    factors = [int(v) for name in ("replication.factor",) for v, _ in o.in_force(log.topic, name)]
    return max(factors) if factors else max((len(s["isr"]) for s in log.states if s["isr"] is not None), default=0)


def not_converged(o, log):
    size = isr_size(o, log)
    reassigned = [x["topic"] for x in o.op.values() if x["f"] == "reassign" and x["outcome"] != "fail"]
    for begin, end, nodes in periods(o):
        if nodes != set():
            continue
        reports = [
            s for s in log.states if s["isr"] is not None and begin < s["asked_ns"] < end and s["answered_ns"] < end
        ]
        full_isr = [s for s in reports if len(s["isr"]) >= size]
        late = [s for s in reports if s["asked_ns"] > begin + allowed_ns(o)]
        if begin != NEVER and log.topic not in reassigned and None not in reassigned and late and not full_isr:
            log.add("not-converged", "violation", (), None, None)
        compare_replicas(o, log, begin, end, size)


def compare_replicas(o, log, begin, end, size):
    """Compare the records that the last `read_replica` of each node returned in a period.

    :param size: size of a full ISR.
    """
    after = [
        s["answered_ns"] for s in log.states if s["isr"] is not None and s["asked_ns"] > begin and len(s["isr"]) >= size
    ]
    settled = NEVER if begin == NEVER else min([*after, begin + allowed_ns(o)])
    used = {row["op_id"] for rows in (log.records, log.all_positions) for row in rows}
    last = {}
    for op_id in sorted(used):
        x = o.op[op_id]
        inside = begin < x["invoke_ns"] and o.complete(op_id) < end
        if x["f"] == "read_replica" and x["node"] is not None and x["invoke_ns"] > settled and inside:
            last[x["node"]] = op_id
    reads = sorted(last.values())
    ranges = [p for p in log.all_positions if p["op_id"] in reads and p["cause"] == "read"]
    if len(reads) < 2 or sorted(p["op_id"] for p in ranges) != reads:
        return
    start = max([p["before"] for p in ranges] + [p["log_start_offset"] or 0 for p in ranges])
    rows_by_read = {op_id: [] for op_id in reads}
    for row in log.reads:
        if row["op_id"] in reads and row["offset"] is not None:
            rows_by_read[row["op_id"]].append(row)
    if log.retention:
        start = max([start, *(min(row["offset"] for row in rows) for rows in rows_by_read.values() if rows)])
    end = min(p["after"] for p in ranges)
    stored = [row for rows in rows_by_read.values() for row in rows]
    for offset in range(start, end):
        rows = {op_id: [row for row in own if row["offset"] == offset] for op_id, own in rows_by_read.items()}
        copies = [row for own in rows.values() for row in own]
        if not copies:
            continue
        differs = any(len({row[column] for row in copies}) > 1 for column in ("value", "intact"))
        differs |= len({row["leader_epoch"] for row in copies} - {None}) > 1
        if not all(rows.values()):
            differs |= not log.compaction or any(
                row["value"] is not None and is_last_of_key(row, stored, end) for row in copies
            )
        if differs:
            log.add("not-converged", "violation", reads, offset, None)


def is_last_of_key(row, rows, end):
    return not any(other["key"] == row["key"] and row["offset"] < other["offset"] < end for other in rows)


def unavailable(o, log, logs):
    if o.content_at_risk(log.topic)[0]:
        return
    produces = sorted({row["op_id"] for row in log.sends})
    served = [
        o.complete(op_id)
        for op_id in {row["op_id"] for row in log.records}
        if o.op[op_id]["outcome"] == "ok" and o.op[op_id]["f"] != "read_replica" and o.complete(op_id) != FOREVER
    ]
    served += [
        s["answered_ns"]
        for s in log.states
        if s["source"] in ("list_offsets", "fetch") and s["error"] is None and s["leader_epoch"] is not None
    ]
    for begin, end, nodes in periods(o):
        known = None if nodes == ALL_NODES else isr_known(o, log, nodes, begin, end)
        if known is None or not connected(o, logs, nodes, begin, (known, end)):
            continue
        attempts = []
        for op_id in produces:
            x = o.op[op_id]
            if x["outcome"] == "ok" or x["error"] not in NOT_SERVED_ERRORS or x["complete_ns"] is None:
                continue
            if x["attempts"] == 1 and (x["node"] is None or x["node"] in nodes):
                continue
            if begin < x["complete_ns"] < end and not log.deleted_by(x["complete_ns"]):
                since = max([at for at in served if at <= x["complete_ns"]], default=NEVER)
                attempts.append((since, max(begin, since, x["invoke_ns"]), op_id, x["complete_ns"]))
        for outage in outages(sorted(attempts)):
            last = max(outage, key=lambda t: (t[3], t[2]))
            if last[3] - outage[0][1] > allowed_ns(o):
                ops = tuple(dict.fromkeys((outage[0][2], last[2])))
                log.add("unavailable", "violation", ops, None, None)


def outages(attempts):
    """Group failed attempts into outages. A success, or five seconds without an attempt, ends an outage.

    :param attempts: [(time of the last success before, begin, op_id, end)] in ascending order.
    """
    found = []
    for one in attempts:
        if found and found[-1][0][0] == one[0] and one[1] <= max(t[3] for t in found[-1]) + 5 * SECOND:
            found[-1].append(one)
        else:
            found.append([one])
    return found


def isr_known(o, log, nodes, begin, end):
    """Return the time from which the ISR is known to have enough unaffected members; None if this is unknown.

    Without affected nodes, this is `begin`. Otherwise it is the time of the request that returned the last stable ISR
    before `begin`. An ISR is stable if no fault began or ended from the allowed time before its request until its
    response.
    """
    needed = max([1, *(int(v) for v, _ in o.in_force(log.topic, "min.insync.replicas"))])
    if not nodes:
        return begin if isr_size(o, log) >= needed else None
    stable = []
    for s in log.states:
        before = [at for at in edges(o) if at <= s["answered_ns"]]
        is_stable = not before or max(before) + allowed_ns(o) < s["asked_ns"]
        if s["isr"] is not None and s["answered_ns"] <= begin and is_stable:
            stable.append(s)
    if not stable:
        return None
    newest = max(s["asked_ns"] for s in stable)
    report = next(s for s in stable if s["asked_ns"] == newest)
    hit = affected(o, report["asked_ns"], end)
    return newest if hit != ALL_NODES and len(set(report["isr"]) - hit) >= needed else None


def connected(o, logs, nodes, begin, window):
    """Whether most voters are unaffected, and every fault of client links during `window` names all voters."""
    if not nodes:
        return True
    reports = [
        (s["answered_ns"], sorted(s["isr"]))
        for log in logs
        for s in log.states
        if s["source"] == "describe_quorum" and s["isr"] is not None and s["answered_ns"] <= begin
    ]
    if not reports:
        return False
    voters = set(max(reports)[1])
    for f in o.t["faults"]:
        ends = (
            {int(number) for number in re.findall(r"\d+", f["target"])} if "client" in (f["target"] or "") else voters
        )
        if f["inject_ns"] < window[1] and heal_ns(f) > window[0] and not voters <= ends:
            return False
    return 2 * len(voters - nodes) > len(voters)
