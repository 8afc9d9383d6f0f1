"""Oracle for the validator: the rules of the history format, checked row by row in plain Python."""

from itertools import combinations

from linearizability.history.schema import COLUMNS


def is_valid(tables) -> bool:
    """Whether the rows of each table, as dictionaries, keep all rules of the format."""
    rows = {name: tables.get(name, []) for name in COLUMNS}
    return (
        all(_columns_are_valid(name, rows[name]) for name in COLUMNS)
        and _periods_are_valid(rows)
        and _operations_are_valid(rows["operations"])
        and _rows_belong_to_operations(rows)
        and _topics_are_unambiguous(rows)
        and _records_are_valid(rows)
        and all(row["cause"] == "read" or row["before"] == row["after"] for row in rows["positions"])
    )


def _columns_are_valid(name, rows):
    for row in rows:
        # An operation that is ok has completed.
        if name == "operations" and row["outcome"] == "ok" and row.get("complete_ns") is None:
            return False
        for column in COLUMNS[name]:
            value = row.get(column.name)
            if value is None and column.required:
                return False
            if value is not None and not _is_permitted(column, value):
                return False
    return True


def _is_permitted(column, value):
    if column.name.endswith("_ns") and abs(value) > 2**62:
        return False
    if column.unknown is not None and value == column.unknown:
        return True
    if column.minimum is not None and not column.minimum <= value <= column.maximum:
        return False
    return column.values is None or value in column.values


def _periods_are_valid(rows):
    periods = {
        "operations": ("invoke_ns", "complete_ns"),
        "states": ("asked_ns", "answered_ns"),
        "faults": ("inject_ns", "heal_ns"),
    }
    return all(
        row.get(end) is None or row[end] >= row[begin] for name, (begin, end) in periods.items() for row in rows[name]
    )


def _operations_are_valid(operations):
    for one, other in combinations(operations, 2):
        if one["op_id"] == other["op_id"]:
            return False
        first, second = sorted((one, other), key=lambda row: row["op_id"])
        if first["invoke_ns"] > second["invoke_ns"]:
            return False
        # A produce may overlap any other operation of its process.
        if first["process"] != second["process"] or "produce" in (first["f"], second["f"]):
            continue
        if first["complete_ns"] is not None and first["complete_ns"] > second["invoke_ns"]:
            return False
    return True


def _rows_belong_to_operations(rows):
    op_ids = {row["op_id"] for row in rows["operations"]}
    return all(row["op_id"] in op_ids for name in ("records", "positions", "offsets", "inputs") for row in rows[name])


def _ids(rows):
    """Return the set of topic ids that each topic name has in any table."""
    ids = {}
    for table in rows.values():
        for row in table:
            if row.get("topic") is not None and row.get("topic_id") is not None:
                ids.setdefault(row["topic"], set()).add(row["topic_id"])
    return ids


def _topics_are_unambiguous(rows):
    """Whether each record and position has a topic id, or a topic name with at most one id."""
    ids = _ids(rows)
    checked = rows["records"] + rows["positions"]
    return all(row.get("topic_id") is not None or len(ids.get(row["topic"], ())) <= 1 for row in checked)


def _records_are_valid(rows):
    ids = _ids(rows)

    def partition_key(row):
        topic_id = row.get("topic_id") or next(iter(ids.get(row["topic"], ())), None)
        return (topic_id, None if topic_id else row["topic"], row["partition"])

    for one, other in combinations(rows["records"], 2):
        if (one["op_id"], one["direction"]) == (other["op_id"], other["direction"]):
            if one["seq"] == other["seq"]:
                return False
            if one["direction"] == "send" and partition_key(one) != partition_key(other):
                return False
        are_sent = one["direction"] == other["direction"] == "send"
        have_equal_values = one["value"] is not None and one["value"] == other["value"]
        if are_sent and have_equal_values and partition_key(one) == partition_key(other):
            return False
    return all(row["direction"] == "send" or row["intact"] is not None for row in rows["records"])
