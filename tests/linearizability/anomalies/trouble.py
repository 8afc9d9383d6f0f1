"""A lawful cluster of three nodes in trouble, second by second: produces, what nodes say of it, and what lies on disks.

And `nonsense_of_a_cluster`, which has the same rows without the law.
"""

from tests.linearizability.anomalies.histories import TOPIC, Tables

SECOND = 1_000_000_000
ISOLATED = "1->3,3->1,3->2,2->3,3->client,client->3"
"""Links of node 3 to everybody."""
HALF_ISOLATED = "2->3,3->2,3->client,client->3"
NODES = (1, 2, 3)
ALLOWED_S = 30 + 2 * (3 + 6 + 1 + 1 + 2)
CLUSTER = {"replica.lag.time.max.ms": "3000", "broker.session.timeout.ms": "6000"}
PLACE = {"topic": TOPIC, "topic_id": "A", "partition": 0}
IN_VAIN = ("REQUEST_TIMED_OUT", "NETWORK_EXCEPTION", "LEADER_NOT_AVAILABLE")


class Trouble:
    """Faults come and go; after each the cluster takes up to what it may to serve, and to have a full ISR."""

    def __init__(self, rng):
        self.rng = rng
        self.tables = Tables(topics={TOPIC: {"min.insync.replicas": "2"}}, cluster=CLUSTER)
        self.now, self.value, self.end, self.epoch = 0, 0, 0, 0
        self.faults, self.isr, self.log = {}, set(NODES), {}
        self.busy_until, self.number = 0, 0

    def run(self, steps):
        self.ask()
        for _ in range(steps):
            self.rng.choice([self.work, self.work, self.work, self.ask, self.disturb, self.heal])()
        for last_fault in (None, "1"):
            if last_fault is not None:
                self.disturb(last_fault)
                self.work(calm=True)
            while self.faults:
                self.heal()
            self.work(calm=True)
            self.ask(quorum=True)
        self.read_disks()
        self.read_all(70, "poll", 0, self.end, isolation="read_committed")
        return self.tables

    def ns(self):
        self.now += 1
        return self.now

    def pass_time(self, seconds):
        self.now += int(seconds * SECOND)

    @property
    def struck(self):
        return {node for nodes, _ in self.faults.values() for node in nodes}

    @property
    def serves(self):
        healthy = set(NODES) - self.struck
        return len(healthy) >= 2 and len(self.isr - self.struck) >= 2 and self.now >= self.busy_until

    def changed(self):
        """After a change the cluster takes its time, never all of it."""
        self.epoch += 1
        self.busy_until = self.now + int(self.rng.random() * (ALLOWED_S - 10) * SECOND)

    def settle(self):
        if self.now < self.busy_until:
            return
        healthy = set(NODES) - self.struck
        self.isr = healthy or self.isr
        if len(healthy) < 2:
            self.isr = set(NODES) & self.isr

    def work(self, calm=False):
        """Some produces, one after the other; for longer than is allowed."""
        until = self.now + (ALLOWED_S + 20) * SECOND if calm else 0
        for _ in range(ALLOWED_S if calm else self.rng.randrange(1, 12)):
            if calm and self.now > until:
                break
            self.settle()
            once = self.rng.random() < 0.3
            node = self.rng.choice(NODES)
            began = self.ns()
            self.pass_time(self.rng.choice([2, 4] if calm else [0.01, 1, 1, 4]))
            if self.serves and not (once and node in self.struck):
                self.write(began, once, node)
            else:
                error = self.rng.choice(IN_VAIN)
                answered = node if once and error != "NETWORK_EXCEPTION" else None
                self.write(began, once, answered, error)
            self.pass_time(self.rng.choice([0, 0, 1]))

    def write(self, began, once, node, error=None):
        outcome, columns = ("ok" if error is None else "info"), {"attempts": 1 if once else None, "node": node}
        op = self.tables.op(1, "produce", began, self.ns(), outcome, error=error, acks=-1, producer_id=5, **columns)
        self.value += 1
        offset = None
        if error is None or self.rng.random() < 0.2:
            offset = self.end if error is None else None
            self.log[self.end] = (self.value, self.epoch)
            self.end += 1
        self.tables.record(op, 0, "send", TOPIC, 0, offset, self.value, topic_id="A")

    def ask(self, *, quorum=False):
        self.settle()
        healthy = [node for node in NODES if node not in self.struck]
        if not healthy:
            return
        asked = self.ns()
        times = {"asked_ns": asked, "answered_ns": self.ns(), "node": self.rng.choice(healthy)}
        self.tables.add("states", source="metadata", isr=sorted(self.isr), leader_epoch=self.epoch, **times, **PLACE)
        if len(healthy) >= 2 and (quorum or self.rng.random() < 0.7):
            of = {"topic": "__cluster_metadata", "partition": 0, "isr": list(NODES), "leader_epoch": 1}
            self.tables.add("states", source="describe_quorum", **times, **of)

    def disturb(self, target=None):
        target = target or self.rng.choice(["1", "2", "3", "1->2", "client->3", ISOLATED])
        nodes = {3} if target == ISOLATED else {int(part) for part in target.split("->") if part.isdigit()}
        self.number += 1
        kind = "cut" if "->" in target else self.rng.choice(["kill", "pause"])
        columns = {"fault_id": self.number, "kind": kind, "target": target}
        self.faults[self.number] = (nodes, self.tables.add("faults", inject_ns=self.ns(), **columns))
        self.changed()

    def heal(self):
        if self.faults:
            _, row = self.faults.pop(next(iter(self.faults)))
            row["heal_ns"] = self.ns()
            self.changed()

    def read_disks(self):
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


