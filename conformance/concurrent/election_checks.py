"""History checks of elections and of the elected leaders (KIP-101, KIP-279, KIP-320, KIP-460)."""

from collections.abc import Iterator, Sequence

from conformance.concurrent.history_checks import HistoryCheck, HistoryFinding, unknown, violation
from conformance.concurrent.topic_history import NEVER_NS, Fault, PartitionView, Row, TopicHistory, topic_histories
from fixtures.clients.outcomes import NETWORK_EXCEPTION, NOT_CONTROLLER, REQUEST_TIMED_OUT
from linearizability.history.reader import History

_OPERATION_ERRORS = {"_in_old_epoch": "FENCED_LEADER_EPOCH", "_in_epoch_to_come": "UNKNOWN_LEADER_EPOCH"}
"""Expected errors by the suffix of the operation's name."""
_NOT_PROCESSED = frozenset({NETWORK_EXCEPTION, REQUEST_TIMED_OUT, NOT_CONTROLLER})
"""Errors of requests that no controller is known to have processed.

NOT_CONTROLLER occurs only before KRaft, where a broker does not forward such requests to the controller.
"""


def follower_takes_over(history: History) -> Sequence[HistoryFinding]:
    """Check that an ISR member is elected after the leader is killed, and acknowledges records."""
    found, seen = [], False
    for topic in topic_histories(history):
        for kill, former in _leader_faults(topic, "kill"):
            seen = True
            successor = next((s for s in topic.after(kill.inject_ns) if s.leader not in (None, former.leader)), None)
            if successor is None:
                found.append(
                    violation(topic.name, f"no leader was elected after node {former.leader}, the leader, was killed")
                )
            elif successor.leader not in former.isr:
                text = f"node {successor.leader} was elected, which was not in the ISR {sorted(former.isr)}"
                found.append(violation(topic.name, text))
            elif not any(row["invoke_ns"] > successor.received_ns for row in topic.acknowledged()):
                found.append(violation(topic.name, f"node {successor.leader} was elected and acknowledged nothing"))
    return found or ([] if seen else [unknown("no leader was killed")])


def one_leader_per_epoch(history: History) -> Sequence[HistoryFinding]:
    """Check that a leader epoch has one leader."""
    found, changed = [], False
    for topic in topic_histories(history):
        leaders: dict[tuple[int, int], int] = {}
        for view in topic.views:
            if view.leader is None or view.leader_epoch is None:
                continue
            epoch = (view.partition, view.leader_epoch)
            if leaders.setdefault(epoch, view.leader) != view.leader:
                text = f"nodes {leaders[epoch]} and {view.leader} both led {topic.name}-{epoch[0]} in epoch {epoch[1]}"
                found.append(violation(topic.name, text))
        changed = changed or len(leaders) > len({partition for partition, _ in leaders})
    return found or ([] if changed else [unknown("no leader changed")])


def replicas_agree(history: History) -> Sequence[HistoryFinding]:
    """Check that after healing all replicas have the same records, in the same epochs, up to the same end.

    Without a violation, the verdict is unknown unless a leader acknowledged records that were later truncated.
    """
    found, truncated = [], False
    for topic in topic_histories(history):
        for partition, logs in topic.replicas.items():
            ends = {max(log, default=-1) for log in logs}
            if len(ends) != 1:
                found.append(violation(topic.name, f"replicas of {topic.name}-{partition} end at {sorted(ends)}"))
            for offset in sorted(set().union(*logs)):
                versions = {_identity(log[offset]) for log in logs if offset in log}
                if len(versions) != 1:
                    text = f"replicas of {topic.name}-{partition} differ at offset {offset}: {sorted(versions)}"
                    found.append(violation(topic.name, text))
                    break
        kept = {row["value"] for logs in topic.replicas.values() for log in logs for row in log.values()}
        if not kept:
            continue
        sent = (row for op in topic.acknowledged() for row in topic.sends.get(op["op_id"], ()))
        truncated = truncated or any(row["value"] not in kept for row in sent)
    return found or ([] if truncated else [unknown("no acknowledged record was truncated")])


def _identity(record: Row) -> tuple[str, ...]:
    return (f"value {record['value']}", f"epoch {record['leader_epoch']}", f"timestamp {record['timestamp_ms']}")


