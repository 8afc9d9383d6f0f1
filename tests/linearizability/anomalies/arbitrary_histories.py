"""Arbitrary histories: rows that fit the schemas, with offsets, outcomes and reads that no broker produces."""

from tests.linearizability.anomalies.histories import TOPIC, Tables


def arbitrary_history(rng):  # noqa: C901 - one branch for each kind of row
    """Return a random history. Its rows fit the schemas, but may break other rules of the format; see `well_formed`."""

    def maybe(p, yes, no=None):
        return yes if rng.random() < p else no

    topics = {"replication.factor": "3", "min.insync.replicas": rng.choice(["1", "2"])}
    if rng.random() < 0.2:
        topics["cleanup.policy"] = rng.choice(["compact", "compact,delete"])
    if rng.random() < 0.1:
        topics["retention.ms"] = "1000"
    if rng.random() < 0.2:
        topics["unclean.leader.election.enable"] = "true"
    tables = Tables(
        topics={TOPIC: topics}, complete=rng.random() < 0.9, cluster=maybe(0.3, {"flush.messages": "1"}, {})
    )
    ids = rng.choice([[None], ["A"], ["A", None], ["A", "B"], ["A", "B", None]])
    with_positions = rng.random() < 0.7
    partitions = rng.choice([1, 1, 2])
    now, values, logs = 100, iter(range(1000, 9000)), {}
    sent = {}
    mode = rng.choice(["any", "any", "groups", "transactions"])
    if mode != "any":
        ids, partitions = ids[:1], rng.choice([1, 2])
    group_share = {"any": 0.1, "groups": 0.8, "transactions": 0}[mode]
    for _ in range(rng.randrange(3, 18 if mode == "any" else 40)):
        now += rng.randrange(0, 6)
        process = rng.randrange(4 if mode == "any" else 2)
        topic_id, partition = rng.choice(ids), rng.randrange(partitions)
        log = logs.setdefault((topic_id or ids[0], partition), [])
        duration = rng.randrange(0, 25)
        complete = maybe(0.93, now + duration)
        chance = rng.random()
        if rng.random() < group_share:
            _add_group_rows(rng, tables, (now, complete, process), (topic_id, partition))
        elif chance < 0.45:
            outcome = rng.choices(["ok", "info", "fail"], [7, 2, 1])[0]
            idempotent = rng.random() < 0.5
            op = tables.op(
                process,
                "produce",
                now,
                complete,
                outcome,
                acks=rng.choice([-1, -1, -1, 1, 0, None]),
                producer_id=maybe(idempotent, rng.choice([5, 5, 6, -1])),
                producer_epoch=maybe(idempotent, rng.randrange(2)),
                txn_seq=maybe(0.9 if mode == "transactions" else 0.4, rng.randrange(3)),
                txn_id="x",
                node=maybe(0.7, rng.randrange(1, 4)),
            )
            epoch = maybe(0.5, rng.randrange(3))
            base = maybe(0.85, len(log), rng.randrange(8))
            for seq in range(rng.randrange(1, 4)):
                value = maybe(0.9, next(values), maybe(0.7, None, rng.choice([*sent, 999])))
                key = rng.choice([None, "a", "b"])
                offset = maybe(0.93, base + seq) if outcome == "ok" else None
                if value is not None:
                    sent[value] = True
                columns = {"key": key, "topic_id": topic_id, "leader_epoch": epoch}
                tables.record(op, seq, "send", TOPIC, partition, offset, value, **columns)
                if outcome != "fail" and rng.random() < 0.9:
                    while len(log) <= base + seq:
                        log.append(None)
                    log[base + seq] = (value, key)
        elif chance < 0.85:
            op = tables.op(
                process,
                "poll",
                now,
                complete,
                rng.choice(["ok", "ok", "info"]),
                isolation=rng.choice(
                    ["read_committed"] * (5 if mode == "transactions" else 1) + ["read_uncommitted", None]
                ),
            )
            if not log:
                continue
            begin = maybe(0.5, 0, rng.randrange(len(log)))
            end = maybe(0.6, len(log), rng.randrange(begin, len(log)) + 1)
            seq = 0
            for offset in range(begin, end):
                if log[offset] is None or rng.random() < 0.08:
                    continue
                value, key = log[offset]
                if rng.random() < 0.05:
                    value = rng.choice([*sent, 7777, None])
                returned_offset = maybe(0.93, offset, maybe(0.3, None, rng.randrange(9)))
                tables.record(
                    op,
                    seq,
                    "read",
                    TOPIC,
                    partition,
                    returned_offset,
                    value,
                    key=key,
                    topic_id=topic_id,
                    leader_epoch=maybe(0.5, rng.randrange(3)),
                    intact=rng.random() < 0.97,
                )
                seq += 1
            if with_positions and rng.random() < 0.93:
                for _ in range(rng.choice([1, 1, 1, 2])):
                    tables.add(
                        "positions",
                        op_id=op,
                        topic=TOPIC,
                        topic_id=topic_id,
                        partition=partition,
                        before=begin,
                        after=end + rng.randrange(3),
                        cause=maybe(0.9, "read", "reset"),
                        last_stable_offset=maybe(0.3, rng.randrange(9)),
                        log_start_offset=maybe(0.1, rng.randrange(4)),
                    )
                    begin = rng.randrange(9)
                    end = begin + rng.randrange(5)
        elif chance < 0.93:
            f = rng.choice(["commit_txn"] * (8 if mode == "transactions" else 2) + ["abort_txn", "init_producer_id"])
            tables.op(
                process,
                f,
                now,
                complete,
                rng.choice(["ok", "ok", "info", "fail"]),
                txn_id="x",
                txn_seq=None if f == "init_producer_id" else rng.randrange(3),
                producer_id=rng.choice([None, 5, 5, 6]),
                producer_epoch=rng.choice([None, 0, 1, 2]),
            )
        elif chance < 0.96:
            tables.op(process, rng.choice(["seek", "assign"]), now, complete)
        elif chance < 0.98:
            tables.op(
                process,
                "delete_records",
                now,
                complete,
                rng.choice(["ok", "info", "fail"]),
                topic=TOPIC,
                topic_id=topic_id,
                partition=partition,
                offset=rng.choice([-1, 1, 3]),
            )
        else:
            tables.op(
                process,
                "delete_topic",
                now,
                complete,
                rng.choice(["ok", "info", "fail"]),
                topic=TOPIC,
                topic_id=maybe(0.5, topic_id),
            )
    _add_states_and_faults(rng, tables, ids, partitions, now)
    return tables


