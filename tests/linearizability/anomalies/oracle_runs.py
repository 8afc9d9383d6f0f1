"""Oracle of the anomalies across partitions: torn transactions and zombie producers, each as a loop, and cycles."""

from tests.linearizability.anomalies.oracle_cycles import judge_cycles


def judge_run(o, logs):
    torn_transaction(o, logs)
    zombie_producer(o)
    judge_cycles(o, logs)


def torn_transaction(o, logs):
    for key, txn in o.txn.items():
        records = [
            (log, r)
            for log in logs
            for r in log.all.values()
            if r["send"] and o.txn_key(r["op"]) == key and r["committed"] and not txn["aborted"]
        ]
        readers = [op_id for _, r in records for op_id in stable_readers(o, r)]
        if not readers or not all(is_covered(o, log, r) for log, r in records):
            continue
        missing = [
            (not promised, log.topic, log.partition, r["offset"], r["op"], r["value"] or 0, r["value"], skipping_reads)
            for log, r in records
            if not stable_readers(o, r)
            for promised, skipping_reads in missed(o, log, r)
        ]
        if missing:
            permitted, topic, partition, offset, sender, _, value, skipping_reads = min(missing)
            row = ((sender, min(skipping_reads), min(readers)), topic, partition, offset, value)
            o.found["torn-transaction", "permitted" if permitted else "violation"].append(row)


def zombie_producer(o):
    uses = [  # successful operations with a transactional id, a producer id and an epoch
        u
        for u in o.op.values()
        if u["txn_id"] is not None
        and u["outcome"] == "ok"
        and u["producer_id"] not in (None, -1)
        and u["producer_epoch"] is not None
    ]
    for u in uses:
        newer = [n["op_id"] for n in uses if o.complete(n["op_id"]) < u["invoke_ns"] and is_newer(o, uses, n, u)]
        if newer and (writes(u) or first_commit(o, u)):
            topics = ["__transaction_state", *([u["topic"]] if u["topic"] else [])]
            verdict = "violation" if all(o.keeps_content(topic) for topic in topics) else "permitted"
            o.found["zombie-producer", verdict].append(
                ((u["op_id"], min(newer)), u["topic"], u["partition"], None, None)
            )


def is_newer(o, uses, n, u):
    """Whether use `n` of a transactional id has a newer producer epoch, or producer id, than use `u`."""
    if n["txn_id"] != u["txn_id"]:
        return False
    if n["producer_id"] == u["producer_id"]:
        return n["producer_epoch"] > u["producer_epoch"]

    def times_of(producer_id):
        """Return when the first use completed, and when the id was assigned; None if that is unknown."""
        own = [x for x in uses if (x["txn_id"], x["producer_id"]) == (u["txn_id"], producer_id)]
        assigned = min((x["invoke_ns"] for x in own if x["f"] == "init_producer_id"), default=None)
        first = min(o.complete(x["op_id"]) for x in own)
        return first, assigned if assigned is not None and assigned <= first else None

    assigned = times_of(n["producer_id"])[1]
    return assigned is not None and assigned > times_of(u["producer_id"])[0]


def writes(u):
    """Whether an operation writes records or offsets in a transaction."""
    return u["f"] == "produce" or (u["f"] == "commit_offsets" and u["txn_seq"] is not None)


def first_commit(o, u):
    """Whether an operation is the first commit request of a transaction with writes."""
    if u["f"] != "commit_txn" or u["txn_seq"] is None:
        return False
    own = [
        x
        for x in o.op.values()
        if (x["process"], x["txn_seq"]) == (u["process"], u["txn_seq"]) and x["txn_id"] is not None
    ]
    commits = [x["op_id"] for x in own if x["f"] == "commit_txn" and x["outcome"] != "fail"]
    return min(commits) == u["op_id"] and any(writes(x) and x["outcome"] == "ok" for x in own)


def stable_readers(o, r):
    """Return the read_committed reads that returned a record."""
    return [row["op_id"] for row in r["reads"] if o.isolation(row["op_id"]) == "read_committed"]


def is_covered(o, log, r):
    """Whether a read_committed read returned a record or covers its offset."""
    if log.ambiguous:
        return False
    if stable_readers(o, r):
        return True
    return r["offset"] is not None and any(o.isolation(op) == "read_committed" for op in log.covering(r["offset"]))


def missed(o, log, r):
    """Return [(is promised, op_ids of the read_committed reads that miss a record)]; empty without such reads.

    If the record was promised to some of these reads, only they are returned.
    """
    shown = {
        op_id: log.promised_at(r, op_id)
        for op_id, stable in log.covering(r["offset"]).items()
        if o.isolation(op_id) == "read_committed"
        and op_id not in {row["op_id"] for row in r["reads"]}
        and log.counts(r, op_id)
        and not log.absent_from(r, r["offset"], op_id, stable)
    }
    promised = any(shown.values())
    return [(promised, [op_id for op_id, was in shown.items() if was or not promised])] if shown else []