def preferred_election_returns_right_error(history: History) -> Sequence[HistoryFinding]:
    """Check the error of ElectLeaders for the preferred leader.

    PREFERRED_LEADER_NOT_AVAILABLE is expected while that node is down, and ELECTION_NOT_NEEDED if it already leads. If
    it is in the ISR and does not lead, no error is expected, or ELECTION_NOT_NEEDED after an automatic rebalance.
    """
    found, done = [], False
    for topic in topic_histories(history):
        first = next((view.leader for view in topic.partition_views() if view.leader is not None), None)
        for row in topic.calls("elect_preferred_leader"):
            expected = None if first is None else _expected_preferred_errors(topic, row, first)
            if expected is None or row["error"] in _NOT_PROCESSED:
                continue
            later = topic.after(row["complete_ns"])
            if row["error"] not in expected:
                accepted = " or ".join("no error" if error is None else error for error in expected)
                text = f"ElectLeaders (op {row['op_id']}) returned {row['error'] or 'no error'} instead of {accepted}"
                found.append(violation(topic.name, text))
            elif row["error"] is None and all(view.leader != first for view in later):
                found.append(
                    violation(topic.name, f"node {first} was elected (op {row['op_id']}) and did not become the leader")
                )
            done = done or None in expected
    return found or ([] if done else [unknown("no preferred leader could be elected")])


def _expected_preferred_errors(topic: TopicHistory, row: Row, preferred: int) -> tuple[str | None, ...] | None:
    """Return the permitted errors; None if the history does not determine the state at the time of the request."""
    before = topic.before(row["invoke_ns"])
    later = topic.after(row["complete_ns"] or NEVER_NS)
    if before is None or not later:
        return None
    if topic.is_down(preferred, row["invoke_ns"]) and topic.is_down(preferred, row["complete_ns"]):
        return ("PREFERRED_LEADER_NOT_AVAILABLE",)
    if any(fault.covers(row["invoke_ns"]) for fault in topic.faults):
        return None
    if before.leader == preferred == later[0].leader:
        return ("ELECTION_NOT_NEEDED",)
    if before.leader != preferred and preferred in before.isr:
        return (None, "ELECTION_NOT_NEEDED")  # not needed if an automatic rebalance was faster
    return None


def shutdown_moves_leaders(session_timeout_ms: int) -> HistoryCheck:
    """Return the check that a controlled shutdown elects other leaders before the session of the broker expires.

    The bound is half a session timeout after the process has ended: fencing takes longer. An idempotent producer must
    not get an error.
    """
    late_ns = session_timeout_ms // 2 * 1_000_000

    def check(history: History) -> Sequence[HistoryFinding]:
        found, seen = [], False
        for topic in topic_histories(history):
            for shutdown, former in _leader_faults(topic, "shutdown"):
                back_ns = next(
                    (d.heal_ns for d in topic.faults_of_kind("down") if d.inject_ns >= shutdown.heal_ns), NEVER_NS
                )
                meanwhile = topic.after(shutdown.inject_ns, back_ns)
                seen = seen or bool(meanwhile)
                if meanwhile and all(view.leader in (None, former.leader) for view in meanwhile):
                    text = f"node {former.leader} was shut down, and no other leader was elected before it restarted"
                    found.append(violation(topic.name, text))
                late = topic.after(shutdown.heal_ns + late_ns, back_ns)
                if any(view.leader == former.leader for view in late):
                    text = f"node {former.leader} was still the leader {late_ns / 1e9:.1f} s after its shutdown"
                    found.append(violation(topic.name, text))
            failed = [r for r in topic.calls("produce") if r["producer_id"] is not None and r["outcome"] != "ok"]
            found += [
                violation(topic.name, f"op {r['op_id']} of an idempotent producer: {r['error']}") for r in failed[:1]
            ]
        return found or ([] if seen else [unknown("no leader was shut down")])

    return check


