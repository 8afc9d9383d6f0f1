"""Simulated partition: valid histories of one Kafka partition with clients and faults.

The histories contain permitted behaviour of all kinds that an anomaly could be confused with. An operation takes effect
when it is invoked, and completes later.
"""

from dataclasses import dataclass, field

from tests.linearizability.anomalies.histories import TOPIC, Tables

READ_COMMITTED, READ_UNCOMMITTED = "read_committed", "read_uncommitted"


@dataclass
class Entry:
    """A record in the log.

    :ivar transaction: (process, number) of an open transaction, "aborted", or None.
    """

    value: int | None
    key: str | None
    transaction: tuple | None = None
    epoch: int = 0


@dataclass
class Transaction:
    """A transaction.

    :ivar first: the offset of the first record; None without records.
    :ivar ended: "committed" or "aborted"; None while the transaction is open.
    """

    process: int
    number: int
    txn_id: str
    first: int | None = None
    ended: str | None = None


@dataclass
class SimulatedPartition:
    """A partition, its clients, and the history written so far."""

    rng: object
    unclean: bool = False
    """Whether unclean leader elections are enabled, and occur."""
    compaction: bool = False
    retention: bool = False
    weak: bool = True
    """Whether one producer is not idempotent and uses acks=0, acks=1 and acks=all."""
    positions: bool = True
    """Whether the history has rows of `positions`."""
    topic_id: str | None = "A"
    log: dict = field(default_factory=dict)
    """{offset: Entry}"""
    end: int = 0
    start: int = 0
    epoch: int = 0
    now: int = 1000
    value: int = 5000

    def __post_init__(self):
        properties = {"replication.factor": "3", "min.insync.replicas": "2"}
        if self.compaction:
            properties["cleanup.policy"] = "compact"
        if self.retention:
            properties["retention.ms"] = "100"
        if self.unclean:
            properties["unclean.leader.election.enable"] = "true"
        self.tables = Tables(topics={TOPIC: properties})
        self.consumers = {}
        self.transactions = {}
        self.sequence = 0
        self.fault = 0

    def run(self, steps):
        rng = self.rng
        choices = [self.produce] * 6 + [self.read] * 5 + [self.transact] * 4
        choices += [self.describe, self.delete_records, self.inject_fault]
        choices += [self.elect_unclean_leader] if self.unclean else []
        choices += [self.compact] * 2 if self.compaction else []
        choices += [self.delete_old_records] if self.retention else []
        choices += [self.produce_to_stale_leader] if self.weak else []
        for _ in range(steps):
            self.now += rng.randrange(1, 10)
            rng.choice(choices)()
        self.read_to_end()
        if not self.positions:
            self.tables.rows["positions"].clear()
        return self.tables

    # ---- producing

    def batch(self):
        """Return new entries, some of them tombstones."""
        rng = self.rng
        entries = []
        for _ in range(rng.randrange(1, 4)):
            self.value += rng.randrange(1, 4)
            key = rng.choice("abc") if self.compaction or rng.random() < 0.3 else None
            is_tombstone = key is not None and rng.random() < 0.15
            entries.append(Entry(None if is_tombstone else self.value, key))
        return entries

    def append(self, entries, transaction=None):
        """Append entries to the log; return the offset of the first one."""
        base = self.end
        for entry in entries:
            self.log[self.end] = Entry(entry.value, entry.key, transaction, self.epoch)
            self.end += 1
        return base

    def produce(self):
        rng, process = self.rng, self.rng.randrange(3)
        idempotent = not self.weak or process != 0
        acks = -1 if idempotent else rng.choice([-1, 1, 0])
        entries = self.batch()
        outcome = rng.choices(["ok", "info", "fail"], [8, 2, 1])[0]
        if acks == 0:
            outcome = "info"
        base = None
        if outcome != "fail" and (outcome == "ok" or rng.random() < 0.6):
            base = self.append(entries)
            if not idempotent and rng.random() < 0.2:  # a retry whose first attempt had been appended
                base = self.append(entries)
        self.write_produce(process, outcome, entries, base, acks, idempotent)

    @staticmethod
    def leader(epoch):
        return epoch % 3 + 1

    def write_produce(self, process, outcome, entries, base, acks, idempotent, epoch=None, **columns):
        """Add the operation and the sent records of a produce.

        :param base: the offset of the first record, which a successful produce acknowledges.
        :param epoch: the epoch of the leader that handles the request (default: the current epoch).
        """
        epoch = self.epoch if epoch is None else epoch
        is_known = outcome == "ok" and self.rng.random() < 0.7
        complete = self.now + self.rng.randrange(0, 30) if outcome != "info" or self.rng.random() < 0.5 else None
        op = self.tables.op(
            process,
            "produce",
            self.now,
            complete,
            outcome,
            acks=acks,
            topic=TOPIC,
            partition=0,
            topic_id=self.topic_id,
            producer_id=100 + process if idempotent else None,
            producer_epoch=0 if idempotent else None,
            node=self.leader(epoch) if is_known else None,
            **columns,
        )
        leader_epoch = epoch if is_known and self.rng.random() < 0.8 else None
        for seq, entry in enumerate(entries):
            offset = base + seq if outcome == "ok" and self.rng.random() < 0.97 else None
            columns = {"key": entry.key, "topic_id": self.topic_id, "leader_epoch": leader_epoch}
            self.tables.record(op, seq, "send", TOPIC, 0, offset, entry.value, **columns)
        if complete is not None and not idempotent:
            self.now = max(self.now, complete)
        return op

    def produce_to_stale_leader(self):
        """Add a produce with acks=1 that the previous leader acknowledged. Its records are not in the log."""
        self.write_produce(0, "ok", self.batch(), self.end, 1, False, epoch=max(self.epoch - 1, 0))

    def transact(self):
        """Begin, continue or end the transaction of a producer."""
        rng, process = self.rng, 10 + self.rng.randrange(2)
        txn = self.transactions.get(process)
        if txn is None or txn.ended:
            self.sequence += 1
            txn = self.transactions[process] = Transaction(process, self.sequence, f"x{process}")
            self.txn_op(txn, "begin_txn", "ok")
        elif rng.random() < 0.5:
            entries = self.batch()
            outcome = rng.choices(["ok", "info"], [9, 1])[0]
            base = self.append(entries, (process, txn.number)) if outcome == "ok" or rng.random() < 0.5 else None
            if base is not None and txn.first is None:
                txn.first = base
            self.write_produce(process, outcome, entries, base, -1, True, txn_id=txn.txn_id, txn_seq=txn.number)
        else:
            self.end_transaction(txn)

    def end_transaction(self, txn):
        rng = self.rng
        how = rng.choices(
            ["commit", "commit_unknown", "commit_lost", "abort", "abort_unknown", "fenced"], [5, 1, 1, 2, 1, 1]
        )[0]
        if how == "fenced":
            self.tables.op(txn.process + 20, "init_producer_id", self.now, self.now, txn_id=txn.txn_id, producer_id=7)
        else:
            outcome = "ok" if how in ("commit", "abort") else "info"
            self.txn_op(txn, "commit_txn" if how.startswith("commit") else "abort_txn", outcome)
        is_committed = how in ("commit", "commit_unknown")
        txn.ended = "committed" if is_committed else "aborted"
        self.end += txn.first is not None  # the transaction marker
        if not is_committed:
            for entry in self.log.values():
                if entry.transaction == (txn.process, txn.number):
                    entry.transaction = "aborted"
        else:
            for entry in self.log.values():
                if entry.transaction == (txn.process, txn.number):
                    entry.transaction = None

    def txn_op(self, txn, f, outcome):
        complete = self.now + self.rng.randrange(0, 20)
        self.tables.op(txn.process, f, self.now, complete, outcome, txn_id=txn.txn_id, txn_seq=txn.number)
        self.now = complete

    def last_stable_offset(self):
        first = [t.first for t in self.transactions.values() if not t.ended and t.first is not None]
        return min([*first, self.end])

    # ---- reading

    def read(self, process=None, isolation=None, whole=False):
        """Add a poll.

        :param process: the consumer (default: a random one).
        :param whole: whether the poll reaches the log end, or the last stable offset.
        """
        rng = self.rng
        process = 20 + rng.randrange(3) if process is None else process
        isolation = isolation or (READ_COMMITTED if process % 2 else READ_UNCOMMITTED)
        limit = self.last_stable_offset() if isolation == READ_COMMITTED else self.end
        op = self.tables.op(process, "poll", self.now, self.now + 1, isolation=isolation)
        before = self.consumers.get(process, 0)
        if before < self.start or before > self.end:
            before = self.start
            self.position(op, before, before, "reset", limit)
        after = limit if whole or rng.random() < 0.5 else min(limit, before + rng.randrange(0, 5))
        after = max(after, before)
        seq = 0
        for offset in range(before, after):
            entry = self.log.get(offset)
            if entry is not None and not (isolation == READ_COMMITTED and entry.transaction == "aborted"):
                self.tables.record(
                    op,
                    seq,
                    "read",
                    TOPIC,
                    0,
                    offset,
                    entry.value,
                    key=entry.key,
                    topic_id=self.topic_id,
                    leader_epoch=entry.epoch,
                )
                seq += 1
        self.position(op, before, after, "read", limit)
        self.consumers[process] = after
        self.now += 2

    def position(self, op, before, after, cause, stable):
        self.tables.add(
            "positions",
            op_id=op,
            topic=TOPIC,
            topic_id=self.topic_id,
            partition=0,
            before=before,
            after=after,
            cause=cause,
            high_watermark=self.end,
            last_stable_offset=stable,
            log_start_offset=self.start,
        )

    def read_to_end(self):
        """End all transactions and read the whole log with both isolation levels."""
        self.now += 1000
        for txn in self.transactions.values():
            if not txn.ended:
                self.end_transaction(txn)
        self.now += 100
        for process, isolation in ((40, READ_COMMITTED), (41, READ_UNCOMMITTED)):
            self.tables.op(process, "assign", self.now, self.now + 1)
            self.now += 2
            self.consumers[process] = self.start
            self.read(process, isolation, whole=True)

    # ---- the broker

    def describe(self):
        for source, isolation in (("list_offsets", READ_UNCOMMITTED), ("metadata", None)):
            self.tables.add(
                "states",
                asked_ns=self.now,
                answered_ns=self.now + 1,
                source=source,
                isolation=isolation,
                node=self.leader(self.epoch),
                topic=TOPIC,
                topic_id=self.topic_id,
                partition=0,
                leader=self.leader(self.epoch),
                leader_epoch=self.epoch,
                high_watermark=self.end if isolation else None,
                last_stable_offset=self.last_stable_offset() if isolation else None,
                isr=[1, 2, 3] if not isolation else None,
            )
            self.now += 2

    def delete_records(self):
        self.start = self.rng.randrange(self.start, self.last_stable_offset() + 1)
        self.tables.op(
            30,
            "delete_records",
            self.now,
            self.now + 2,
            self.rng.choice(["ok", "info"]),
            topic=TOPIC,
            topic_id=self.topic_id,
            partition=0,
            offset=self.start,
        )
        self.log = {offset: entry for offset, entry in self.log.items() if offset >= self.start}
        self.now += 3

    def delete_old_records(self):
        """Delete records at the start of the log, because of retention."""
        self.start = self.rng.randrange(self.start, self.last_stable_offset() + 1)
        self.log = {offset: entry for offset, entry in self.log.items() if offset >= self.start}

    def compact(self):
        stable = self.last_stable_offset()
        last = {e.key: o for o, e in sorted(self.log.items()) if e.transaction != "aborted" and o < stable}
        for offset, entry in list(self.log.items()):
            if (
                offset < stable
                and entry.key is not None
                and (last.get(entry.key) != offset or (entry.value is None and self.rng.random() < 0.5))
            ):
                del self.log[offset]

    def inject_fault(self):
        kind, argument = self.rng.choice(
            [
                ("kill", None),
                ("pause", None),
                ("cut", None),
                ("delay", "200ms"),
                ("disk", "EIO"),
                ("wipe", None),
                ("power", None),
            ]
        )
        self.write_fault(kind, "1->2" if kind in ("cut", "delay") else "2", argument)

    def write_fault(self, kind, target, argument=None):
        """Add a fault that heals after 3 ns, and begin a new leader epoch."""
        self.fault += 1
        self.tables.add(
            "faults",
            fault_id=self.fault,
            kind=kind,
            target=target,
            argument=argument,
            inject_ns=self.now,
            heal_ns=self.now + 3,
        )
        self.now += 4
        self.epoch += 1

    def elect_unclean_leader(self):
        """Elect a leader with a shorter log, even if acknowledged or read records are lost."""
        self.write_fault("kill", "1")
        if any(not t.ended and t.first is not None for t in self.transactions.values()):
            return  # the log keeps the records of open transactions
        self.end = self.rng.randrange(self.start, self.end + 1)
        self.log = {offset: entry for offset, entry in self.log.items() if offset < self.end}
        self.now += 5
