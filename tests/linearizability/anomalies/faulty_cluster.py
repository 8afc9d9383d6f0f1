"""Faulty cluster: valid histories of three nodes with faults, produces, returned states and reads of replicas.

`arbitrary_cluster_history` has the same kinds of rows with arbitrary values.
"""

from tests.linearizability.anomalies.histories import TOPIC, Tables

SECOND = 1_000_000_000
ISOLATED = "1->3,3->1,3->2,2->3,3->client,client->3"
"""All links of node 3 to the other nodes and to clients, in both directions."""
HALF_ISOLATED = "2->3,3->2,3->client,client->3"
NODES = (1, 2, 3)
ALLOWED_S = 30 + 2 * (3 + 6 + 1 + 1 + 2)
"""Time that Kafka may take to recover after a fault begins or ends, with the settings `CLUSTER` (see `healing`)."""
CLUSTER = {"replica.lag.time.max.ms": "3000", "broker.session.timeout.ms": "6000"}
PLACE = {"topic": TOPIC, "topic_id": "A", "partition": 0}
NOT_SERVED_ERRORS = ("REQUEST_TIMED_OUT", "NETWORK_EXCEPTION", "LEADER_NOT_AVAILABLE")


class FaultyCluster:
    """A cluster that recovers within the allowed time after each start and end of a fault.

    After recovery, the ISR consists of the healthy nodes, which no fault affects, and produces succeed if at least two
    nodes are healthy.

    :ivar end: the log end offset.
    :ivar faults: {fault id: (affected nodes, row of `faults`)} of the faults that have not healed.
    :ivar log: {offset: (value, leader epoch)}.
    """

    def __init__(self, rng):
        self.rng = rng
        self.tables = Tables(topics={TOPIC: {"min.insync.replicas": "2"}}, cluster=CLUSTER)
        self.now, self.value, self.end, self.epoch = 0, 0, 0, 0
        self.faults, self.isr, self.log = {}, set(NODES), {}
        self.recovers_ns, self.number = 0, 0

    def run(self, steps):
        """Take random steps; then heal all faults, read all logs, and return the history."""
        self.describe()
        for _ in range(steps):
            self.rng.choice([self.produce, self.produce, self.produce, self.describe, self.inject_fault, self.heal])()
        for last_fault in (None, "1"):
            if last_fault is not None:
                self.inject_fault(last_fault)
                self.produce(until_stable=True)
            while self.faults:
                self.heal()
            self.produce(until_stable=True)
            self.describe(quorum=True)
        self.read_replicas()
        self.read_all(70, "poll", 0, self.end, isolation="read_committed")
        return self.tables

    def ns(self):
        """Advance the clock by 1 ns; return its time."""
        self.now += 1
        return self.now

    def pass_time(self, seconds):
        self.now += int(seconds * SECOND)

    @property
    def affected(self):
        """The nodes that a fault affects now."""
        return {node for nodes, _ in self.faults.values() for node in nodes}

    @property
    def is_available(self):
        healthy = set(NODES) - self.affected
        return len(healthy) >= 2 and len(self.isr - self.affected) >= 2 and self.now >= self.recovers_ns

    def start_recovery(self):
        """Begin a new leader epoch, and choose when the cluster recovers, within the allowed time."""
        self.epoch += 1
        self.recovers_ns = self.now + int(self.rng.random() * (ALLOWED_S - 10) * SECOND)

    def update_isr(self):
        """Set the ISR to the healthy nodes, if the cluster has recovered."""
        if self.now < self.recovers_ns:
            return
        healthy = set(NODES) - self.affected
        self.isr = healthy or self.isr

    def produce(self, until_stable=False):
        """Add a few consecutive produces or, with `until_stable`, produces for longer than the allowed time."""
        until = self.now + (ALLOWED_S + 20) * SECOND if until_stable else 0
        for _ in range(ALLOWED_S if until_stable else self.rng.randrange(1, 12)):
            if until_stable and self.now > until:
                break
            self.update_isr()
            has_one_attempt = self.rng.random() < 0.3
            node = self.rng.choice(NODES)
            invoke_ns = self.ns()
            self.pass_time(self.rng.choice([2, 4] if until_stable else [0.01, 1, 1, 4]))
            if self.is_available and not (has_one_attempt and node in self.affected):
                self.write(invoke_ns, has_one_attempt, node)
            else:
                error = self.rng.choice(NOT_SERVED_ERRORS)
                responding = node if has_one_attempt and error != "NETWORK_EXCEPTION" else None
                self.write(invoke_ns, has_one_attempt, responding, error)
            self.pass_time(self.rng.choice([0, 0, 1]))

    def write(self, invoke_ns, has_one_attempt, node, error=None):
        """Add a produce; a produce with an error may have appended its record.

        :param node: the node that responded; None if it is unknown.
        """
        outcome = "ok" if error is None else "info"
        columns = {"attempts": 1 if has_one_attempt else None, "node": node}
        op = self.tables.op(1, "produce", invoke_ns, self.ns(), outcome, error=error, acks=-1, producer_id=5, **columns)
        self.value += 1
        offset = None
        if error is None or self.rng.random() < 0.2:
            offset = self.end if error is None else None
            self.log[self.end] = (self.value, self.epoch)
            self.end += 1
        self.tables.record(op, 0, "send", TOPIC, 0, offset, self.value, topic_id="A")

    def describe(self, *, quorum=False):
        """Add the responses of a healthy node: the ISR and, at random or with `quorum`, the voters."""
        self.update_isr()
        healthy = [node for node in NODES if node not in self.affected]
        if not healthy:
            return
        times = {"asked_ns": self.ns(), "answered_ns": self.ns(), "node": self.rng.choice(healthy)}
        self.tables.add("states", source="metadata", isr=sorted(self.isr), leader_epoch=self.epoch, **times, **PLACE)
        if len(healthy) >= 2 and (quorum or self.rng.random() < 0.7):
            quorum_state = {"topic": "__cluster_metadata", "partition": 0, "isr": list(NODES), "leader_epoch": 1}
            self.tables.add("states", source="describe_quorum", **times, **quorum_state)

    def inject_fault(self, target=None):
        target = target or self.rng.choice(["1", "2", "3", "1->2", "client->3", ISOLATED])
        nodes = {3} if target == ISOLATED else {int(part) for part in target.split("->") if part.isdigit()}
        self.number += 1
        kind = "cut" if "->" in target else self.rng.choice(["kill", "pause"])
        columns = {"fault_id": self.number, "kind": kind, "target": target}
        self.faults[self.number] = (nodes, self.tables.add("faults", inject_ns=self.ns(), **columns))
        self.start_recovery()

    def heal(self):
        if self.faults:
            _, row = self.faults.pop(next(iter(self.faults)))
            row["heal_ns"] = self.ns()
            self.start_recovery()

    def read_replicas(self):
        ends = {node: self.end if node == 1 else self.rng.randrange(self.end + 1) for node in NODES}
        start = self.rng.randrange(min(ends.values()) + 1)
        for node in NODES:
            self.read_all(60, "read_replica", start, ends[node], node=node, isolation="read_uncommitted")

    def read_all(self, process, f, before, after, **columns):
        op = self.tables.op(process, f, self.ns(), self.ns(), **columns)
        for seq, offset in enumerate(range(before, after)):
            value, epoch = self.log[offset]
            self.tables.record(op, seq, "read", TOPIC, 0, offset, value, topic_id="A", leader_epoch=epoch)
        self.tables.add("positions", op_id=op, before=before, after=after, cause="read", **PLACE)


