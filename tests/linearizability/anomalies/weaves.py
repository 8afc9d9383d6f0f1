"""The smallest history of each cycle anomaly: transactions, step by step, and the same ones after each other.

A step is what `linearizability.synthetic.weaves` says; here both logs are partitions of the history they are put into.
"""

from linearizability.synthetic.weaves import BEGIN, COMMIT, READ, SEND, WEAVES
from tests.linearizability.anomalies.histories import TOPIC

PARTITIONS = {"a": 7, "b": 8}
FIRST_PROCESS, FIRST_VALUE = 60, 90_000


def woven(name):
    """A plant of the anomaly."""

    def plant(tables, _):
        Weaver(tables).weave(WEAVES[name])
        return True

    return plant


def one_after_the_other(steps):
    """The same transactions, each done before the next begins, on a broker and by consumers without fault."""
    return sorted((step[:3] for step in steps), key=lambda step: step[0])


def any_steps(rng):
    """Some transactions of a few steps."""
    numbers, steps = range(1, rng.randrange(3, 6)), []
    kinds = rng.choice([[SEND], [SEND, READ], [SEND, READ, READ]])
    how = rng.choice([[None], [None, None, 1, "dirty"]])
    for _ in range(rng.randrange(4, 12)):
        what = rng.choice(kinds)
        own = rng.choice(how)
        options = (
            () if own is None or (what == SEND and own == "dirty") else (own + rng.randrange(5) if own == 1 else own,)
        )
        steps.append((rng.choice(numbers), what, rng.choice("ab"), *options))
    return steps


CYCLE_PLANTS = {name: woven(name) for name in WEAVES}
"""Into anything."""


class Weaver:
    def __init__(self, tables):
        self.tables, self.value = tables, FIRST_VALUE
        times = [row[name] or 0 for row in tables.rows["operations"] for name in ("invoke_ns", "complete_ns")]
        self.now = max(times, default=0) + 1000
        self.logs = {log: {} for log in PARTITIONS}
        self.open = set()

    def weave(self, steps):
        for log in self.logs:
            self.send(None, log)
        numbers = sorted({step[0] for step in steps})
        for at, (number, what, *rest) in enumerate(steps):
            if number not in self.open:
                self.open.add(number)
                self.op(number, BEGIN)
            if what == COMMIT:
                self.op(number, COMMIT)
                self.open.remove(number)
            elif what == SEND:
                self.send(number, *rest)
            else:
                self.read(number, *rest)
            if number in self.open and all(step[0] != number for step in steps[at + 1 :]) and number != numbers[-1]:
                self.op(number, COMMIT)
                self.open.remove(number)
        for number in sorted(self.open):
            self.op(number, COMMIT)
        self.open.clear()
        for number, log in enumerate(self.logs, 20):
            self.read(number, log)

    def op(self, number, f, **columns):
        self.now += 2
        inside = {"txn_seq": number, "txn_id": f"w{number}"} if number in self.open else {}
        process = FIRST_PROCESS + (number or 0)
        return self.tables.op(process, f, self.now - 2, self.now - 1, **inside, **columns)

    def send(self, number, log, at=None):
        self.value += 1
        offset = max(self.logs[log], default=-1) + 1 if at is None else at
        self.logs[log][offset] = (self.value, number)
        op = self.op(number, "produce", acks=-1, topic=TOPIC, partition=PARTITIONS[log])
        self.tables.record(op, 0, "send", TOPIC, PARTITIONS[log], offset, self.value, topic_id="A")

    def read(self, number, log, how=None):
        place = {"topic": TOPIC, "topic_id": "A", "partition": PARTITIONS[log]}
        op = self.op(number, "poll", isolation="read_committed")
        entries = self.logs[log]
        visible = {offset: value for offset, (value, by) in entries.items() if how == "dirty" or by not in self.open}
        hidden = [offset for offset in entries if offset not in visible]
        end = how if isinstance(how, int) else min(hidden, default=max(entries) + 1)
        for offset in range(end):
            value = visible.get(offset, self.value + 1 if isinstance(how, int) and offset > max(entries) else None)
            if value is not None:
                self.tables.record(op, offset, "read", TOPIC, place["partition"], offset, value, topic_id="A")
        self.tables.add("positions", op_id=op, before=0, after=end, cause="read", **place)