def _add_group_rows(rng, tables, when, where):
    """Add an assignment event, or an operation of a transaction or a group with its rows.

    :param when: (time of the event or invocation, completion, process).
    :param where: (topic id, partition).
    """
    now, complete, process = when
    topic_id, partition = where
    place = {"topic": TOPIC, "topic_id": topic_id, "partition": partition}
    f = rng.choice(
        ["commit_offsets"] * 3 + ["fetch_offsets"] * 3 + ["produce", "produce", "assigned", "assigned", "other"]
    )
    group = rng.choice(["g", "g", "g", "h"])
    if f == "assigned":
        tables.add(
            "assignments",
            at_ns=now,
            process=process,
            group=rng.choice(["g", "g", "h", None]),
            member_id=rng.choice([None, f"m{process}", "m1"]),
            instance_id=rng.choice([None, None, "i", "j"]),
            generation=rng.choice([1, 1, 2, None]),
            event=rng.choice(["assigned"] * 4 + ["revoked", "lost"]),
            **place,
        )
        return
    if f == "other":
        f = rng.choice(["heartbeat", "commit_txn"] * 8 + ["unsubscribe", "close", "share_fetch", "delete_group"])
    op = tables.op(
        process,
        f,
        now,
        complete,
        rng.choices(["ok", "info", "fail"], [6, 1, 1])[0],
        group=rng.choice([group, group, None]),
        error=rng.choice([None, None, "UNKNOWN_MEMBER_ID", "NETWORK_EXCEPTION"]) if f == "heartbeat" else None,
        txn_id=rng.choice(["x", None]),
        txn_seq=rng.randrange(3) if f in ("produce", "commit_txn") or rng.random() < 0.4 else None,
        producer_id=rng.choice([None, 5]),
        producer_epoch=rng.choice([None, 0, 1]),
        isolation=rng.choice([None, "read_committed", "read_uncommitted"]),
    )
    for seq in range(rng.randrange(1, 3)):
        if f == "produce":
            tables.add("inputs", op_id=op, seq=seq, offset=rng.randrange(3), **place)
        elif f.endswith("offsets"):
            offset, direction = rng.choice([1, 2, 3, 4, None]), "commit" if f == "commit_offsets" else "fetched"
            if offset is None and direction == "commit" and rng.random() < 0.95:
                offset = 5
            tables.add("offsets", op_id=op, group=group, offset=offset, direction=direction, **place)


