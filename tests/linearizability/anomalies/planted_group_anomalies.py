"""Functions that each plant an anomaly of groups in a history of a `Pipeline`; return whether that was possible."""

from tests.linearizability.anomalies.pipeline import SOURCE


def _add_fetch(tables, group, offset):
    """Add a fetch of the committed offset of a group, after all other operations."""
    now = max(row["complete_ns"] or row["invoke_ns"] for row in tables.rows["operations"]) + 10
    op_id = tables.op(50, "fetch_offsets", now, now + 1, group=group, isolation="read_committed")
    columns = {"topic": SOURCE, "partition": 0, "offset": offset, "direction": "fetched"}
    tables.add("offsets", op_id=op_id, group=group, **columns)


def _commits(tables):
    """Return the rows of `offsets` of the acknowledged commits of group `h`, which are outside of transactions."""
    operations = tables.rows["operations"]
    commits = [row for row in tables.rows["offsets"] if row["direction"] == "commit" and row["group"] == "h"]
    return [row for row in commits if operations[row["op_id"]]["outcome"] == "ok"]


def commit_lost(tables, rng):
    """Add two fetches that return no offset."""
    if not _commits(tables):
        return False
    for _ in range(2):
        _add_fetch(tables, "h", None)
    return True


def commit_regress(tables, rng):
    """Add two fetches that return an offset that was not committed."""
    if not _commits(tables):
        return False
    for _ in range(2):
        _add_fetch(tables, "h", 1000)
    return True


def double_ownership(tables, rng):
    """Assign the partition to a second member too, in the last generation, if its owner has later operations."""
    owners = [row for row in tables.rows["assignments"] if row["event"] == "assigned"]
    row = owners[-1]
    at_ns = row["at_ns"] + 1
    if max(op["invoke_ns"] for op in tables.rows["operations"] if op["process"] == row["process"]) <= at_ns:
        return False
    tables.rows["assignments"].append({**row, "at_ns": at_ns, "process": 50, "member_id": "m50"})
    now = max(op["complete_ns"] for op in tables.rows["operations"]) + 10
    tables.op(50, "poll", now, now + 1)
    return True


def reprocessed_input(tables, rng):
    """Let two committed transactions process the same input."""
    operations = tables.rows["operations"]
    committed = {
        row["txn_seq"]
        for row in operations
        if row["f"] == "commit_txn" and row["outcome"] == "ok" and row["txn_seq"] is not None
    }
    inputs = [row for row in tables.rows["inputs"] if operations[row["op_id"]]["txn_seq"] in committed]
    pairs = [(one, other) for one in inputs for other in inputs if one["op_id"] < other["op_id"]]
    if not pairs:
        return False
    one, other = rng.choice(pairs)
    other["offset"] = one["offset"]
    return True


PLANTED_GROUP_ANOMALIES = {
    "commit-lost": commit_lost,
    "commit-regress": commit_regress,
    "double-ownership": double_ownership,
    "reprocessed-input": reprocessed_input,
}
