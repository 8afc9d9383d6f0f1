"""The definitions that cross partitions, once more and slowly: each a sentence as a loop over the whole run."""

FOREVER = 2**63 - 1


def judge_run(o, logs):
    torn_transaction(o, logs)


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
            (not promised, log.topic, log.partition, r["offset"], r["op"], r["value"] or 0, r["value"], missers)
            for log, r in records
            if not stable_readers(o, r)
            for promised, missers in missed(o, log, r)
        ]
        if missing:
            permitted, topic, partition, offset, sender, _, value, missers = min(missing)
            row = ((sender, min(missers), min(readers)), topic, partition, offset, value)
            o.found["torn-transaction", "permitted" if permitted else "violation"].append(row)


def stable_readers(o, r):
    return [row["op_id"] for row in r["reads"] if o.isolation(row["op_id"]) == "read_committed"]


def is_covered(o, log, r):
    if log.ambiguous:
        return False
    if stable_readers(o, r):
        return True
    return r["offset"] is not None and any(o.isolation(op) == "read_committed" for op in log.covering(r["offset"]))


def missed(o, log, r):
    """(whether it was promised, the reads that show it missing): the promised ones before others."""
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