def arbitrary_group_history(rng):
    """Return a history of transactions, commits, fetches and assignments of one partition that often conflict."""
    tables, now = Tables(topics={TOPIC: {}}), 10
    place = {"topic": TOPIC, "partition": 0}
    kinds = ["produce", "commit_txn", "assigned", "heartbeat"] + ["commit_offsets", "fetch_offsets"] * 2
    for _ in range(rng.randrange(4, 30)):
        now += rng.randrange(5)
        f, process = rng.choice(kinds), rng.randrange(2)
        if f == "assigned":
            member, instance = rng.choice([f"m{process}", None]), rng.choice([None, None, "i"])
            columns = {"member_id": member, "instance_id": instance, "generation": 1, "process": process, "group": "g"}
            tables.add("assignments", at_ns=now, event=rng.choice([f, f, "revoked"]), **columns, **place)
            continue
        is_transactional = f in ("produce", "commit_txn") or (f == "commit_offsets" and rng.random() < 0.6)
        op = tables.op(
            process,
            f,
            now,
            rng.choice([now + rng.randrange(8)] * 9 + [None]),
            rng.choice(["ok"] * 6 + ["info", "fail"]),
            txn_id="x" if is_transactional else None,
            txn_seq=rng.randrange(2) if is_transactional else None,
            isolation=rng.choice([None, "read_committed"]),
            error=rng.choice([None, None, "UNKNOWN_MEMBER_ID"]) if f == "heartbeat" else None,
        )
        if f == "produce":
            for seq in range(rng.randrange(1, 3)):
                tables.add("inputs", op_id=op, seq=seq, offset=rng.randrange(3), **place)
        elif f == "commit_offsets":
            offset = rng.choice([1, 2, 3, 4] * 8 + [None])
            columns = {"group": rng.choice("ggh"), "offset": offset, "direction": "commit"}
            tables.add("offsets", op_id=op, **columns, **place)
        elif f == "fetch_offsets":
            columns = {"group": rng.choice("ggh"), "offset": rng.choice([1, 2, 3, 4, None]), "direction": "fetched"}
            tables.add("offsets", op_id=op, **columns, **place)
    if rng.random() < 0.3:
        heal = rng.choice([now // 2 + 12, now // 2 + 12, None])
        tables.add("faults", fault_id=0, kind=rng.choice(["kill", "wipe"]), target="1", inject_ns=12, heal_ns=heal)
    return tables


def _add_states_and_faults(rng, tables, ids, parts, now):
    for _ in range(rng.randrange(6)):
        sent_ns = rng.randrange(100, now + 30)
        tables.add(
            "states",
            asked_ns=sent_ns,
            answered_ns=sent_ns + rng.randrange(5),
            source=rng.choice(["list_offsets", "list_offsets", "fetch", "metadata"]),
            isolation=rng.choice(["read_uncommitted", "read_uncommitted", "read_committed"]),
            node=rng.choice([1, 1, 2, None]),
            topic=TOPIC,
            topic_id=rng.choice(ids),
            partition=rng.randrange(parts),
            leader=1,
            leader_epoch=rng.choice([0, 1, 2, None]),
            isr=rng.choice([None, [1, 2, 3], [1, 2]]),
            high_watermark=rng.choice([None, 0, 2, 5, 9]),
            last_stable_offset=rng.choice([None, None, 0, 3]),
            log_start_offset=rng.choice([None, None, None, 1]),
            error=rng.choice([None, None, "NOT_LEADER_OR_FOLLOWER"]),
        )
    for number in range(rng.choice([0, 0, 1, 2, 3])):
        kind = rng.choice(["kill", "power", "wipe", "disk", "cut", "configuration", "election"])
        argument = {
            "disk": rng.choice(["EIO", "ENOSPC", "slow", "lost writes", "torn write"]),
            "configuration": rng.choice(
                [
                    "min.insync.replicas=1",
                    "unclean.leader.election.enable=true",
                    "cleanup.policy=compact",
                    "flush.messages=10",
                ]
            ),
            "election": rng.choice(["unclean", "preferred"]),
        }.get(kind)
        inject = rng.randrange(100, now + 10)
        target = {"configuration": rng.choice([TOPIC, None, "1"]), "cut": "1->2"}.get(kind, rng.choice(["1", "2", "3"]))
        tables.add(
            "faults",
            fault_id=number,
            kind=kind,
            target=target,
            argument=argument,
            inject_ns=inject,
            heal_ns=None if rng.random() < 0.15 else inject + rng.randrange(20),
        )
    for _ in range(rng.choice([0, 0, 1])):
        tables.add(
            "assignments",
            at_ns=rng.randrange(100, now + 10),
            process=rng.randrange(4),
            topic=TOPIC,
            topic_id=rng.choice(ids),
            partition=0,
            event="assigned",
        )


def well_formed(tables):
    """Change the rows so that the history is valid for `validate`; return the history."""
    ids = {row["topic_id"] for rows in tables.rows.values() for row in rows if row.get("topic_id")}
    for name in ("records", "positions"):
        for row in tables.rows[name]:
            row["topic_id"] = row["topic_id"] or min(ids, default=None)
    sent, next_invoke_ns = set(), {}
    for row in tables.rows["records"]:
        if row["direction"] == "send" and row["value"] is not None:
            identity = row["topic_id"], row["partition"], row["value"]
            row["value"] = 100_000 + len(sent) if identity in sent else row["value"]
            sent.add((row["topic_id"], row["partition"], row["value"]))
    for row in reversed(tables.rows["operations"]):
        if row["complete_ns"] is None and row["outcome"] == "ok":
            row["outcome"] = "info"
        if row["f"] != "produce":
            if row["complete_ns"] is not None:
                row["complete_ns"] = min(row["complete_ns"], next_invoke_ns.get(row["process"], row["complete_ns"]))
            next_invoke_ns[row["process"]] = row["invoke_ns"]
    for row in tables.rows["positions"]:
        if row["cause"] != "read":
            row["after"] = row["before"]
    return tables