def offline_until_member_returns(history: History) -> Sequence[HistoryFinding]:
    """Check that a partition without its last ISR member has no leader in Metadata until that member restarts.

    The member must then lead the partition, unless an unclean election was requested before.
    """
    found, seen = [], False
    for topic in topic_histories(history):
        unclean_ns = min((row["invoke_ns"] for row in topic.calls("elect_unclean_leader")), default=NEVER_NS)
        for shutdown, former in _leader_faults(topic, "shutdown"):
            if former.isr != {former.leader}:
                continue
            back_ns = next(
                (d.heal_ns for d in topic.faults_of_kind("down") if d.inject_ns >= shutdown.heal_ns), NEVER_NS
            )
            gone = topic.after(shutdown.inject_ns, min(back_ns, unclean_ns))
            seen = seen or any(view.leader is None for view in gone)
            for view in gone:
                if view.leader not in (None, former.leader):
                    text = f"node {view.leader} was elected, which was not in the ISR {sorted(former.isr)}"
                    found.append(violation(topic.name, text))
            if gone and all(view.leader == former.leader for view in gone):
                found.append(
                    violation(
                        topic.name, f"node {former.leader} was reported as the leader all the time while it was down"
                    )
                )
            if back_ns < unclean_ns and not any(s.leader == former.leader for s in topic.after(back_ns, unclean_ns)):
                text = f"node {former.leader}, the only ISR member, restarted and did not lead again"
                found.append(violation(topic.name, text))
    return found or ([] if seen else [unknown("no partition lost its last ISR member")])


def unclean_election_takes_over(history: History) -> Sequence[HistoryFinding]:
    """Check that a requested unclean election elects a leader for a partition without one, in a higher epoch.

    Only a suffix of the old leader's log may be lost. No record that the new leader acknowledges may be lost.
    """
    found, seen = [], False
    for topic in topic_histories(history):
        for row in topic.calls("elect_unclean_leader"):
            before, later = topic.before(row["invoke_ns"]), topic.after(row["complete_ns"] or NEVER_NS)
            if before is None or before.leader is not None or row["error"] in _NOT_PROCESSED:
                continue
            seen = True
            leader = next((view for view in later if view.leader is not None), None)
            if row["error"] is not None:
                found.append(violation(topic.name, f"an unclean election failed with {row['error']}"))
            elif leader is None:
                found.append(violation(topic.name, "no leader was elected by an unclean election"))
            elif leader.leader_epoch is not None and leader.leader_epoch <= _epoch_before(topic, row["invoke_ns"]):
                found.append(violation(topic.name, f"the leader epoch stayed {leader.leader_epoch}"))
            found += _invalid_losses(topic, row["invoke_ns"], row["complete_ns"] or NEVER_NS)
    return found or ([] if seen else [unknown("no unclean election was requested while a partition had no leader")])


def _epoch_before(topic: TopicHistory, at_ns: int) -> int:
    views = (view for view in topic.partition_views() if view.received_ns < at_ns)
    return max((view.leader_epoch for view in views if view.leader_epoch is not None), default=-1)


def _invalid_losses(topic: TopicHistory, before_ns: int, after_ns: int) -> Iterator[HistoryFinding]:
    """Yield a violation for each loss that an unclean election between two times does not explain."""
    kept = {row["value"] for log in topic.replicas.get(0, ()) for row in log.values()}
    if not kept:
        return
    earlier: dict[int, bool] = {}
    for operation in topic.acknowledged():
        for record in topic.sends.get(operation["op_id"], ()):
            if operation["complete_ns"] < before_ns:
                earlier[record["offset"]] = record["value"] in kept
            elif operation["invoke_ns"] > after_ns and record["value"] not in kept:
                yield violation(
                    topic.name, f"value {record['value']}, acknowledged after the unclean election, is lost"
                )
    first_lost = min((offset for offset, is_kept in earlier.items() if not is_kept), default=NEVER_NS)
    for offset, is_kept in sorted(earlier.items()):
        if is_kept and offset > first_lost:
            yield violation(topic.name, f"offset {first_lost} is lost, but offset {offset} of the same leader is not")


def deposed_leader_acknowledges_nothing(history: History) -> Sequence[HistoryFinding]:
    """Check that a leader that was deposed during a pause acknowledges no acks=all record sent to it in the pause."""
    found, seen = [], False
    for topic in topic_histories(history):
        for pause, former in _leader_faults(topic, "pause"):
            successor = next(
                (s for s in topic.after(pause.inject_ns, pause.heal_ns) if s.leader not in (None, former.leader)), None
            )
            if successor is None:
                continue
            for row in topic.calls("produce"):
                is_to_former = row["node"] == former.leader and row["partition"] == 0
                if is_to_former and row["acks"] == -1 and pause.covers(row["invoke_ns"]):
                    seen = True
                    if row["outcome"] == "ok":
                        text = (
                            f"op {row['op_id']} was acknowledged by node {former.leader} "
                            f"after node {successor.leader} was elected"
                        )
                        found.append(violation(topic.name, text))
    return found or ([] if seen else [unknown("no acks=all record was sent to a leader that was being deposed")])


