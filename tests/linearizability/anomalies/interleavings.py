"""Interleaved transactions written into a history: the shortest cycle of each kind, and the same steps in series.

Steps are those of `linearizability.synthetic.interleavings`; both logs are partitions of the given history.
"""

from linearizability.synthetic.interleavings import BEGIN, COMMIT, INTERLEAVINGS, READ, SEND
from tests.linearizability.anomalies.histories import TOPIC

PARTITIONS = {"a": 7, "b": 8}
FIRST_PROCESS, FIRST_VALUE = 60, 90_000


def planting(name):
    """Return the function that plants a cycle anomaly."""

    def plant(tables, _):
        InterleavingWriter(tables).write(INTERLEAVINGS[name])
        return True

    return plant


def serial_steps(steps):
    """Return the same transactions, each ending before the next begins, on a correct broker."""
    return sorted((step[:3] for step in steps), key=lambda step: step[0])


def arbitrary_steps(rng):
    """Return a few transactions of a few steps."""
    numbers, steps = range(1, rng.randrange(3, 6)), []
    kinds = rng.choice([[SEND], [SEND, READ], [SEND, READ, READ]])
    options = rng.choice([[None], [None, None, 1, "dirty"]])
    for _ in range(rng.randrange(4, 12)):
        kind = rng.choice(kinds)
        own = rng.choice(options)
        is_plain = own is None or (kind == SEND and own == "dirty")
        rest = () if is_plain else (own + rng.randrange(5) if own == 1 else own,)
        steps.append((rng.choice(numbers), kind, rng.choice("ab"), *rest))
    return steps


PLANTED_CYCLES = {name: planting(name) for name in INTERLEAVINGS}
"""Functions that plant a cycle anomaly in any history."""


class InterleavingWriter:
    """Writer of transactions step by step, with the content of both logs and the open transactions."""

    def __init__(self, tables):
        self.tables, self.value = tables, FIRST_VALUE
        times = [row[name] or 0 for row in tables.rows["operations"] for name in ("invoke_ns", "complete_ns")]
        self.now = max(times, default=0) + 1000
        self.logs = {log: {} for log in PARTITIONS}
        self.open = set()

    def write(self, steps):
        for log in self.logs:
            self.send(None, log)
        numbers = sorted({step[0] for step in steps})
        for at, (number, kind, *rest) in enumerate(steps):
            if number not in self.open:
                self.open.add(number)
                self.op(number, BEGIN)
            if kind == COMMIT:
                self.op(number, COMMIT)
                self.open.remove(number)
            elif kind == SEND:
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
        columns |= {"txn_seq": number, "txn_id": f"w{number}"} if number in self.open else {}
        process = FIRST_PROCESS + (number or 0)
        return self.tables.op(process, f, self.now - 2, self.now - 1, **columns)

    def send(self, number, log, at=None):
        self.value += 1
        offset = max(self.logs[log], default=-1) + 1 if at is None else at
        self.logs[log][offset] = (self.value, number)
        op = self.op(number, "produce", acks=-1, topic=TOPIC, partition=PARTITIONS[log])
        self.tables.record(op, 0, "send", TOPIC, PARTITIONS[log], offset, self.value, topic_id="A")

    def read(self, number, log, option=None):
        place = {"topic": TOPIC, "topic_id": "A", "partition": PARTITIONS[log]}
        op = self.op(number, "poll", isolation="read_committed")
        entries = self.logs[log]
        visible = {offset: value for offset, (value, by) in entries.items() if option == "dirty" or by not in self.open}
        hidden = [offset for offset in entries if offset not in visible]
        end = option if isinstance(option, int) else min(hidden, default=max(entries) + 1)
        for offset in range(end):
            value = visible.get(offset, self.value + 1 if isinstance(option, int) and offset > max(entries) else None)
            if value is not None:
                self.tables.record(op, offset, "read", TOPIC, place["partition"], offset, value, topic_id="A")
        self.tables.add("positions", op_id=op, before=0, after=end, cause="read", **place)
