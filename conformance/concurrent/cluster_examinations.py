"""What must be true of the cluster as a whole: who is in it, who controls it, what it remembers, and its disks."""

from collections.abc import Iterator, Sequence

from conformance.concurrent.course import NEVER_NS, Course, Fault, Row, courses, of_quorum
from conformance.concurrent.examinations import Examination, Shortcoming, unknown, violation
from linearizability.history.reader import History

FENCING_SPARE_S = 20
"""What a controller may take beyond the session to fence a dead broker, itself perhaps newly elected: generous."""


def dead_broker_leaves(session_timeout_ms: int) -> Examination:
    """A killed broker is gone from DescribeCluster when its session is over, and is there again once it is back."""
    bound_ns = (session_timeout_ms + FENCING_SPARE_S * 1000) * 1_000_000

    def examine(history: History) -> Sequence[Shortcoming]:
        found, seen = [], False
        for course in courses(history):
            told = of_quorum(course, "describe_cluster")
            for kill in course.of_kind("kill"):
                while_dead = [row for row in told if kill.inject_ns < row["asked_ns"] < kill.heal_ns]
                left = any(kill.node not in row["isr"] for row in while_dead)
                seen = seen or left
                if not left and any(row["asked_ns"] > kill.inject_ns + bound_ns for row in while_dead):
                    text = (
                        f"node {kill.node} was still a broker of the cluster {bound_ns / 1e9:.0f} s after it was killed"
                    )
                    found.append(violation(course.topic, text))
                if left and kill.heal_ns != NEVER_NS and kill.node not in told[-1]["isr"]:
                    found.append(violation(course.topic, f"node {kill.node} did not come back into the cluster"))
        return found or ([] if seen else [unknown("no killed broker was missed")])

    return examine


def broker_joins_and_leaves(history: History) -> Sequence[Shortcoming]:
    """A broker that joins is named as one, holds replicas in the ISR, and when it has left can be forgotten, once."""
    found, seen = [], False
    for course in courses(history):
        answers = [row["error"] for row in course.calls("unregister_broker")]
        told = of_quorum(course, "describe_cluster")
        if not answers or not told:
            continue
        seen = True
        joined = {node for row in told for node in row["isr"]} - set(told[0]["isr"])
        if not joined:
            found.append(violation(course.topic, "the broker that joined was not named as one of the cluster's"))
        for node in joined:
            if all(node not in sight.isr for sight in course.sights):
                found.append(violation(course.topic, f"node {node}, which joined, was never in the ISR"))
            if node in told[-1]["isr"]:
                found.append(violation(course.topic, f"node {node}, which left, is still named as a broker"))
        if answers != [None, "BROKER_ID_NOT_REGISTERED"]:
            text = f"a broker that left was unregistered twice, and the answers were {answers}"
            found.append(violation(course.topic, text))
    return found or ([] if seen else [unknown("no broker joined")])


def metadata_never_goes_back(history: History) -> Sequence[Shortcoming]:
    """A node's answers about a partition never fall back to an earlier leader epoch, its own restarts included."""
    found, changes = [], 0
    for course in courses(history):
        newest: dict[tuple[int | None, int], int] = {}
        for sight in course.sights:
            if sight.leader_epoch is None:
                continue
            place = (sight.node, sight.partition)
            before = newest.get(place, sight.leader_epoch)
            changes += sight.leader_epoch > before
            if sight.leader_epoch < before:
                text = (
                    f"node {sight.node} answered epoch {sight.leader_epoch} of {course.topic}-{sight.partition} "
                    f"after epoch {before}"
                )
                found.append(violation(course.topic, text))
            newest[place] = max(before, sight.leader_epoch)
    return found or ([] if changes else [unknown("no leader changed")])


def created_topics_are_kept(history: History) -> Sequence[Shortcoming]:
    """A topic whose creation was acknowledged while the active controller died is known to every node afterwards."""
    found, seen = [], False
    for course in courses(history):
        deaths = [kill for kill in course.of_kind("kill", "pause") if _controlled(course, kill)]
        created = [
            row for row in course.calls("create_topic") if row["outcome"] == "ok" and row["topic"] != course.topic
        ]
        for death in deaths:
            seen = seen or any(row["complete_ns"] > death.inject_ns for row in created)
        last_ns = max((row["complete_ns"] for row in created), default=NEVER_NS)
        known: dict[int, set[str]] = {}
        for state in course.states:
            if state["source"] == "metadata" and state["asked_ns"] > last_ns and state["topic"] != course.topic:
                known.setdefault(state["node"], set()).add(state["topic"])
        for row in created:
            for node, topics in known.items():
                if row["topic"] not in topics:
                    text = f"topic {row['topic']} was created (op {row['op_id']}), and node {node} does not know it"
                    found.append(violation(course.topic, text))
    return found or ([] if seen else [unknown("no topic was created after the active controller had died")])


