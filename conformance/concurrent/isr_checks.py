"""History checks of the ISR (KIP-497), and of the high watermark below min.insync.replicas (KIP-966)."""

from collections.abc import Iterator, Sequence
from itertools import takewhile

from conformance.concurrent.history_checks import HistoryCheck, HistoryFinding, unknown, violation
from conformance.concurrent.topic_history import NEVER_NS, Fault, PartitionView, Row, TopicHistory, topic_histories
from linearizability.history.reader import History

_REJECTIONS = frozenset({"NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_REPLICAS_AFTER_APPEND", "REQUEST_TIMED_OUT"})
"""Errors of an acks=all produce while the ISR is too small: before the append, after the append, or at the timeout."""


def idle_followers_stay(lag_time_max_ms: int) -> HistoryCheck:
    """Return the check that a follower whose fetches are lost stays in the ISR of a partition without new records.

    The leader checks for lagging followers twice per lag time, so only cuts of at least twice the lag time count.
    """
    long_enough_ns = 2 * lag_time_max_ms * 1_000_000

    def check(history: History) -> Sequence[HistoryFinding]:
        found, seen = [], False
        for topic in topic_histories(history):
            for cut, partition in _idle(topic, long_enough_ns):
                seen = True
                found += [
                    violation(
                        topic.name,
                        f"node {cut.node} was removed from the ISR of {topic.name}-{partition} while its fetches "
                        f"were lost, although no record was appended",
                    )
                    for view in topic.after(cut.inject_ns, cut.heal_ns, partition)
                    if view.leader == cut.destination and cut.node not in view.isr
                ][:1]
        return found or ([] if seen else [unknown("no follower of an idle partition was cut off for long")])

    return check


def _idle(topic: TopicHistory, long_enough_ns: int) -> Iterator[tuple[Fault, int]]:
    """Yield long cuts from a follower to a leader, with the partitions that had nothing to replicate during the cut."""
    for cut in topic.faults_of_kind("cut"):
        if cut.node is None or cut.heal_ns == NEVER_NS or cut.heal_ns - cut.inject_ns < long_enough_ns:
            continue
        for partition in sorted({view.partition for view in topic.views}):
            before = topic.before(cut.inject_ns, partition)
            if before is None or before.leader != cut.destination or cut.node not in before.isr:
                continue
            if not _has_records_to_replicate(topic, cut, partition):
                yield cut, partition


def _has_records_to_replicate(topic: TopicHistory, cut: Fault, partition: int) -> bool:
    """Whether a replica in the ISR may lack records when a cut begins, or records may be appended during the cut.

    A produce that is not acknowledged under acks=all may leave records that a replica lacks. A later produce that is
    acknowledged under acks=all shows that every replica in the ISR has them.
    """
    sends = [row for row in topic.calls("produce") if row["partition"] == partition and row["invoke_ns"] <= cut.heal_ns]
    replicated = (row for row in sends if _is_replicated(row) and row["complete_ns"] < cut.inject_ns)
    replicated_ns = max((row["invoke_ns"] for row in replicated), default=0)
    return any(
        (row["complete_ns"] or NEVER_NS) >= (cut.inject_ns if _is_replicated(row) else replicated_ns) for row in sends
    )


def _is_replicated(row: Row) -> bool:
    """Whether a produce was acknowledged by all replicas in the ISR."""
    return bool(row["acks"] == -1 and row["outcome"] == "ok")