def nonsense_of_a_cluster(rng):
    """Few rows of one partition, tens of seconds apart, that often contradict each other."""
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
        told = {"topic": name, "partition": 0, "isr": [1, 2, 3], "source": source}
        tables.add("states", asked_ns=0, answered_ns=0, **told)
    for number in range(rng.randrange(4, 40)):
        now += rng.choice([0, 1, 1, 4, 6, 20, 60]) * SECOND
        kind = rng.choice(["produce"] * 5 + ["isr", "quorum", "fault", "disk", "disk", "ends", "reassign"])
        complete = rng.choice([now + 1, now + 1, now + 8 * SECOND, now + 70 * SECOND, None])
        if kind == "produce":
            value += 1
            columns = {"attempts": rng.choice([None, None, 1]), "node": rng.choice([None, 1, 2]), "acks": -1}
            error = rng.choice([*IN_VAIN, *IN_VAIN, "NOT_LEADER_OR_FOLLOWER", None])
            outcome = rng.choice(["ok"] + ["info"] * 9) if error is None else rng.choice(["info"] * 5 + ["fail"])
            op = tables.op(number, "produce", now, complete, outcome, error=error, **columns)
            tables.record(op, 0, "send", TOPIC, 0, None, value)
        elif kind in ("isr", "quorum"):
            isr = rng.choice([[1, 2, 3], [1, 2, 3], [1, 2], [3], None])
            of = {"topic": TOPIC if kind == "isr" else "__cluster_metadata", "partition": 0, "isr": isr}
            source = "metadata" if kind == "isr" else "describe_quorum"
            tables.add("states", source=source, asked_ns=now, answered_ns=now + rng.choice([0, 1, SECOND]), **of)
        elif kind == "ends" and rng.random() < 0.3:
            of = {"topic": TOPIC, "partition": 0, "leader_epoch": rng.choice([None, 0]), "node": 1}
            error = rng.choice([None, "NOT_LEADER_OR_FOLLOWER"])
            tables.add("states", source="list_offsets", asked_ns=now, answered_ns=now + 1, error=error, **of)
        elif kind == "fault" and rng.random() < 0.5:
            what = rng.choice(["kill"] * 6 + ["pause", "cut", "election", "configuration", "wipe"])
            target = {
                "cut": rng.choice(["1->2", "client->3", ISOLATED, HALF_ISOLATED]),
                "election": TOPIC,
                "configuration": TOPIC,
            }
            argument = {
                "configuration": "min.insync.replicas=2",
                "election": "preferred",
                "cut": rng.choice([None, "listener 1"]),
            }.get(what)
            until = rng.choice(
                [now + 1, now + 30 * SECOND, now + 90 * SECOND, now + 200 * SECOND, now + 200 * SECOND, None]
            )
            columns = {"kind": what, "target": target.get(what, rng.choice("123")), "argument": argument}
            tables.add("faults", fault_id=number, inject_ns=now, heal_ns=until, **columns)
        elif kind == "disk":
            _nonsense_of_disks(rng, tables, number, now)
        elif kind == "reassign" and rng.random() < 0.2:
            tables.op(
                number, "reassign", now, complete, rng.choice(["ok", "fail"]), topic=rng.choice([TOPIC, "u", None])
            )
    return tables


def _nonsense_of_disks(rng, tables, number, now):
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
            place = {"topic": TOPIC, "partition": 0, "before": before, "after": after, "log_start_offset": start}
            tables.add("positions", op_id=op, cause=rng.choice(["read"] * 9 + ["reset"]), **place)


def in_vain_for_long(tables, rng):
    """Nobody serves any more: with nothing struck, or while the last fault strikes one node of three."""
    last = tables.rows["faults"][-1]
    begin, end = rng.choice([(last["inject_ns"], last["heal_ns"]), (last["heal_ns"], 10**18)])
    produces = [row for row in tables.rows["operations"] if row["f"] == "produce"]
    tries = [row for row in produces if row["invoke_ns"] > begin and row["complete_ns"] < end]
    for row in tries:
        row.update(outcome="info", error=rng.choice(IN_VAIN), attempts=None, node=None)
    return tries[-1]["complete_ns"] - tries[0]["invoke_ns"] > ALLOWED_S * SECOND


def not_converged(tables, rng):
    """A replica that holds something else, or an ISR that stays short."""
    disks = [row["op_id"] for row in tables.rows["operations"] if row["f"] == "read_replica"]
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
        if row["op_id"] in disks and row["offset"] < min(ends[op_id] for op_id in disks)
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


CLUSTER_PLANTS = {"unavailable": in_vain_for_long, "not-converged": not_converged}
"""Into what a `Trouble` wrote down."""
