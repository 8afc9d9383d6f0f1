"""History checks of the cluster: brokers, the controller quorum, metadata, damaged disks and reassignments."""

from collections import deque
from collections.abc import Iterator, Sequence
from operator import itemgetter

from conformance.concurrent.history_checks import HistoryCheck, HistoryFinding, unknown, violation
from conformance.concurrent.topic_history import NEVER_NS, Fault, Row, TopicHistory, quorum_states, topic_histories
from linearizability.history.reader import History

FENCING_SPARE_S = 20
"""Tolerance beyond the session timeout for fencing a dead broker; the controller may be newly elected."""


def dead_broker_leaves(session_timeout_ms: int) -> HistoryCheck:
    """Return the check that DescribeCluster omits a killed broker after its session timeout, until it has restarted.

    A `describe_cluster` row has the registered brokers that are not fenced in the column `isr`.
    """
    bound_ns = (session_timeout_ms + FENCING_SPARE_S * 1000) * 1_000_000

    def check(history: History) -> Sequence[HistoryFinding]:
        found, seen = [], False
        for topic in topic_histories(history):
            responses = quorum_states(topic, "describe_cluster")
            for kill in topic.faults_of_kind("kill"):
                while_dead = [row for row in responses if kill.inject_ns < row["asked_ns"] < kill.heal_ns]
                left = any(kill.node not in row["isr"] for row in while_dead)
                seen = seen or left
                if not left and any(row["asked_ns"] > kill.inject_ns + bound_ns for row in while_dead):
                    text = (
                        f"node {kill.node} was still a broker of the cluster {bound_ns / 1e9:.0f} s after it was killed"
                    )
                    found.append(violation(topic.name, text))
                if left and kill.heal_ns != NEVER_NS and kill.node not in responses[-1]["isr"]:
                    found.append(violation(topic.name, f"node {kill.node} did not rejoin the cluster"))
        return found or ([] if seen else [unknown("no broker was killed and fenced")])

    return check


def broker_joins_and_leaves(history: History) -> Sequence[HistoryFinding]:
    """Check that a new broker is listed, joins the ISR, and after its shutdown can be unregistered exactly once."""
    found, seen = [], False
    for topic in topic_histories(history):
        errors = [row["error"] for row in topic.calls("unregister_broker")]
        responses = quorum_states(topic, "describe_cluster")
        if not errors or not responses:
            continue
        seen = True
        joined = {node for row in responses for node in row["isr"]} - set(responses[0]["isr"])
        if not joined:
            found.append(violation(topic.name, "the broker that joined was not listed as a broker of the cluster"))
        for node in joined:
            if all(node not in view.isr for view in topic.views):
                found.append(violation(topic.name, f"node {node}, which joined, was never in the ISR"))
            if node in responses[-1]["isr"]:
                found.append(violation(topic.name, f"node {node}, which left, is still listed as a broker"))
        if errors != [None, "BROKER_ID_NOT_REGISTERED"]:
            text = f"a broker that left was unregistered twice, with the errors {errors}"
            found.append(violation(topic.name, text))
    return found or ([] if seen else [unknown("no broker joined")])


def metadata_never_goes_back(history: History) -> Sequence[HistoryFinding]:
    """Check that the leader epoch of a partition in a node's responses never decreases, even if the node restarts."""
    found, changes = [], 0
    for topic in topic_histories(history):
        newest: dict[tuple[int | None, int], int] = {}
        for view in topic.views:
            if view.leader_epoch is None:
                continue
            place = (view.node, view.partition)
            before = newest.get(place, view.leader_epoch)
            changes += view.leader_epoch > before
            if view.leader_epoch < before:
                text = (
                    f"node {view.node} returned epoch {view.leader_epoch} of {topic.name}-{view.partition} "
                    f"after epoch {before}"
                )
                found.append(violation(topic.name, text))
            newest[place] = max(before, view.leader_epoch)
    return found or ([] if changes else [unknown("no leader changed")])


def created_topics_are_kept(history: History) -> Sequence[HistoryFinding]:
    """Check that every node knows each topic whose creation was acknowledged.

    Without a violation, the verdict is unknown unless a creation was acknowledged after the active controller failed.
    """
    found, seen = [], False
    for topic in topic_histories(history):
        failures = [kill for kill in topic.faults_of_kind("kill", "pause") if _controlled(topic, kill)]
        created = [row for row in topic.calls("create_topic") if row["outcome"] == "ok" and row["topic"] != topic.name]
        for failure in failures:
            seen = seen or any(row["complete_ns"] > failure.inject_ns for row in created)
        last_ns = max((row["complete_ns"] for row in created), default=NEVER_NS)
        known: dict[int, set[str]] = {}
        for state in topic.states:
            if state["source"] == "metadata" and state["asked_ns"] > last_ns and state["topic"] != topic.name:
                known.setdefault(state["node"], set()).add(state["topic"])
        for row in created:
            for node, topics in known.items():
                if row["topic"] not in topics:
                    text = f"topic {row['topic']} was created (op {row['op_id']}), and node {node} does not know it"
                    found.append(violation(topic.name, text))
    return found or ([] if seen else [unknown("no topic was created after the active controller had failed")])


