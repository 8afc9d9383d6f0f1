"""What must be true of elections, and of the leaders that come out of them (KIP-101, KIP-279, KIP-320, KIP-460)."""

from collections.abc import Iterator, Sequence

from conformance.concurrent.course import NEVER_NS, Course, Fault, Row, Sight, courses
from conformance.concurrent.examinations import Examination, Shortcoming, unknown, violation
from linearizability.history.reader import History

_IN_OLD_EPOCH, _IN_EPOCH_TO_COME = "_in_old_epoch", "_in_epoch_to_come"
_UNREACHED = frozenset({"NETWORK_EXCEPTION", "REQUEST_TIMED_OUT"})


def a_follower_takes_over(history: History) -> Sequence[Shortcoming]:
    """After a leader is killed another member of its ISR leads, and acknowledges. What is lost the checkers say."""
    found, seen = [], False
    for course in courses(history):
        for kill, former in _leaders_struck(course, "kill"):
            seen = True
            successor = next((s for s in course.after(kill.inject_ns) if s.leader not in (None, former.leader)), None)
            if successor is None:
                found.append(violation(course.topic, f"nobody led after node {former.leader}, the leader, was killed"))
            elif successor.leader not in former.isr:
                text = f"node {successor.leader} was elected, which was not in the ISR {sorted(former.isr)}"
                found.append(violation(course.topic, text))
            elif not any(row["invoke_ns"] > successor.answered_ns for row in course.acknowledged()):
                found.append(violation(course.topic, f"node {successor.leader}, elected, acknowledged nothing"))
    return found or ([] if seen else [unknown("no leader was killed")])


def one_leader_per_epoch(history: History) -> Sequence[Shortcoming]:
    """A leader epoch is one node's, and the next leader's is higher."""
    found, changed = [], False
    for course in courses(history):
        leaders: dict[tuple[int, int], int] = {}
        for sight in course.sights:
            if sight.leader is None or sight.leader_epoch is None:
                continue
            epoch = (sight.partition, sight.leader_epoch)
            if leaders.setdefault(epoch, sight.leader) != sight.leader:
                text = (
                    f"nodes {leaders[epoch]} and {sight.leader} both led {course.topic}-{epoch[0]} in epoch {epoch[1]}"
                )
                found.append(violation(course.topic, text))
        changed = changed or len(leaders) > len({partition for partition, _ in leaders})
    return found or ([] if changed else [unknown("no leader changed")])


def replicas_agree(history: History) -> Sequence[Shortcoming]:
    """When all is healed, replicas hold the same records, in the same epochs, up to the same end.

    It says something only of a leader that had records which nobody else got, and had to give them up.
    """
    found, truncated = [], False
    for course in courses(history):
        for partition, logs in course.replicas.items():
            ends = {max(log, default=-1) for log in logs}
            if len(ends) != 1:
                found.append(violation(course.topic, f"replicas of {course.topic}-{partition} end at {sorted(ends)}"))
            for offset in sorted(set().union(*logs)):
                versions = {_identity(log[offset]) for log in logs if offset in log}
                if len(versions) != 1:
                    text = f"replicas of {course.topic}-{partition} differ at offset {offset}: {sorted(versions)}"
                    found.append(violation(course.topic, text))
                    break
        kept = {row["value"] for logs in course.replicas.values() for log in logs for row in log.values()}
        if not kept:
            continue
        sent = (row for op in course.acknowledged() for row in course.sends.get(op["op_id"], ()))
        truncated = truncated or any(row["value"] not in kept for row in sent)
    return found or ([] if truncated else [unknown("no leader had acknowledged records that nobody else got")])


def _identity(record: Row) -> tuple[str, ...]:
    return (f"value {record['value']}", f"epoch {record['leader_epoch']}", f"timestamp {record['timestamp_ms']}")