def data_goes_on_without_controller(history: History) -> Sequence[Shortcoming]:
    """While the active controller is dead, partitions that others lead keep their leaders, which acknowledge."""
    found, seen = [], False
    for course in courses(history):
        for kill in (kill for kill in course.of_kind("kill") if _controlled(course, kill)):
            for partition in sorted({sight.partition for sight in course.sights}):
                before = course.before(kill.inject_ns, partition)
                if before is None or before.leader in (None, kill.node):
                    continue
                seen = True
                meanwhile = course.after(kill.inject_ns, kill.heal_ns, partition)
                moved = next((sight for sight in meanwhile if sight.leader != before.leader), None)
                if moved is not None:
                    text = f"{course.topic}-{partition} was led by {moved.leader} and not by {before.leader} any more"
                    found.append(violation(course.topic, f"{text}, when node {kill.node}, the controller, was dead"))
                acknowledged = (row["complete_ns"] for row in course.acknowledged(partition))
                if not any(kill.inject_ns < at_ns < kill.heal_ns for at_ns in acknowledged):
                    text = f"nothing was acknowledged in {course.topic}-{partition} while the controller was dead"
                    found.append(violation(course.topic, text))
    return found or ([] if seen else [unknown("no controller was killed that led only some partitions")])


def quorum_keeps_order(history: History) -> Sequence[Shortcoming]:
    """The metadata quorum has one leader per epoch; neither its epoch nor its high watermark ever falls.

    Two answers are ordered if one was there before the other was asked for.
    """
    found, changed = [], False
    for course in courses(history):
        told = [row for row in of_quorum(course, "describe_quorum") if row["leader"] is not None]
        leaders: dict[int, int] = {}
        for row in told:
            epoch = row["leader_epoch"]
            if leaders.setdefault(epoch, row["leader"]) != row["leader"]:
                text = f"nodes {leaders[epoch]} and {row['leader']} both led the quorum in epoch {epoch}"
                found.append(violation(course.topic, text))
        changed = changed or len(leaders) > 1
        for column, word in (("leader_epoch", "epoch"), ("high_watermark", "high watermark")):
            for earlier, later in _falls(told, column):
                found.append(violation(course.topic, f"the quorum's {word} fell from {earlier} to {later}"))
    return found or ([] if changed else [unknown("the quorum had one leader all the time")])


def _falls(told: Sequence[Row], column: str) -> Iterator[tuple[int, int]]:
    """Values that are below what had been answered before they were asked for."""
    known = [row for row in told if row[column] is not None]
    for row in known:
        highest = max((other[column] for other in known if other["answered_ns"] < row["asked_ns"]), default=row[column])
        if row[column] < highest:
            yield highest, row[column]


def damaged_nodes_come_back(kind: str) -> Examination:
    """A node starts again with a damaged disk, and has the whole log again."""

    def examine(history: History) -> Sequence[Shortcoming]:
        found, seen = [], False
        for course in courses(history):
            for fault in course.of_kind(kind):
                seen = True
                if fault.heal_ns == NEVER_NS:
                    text = f"node {fault.node} did not start again after this was done to its disk: {fault.argument}"
                    found.append(violation(course.topic, text))
            found += _lacking(course) if seen else ()
        return found or ([] if seen else [unknown("no disk was damaged")])

    return examine


def _lacking(course: Course) -> Iterator[Shortcoming]:
    for partition, logs in course.replicas.items():
        full = set().union(*logs)
        for number, log in enumerate(logs, start=1):
            if missing := full - set(log):
                text = f"replica {number} of {course.topic}-{partition} lacks offset {min(missing)}"
                yield violation(course.topic, text)


def reassignments_move_replicas(history: History) -> Sequence[Shortcoming]:
    """Each reassignment is accepted and brings a node into the ISR that was not there, and takes one out."""
    found, moved = [], 0
    for course in courses(history):
        asked = list(course.calls("reassign"))
        ends_ns = [row["invoke_ns"] for row in asked[1:]] + [NEVER_NS]
        for row, end_ns in zip(asked, ends_ns, strict=False):
            if row["error"] is not None:
                found.append(violation(course.topic, f"a reassignment (op {row['op_id']}) was answered {row['error']}"))
                continue
            before = course.before(row["invoke_ns"])
            later = course.after(row["complete_ns"], end_ns)
            if before is None or not later:
                continue
            moved += 1
            if not later[-1].isr - before.isr or not before.isr - later[-1].isr:
                text = f"a reassignment (op {row['op_id']}) left the ISR {sorted(later[-1].isr)}"
                found.append(violation(course.topic, text))
    return found or ([] if moved else [unknown("no reassignment was asked for")])


def _controlled(course: Course, fault: Fault) -> bool:
    """Whether it struck the active controller."""
    before = [r for r in of_quorum(course, "describe_quorum") if r["answered_ns"] < fault.inject_ns and r["leader"]]
    return bool(before) and before[-1]["leader"] == fault.node