def arbitrary_cluster_history(rng):
    """Return a history of one partition: a few rows, tens of seconds apart, that often contradict each other."""
    topic = {"min.insync.replicas": rng.choice(["1", "2"])}
    if rng.random() < 0.2:
        topic["cleanup.policy"] = "compact"
    if rng.random() < 0.3:
        topic["replication.factor"] = rng.choice(["2", "3"])
    if rng.random() < 0.1:
        topic["retention.ms"] = "1000"
    tables = Tables(topics={TOPIC: topic}, cluster=CLUSTER)
    now, value = 0, 0
    for name in (TOPIC, "__cluster_metadata") if rng.random() < 0.5 else ():
        source = "metadata" if name == TOPIC else "describe_quorum"
        state = {"topic": name, "partition": 0, "isr": [1, 2, 3], "source": source}
        tables.add("states", asked_ns=0, answered_ns=0, **state)
    for number in range(rng.randrange(4, 40)):
        now += rng.choice([0, 1, 1, 4, 6, 20, 60]) * SECOND
        kind = rng.choice(["produce"] * 5 + ["isr", "quorum", "fault", "disk", "disk", "ends", "reassign"])
        complete = rng.choice([now + 1, now + 1, now + 8 * SECOND, now + 70 * SECOND, None])
        if kind == "produce":
            value += 1
            columns = {"attempts": rng.choice([None, None, 1]), "node": rng.choice([None, 1, 2]), "acks": -1}
            error = rng.choice([*NOT_SERVED_ERRORS, *NOT_SERVED_ERRORS, "NOT_LEADER_OR_FOLLOWER", None])
            outcome = rng.choice(["ok"] + ["info"] * 9) if error is None else rng.choice(["info"] * 5 + ["fail"])
            op = tables.op(number, "produce", now, complete, outcome, error=error, **columns)
            tables.record(op, 0, "send", TOPIC, 0, None, value)
        elif kind in ("isr", "quorum"):
            isr = rng.choice([[1, 2, 3], [1, 2, 3], [1, 2], [3], None])
            state = {"topic": TOPIC if kind == "isr" else "__cluster_metadata", "partition": 0, "isr": isr}
            source = "metadata" if kind == "isr" else "describe_quorum"
            tables.add("states", source=source, asked_ns=now, answered_ns=now + rng.choice([0, 1, SECOND]), **state)
        elif kind == "ends" and rng.random() < 0.3:
            state = {"topic": TOPIC, "partition": 0, "leader_epoch": rng.choice([None, 0]), "node": 1}
            error = rng.choice([None, "NOT_LEADER_OR_FOLLOWER"])
            tables.add("states", source="list_offsets", asked_ns=now, answered_ns=now + 1, error=error, **state)
        elif kind == "fault" and rng.random() < 0.5:
            fault = rng.choice(["kill"] * 6 + ["pause", "cut", "election", "configuration", "wipe"])
            targets = {
                "cut": rng.choice(["1->2", "client->3", ISOLATED, HALF_ISOLATED]),
                "election": TOPIC,
                "configuration": TOPIC,
            }
            argument = {
                "configuration": "min.insync.replicas=2",
                "election": "preferred",
                "cut": rng.choice([None, "listener 1"]),
            }.get(fault)
            heal_ns = rng.choice(
                [now + 1, now + 30 * SECOND, now + 90 * SECOND, now + 200 * SECOND, now + 200 * SECOND, None]
            )
            columns = {"kind": fault, "target": targets.get(fault, rng.choice("123")), "argument": argument}
            tables.add("faults", fault_id=number, inject_ns=now, heal_ns=heal_ns, **columns)
        elif kind == "disk":
            _add_replica_reads(rng, tables, number, now)
        elif kind == "reassign" and rng.random() < 0.2:
            tables.op(
                number, "reassign", now, complete, rng.choice(["ok", "fail"]), topic=rng.choice([TOPIC, "u", None])
            )
    return tables


