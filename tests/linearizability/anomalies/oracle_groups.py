"""Oracle of the anomalies of consumer groups. Each function is a loop over the rows of one partition."""

from itertools import product

from tests.linearizability.anomalies.oracle_logs import FOREVER

FENCED = {"FENCED_INSTANCE_ID", "FENCED_MEMBER_EPOCH", "ILLEGAL_GENERATION", "STALE_MEMBER_EPOCH", "UNKNOWN_MEMBER_ID"}


def judge_groups(log):
    stale_fetches(log)
    double_ownership(log)
    reprocessed_input(log)


def verdict(log, *topics):
    """Return the verdict of an anomaly: permitted if the committed offsets or these topics may have lost content."""
    return "violation" if all(log.o.keeps_content(topic) for topic in ("__consumer_offsets", *topics)) else "permitted"


def judged_groups(log):
    """Return the groups whose offsets in this partition certainly were not deleted."""
    o = log.o
    deleted = {op["group"] for op in o.op.values() if op["f"].startswith("delete_group") and op["outcome"] != "fail"}
    topics = {op["topic"] for op in o.op.values() if op["f"] == "delete_topic" and op["outcome"] != "fail"}
    if log.topic in topics or int(o.run.get("cluster", {}).get("offsets.retention.minutes", 10080)) < 10080:
        return []
    return sorted({row["group"] for row in log.offsets} - deleted) if None not in deleted else []


def possible_commits(log, group):
    """Return [(op_id, offset, begin, end, is_transactional)] of commits that may have taken effect."""
    o, found = log.o, []
    for row in log.offsets:
        op, txn = o.op[row["op_id"]], o.txn.get(o.txn_key(row["op_id"]))
        if row["group"] != group or row["direction"] != "commit" or op["outcome"] == "fail" or (txn and txn["aborted"]):
            continue
        end = o.complete(row["op_id"]) if op["outcome"] == "ok" else FOREVER
        if txn:
            end = max(end, txn["open_until"] if txn["committed"] else FOREVER)
        found.append((row["op_id"], row["offset"], op["invoke_ns"], end, bool(txn)))
    return found


def stale_fetches(log):
    """Find commit-lost and commit-regress."""
    o, healed = log.o, log.o.healed_after()
    automatic = any(client.get("enable.auto.commit") == "true" for client in o.run.get("clients", {}).values())
    for group in judged_groups(log):
        commits = possible_commits(log, group)  # [(op_id, offset, begin, end, is_transactional)]
        own = [row for row in log.offsets if row["group"] == group]
        if any(row["direction"] == "commit" and row["offset"] is None for row in own):
            continue
        stale = {"commit-lost": [], "commit-regress": []}
        for row in own:
            fetch = o.op[row["op_id"]]
            if row["direction"] != "fetched" or fetch["outcome"] != "ok":
                continue
            if healed is not None and fetch["invoke_ns"] <= healed:
                continue
            is_stable = o.isolation(row["op_id"]) == "read_committed"
            known = [c for c in commits if c[3] < fetch["invoke_ns"] and c[3] != FOREVER and (is_stable or not c[4])]
            if not known:
                continue
            if row["offset"] is None:
                stale["commit-lost"].append((row["op_id"], known))
            elif not automatic and not any(
                c[1] == row["offset"]
                and c[2] <= o.complete(row["op_id"])
                and not any(c[3] < later[2] for later in known)
                for c in commits
            ):
                stale["commit-regress"].append((row["op_id"], known))
        for name, found in stale.items():
            op_ids = sorted({op_id for op_id, _ in found})
            if len(op_ids) > 1:
                _, commit, offset = min((-c[2], c[0], c[1]) for c in dict(found)[op_ids[0]])
                log.add(name, verdict(log), (commit, *op_ids[:2]), offset, None)


def ownerships(log):
    """Yield (group, generation, process, member id, instance id, begin, end) of each ownership of the partition."""
    o = log.o
    for row in log.assignments:
        if row["event"] != "assigned" or row["group"] is None or row["generation"] is None:
            continue
        if any("share" in op["f"] and op["group"] == row["group"] for op in o.op.values()):
            continue
        begin, process = row["at_ns"], row["process"]
        own = [op for op in o.op.values() if op["process"] == process]
        seen = [op["complete_ns"] or op["invoke_ns"] for op in own]
        seen += [event["at_ns"] for event in o.t["assignments"] if event["process"] == process]
        ends = [
            other["at_ns"]
            for other in log.assignments
            if other["event"] != "assigned"
            and other["process"] == process
            and other["group"] in (row["group"], None)
            and other["at_ns"] >= begin
        ]
        ends += [
            max(begin, op["invoke_ns"])
            for op in own
            if (op["error"] in FENCED or op["f"] in ("unsubscribe", "close", "leave_group"))
            and op["group"] in (row["group"], None)
            and o.complete(op["op_id"]) >= begin
        ]
        member = row["member_id"] or f"process {process}"
        if begin not in ends:
            yield row["group"], row["generation"], process, member, row["instance_id"], begin, min([max(seen), *ends])


def may_be_deleted_between(log, group, begin, end):
    """Whether a group may have been deleted between `begin` and `end`, the starts of two ownerships."""
    return any(
        op["f"] in ("delete_group", "delete_groups")
        and op["outcome"] != "fail"
        and op["group"] in (group, None)
        and op["invoke_ns"] <= end
        and (op["outcome"] != "ok" or log.o.complete(op["op_id"]) >= begin)
        for op in log.o.op.values()
    )


def double_ownership(log):
    owners = list(ownerships(log))  # [(group, generation, process, member id, instance id, begin, end)]
    shared = set()
    for one, other in product(owners, owners):
        are_distinct = one[2] != other[2] and one[3] != other[3] and (one[4] is None or one[4] != other[4])
        overlap = max(one[5], other[5]) < min(one[6], other[6]) or one[5] < other[5] == other[6] < one[6]
        begins = sorted((one[5], other[5]))
        if one[:2] == other[:2] and are_distinct and overlap and not may_be_deleted_between(log, one[0], *begins):
            shared.add(one[:2])
    for _ in shared:
        log.add("double-ownership", verdict(log), (), None, None)


def reprocessed_input(log):
    o, reprocessed = log.o, {}
    for group in judged_groups(log):
        commits = [
            (o.txn_key(row["op_id"]), row["offset"], o.invoke(row["op_id"]))
            for row in log.offsets
            if row["group"] == group and row["direction"] == "commit" and o.op[row["op_id"]]["outcome"] != "fail"
        ]
        for offset in {row["offset"] for row in log.inputs}:
            done = {}
            for row in log.inputs:
                key = o.txn_key(row["op_id"])
                txn = o.txn.get(key)
                if (
                    row["offset"] == offset
                    and txn
                    and txn["committed"]
                    and not txn["aborted"]
                    and any(c[0] == key and c[1] is not None and c[1] > offset for c in commits)
                ):
                    done.setdefault(key, []).append(row["op_id"])
            if len(done) < 2:
                continue
            first = min(at for key, _, at in commits if key in done)
            rewinds = [
                at
                for key, to, at in commits
                if (to is None or to <= offset) and at > first and not (key and o.txn[key]["aborted"])
            ]
            if not rewinds:
                reprocessed.setdefault(offset, done)
    for offset, done in reprocessed.items():
        lowest = min((min(op_ids), key) for key, op_ids in done.items())
        second = min(min(op_ids) for key, op_ids in done.items() if key != lowest[1])
        log.add("reprocessed-input", verdict(log, log.topic), (lowest[0], second), offset, None)
