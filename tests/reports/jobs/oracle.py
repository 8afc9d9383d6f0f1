"""Oracle for the tables of a report.

Each function in `TABLES` computes the table of its name from the rows of one history, by loops. Times are in
nanoseconds since the first operation, state or assignment of the history.
"""

import math
from collections import Counter, defaultdict

SECOND = 1_000_000_000
QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}


class History:
    """Rows of a history, with relative times. Topic ids and positions that the history lacks are filled in."""

    def __init__(self, rows):
        starts = [row["invoke_ns"] for row in rows["operations"]] + [row["asked_ns"] for row in rows["states"]]
        starts += [row["at_ns"] for row in rows["assignments"]]
        ends = [row["complete_ns"] or row["invoke_ns"] for row in rows["operations"]]
        ends += [row["answered_ns"] for row in rows["states"]] + [row["at_ns"] for row in rows["assignments"]]
        self.origin, self.end = min(starts), max(ends) - min(starts)
        self.operations = [self.since(row, "invoke_ns", "complete_ns") for row in rows["operations"]]
        self.of = {row["op_id"]: row for row in self.operations}
        ids = defaultdict(set)
        for name in ("records", "positions", "states"):
            for row in rows[name]:
                if row["topic_id"]:
                    ids[row["topic"]].add(row["topic_id"])
        self.ids = {topic: next(iter(found)) for topic, found in ids.items() if len(found) == 1}
        self.records = [self.known(row) for row in rows["records"]]
        self.positions = [self.known(row) for row in rows["positions"]] or self.derived()
        self.states = [self.known(self.since(row, "asked_ns", "answered_ns")) for row in rows["states"]]
        self.faults = [self.since(row, "inject_ns", "heal_ns") for row in rows["faults"]]

    def since(self, row, *names):
        """Return the row with the times in these columns relative to `origin`."""
        return {**row, **{name: row[name] if row[name] is None else row[name] - self.origin for name in names}}

    def known(self, row):
        """Return the row with a topic id, if exactly one id of its topic is known."""
        return {**row, "topic_id": row["topic_id"] or self.ids.get(row["topic"], "")}

    def derived(self):
        """Return the positions of a history that has none: one for each read of a partition that returned records."""
        reads = defaultdict(list)
        for row in self.records:
            if row["direction"] == "read" and row["offset"] is not None:
                reads[row["op_id"], row["topic"], row["topic_id"], row["partition"]].append(row["offset"])
        names = ("op_id", "topic", "topic_id", "partition")
        unknown = dict.fromkeys(("high_watermark", "last_stable_offset", "log_start_offset"))
        return [
            {**dict(zip(names, key, strict=True)), "before": min(found), "after": max(found) + 1, "cause": "read"}
            | unknown
            for key, found in reads.items()
        ]

    def faults_at(self, moment, until=None):
        """Return the kinds of faults in force at `moment`, or at any time in [moment, until), as one label."""
        kinds = set()
        for fault in self.faults:
            begin, end = max(fault["inject_ns"], 0), self.end + 1 if fault["heal_ns"] is None else fault["heal_ns"]
            end = min(end, self.end + 1)
            if begin < end and begin < (moment + 1 if until is None else until) and moment < end:
                kinds.add(fault["kind"])
        return "+".join(sorted(kinds)) or "none"

    def by_clients(self, row):
        """Whether a client read the row. `read_replica` reads the log of a replica directly."""
        return self.of[row["op_id"]]["f"] != "read_replica"


def place(row):
    """Return the topic partition of a row."""
    return row["topic"], row["topic_id"], row["partition"]


def named_place(key):
    """Return the columns of a topic partition."""
    return dict(zip(("topic", "topic_id", "partition"), key, strict=True))


def ended(operation):
    """Return the completion time of an operation, or its invocation time if it did not complete."""
    return operation["invoke_ns"] if operation["complete_ns"] is None else operation["complete_ns"]


def bucket(value):
    """Return the middle of the numbers with the same number of digits and the same first three digits as `value`."""
    digits = len(str(value))
    if digits <= 3:
        return value
    width = 10 ** (digits - 3)
    return value // width * width + width // 2


