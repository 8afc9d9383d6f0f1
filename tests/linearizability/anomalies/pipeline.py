"""Pipeline: valid history of an exactly-once application, which reads `in`, writes `t` and commits in transactions.

The application is group `g`, which has one member at a time. Before another member replaces it, the old member revokes
the partition, or its heartbeat is rejected. Each new member gets a higher producer epoch of the transactional id. A
second group, `h`, commits offsets outside of transactions.
"""

from tests.linearizability.anomalies.histories import TOPIC, Tables

SOURCE = "in"


class Pipeline:
    """The application, and the history written so far.

    :ivar inputs: the values in the log of `in`.
    :ivar outputs: {offset: value} of the committed records in the log of `t`; `end` is the end of this log.
    :ivar committed: the committed offset of group `g`, and `other` that of group `h`; None if there is none.
    :ivar position: the next input offset of the owner.
    :ivar owner: the process of the current member.
    :ivar number: the number of the last transaction.
    """

    def __init__(self, rng):
        self.rng = rng
        properties = {"replication.factor": "3", "min.insync.replicas": "2"}
        self.tables = Tables(topics={TOPIC: properties, SOURCE: properties})
        self.now, self.inputs, self.outputs, self.end = 1000, [], {}, 0
        self.committed, self.position, self.other = None, 0, None
        self.generation, self.epoch, self.number, self.value = 0, -1, 0, 0
        self.owner = None

    def run(self, steps):
        """Take random steps, read both logs to the end, and return the history."""
        self.feed()
        self.rebalance()
        for _ in range(steps):
            self.rng.choice([self.feed, self.work, self.work, self.work, self.rebalance, self.commit_alone])()
        self.feed()
        self.work()
        for process, topic, end in ((40, TOPIC, self.end), (41, SOURCE, len(self.inputs))):
            self.read(process, topic, 0, end)
        return self.tables

    def op(self, process, f, outcome="ok", **columns):
        self.now += self.rng.randrange(1, 5)
        begin = self.now
        self.now += self.rng.randrange(1, 5)
        complete = begin if outcome == "lost" else self.now
        return self.tables.op(process, f, begin, complete, outcome, **columns)

    def feed(self):
        """Produce a few inputs."""
        op = self.op(1, "produce", acks=-1, topic=SOURCE, partition=0)
        for seq in range(self.rng.randrange(1, 4)):
            self.value += 1
            self.tables.record(op, seq, "send", SOURCE, 0, len(self.inputs), self.value)
            self.inputs.append(self.value)

    def read(self, process, topic, before, after, **columns):
        log = dict(enumerate(self.inputs)) if topic == SOURCE else self.outputs
        op = self.op(process, "poll", isolation="read_committed", **columns)
        place = {"topic": topic, "partition": 0}
        for seq, offset in enumerate(offset for offset in range(before, after) if offset in log):
            self.tables.record(op, seq, "read", topic, 0, offset, log[offset])
        self.tables.add("positions", op_id=op, before=before, after=after, cause="read", **place)

    def rebalance(self):
        """Assign the partition again, after the owner has revoked it or a heartbeat of the owner was rejected."""
        revokes = self.rng.random() < 0.5
        if self.owner is not None:
            if revokes:
                self.event(self.owner, "revoked")
            else:
                self.op(self.owner, "heartbeat", "info", error="ILLEGAL_GENERATION", group="g")
        self.owner = 10 + self.rng.randrange(3) if revokes or self.owner is None else 10 + (self.owner - 9) % 3
        self.generation += 1
        self.epoch += 1
        columns = {"producer_id": 7, "producer_epoch": self.epoch, "txn_id": "x"}
        self.op(self.owner, "init_producer_id", **columns)
        self.event(self.owner, "assigned")
        self.fetch(self.owner, "g", self.committed)
        self.seek()

    def event(self, process, event):
        self.now += 1
        columns = {"at_ns": self.now, "process": process, "group": "g", "member_id": f"m{process}"}
        self.tables.add("assignments", topic=SOURCE, partition=0, generation=self.generation, event=event, **columns)

    def seek(self):
        """Move the owner to the committed offset."""
        self.position = self.committed or 0
        op = self.op(self.owner, "seek")
        place = {"topic": SOURCE, "partition": 0, "before": self.position, "after": self.position}
        self.tables.add("positions", op_id=op, cause="seek", **place)

    def fetch(self, process, group, offset):
        op = self.op(process, "fetch_offsets", group=group, isolation="read_committed")
        self.offset(op, group, offset, "fetched")

    def offset(self, op, group, offset, direction):
        """Add a row of `offsets`."""
        self.tables.add("offsets", op_id=op, group=group, topic=SOURCE, partition=0, offset=offset, direction=direction)

    def work(self):
        """Run a transaction: read some inputs, produce an output for each, and commit the offset after them."""
        after = min(len(self.inputs), self.position + self.rng.randrange(1, 4))
        inputs = range(self.position, after)
        if not inputs:
            return
        self.number += 1
        columns = {"txn_id": "x", "txn_seq": self.number, "producer_id": 7, "producer_epoch": self.epoch}
        self.read(self.owner, SOURCE, self.position, after)
        self.op(self.owner, "begin_txn", **columns)
        op = self.op(self.owner, "produce", acks=-1, topic=TOPIC, partition=0, **columns)
        sent = {}
        for seq, offset in enumerate(inputs):
            self.value += 1
            sent[self.end] = self.value
            self.tables.record(op, seq, "send", TOPIC, 0, self.end, self.value)
            self.tables.add("inputs", op_id=op, seq=seq, topic=SOURCE, partition=0, offset=offset)
            self.end += 1
        self.offset(self.op(self.owner, "commit_offsets", group="g", **columns), "g", after, "commit")
        self.end += 1  # the transaction marker
        # An unknown commit takes effect, and a lost one does not; the client knows neither outcome.
        how = self.rng.choice(["commit"] * 4 + ["unknown commit", "lost commit", "abort"])
        f, outcome = ("abort_txn", "ok") if how == "abort" else ("commit_txn", "ok" if how == "commit" else "info")
        self.op(self.owner, f, outcome, **columns)
        if how in ("commit", "unknown commit"):
            self.outputs |= sent
            self.committed = self.position = after
            if self.rng.random() < 0.3:  # a retry after a late response
                self.op(self.owner, f, **columns) if how == "commit" else None
        if how != "commit":
            self.rebalance() if how == "lost commit" else self.seek()

    def commit_alone(self):
        """Commit and fetch an offset of group `h`. Some commits of unknown outcome take effect."""
        outcome = self.rng.choice(["ok", "ok", "info"])
        offset = self.rng.randrange(len(self.inputs) + 1)
        self.offset(self.op(30, "commit_offsets", outcome, group="h"), "h", offset, "commit")
        if outcome == "ok" or self.rng.random() < 0.5:
            self.other = offset
        self.fetch(30 + self.rng.randrange(2), "h", self.other)
