"""Small random histories for the tables of a report: they last many seconds, and have groups and reads of replicas."""

import random

from tests.linearizability.anomalies.arbitrary_histories import arbitrary_history, well_formed

TICK_NS = 97_000_003
"""Factor of all generated times. With it, a history lasts many seconds, and its latencies fall into many buckets."""


def strange(seed):
    """Generate a history that is valid in format, although no broker may be able to produce it."""
    rng = random.Random(seed)
    tables = well_formed(arbitrary_history(rng))
    tables.run["run_id"] = f"strange-{seed}"
    for rows in tables.rows.values():
        for row in rows:
            for name in row:
                if name.endswith("_ns") and row[name] is not None:
                    row[name] = row[name] * TICK_NS
    for row in tables.rows["operations"]:
        if row["f"] == "poll" and rng.random() < 0.15:
            row["f"] = "read_replica"
        elif row["f"] == "poll" and rng.random() < 0.3:
            row["group"] = rng.choice("gh")
        if row["outcome"] != "ok" and rng.random() < 0.7:
            row["error"] = rng.choice(["NETWORK_EXCEPTION", "NOT_ENOUGH_REPLICAS"])
    for row in tables.rows["states"]:
        row["leader"] = rng.choice([1, 1, 2, 3, None, -1])
    if not tables.rows["operations"]:
        tables.op(0, "poll", 0, 10)
    return tables