def quantiles(values, unit):
    values = sorted(values)
    found = {f"{name}_{unit}": bucket(values[math.ceil(q * len(values)) - 1]) for name, q in QUANTILES.items()}
    return {"times": len(values), **found, f"highest_{unit}": values[-1]}


def faults(history):
    return [
        {name: row[name] for name in ("fault_id", "kind", "target", "argument", "inject_ns", "heal_ns")}
        for row in history.faults
    ]


def _latencies(history, key):
    found = defaultdict(list)
    for o in history.operations:
        if o["outcome"] == "ok" and o["f"] != "read_replica":
            found[key(o)].append(o["complete_ns"] - o["invoke_ns"])
    return found


def latency(history):
    found = _latencies(history, lambda o: (o["invoke_ns"] // SECOND, o["f"], o["node"]))
    return [
        {"second": second, "f": f, "node": node, **quantiles(values, "ns")}
        | {"faults": history.faults_at(second * SECOND, (second + 1) * SECOND)}
        for (second, f, node), values in found.items()
    ]


def latency_overall(history):
    return [{"f": f, **quantiles(values, "ns")} for f, values in _latencies(history, lambda o: o["f"]).items()]


def latency_by_fault(history):
    found = _latencies(history, lambda o: (o["f"], history.faults_at(o["invoke_ns"])))
    return [{"f": f, "faults": kinds, **quantiles(values, "ns")} for (f, kinds), values in found.items()]


def throughput(history):
    found = defaultdict(Counter)
    columns = {"ok": "ok", "fail": "failed", "info": "unknown"}
    for o in history.operations:
        if o["f"] != "read_replica":
            found[ended(o) // SECOND][columns[o["outcome"]]] += 1
    for row in history.records:
        o = history.of[row["op_id"]]
        if o["f"] == "read_replica":
            continue
        if row["direction"] == "read":
            found[ended(o) // SECOND]["returned"] += 1
        elif o["outcome"] == "ok":
            found[ended(o) // SECOND]["acknowledged"] += 1
    names = ("ok", "failed", "unknown", "acknowledged", "returned")
    return [
        {"second": second, **{name: counts[name] for name in names}}
        | {"faults": history.faults_at(second * SECOND, (second + 1) * SECOND)}
        for second, counts in found.items()
    ]


def availability(history):
    found = []
    for f in {o["f"] for o in history.operations} - {"read_replica"}:
        own = [o for o in history.operations if o["f"] == f]
        marks = sorted(
            {o["complete_ns"] for o in own if o["outcome"] == "ok"} | {own[0]["invoke_ns"], max(map(ended, own))}
        )
        begin_ns = min(o["invoke_ns"] for o in own)
        for end_ns in marks:
            if end_ns - begin_ns >= SECOND:
                inside = [o for o in own if begin_ns <= o["invoke_ns"] < end_ns]
                window = {"f": f, "begin_ns": begin_ns, "end_ns": end_ns, "called": len(inside)}
                window["not_ok"] = sum(o["outcome"] != "ok" for o in inside)
                found.append({**window, "faults": history.faults_at(begin_ns, end_ns)})
            begin_ns = max(begin_ns, end_ns)
    return found


def errors(history):
    found = defaultdict(list)
    for o in history.operations:
        if o["error"] is not None or o["outcome"] != "ok":
            found[o["f"], o["error"], o["outcome"], history.faults_at(o["invoke_ns"])].append(o["invoke_ns"])
    return [
        dict(zip(("f", "error", "outcome", "faults"), key, strict=True))
        | {"operations": len(times), "first_ns": min(times), "last_ns": max(times)}
        for key, times in found.items()
    ]


def batches(history):
    sizes = Counter(
        (row["op_id"], row["topic"], row["topic_id"]) for row in history.records if row["direction"] == "send"
    )
    found = defaultdict(list)
    for (_, topic, topic_id), count in sizes.items():
        found[topic, topic_id].append(count)
    return [
        {"topic": topic, "topic_id": topic_id, **quantiles(values, "records")}
        for (topic, topic_id), values in found.items()
    ]


def partition_load(history):
    rows = []
    for key in {place(row) for row in history.records}:
        own = [row for row in history.records if place(row) == key]
        sent = sum(row["direction"] == "send" for row in own)
        sent_to_topic = sum(row["direction"] == "send" and place(row)[:2] == key[:2] for row in history.records)
        offsets = [row["offset"] for row in own if row["offset"] is not None]
        rows.append(
            named_place(key)
            | {"sent": sent, "share_ppm": sent * 1_000_000 // sent_to_topic if sent_to_topic else 0}
            | {"returned": len(own) - sent, "highest_offset": max(offsets, default=None)}
        )
    return rows


ENDS = ("high_watermark", "last_stable_offset", "log_start_offset", "log_end_offset", "acknowledged_end", "read_end")


def progress(history):
    values = []
    for row in history.states:
        if row["topic"] is not None and row["partition"] is not None:
            values += [(place(row), row["answered_ns"], name, row[name]) for name in ENDS[:4]]
    for row in filter(history.by_clients, history.positions):
        at = ended(history.of[row["op_id"]])
        values += [(place(row), at, name, row[name]) for name in ENDS[:3]]
        if row["cause"] == "read":
            values.append((place(row), at, "read_end", row["after"]))
    for row in history.records:
        o = history.of[row["op_id"]]
        if row["direction"] == "send" and o["outcome"] == "ok" and row["offset"] is not None:
            values.append((place(row), ended(o), "acknowledged_end", row["offset"] + 1))
    found = defaultdict(lambda: dict.fromkeys(ENDS))
    for key, at, name, value in values:
        if value is not None:
            row = found[key, at // SECOND]
            row[name] = value if row[name] is None else max(row[name], value)
    return [{**named_place(key), "second": second, **row} for (key, second), row in found.items()]


def consumer_lag(history):
    ends = defaultdict(list)
    for row in progress(history):
        known = [row[name] for name in ("high_watermark", "acknowledged_end") if row[name] is not None]
        ends[place(row)] += [(row["second"], value) for value in known]
    found = defaultdict(list)
    for row in filter(history.by_clients, history.positions):
        if row["cause"] == "read":
            o = history.of[row["op_id"]]
            reader = f"process {o['process']}" if o["group"] is None else o["group"]
            found[reader, place(row), ended(o) // SECOND].append(row["after"])
    rows = []
    for (reader, key, second), positions in found.items():
        known = [value for at, value in ends[key] if at <= second]
        if known:
            row = {"reader": reader, **named_place(key), "second": second, "position": max(positions)}
            rows.append({**row, "end_offset": max(known), "lag": max(max(known) - max(positions), 0)})
    return rows


def _none_first(values):
    return [(value is not None, value) for value in values]


def leadership(history):
    by_partition = defaultdict(list)
    for row in history.states:
        if row["topic"] is not None and row["partition"] is not None and row["isr"] is not None:
            isr = ",".join(map(str, sorted(row["isr"])))
            by_partition[place(row)].append({**row, "isr": isr, "isr_size": len(row["isr"])})
    rows = []
    for key, responses in by_partition.items():
        order = ("answered_ns", "asked_ns", "node", "leader_epoch", "leader", "isr")
        spells, newest = [], -1
        for row in sorted(responses, key=lambda row: _none_first(row[name] for name in order)):
            if row["leader_epoch"] is not None and row["leader_epoch"] < newest:
                continue
            newest = max(newest, row["leader_epoch"] or 0) if row["leader_epoch"] is not None else newest
            state = {name: row[name] for name in ("leader", "leader_epoch", "isr", "isr_size")}
            if spells and spells[-1]["state"] == state:
                spells[-1]["at"].append(row["answered_ns"])
            else:
                spells.append({"state": state, "at": [row["answered_ns"]]})
        for number, spell in enumerate(spells):
            end = spells[number + 1]["at"][0] if number + 1 < len(spells) else spell["at"][-1]
            row = {**named_place(key), "begin_ns": spell["at"][0], "end_ns": end, **spell["state"]}
            rows.append({**row, "answers": len(spell["at"])})
    return rows


def keys(history):
    found = defaultdict(Counter)
    for row in history.records:
        if row["direction"] == "send" and row["key"] is not None:
            found[row["topic"], row["topic_id"]][row["key"]] += 1
    return [
        {"topic": topic, "topic_id": topic_id, "place": number, "key": key, "sent": sent}
        | {"keyed": counts.total(), "keys": len(counts)}
        for (topic, topic_id), counts in found.items()
        for number, (key, sent) in enumerate(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:10], 1)
    ]


def sends(history):
    """Yield the row, the operation and the fate of each sent value, and the offsets at which clients read the value."""
    reads = defaultdict(list)
    for row in filter(history.by_clients, history.records):
        if row["direction"] == "read" and row["value"] is not None:
            reads[place(row), row["value"]].append(row["offset"])
    commits = defaultdict(set)
    for o in history.operations:
        if o["f"] == "commit_txn" and o["txn_seq"] is not None:
            commits[o["process"], o["txn_seq"]].add(o["outcome"])
    for row in history.records:
        if row["direction"] == "send" and row["value"] is not None:
            o = history.of[row["op_id"]]
            yield row, o, _fate(o, commits[o["process"], o["txn_seq"]]), reads[place(row), row["value"]]


def _fate(operation, commits):
    """Return the fate of a send: acknowledged, failed, unknown or aborted.

    :param commits: outcomes of the commits of its transaction.
    """
    if operation["outcome"] != "ok":
        return {"fail": "failed", "info": "unknown"}[operation["outcome"]]
    if operation["txn_seq"] is None or "ok" in commits:
        return "acknowledged"
    return "unknown" if "info" in commits else "aborted"


def delivery(history):
    names = ("sent", "acknowledged", "unknown", "failed", "aborted", "read", "lost", "unread", "turned_up")
    found = defaultdict(lambda: dict.fromkeys(names, 0))
    passed = [row for row in filter(history.by_clients, history.positions) if row["cause"] == "read"]
    for row, o, fate, offsets in sends(history):
        counts = found[history.faults_at(o["invoke_ns"]), o["acks"]]
        counts["sent"] += 1
        counts[fate] += 1
        if fate == "unknown" and offsets:
            counts["turned_up"] += 1
        if fate == "acknowledged":
            is_passed = row["offset"] is not None and any(
                place(p) == place(row) and p["before"] <= row["offset"] < p["after"] for p in passed
            )
            counts["read" if offsets else "lost" if is_passed else "unread"] += 1
    return [{"faults": kinds, "acks": acks, **counts} for (kinds, acks), counts in found.items()]


def producers(history):
    names = ("sent", "acknowledged", "read", "duplicated", "out_of_order")
    found = defaultdict(lambda: dict.fromkeys(names, 0))
    furthest = {}
    for row, o, fate, offsets in sorted(sends(history), key=lambda sent: (sent[0]["op_id"], sent[0]["seq"])):
        counts = found[o["process"], o["producer_id"] is not None]
        known = [offset for offset in offsets if offset is not None]
        counts["sent"] += 1
        counts["acknowledged"] += fate == "acknowledged"
        counts["read"] += bool(offsets)
        counts["duplicated"] += len(set(known)) > 1
        offset = min(known, default=row["offset"])
        if offset is not None:
            before = furthest.get((o["process"], place(row)))
            counts["out_of_order"] += before is not None and offset < before
            furthest[o["process"], place(row)] = offset if before is None else max(offset, before)
    return [{"process": process, "idempotent": idempotent, **counts} for (process, idempotent), counts in found.items()]


TABLES = (
    faults, latency, latency_overall, latency_by_fault, throughput, availability, errors, batches, partition_load,
    progress, consumer_lag, leadership, keys, delivery, producers,
)  # fmt: skip


def table(name, history, order):
    """Return the rows of a table in its order, null first."""
    made = {function.__name__: function for function in TABLES}[name](history)
    return sorted(made, key=lambda row: _none_first(row[column] for column in order))
