"""Functions that each plant one anomaly in a history of a `SimulatedPartition`; return whether that was possible."""

import itertools

from tests.linearizability.anomalies.histories import TOPIC


def _acknowledged(tables):
    """Return the sends of some records in the order of their offsets, and the op_ids of the final polls.

    These records were acknowledged with acks=all, are outside of transactions, and were returned by both final polls.
    """
    operations = {row["op_id"]: row for row in tables.rows["operations"]}
    finals = [op_id for op_id, row in operations.items() if row["process"] in (40, 41) and row["f"] == "poll"]
    sends = [
        row
        for row in tables.rows["records"]
        if row["direction"] == "send"
        and row["offset"] is not None
        and row["value"] is not None
        and operations[row["op_id"]]["acks"] == -1
        and operations[row["op_id"]]["outcome"] == "ok"
        and operations[row["op_id"]]["txn_seq"] is None
        and operations[row["op_id"]]["complete_ns"] is not None
    ]
    returned = {(row["op_id"], row["value"]) for row in _reads(tables)}
    return sorted(
        (s for s in sends if all((op, s["value"]) in returned for op in finals)), key=lambda s: s["offset"]
    ), finals


def _reads(tables):
    return [row for row in tables.rows["records"] if row["direction"] == "read"]


def lost_write(tables, rng):
    """Remove an acknowledged record from all reads."""
    sends, _ = _acknowledged(tables)
    if not sends:
        return False
    lost = rng.choice(sends)["value"]
    tables.rows["records"] = [r for r in tables.rows["records"] if r["direction"] == "send" or r["value"] != lost]
    return True


def divergent_offset(tables, rng):
    """Let the last poll return another value at one offset."""
    sends, finals = _acknowledged(tables)
    if len(sends) < 2:
        return False
    one, other = rng.sample(sends, 2)
    for row in _reads(tables):
        if row["op_id"] == finals[-1] and row["value"] == one["value"]:
            row["value"] = other["value"]
    return True


def duplicate(tables, rng):
    """Let both final polls return a record at a second offset."""
    sends, finals = _acknowledged(tables)
    if not sends:
        return False
    next_offset = max(row["offset"] for row in _reads(tables)) + 1
    value = rng.choice(sends)["value"]
    for op_id in finals:
        tables.record(op_id, 10_000, "read", TOPIC, 0, next_offset, value, topic_id=sends[0]["topic_id"])
    return True


def phantom_read(tables, rng):
    """Let both final polls return a value that was not sent."""
    sends, finals = _acknowledged(tables)
    if not sends:
        return False
    next_offset = max(row["offset"] for row in _reads(tables)) + 1
    for op_id in finals:
        tables.record(op_id, 10_000, "read", TOPIC, 0, next_offset, 1, topic_id=sends[0]["topic_id"])
    return True


def offset_mismatch(tables, rng):
    """Let a produce acknowledge the offset of another record."""
    sends, _ = _acknowledged(tables)
    if len(sends) < 2:
        return False
    one = rng.choice(sends[1:])
    one["offset"] = sends[0]["offset"]
    return True


def corrupt_record(tables, rng):
    reads = _reads(tables)
    if not reads:
        return False
    rng.choice(reads)["intact"] = False
    return True


def _swap(tables, one, other):
    for row in tables.rows["records"]:
        if row["offset"] is not None:
            row["offset"] = {one: other, other: one}.get(row["offset"], row["offset"])


def producer_order(tables, rng):
    sends, _ = _acknowledged(tables)
    pairs = [(a, b) for a, b in itertools.pairwise(sends) if a["op_id"] == b["op_id"]]
    if not pairs:
        return False
    one, other = rng.choice(pairs)
    _swap(tables, one["offset"], other["offset"])
    return True


def realtime_order(tables, rng):
    sends, _ = _acknowledged(tables)
    operations = {row["op_id"]: row for row in tables.rows["operations"]}
    pairs = [
        (a, b)
        for a in sends
        for b in sends
        if operations[a["op_id"]]["complete_ns"] < operations[b["op_id"]]["invoke_ns"]
    ]
    if not pairs:
        return False
    one, other = rng.choice(pairs)
    _swap(tables, one["offset"], other["offset"])
    return True


def unseen(tables, rng):
    """Add a produce above all positions, which no poll covers."""
    end = max((row["after"] for row in tables.rows["positions"]), default=0) + 1
    now = max(row["invoke_ns"] for row in tables.rows["operations"]) + 10
    op = tables.op(1, "produce", now, now + 1, acks=-1, producer_id=101, producer_epoch=0)
    ids = {row["topic_id"] for row in tables.rows["positions"]}
    tables.record(op, 0, "send", TOPIC, 0, end, 2, topic_id=next(iter(ids)))
    return True