def partitions_are_served_without_controller(history: History) -> Sequence[HistoryFinding]:
    """Check that other leaders keep their partitions and acknowledge records while the active controller is down."""
    found, seen = [], False
    for topic in topic_histories(history):
        for kill in (kill for kill in topic.faults_of_kind("kill") if _controlled(topic, kill)):
            for partition in sorted({view.partition for view in topic.views}):
                before = topic.before(kill.inject_ns, partition)
                if before is None or before.leader in (None, kill.node):
                    continue
                seen = True
                meanwhile = topic.after(kill.inject_ns, kill.heal_ns, partition)
                other = next((view for view in meanwhile if view.leader != before.leader), None)
                if other is not None:
                    text = f"{topic.name}-{partition} changed its leader from {before.leader} to {other.leader}"
                    found.append(violation(topic.name, f"{text} while node {kill.node}, the controller, was down"))
                acknowledged = (row["complete_ns"] for row in topic.acknowledged(partition))
                if not any(kill.inject_ns < at_ns < kill.heal_ns for at_ns in acknowledged):
                    text = f"nothing was acknowledged in {topic.name}-{partition} while the controller was down"
                    found.append(violation(topic.name, text))
    return found or ([] if seen else [unknown("no controller was killed while another node led a partition")])


def quorum_epoch_and_watermark_grow(history: History) -> Sequence[HistoryFinding]:
    """Check that the metadata quorum has one leader per epoch, and that its epoch and high watermark never decrease.

    Two responses are ordered if one was received before the other was requested.
    """
    found, changed = [], False
    for topic in topic_histories(history):
        responses = [row for row in quorum_states(topic, "describe_quorum") if row["leader"] is not None]
        leaders: dict[int, int] = {}
        for row in responses:
            epoch = row["leader_epoch"]
            if leaders.setdefault(epoch, row["leader"]) != row["leader"]:
                text = f"nodes {leaders[epoch]} and {row['leader']} both led the quorum in epoch {epoch}"
                found.append(violation(topic.name, text))
        changed = changed or len(leaders) > 1
        for column, name in (("leader_epoch", "epoch"), ("high_watermark", "high watermark")):
            for earlier, later in _decreases(responses, column):
                found.append(violation(topic.name, f"the quorum's {name} fell from {earlier} to {later}"))
    return found or ([] if changed else [unknown("the leader of the quorum did not change")])


def _decreases(responses: Sequence[Row], column: str) -> Iterator[tuple[int, int]]:
    """Yield (earlier, later) values where the later response has the lower one."""
    known = [row for row in responses if row[column] is not None]
    received = deque(sorted(known, key=itemgetter("answered_ns")))
    highest = min((row[column] for row in known), default=0)  # until the first receipt, no value is lower than this
    for row in sorted(known, key=itemgetter("asked_ns")):
        while received and received[0]["answered_ns"] < row["asked_ns"]:
            highest = max(highest, received.popleft()[column])
        if row[column] < highest:
            yield highest, row[column]


def damaged_nodes_recover(kind: str) -> HistoryCheck:
    """Return the check that a node restarts after damage to its disk and recovers the whole log.

    :param kind: kind of the faults, `disk` or `wipe`.
    """

    def check(history: History) -> Sequence[HistoryFinding]:
        found, seen = [], False
        for topic in topic_histories(history):
            damages = topic.faults_of_kind(kind)
            for fault in damages:
                if fault.heal_ns == NEVER_NS:
                    text = f"node {fault.node} did not start again after its disk was damaged: {fault.argument}"
                    found.append(violation(topic.name, text))
            found += _missing_offsets(topic) if damages else ()
            seen = seen or bool(damages)
        return found or ([] if seen else [unknown("no disk was damaged")])

    return check


def _missing_offsets(topic: TopicHistory) -> Iterator[HistoryFinding]:
    """Yield a violation for each replica on disk that lacks a record of another replica."""
    for partition, logs in topic.replicas.items():
        full = set().union(*logs)
        for number, log in enumerate(logs, start=1):
            if missing := full - set(log):
                text = f"replica {number} of {topic.name}-{partition} lacks offset {min(missing)}"
                yield violation(topic.name, text)


def reassignments_move_replicas(history: History) -> Sequence[HistoryFinding]:
    """Check that each reassignment is accepted, adds a node to the ISR and removes another."""
    found, checked = [], 0
    for topic in topic_histories(history):
        requests = list(topic.calls("reassign"))
        ends_ns = [row["invoke_ns"] for row in requests[1:]] + [NEVER_NS]
        for row, end_ns in zip(requests, ends_ns, strict=False):
            if row["error"] is not None:
                found.append(violation(topic.name, f"a reassignment (op {row['op_id']}) failed with {row['error']}"))
                continue
            before = topic.before(row["invoke_ns"])
            later = topic.after(row["complete_ns"], end_ns)
            if before is None or not later:
                continue
            checked += 1
            if not later[-1].isr - before.isr or not before.isr - later[-1].isr:
                text = f"a reassignment (op {row['op_id']}) left the ISR {sorted(later[-1].isr)}"
                found.append(violation(topic.name, text))
    return found or ([] if checked else [unknown("no reassignment was requested")])


def _controlled(topic: TopicHistory, fault: Fault) -> bool:
    """Whether a fault hit the active controller."""
    before = (row for row in quorum_states(topic, "describe_quorum") if row["answered_ns"] < fault.inject_ns)
    leaders = [row["leader"] for row in before if row["leader"] is not None]
    return bool(leaders) and leaders[-1] == fault.node