def min_insync_replicas_is_enforced(minimum: int) -> HistoryCheck:
    """Return the check that acks=all is rejected or times out while the ISR is smaller than the minimum."""

    def check(history: History) -> Sequence[HistoryFinding]:
        found, rejected = [], 0
        for topic, began_ns, ended_ns, _ in _too_small(history, minimum):
            for row in _produce_operations(topic, acks=-1, began_ns=began_ns, ended_ns=ended_ns):
                if row["outcome"] == "ok" and row["complete_ns"] < ended_ns:
                    found.append(
                        violation(topic.name, f"op {row['op_id']} was acknowledged by an ISR below {minimum} members")
                    )
                elif row["error"] in _REJECTIONS:
                    rejected += row["error"] != "REQUEST_TIMED_OUT"
                elif row["complete_ns"] is not None and row["complete_ns"] < ended_ns:
                    found.append(
                        violation(
                            topic.name,
                            f"op {row['op_id']} failed with {row['error']} at an ISR below {minimum} members",
                        )
                    )
        return found or ([] if rejected else [unknown("no acks=all record was sent while the ISR was too small")])

    return check


def high_watermark_waits(minimum: int) -> HistoryCheck:
    """Return the check that records of acks=1 are invisible while the ISR is below the minimum, and visible later."""

    def check(history: History) -> Sequence[HistoryFinding]:
        found, checked = [], 0
        for topic, began_ns, ended_ns, healed_ns in _too_small(history, minimum):
            for row in _produce_operations(topic, acks=1, began_ns=began_ns, ended_ns=ended_ns):
                offset = topic.offset_of(row["op_id"])
                if row["outcome"] != "ok" or offset is None:
                    continue
                marks = [
                    state
                    for state in topic.states
                    if state["topic"] == topic.name
                    and state["partition"] == row["partition"]
                    and state["high_watermark"] is not None
                    and state["asked_ns"] > row["complete_ns"]
                ]
                checked += sum(state["answered_ns"] < ended_ns for state in marks)
                found += [
                    violation(
                        topic.name,
                        f"the high watermark was {state['high_watermark']}, above offset {offset} that the leader "
                        f"alone had, while the ISR was below {minimum} members",
                    )
                    for state in marks
                    if state["answered_ns"] < ended_ns and state["high_watermark"] > offset
                ][:1]
                later = [state for state in marks if state["asked_ns"] >= healed_ns]
                if later and all(state["high_watermark"] <= offset for state in marks):
                    found.append(violation(topic.name, f"offset {offset} did not become visible when the ISR grew"))
        return found or ([] if checked else [unknown("no high watermark was requested while the ISR was too small")])

    return check


def _too_small(history: History, minimum: int) -> Iterator[tuple[TopicHistory, int, int, int]]:
    """Yield at most one interval of each topic in which the ISR of partition 0 was too small, and when its cause ended.

    The interval begins with a response that shows the small ISR. Its cause ends when the first of the cuts in force
    heals. That time is recorded after the followers are connected again, and metadata may lag behind the leader.
    Therefore the interval ends with the last response but one before it that shows the small ISR. Only responses of the
    node that showed it first count: the metadata of another node may show the previous ISR for longer.

    An interval in which another cut begins is left out: until that cut, the follower may be out of the ISR only because
    it is slow, and may rejoin it unobserved.
    """

    def is_small(view: PartitionView) -> bool:
        return 0 < len(view.isr) < minimum

    for topic in topic_histories(history):
        cuts = tuple(topic.faults_of_kind("cut"))
        for view in topic.partition_views():
            heals = [cut.heal_ns for cut in cuts if cut.covers(view.requested_ns)]
            if is_small(view) and heals and not any(view.requested_ns < cut.inject_ns < min(heals) for cut in cuts):
                healed_ns = min(heals)
                own = (each for each in topic.partition_views() if each.node == view.node)
                later = [each for each in own if view.received_ns < each.requested_ns < healed_ns]
                small = list(takewhile(is_small, later))
                yield topic, view.received_ns, small[-2].requested_ns if small[1:] else view.received_ns, healed_ns
                break


def _produce_operations(topic: TopicHistory, acks: int, began_ns: int, ended_ns: int) -> Iterator[Row]:
    """Return the produce operations on partition 0 that were sent between two times and not retried."""
    return (
        row
        for row in topic.calls("produce")
        if row["acks"] == acks
        and row["attempts"] == 1
        and row["partition"] == 0
        and began_ns < row["invoke_ns"] < ended_ns
    )
