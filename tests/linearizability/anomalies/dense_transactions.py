"""Dense transactions: arbitrary histories of transactions that use the same few logs, and so form many cycles."""

from tests.linearizability.anomalies.histories import TOPIC, Tables

OTHER = "u"


def dense_transactions(rng):
    """Return a history of transactions with records at arbitrary offsets and reads of arbitrary records."""
    tables, now = Tables(topics={TOPIC: {}, OTHER: {}}, complete=rng.random() < 0.9), 100
    logs = [(TOPIC, 0), (TOPIC, 1), (OTHER, 0)][: rng.randrange(1, 4)]
    free_offsets = {log: rng.sample(range(20), 20) if rng.random() < 0.7 else list(range(20))[::-1] for log in logs}
    isolations = rng.choice([["read_committed"], ["read_committed", "read_uncommitted", None]])
    kinds = ["produce"] * 3 + ["poll"] * rng.randrange(7)
    open_transactions, sent, number = {}, [], 0
    positions = rng.random() < 0.8

    def op(process, f, outcome="ok", **columns):
        nonlocal now
        now += rng.randrange(4)
        duration = rng.choice([1, 1, 1, 3, 20])
        complete = now + duration if outcome == "ok" or rng.random() < 0.6 else None
        txn_seq = open_transactions.get(process)
        return tables.op(process, f, now, complete, outcome, txn_seq=txn_seq, txn_id="x", **columns)

    for _ in range(rng.randrange(5, 45)):
        process = rng.randrange(3)
        if process not in open_transactions:
            number += 1
            open_transactions[process] = number
        if rng.random() < 0.18:
            f, outcome = rng.choice([("commit_txn", "ok")] * 6 + [("commit_txn", "info"), ("abort_txn", "ok")])
            op(process, f, outcome)
            if rng.random() < 0.9:
                del open_transactions[process]
        elif rng.choice(kinds) == "produce":
            log = rng.choice(logs)
            # Some produces are outside of the transaction that their process has open.
            suspended = rng.random() < 0.05 and open_transactions.pop(process)
            outcome = rng.choice(["ok"] * 9 + ["info"])
            produce = op(process, "produce", outcome, acks=-1)
            for seq in range(rng.randrange(1, 3)):
                offset = free_offsets[log].pop() if free_offsets[log] and rng.random() < 0.97 else rng.randrange(20)
                value = len(sent) + 1000 if rng.random() < 0.97 else None
                key = "k" if value is None else None
                acknowledged = offset if outcome == "ok" and rng.random() < 0.95 else None
                tables.record(produce, seq, "send", *log, acknowledged, value, key=key)
                sent.append((log, offset, value, key))
            if suspended:
                open_transactions[process] = suspended
        else:
            read(rng, tables, op(process, "poll", isolation=rng.choice(isolations)), sent, positions)
    return tables


def read(rng, tables, poll, sent, positions):
    """Add some of the sent records to a poll; if `positions`, add rows of `positions` with arbitrary ranges too."""
    reached = {}
    for seq, (log, offset, value, key) in enumerate(rng.sample(sent, min(len(sent), rng.randrange(4)))):
        returned_offset = offset if rng.random() < 0.95 else None
        tables.record(poll, seq, "read", *log, returned_offset, value, key=key)
        reached[log] = max(reached.get(log, 0), offset + 1)
    for log in sorted({log for log, *_ in sent}) if positions and rng.random() < 0.5 else ():
        reached.setdefault(log, rng.randrange(20))
    for (topic, partition), end in sorted(reached.items()) if positions else ():
        before, after = rng.choice([(0, end), (0, end), (end, end + 2), (rng.randrange(20), rng.randrange(20))])
        tables.add("positions", op_id=poll, topic=topic, partition=partition, before=before, after=after, cause="read")