def preferred_election_is_answered(history: History) -> Sequence[Shortcoming]:
    """ElectLeaders for the preferred leader is answered as it can be done.

    Not available while that leader is down, done where it is in the ISR, not needed where it leads.
    """
    found, done = [], False
    for course in courses(history):
        first = next((sight.leader for sight in course.partition() if sight.leader is not None), None)
        for row in course.calls("elect_preferred_leader"):
            expected = None if first is None else _expected_of_preferred(course, row, first)
            if expected is None or row["error"] in _UNREACHED:
                continue
            later = course.after(row["complete_ns"])
            if row["error"] not in expected:
                words = " or ".join("no error" if error is None else error for error in expected)
                text = f"ElectLeaders (op {row['op_id']}) was answered {row['error'] or 'no error'}, not {words}"
                found.append(violation(course.topic, text))
            elif row["error"] is None and all(sight.leader != first for sight in later):
                found.append(violation(course.topic, f"node {first} was elected (op {row['op_id']}) and did not lead"))
            done = done or None in expected
    return found or ([] if done else [unknown("no preferred leader could be elected")])


def _expected_of_preferred(course: Course, row: Row, preferred: int) -> tuple[str | None, ...] | None:
    """The answers that are right; null where what is known of that moment does not decide."""
    before = course.before(row["invoke_ns"])
    later = course.after(row["complete_ns"] or NEVER_NS)
    if before is None or not later:
        return None
    if course.down(preferred, row["invoke_ns"]) and course.down(preferred, row["complete_ns"]):
        return ("PREFERRED_LEADER_NOT_AVAILABLE",)
    if any(fault.covers(row["invoke_ns"]) for fault in course.faults):
        return None
    if before.leader == preferred == later[0].leader:
        return ("ELECTION_NOT_NEEDED",)
    if before.leader != preferred and preferred in before.isr:
        return (None, "ELECTION_NOT_NEEDED")  # not needed where an automatic rebalance was faster
    return None


def shutdown_moves_leaders(session_timeout_ms: int) -> Examination:
    """A leader that is shut down hands over before it ends: nobody waits for its session to be over.

    Half a session after the process has ended is a bound that a handover keeps, and a fencing cannot. An idempotent
    producer is told nothing of it.
    """
    late_ns = session_timeout_ms // 2 * 1_000_000

    def examine(history: History) -> Sequence[Shortcoming]:
        found, seen = [], False
        for course in courses(history):
            for shutdown, former in _leaders_struck(course, "shutdown"):
                back_ns = next((d.heal_ns for d in course.of_kind("down") if d.inject_ns >= shutdown.heal_ns), NEVER_NS)
                meanwhile = course.after(shutdown.inject_ns, back_ns)
                seen = seen or bool(meanwhile)
                if meanwhile and all(sight.leader in (None, former.leader) for sight in meanwhile):
                    text = f"node {former.leader} was shut down, and nobody else led before it was back"
                    found.append(violation(course.topic, text))
                late = course.after(shutdown.heal_ns + late_ns, back_ns)
                if any(sight.leader == former.leader for sight in late):
                    text = f"node {former.leader} was still the leader {late_ns / 1e9:.1f} s after its shutdown"
                    found.append(violation(course.topic, text))
            refused = [r for r in course.calls("produce") if r["producer_id"] is not None and r["outcome"] != "ok"]
            found += [
                violation(course.topic, f"op {r['op_id']} of an idempotent producer: {r['error']}") for r in refused[:1]
            ]
        return found or ([] if seen else [unknown("no leader was shut down")])

    return examine


def offline_until_member_returns(history: History) -> Sequence[Shortcoming]:
    """Without its last ISR member a partition has no leader until that is back, and is told so."""
    found, seen = [], False
    for course in courses(history):
        unclean_ns = min((row["invoke_ns"] for row in course.calls("elect_unclean_leader")), default=NEVER_NS)
        for shutdown, former in _leaders_struck(course, "shutdown"):
            if former.isr != {former.leader}:
                continue
            back_ns = next((d.heal_ns for d in course.of_kind("down") if d.inject_ns >= shutdown.heal_ns), NEVER_NS)
            gone = course.after(shutdown.inject_ns, min(back_ns, unclean_ns))
            seen = seen or any(sight.leader is None for sight in gone)
            for sight in gone:
                if sight.leader not in (None, former.leader):
                    text = f"node {sight.leader} was elected, which was not in the ISR {sorted(former.isr)}"
                    found.append(violation(course.topic, text))
            if gone and all(sight.leader == former.leader for sight in gone):
                found.append(
                    violation(course.topic, f"node {former.leader} was named the leader all the time it was down")
                )
            if back_ns < unclean_ns and not any(s.leader == former.leader for s in course.after(back_ns, unclean_ns)):
                text = f"node {former.leader}, the only ISR member, came back and did not lead again"
                found.append(violation(course.topic, text))
    return found or ([] if seen else [unknown("no partition lost its last ISR member")])