def aborted_read(tables, rng):
    """Let the produce of a record that was read fail."""
    sends, _ = _acknowledged(tables)
    if not sends:
        return False
    send = rng.choice(sends)
    tables.rows["operations"][send["op_id"]]["outcome"] = "fail"
    return True


def _acknowledged_produces(tables, count):
    """Return the op_ids of the produces of `_acknowledged` in ascending order; None if there are fewer than `count`."""
    sends, _ = _acknowledged(tables)
    op_ids = sorted({send["op_id"] for send in sends})
    return op_ids if len(op_ids) >= count else None


def _set_leader(tables, op_id, node, epoch):
    tables.rows["operations"][op_id]["node"] = node
    for row in tables.rows["records"]:
        if row["op_id"] == op_id:
            row["leader_epoch"] = epoch


def two_leaders(tables, rng):
    op_ids = _acknowledged_produces(tables, 2)
    if op_ids is None:
        return False
    for node, op_id in enumerate(rng.sample(op_ids, 2)):
        _set_leader(tables, op_id, 7 + node, 99)
    return True


def fenced_leader_write(tables, rng):
    op_ids = _acknowledged_produces(tables, 2)
    operations = tables.rows["operations"]
    pairs = [(a, b) for a in op_ids or () for b in op_ids if operations[a]["complete_ns"] < operations[b]["invoke_ns"]]
    if not pairs:
        return False
    first, fenced = rng.choice(pairs)
    _set_leader(tables, first, 7, 99)
    _set_leader(tables, fenced, 8, 98)
    return True


def _add_end_offset(tables, end, epoch, **columns):
    """Add a ListOffsets response of another node, after all operations."""
    now = max(row["complete_ns"] or row["invoke_ns"] for row in tables.rows["operations"]) + 10
    ids = {row["topic_id"] for row in tables.rows["records"]}
    tables.add(
        "states",
        asked_ns=now,
        answered_ns=now + 1,
        source="list_offsets",
        isolation="read_uncommitted",
        node=9,
        topic=TOPIC,
        topic_id=next(iter(ids), None),
        partition=0,
        leader_epoch=epoch,
        high_watermark=end,
        **columns,
    )


def _newest_epoch(tables):
    rows = [*tables.rows["records"], *tables.rows["states"]]
    return max((row["leader_epoch"] for row in rows if row["leader_epoch"] is not None), default=0)


def stale_end_offset(tables, rng):
    sends, _ = _acknowledged(tables)
    if not sends:
        return False
    _add_end_offset(tables, rng.choice(sends)["offset"], _newest_epoch(tables) + rng.randrange(2))
    return True


def watermark_regress(tables, rng):
    reported = [row for row in tables.rows["states"] if row["source"] == "list_offsets"]
    if not reported:
        return False
    row = rng.choice(reported)
    again = {**row, "asked_ns": row["answered_ns"] + 1, "answered_ns": row["answered_ns"] + 2}
    mark = rng.choice(["high_watermark", "last_stable_offset"])
    if not row[mark]:
        return False
    tables.rows["states"].append({**again, mark: rng.randrange(row[mark])})
    return True


def read_above_watermark(tables, rng):
    sends, finals = _acknowledged(tables)
    if not sends:
        return False
    # A poll returns a record at the end offset that the leader returns later.
    next_offset = max(row["offset"] for row in _reads(tables)) + 1
    tables.record(finals[0], 10_000, "read", TOPIC, 0, next_offset, 3, topic_id=sends[0]["topic_id"], leader_epoch=0)
    _add_end_offset(tables, next_offset, _newest_epoch(tables))
    return True


def epoch_regress(tables, rng):
    sends, finals = _acknowledged(tables)
    if len(sends) < 2:
        return False
    for row in _reads(tables):
        if row["op_id"] == finals[-1] and row["offset"] == sends[0]["offset"]:
            row["leader_epoch"] = _newest_epoch(tables) + 1
    return True


def poll_skip(tables, rng):
    """Add a consumer that skips one record between two polls."""
    sends, _ = _acknowledged(tables)
    if not sends or not tables.rows["positions"]:
        return False
    skipped = rng.choice(sends)["offset"]
    return _poll_again(tables, [(0, skipped), (skipped + 1, skipped + 1)])


def poll_regress(tables, rng):
    sends, _ = _acknowledged(tables)
    if not sends or not tables.rows["positions"]:
        return False
    end = rng.choice(sends)["offset"] + 1
    return _poll_again(tables, [(0, end), (end - 1, end)])