def _add_replica_reads(rng, tables, number, now):
    """Add reads of the logs of some nodes. Most records and ranges are the same in all logs."""
    for node in rng.choice([(1, 2), (1, 2, 3), (2,)]):
        columns = {"node": rng.choice([node] * 9 + [None]), "isolation": "read_uncommitted"}
        op = tables.op(100 + number, "read_replica", now, now + rng.choice([0, 1]), **columns)
        before, after = rng.choice([0, 0, 1]), rng.choice([2, 3, 3])
        for seq, offset in enumerate(offset for offset in range(before, after) if rng.random() < 0.9):
            columns = {"key": rng.choice("ab"), "leader_epoch": rng.choice([0, 0, 0, 0, 1, None])}
            columns["intact"] = rng.random() < 0.95
            value = rng.choice([900 + offset] * 8 + [950, None])
            tables.record(op, seq, "read", TOPIC, 0, offset, value, **columns)
        if rng.random() < 0.9:
            start = rng.choice([None] * 5 + [1])
            position = {"topic": TOPIC, "partition": 0, "before": before, "after": after, "log_start_offset": start}
            tables.add("positions", op_id=op, cause=rng.choice(["read"] * 9 + ["reset"]), **position)


def unavailable(tables, rng):
    """Let all produces fail while the last fault affects one node of three, or after the last fault has healed."""
    last = tables.rows["faults"][-1]
    begin, end = rng.choice([(last["inject_ns"], last["heal_ns"]), (last["heal_ns"], 10**18)])
    produces = [row for row in tables.rows["operations"] if row["f"] == "produce"]
    attempts = [row for row in produces if row["invoke_ns"] > begin and row["complete_ns"] < end]
    for row in attempts:
        row.update(outcome="info", error=rng.choice(NOT_SERVED_ERRORS), attempts=None, node=None)
    return attempts[-1]["complete_ns"] - attempts[0]["invoke_ns"] > ALLOWED_S * SECOND


def not_converged(tables, rng):
    """Change the log of one replica, or leave the ISR incomplete."""
    replica_reads = [row["op_id"] for row in tables.rows["operations"] if row["f"] == "read_replica"]
    if rng.random() < 0.3:
        healed = max(row["heal_ns"] for row in tables.rows["faults"])
        for row in tables.rows["states"]:
            if row["source"] == "metadata" and row["asked_ns"] > healed:
                row["isr"] = [1, 2]
        return True
    ends = {row["op_id"]: row["after"] for row in tables.rows["positions"]}
    common = [
        row
        for row in tables.rows["records"]
        if row["op_id"] in replica_reads and row["offset"] < min(ends[op_id] for op_id in replica_reads)
    ]
    if not common:
        return False
    row = rng.choice(common)
    how = rng.randrange(4)
    if how == 0:
        tables.rows["records"].remove(row)
    else:
        row.update([{"value": 10**6}, {"leader_epoch": row["leader_epoch"] + 1}, {"intact": False}][how - 1])
    return True


PLANTED_CLUSTER_ANOMALIES = {"unavailable": unavailable, "not-converged": not_converged}
"""Functions that each plant an anomaly in a history of a `FaultyCluster`; return whether that was possible."""