def unclean_election_takes_over(history: History) -> Sequence[Shortcoming]:
    """An unclean election that is asked for makes another replica leader, in a higher epoch.

    What that lacks is the log's end, nothing before it, and what it acknowledges is kept.
    """
    found, seen = [], False
    for course in courses(history):
        for row in course.calls("elect_unclean_leader"):
            before, later = course.before(row["invoke_ns"]), course.after(row["complete_ns"] or NEVER_NS)
            if before is None or before.leader is not None or row["error"] in _UNREACHED:
                continue
            seen = True
            leader = next((sight for sight in later if sight.leader is not None), None)
            if row["error"] is not None:
                found.append(violation(course.topic, f"an unclean election was answered {row['error']}"))
            elif leader is None:
                found.append(violation(course.topic, "after an unclean election nobody led"))
            elif leader.leader_epoch is not None and leader.leader_epoch <= _epoch_before(course, row["invoke_ns"]):
                found.append(violation(course.topic, f"the leader epoch stayed {leader.leader_epoch}"))
            found += _lost_by(course, row["invoke_ns"], row["complete_ns"] or NEVER_NS)
    return found or ([] if seen else [unknown("no unclean election was asked for while a partition had no leader")])


def _epoch_before(course: Course, at_ns: int) -> int:
    epochs = (s.leader_epoch for s in course.partition() if s.answered_ns < at_ns and s.leader_epoch is not None)
    return max(epochs, default=-1)


def _lost_by(course: Course, before_ns: int, after_ns: int) -> Iterator[Shortcoming]:
    """What an unclean election between two times took that it must not take."""
    kept = {row["value"] for log in course.replicas.get(0, ()) for row in log.values()}
    if not kept:
        return
    earlier: dict[int, bool] = {}
    for operation in course.acknowledged():
        for record in course.sends.get(operation["op_id"], ()):
            if operation["complete_ns"] < before_ns:
                earlier[record["offset"]] = record["value"] in kept
            elif operation["invoke_ns"] > after_ns and record["value"] not in kept:
                yield violation(course.topic, f"value {record['value']}, acknowledged after it, is lost")
    first_lost = min((offset for offset, stands in earlier.items() if not stands), default=NEVER_NS)
    for offset, stands in sorted(earlier.items()):
        if stands and offset > first_lost:
            yield violation(
                course.topic, f"offset {first_lost} is lost and offset {offset}, of the same leader, is not"
            )


def deposed_leader_acknowledges_nothing(history: History) -> Sequence[Shortcoming]:
    """A leader that was paused until another one led acknowledges no acks=all record that came meanwhile."""
    found, seen = [], False
    for course in courses(history):
        for pause, former in _leaders_struck(course, "pause"):
            successor = next(
                (s for s in course.after(pause.inject_ns, pause.heal_ns) if s.leader not in (None, former.leader)), None
            )
            if successor is None:
                continue
            for row in course.calls("produce"):
                if row["node"] == former.leader and row["acks"] == -1 and pause.covers(row["invoke_ns"]):
                    seen = True
                    if row["outcome"] == "ok" and row["partition"] == 0:
                        text = (
                            f"op {row['op_id']} was acknowledged by node {former.leader} "
                            f"after node {successor.leader} led"
                        )
                        found.append(violation(course.topic, text))
    return found or ([] if seen else [unknown("no acks=all record was sent to a leader that was being deposed")])