def _poll_again(tables, ranges):
    """Add a consumer that polls each range, and gets the records that the last poll of the history returned in it."""
    final = max(row["op_id"] for row in tables.rows["operations"] if row["f"] == "poll")
    read = [row for row in _reads(tables) if row["op_id"] == final]
    now = max(row["complete_ns"] or row["invoke_ns"] for row in tables.rows["operations"]) + 10
    start = max((row["log_start_offset"] or 0 for row in tables.rows["positions"]), default=0)
    for low, high in ranges:
        now += 10
        op_id = tables.op(50, "poll", now, now + 1, isolation="read_uncommitted")
        before, after = max(low, start), max(high, start)
        tables.add(
            "positions",
            op_id=op_id,
            topic=TOPIC,
            topic_id=read[0]["topic_id"] if read else None,
            partition=0,
            before=before,
            after=after,
            cause="read",
        )
        for seq, row in enumerate(row for row in read if before <= row["offset"] < after):
            tables.rows["records"].append({**row, "op_id": op_id, "seq": seq})
    return bool(read)


def _transactional(tables):
    """Return {committed transaction: sends of its records that the final read_committed poll returned}."""
    operations = {row["op_id"]: row for row in tables.rows["operations"]}
    committed = {
        (row["process"], row["txn_seq"])
        for row in operations.values()
        if row["f"] == "commit_txn" and row["outcome"] == "ok"
    }
    final = max(op_id for op_id, row in operations.items() if row["process"] == 40 and row["f"] == "poll")
    returned = {row["value"] for row in _reads(tables) if row["op_id"] == final and row["value"] is not None}
    found = {}
    for row in tables.rows["records"]:
        operation = operations[row["op_id"]]
        key = operation["process"], operation["txn_seq"]
        if row["direction"] == "send" and row["value"] in returned and key in committed:
            found.setdefault(key, []).append(row)
    return found


def torn_transaction(tables, rng):
    """Remove one record from all reads. All records of its transaction had been returned."""
    whole = [own for own in _transactional(tables).values() if 2 <= len(own) == _sent_count(tables, own)]
    lost = [row for own in whole for row in own if row["offset"] is not None and row["value"] is not None]
    if not lost:
        return False
    value = rng.choice(lost)["value"]
    tables.rows["records"] = [
        row for row in tables.rows["records"] if row["direction"] == "send" or row["value"] != value
    ]
    return True


def _sent_count(tables, own):
    """Return the number of records that were sent in the transaction of the given records."""
    operations = tables.rows["operations"]
    one = operations[own[0]["op_id"]]
    return sum(
        (operations[row["op_id"]]["process"], operations[row["op_id"]]["txn_seq"]) == (one["process"], one["txn_seq"])
        for row in tables.rows["records"]
        if row["direction"] == "send"
    )


def precommitted_read(tables, rng):
    """Replace the commit of a transaction whose records were read by a request that commits nothing."""
    operations = tables.rows["operations"]
    fenced = {row["txn_id"] for row in operations if row["f"] == "init_producer_id"}
    candidates = [key for key in _transactional(tables) if f"x{key[0]}" not in fenced]
    if not candidates:
        return False
    chosen = rng.choice(candidates)
    for row in operations:
        if (row["process"], row["txn_seq"]) == chosen and row["f"] == "commit_txn":
            row["f"] = "begin_txn"
    return True


def zombie_producer(tables, rng):
    """Replace a poll before an acknowledged transactional produce by one that assigns a newer producer epoch."""
    operations = tables.rows["operations"]
    written = [row for row in operations if row["txn_seq"] and row["f"] == "produce" and row["outcome"] == "ok"]
    earlier = [row for row in operations if row["f"] == "poll" and row["outcome"] == "ok"]
    pairs = [(one, row) for row in written for one in earlier if one["complete_ns"] < row["invoke_ns"]]
    if not pairs:
        return False
    newer, zombie = rng.choice(pairs)
    newer.update(f="init_producer_id", txn_id=zombie["txn_id"], producer_id=zombie["producer_id"])
    newer.update(producer_epoch=zombie["producer_epoch"] + 1)
    return True


PLANTED_ANOMALIES = {
    "lost-write": lost_write,
    "divergent-offset": divergent_offset,
    "duplicate": duplicate,
    "phantom-read": phantom_read,
    "offset-mismatch": offset_mismatch,
    "corrupt-record": corrupt_record,
    "producer-order": producer_order,
    "realtime-order": realtime_order,
    "aborted-read": aborted_read,
    "precommitted-read": precommitted_read,
    "torn-transaction": torn_transaction,
    "zombie-producer": zombie_producer,
    "poll-skip": poll_skip,
    "poll-regress": poll_regress,
    "stale-end-offset": stale_end_offset,
    "watermark-regress": watermark_regress,
    "read-above-watermark": read_above_watermark,
    "epoch-regress": epoch_regress,
    "two-leaders": two_leaders,
    "fenced-leader-write": fenced_leader_write,
    "unseen": unseen,
}
