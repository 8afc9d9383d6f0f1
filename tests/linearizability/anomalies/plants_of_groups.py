"""What must not be in the story of a `Pipeline`: each plants one anomaly of groups, and says whether it could."""

from tests.linearizability.anomalies.pipeline import SOURCE


def _fetched(tables, group, offset):
    """One more fetch of a group's offset, after everything."""
    now = max(row["complete_ns"] or row["invoke_ns"] for row in tables.rows["operations"]) + 10
    op_id = tables.op(50, "fetch_offsets", now, now + 1, group=group, isolation="read_committed")
    columns = {"topic": SOURCE, "partition": 0, "offset": offset, "direction": "fetched"}
    tables.add("offsets", op_id=op_id, group=group, **columns)


def _commits(tables):
    """Rows of `offsets` of commits that were acknowledged outside a transaction."""
    operations = tables.rows["operations"]
    own = [row for row in tables.rows["offsets"] if row["direction"] == "commit" and row["group"] == "h"]
    return [row for row in own if operations[row["op_id"]]["outcome"] == "ok"]


def commit_lost(tables, rng):
    if not _commits(tables):
        return False
    for _ in range(2):
        _fetched(tables, "h", None)
    return True


def commit_regress(tables, rng):
    if not _commits(tables):
        return False
    for _ in range(2):
        _fetched(tables, "h", 1000)
    return True


def double_ownership(tables, rng):
    """A second member is given the partition in the generation of one that still works."""
    held = [row for row in tables.rows["assignments"] if row["event"] == "assigned"]
    row = held[-1]
    again = row["at_ns"] + 1
    if max(op["invoke_ns"] for op in tables.rows["operations"] if op["process"] == row["process"]) <= again:
        return False
    tables.rows["assignments"].append({**row, "at_ns": again, "process": 50, "member_id": "m50"})
    now = max(op["complete_ns"] for op in tables.rows["operations"]) + 10
    tables.op(50, "poll", now, now + 1)
    return True


def reprocessed_input(tables, rng):
    operations = tables.rows["operations"]
    done = {
        row["txn_seq"]
        for row in operations
        if row["f"] == "commit_txn" and row["outcome"] == "ok" and row["txn_seq"] is not None
    }
    made = [row for row in tables.rows["inputs"] if operations[row["op_id"]]["txn_seq"] in done]
    pairs = [(one, other) for one in made for other in made if one["op_id"] < other["op_id"]]
    if not pairs:
        return False
    one, other = rng.choice(pairs)
    other["offset"] = one["offset"]
    return True


GROUP_PLANTS = {
    "commit-lost": commit_lost,
    "commit-regress": commit_regress,
    "double-ownership": double_ownership,
    "reprocessed-input": reprocessed_input,
}
"""Into what a `Pipeline` wrote down."""