def clients_of_other_epochs_are_told(history: History) -> Sequence[Shortcoming]:
    """A client behind the leader's epoch is answered FENCED_LEADER_EPOCH, one ahead of it UNKNOWN_LEADER_EPOCH."""
    found, seen = [], False
    for course in courses(history):
        for row in course.operations:
            expected = _EXPECTED_OF_EPOCH.get("_in_" + row["f"].partition("_in_")[2])
            if expected is None or row["error"] in _UNREACHED:
                continue
            seen = seen or expected == "FENCED_LEADER_EPOCH"
            if row["error"] != expected:
                found.append(
                    violation(
                        course.topic, f"{row['f']} (op {row['op_id']}) was answered {row['error']}, not {expected}"
                    )
                )
    return found or ([] if seen else [unknown("no client with an old epoch asked")])


_EXPECTED_OF_EPOCH = {_IN_OLD_EPOCH: "FENCED_LEADER_EPOCH", _IN_EPOCH_TO_COME: "UNKNOWN_LEADER_EPOCH"}


def ends_of_epochs_are_true(history: History) -> Sequence[Shortcoming]:
    """Where OffsetForLeaderEpoch says that an epoch ended, the log changes to a later one."""
    found, seen = [], False
    for course in courses(history):
        for state in course.states:
            epoch, end = state["leader_epoch"], state["log_end_offset"]
            if state["source"] != "offset_for_leader_epoch" or state["topic"] != course.topic or epoch is None:
                continue
            seen = True
            for log in course.replicas.get(state["partition"], ()):
                wrong = [o for o, row in log.items() if (row["leader_epoch"] <= epoch) != (o < end)]
                if wrong:
                    text = f"epoch {epoch} was said to end at {end}, and offset {min(wrong)} is of epoch "
                    text += str(log[min(wrong)]["leader_epoch"])
                    found.append(violation(course.topic, text))
                    break
    return found or ([] if seen else [unknown("nobody asked where an epoch ended")])


def divergence_is_told(history: History) -> Sequence[Shortcoming]:
    """A client that read beyond the end of an older epoch is told in its Fetch where that ended, and gets nothing."""
    found, seen = [], False
    for course in courses(history):
        own = [state for state in course.states if state["topic"] == course.topic and state["leader_epoch"] is not None]
        ends = {(s["leader_epoch"], s["log_end_offset"]) for s in own if s["source"] == "offset_for_leader_epoch"}
        for state in course.states:
            if state["source"] != "diverging_epoch" or state["topic"] != course.topic or state["error"] in _UNREACHED:
                continue
            seen = True
            told = (state["leader_epoch"], state["log_end_offset"])
            if told not in ends:
                text = f"a client beyond the end of an epoch, {sorted(ends)}, was told of {told}, and {state['error']}"
                found.append(violation(course.topic, text))
    return found or ([] if seen else [unknown("nobody fetched from beyond the end of an epoch")])


def unclean_election_happens(history: History) -> Sequence[Shortcoming]:
    """Where it is enabled, another replica leads when the only ISR member has gone, and lacks no more than a suffix."""
    found, seen = [], False
    for course in courses(history):
        for shutdown, former in _leaders_struck(course, "shutdown"):
            if former.isr != {former.leader}:
                continue
            seen = True
            successor = next(
                (s for s in course.after(shutdown.inject_ns) if s.leader not in (None, former.leader)), None
            )
            if successor is None:
                found.append(
                    violation(course.topic, f"nobody led after node {former.leader}, the only ISR member, had gone")
                )
                continue
            if (successor.leader_epoch or 0) <= (former.leader_epoch or 0):
                found.append(violation(course.topic, f"the leader epoch stayed {successor.leader_epoch}"))
            found += _lost_by(course, shutdown.inject_ns, successor.answered_ns)
    return found or ([] if seen else [unknown("no partition lost its last ISR member")])


def _leaders_struck(course: Course, kind: str) -> Iterator[tuple[Fault, Sight]]:
    """The faults of a kind that struck the leader of partition 0, with what was seen of it just before."""
    for fault in course.of_kind(kind):
        before = course.before(fault.inject_ns)
        if before is not None and before.leader is not None and before.leader == fault.node:
            yield fault, before