def clients_with_other_epochs_are_rejected(history: History) -> Sequence[HistoryFinding]:
    """Check that a client gets FENCED_LEADER_EPOCH for an older epoch and UNKNOWN_LEADER_EPOCH for a newer one."""
    found, seen = [], False
    for topic in topic_histories(history):
        for row in topic.operations:
            expected = _OPERATION_ERRORS.get("_in_" + row["f"].partition("_in_")[2])
            if expected is None or row["error"] in _NOT_PROCESSED:
                continue
            seen = seen or expected == "FENCED_LEADER_EPOCH"
            if row["error"] != expected:
                found.append(
                    violation(topic.name, f"{row['f']} (op {row['op_id']}) returned {row['error']}, not {expected}")
                )
    return found or ([] if seen else [unknown("no request with an old leader epoch was sent")])


def epoch_end_offsets_are_correct(history: History) -> Sequence[HistoryFinding]:
    """Check that the log changes to a later epoch at the end offset that OffsetForLeaderEpoch returns."""
    found, seen = [], False
    for topic in topic_histories(history):
        for state in topic.states:
            epoch, end = state["leader_epoch"], state["log_end_offset"]
            if state["source"] != "offset_for_leader_epoch" or state["topic"] != topic.name or epoch is None:
                continue
            seen = True
            for log in topic.replicas.get(state["partition"], ()):
                wrong = [o for o, row in log.items() if (row["leader_epoch"] <= epoch) != (o < end)]
                if wrong:
                    text = (
                        f"OffsetForLeaderEpoch returned the end {end} of epoch {epoch}, and offset {min(wrong)} is of "
                        f"epoch {log[min(wrong)]['leader_epoch']}"
                    )
                    found.append(violation(topic.name, text))
                    break
    return found or ([] if seen else [unknown("no OffsetForLeaderEpoch was sent")])


def diverging_epoch_is_returned(history: History) -> Sequence[HistoryFinding]:
    """Check that a Fetch from beyond the end of an older epoch returns that epoch and its end offset."""
    found, seen = [], False
    for topic in topic_histories(history):
        own = [state for state in topic.states if state["topic"] == topic.name and state["leader_epoch"] is not None]
        ends = {(s["leader_epoch"], s["log_end_offset"]) for s in own if s["source"] == "offset_for_leader_epoch"}
        for state in topic.states:
            if state["source"] != "diverging_epoch" or state["topic"] != topic.name or state["error"] in _NOT_PROCESSED:
                continue
            seen = True
            diverging = (state["leader_epoch"], state["log_end_offset"])
            if diverging not in ends:
                text = (
                    f"a Fetch from beyond the end of an epoch returned {state['error'] or 'no error'} and the "
                    f"diverging epoch and end offset {diverging}, but OffsetForLeaderEpoch returned {sorted(ends)}"
                )
                found.append(violation(topic.name, text))
    return found or ([] if seen else [unknown("no Fetch was sent from beyond the end of an epoch")])


def unclean_election_happens(history: History) -> Sequence[HistoryFinding]:
    """Check that unclean election, if enabled, replaces the only ISR member and loses only a suffix of the log."""
    found, seen = [], False
    for topic in topic_histories(history):
        for shutdown, former in _leader_faults(topic, "shutdown"):
            if former.isr != {former.leader}:
                continue
            seen = True
            successor = next(
                (s for s in topic.after(shutdown.inject_ns) if s.leader not in (None, former.leader)), None
            )
            if successor is None:
                found.append(
                    violation(
                        topic.name,
                        f"no leader was elected after node {former.leader}, the only ISR member, had stopped",
                    )
                )
                continue
            if (successor.leader_epoch or 0) <= (former.leader_epoch or 0):
                found.append(violation(topic.name, f"the leader epoch stayed {successor.leader_epoch}"))
            found += _invalid_losses(topic, shutdown.inject_ns, successor.received_ns)
    return found or ([] if seen else [unknown("no partition lost its last ISR member")])


def _leader_faults(topic: TopicHistory, kind: str) -> Iterator[tuple[Fault, PartitionView]]:
    """Yield the faults of a kind that hit the leader of partition 0, with the last view of it before the fault."""
    for fault in topic.faults_of_kind(kind):
        before = topic.before(fault.inject_ns)
        if before is not None and before.leader is not None and before.leader == fault.node:
            yield fault, before
