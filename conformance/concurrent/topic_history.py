"""History of one script's topic, for the checks of faults.

Times are the history's nanoseconds. A *view* is the state of a partition in a node's Metadata response; two views are
ordered if one was received before the other was requested.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fixtures.clients.requests import CLUSTER_METADATA
from linearizability.history.reader import History

Row = Mapping[str, Any]
_DOWN_KINDS = frozenset({"kill", "shutdown", "down"})
NEVER_NS = 2**63 - 1


@dataclass(frozen=True, slots=True)
class PartitionView:
    """One partition in one Metadata response; unknown fields are None or empty."""

    requested_ns: int
    received_ns: int
    node: int | None
    partition: int
    leader: int | None
    leader_epoch: int | None
    isr: frozenset[int]


@dataclass(frozen=True, slots=True)
class Fault:
    """One row of `faults`. `heal_ns` is NEVER_NS if it did not heal."""

    kind: str
    target: str
    argument: str
    inject_ns: int
    heal_ns: int

    @property
    def node(self) -> int | None:
        """Id of the target, or of the source of a cut link; None if that is not a node."""
        source = self.target.partition("->")[0]
        return int(source) if source.isdigit() else None

    @property
    def destination(self) -> int | None:
        """Id of the destination of a cut link; None if that is not a node, and for other faults."""
        end = self.target.partition("->")[2]
        return int(end) if end.isdigit() else None

    def covers(self, at_ns: int) -> bool:
        """Whether the fault was in force at a time."""
        return self.inject_ns <= at_ns <= self.heal_ns


@dataclass(frozen=True)
class TopicHistory:
    """Rows of a run's history that concern one topic.

    Operations and faults are those between the first and the last operation on the topic; states are those since the
    first operation.
    """

    name: str
    operations: Sequence[Row]
    """Operations on this topic, on topics whose names begin with its name, or on no topic.

    Completed ones are in the order of their completion, and the others follow.
    """
    records: Sequence[Row]
    views: Sequence[PartitionView]
    """Views of all partitions, in the order of their requests."""
    states: Sequence[Row]
    """Rows of `states` of every topic, in the order of their requests."""
    faults: Sequence[Fault]

    def partition_views(self, partition: int = 0) -> Sequence[PartitionView]:
        """Return the views of one partition."""
        return [view for view in self.views if view.partition == partition]

    def calls(self, f: str) -> Iterator[Row]:
        """Return the operations with one name."""
        return (row for row in self.operations if row["f"] == f)

    def acknowledged(self, partition: int = 0) -> Iterator[Row]:
        """Return the acknowledged produce operations on one partition."""
        return (row for row in self.calls("produce") if row["outcome"] == "ok" and row["partition"] == partition)

    def faults_of_kind(self, *kinds: str) -> Sequence[Fault]:
        """Return the faults of these kinds."""
        return [fault for fault in self.faults if fault.kind in kinds]

    def is_down(self, node: int, at_ns: int) -> bool:
        """Whether a node was shutting down, down or starting at a time."""
        return any(fault.node == node and fault.covers(at_ns) for fault in self.faults_of_kind(*_DOWN_KINDS))

    def before(self, at_ns: int, partition: int = 0) -> PartitionView | None:
        """Return the view with the latest request among those that were received before a time."""
        return next((view for view in reversed(self.partition_views(partition)) if view.received_ns < at_ns), None)

    def after(self, at_ns: int, until_ns: int = NEVER_NS, partition: int = 0) -> Sequence[PartitionView]:
        """Return the views that were requested at or after `at_ns`, and before `until_ns`."""
        return [view for view in self.partition_views(partition) if at_ns <= view.requested_ns < until_ns]

    def offset_of(self, op_id: int) -> int | None:
        """Return the highest acknowledged offset of an operation, or None."""
        return max((row["offset"] for row in self.sends.get(op_id, ()) if row["offset"] is not None), default=None)

    @cached_property
    def sends(self) -> Mapping[int, Sequence[Row]]:
        """Sent records by operation."""
        return _by_operation(row for row in self.records if row["direction"] == "send")

    @cached_property
    def reads(self) -> Mapping[int, Sequence[Row]]:
        """Read records by operation."""
        return _by_operation(row for row in self.records if row["direction"] == "read")

    @cached_property
    def replicas(self) -> Mapping[int, Sequence[Mapping[int, Row]]]:
        """The replicas on disk at the end: by partition, one mapping from offset to record for each replica."""
        found: dict[int, list[Mapping[int, Row]]] = {}
        for row in self.calls("read_replica"):
            log = {record["offset"]: record for record in self.reads.get(row["op_id"], ())}
            found.setdefault(row["partition"], []).append(log)
        return found


def topic_histories(history: History) -> Iterator[TopicHistory]:
    """Yield the history of each topic with records, ordered by name."""
    operations = rows_of(history, "operations")
    records = rows_of(history, "records")
    states = sorted(rows_of(history, "states"), key=lambda row: row["asked_ns"])
    faults = [_fault(row) for row in sorted(rows_of(history, "faults"), key=lambda row: row["inject_ns"])]
    for topic in sorted({row["topic"] for row in records}):
        own = [row for row in operations if row["topic"] is None or row["topic"].startswith(topic)]
        begin_ns = min(row["invoke_ns"] for row in own if row["topic"] is not None)
        end_ns = max(row["complete_ns"] or row["invoke_ns"] for row in own if row["topic"] is not None)
        yield TopicHistory(
            name=topic,
            operations=[row for row in own if begin_ns <= row["invoke_ns"] <= end_ns],
            records=[row for row in records if row["topic"] == topic],
            views=[_view(row) for row in states if row["source"] == "metadata" and row["topic"] == topic],
            states=[row for row in states if begin_ns <= row["asked_ns"]],
            faults=[fault for fault in faults if begin_ns <= fault.inject_ns <= end_ns],
        )


def quorum_states(topic_history: TopicHistory, source: str) -> Sequence[Row]:
    """Return the states of the metadata quorum or, with the source `describe_cluster`, of the registered brokers."""
    return [row for row in topic_history.states if row["source"] == source and row["topic"] == CLUSTER_METADATA]


def rows_of(history: History, table: str) -> list[dict[str, Any]]:
    """Return the rows of a table as dictionaries."""
    rows: list[dict[str, Any]] = history.table(table).to_pylist()
    return rows


def _by_operation(rows: Iterator[Row]) -> Mapping[int, Sequence[Row]]:
    found: dict[int, list[Row]] = {}
    for row in rows:
        found.setdefault(row["op_id"], []).append(row)
    return found


def _view(row: Row) -> PartitionView:
    return PartitionView(
        requested_ns=row["asked_ns"],
        received_ns=row["answered_ns"],
        node=row["node"],
        partition=row["partition"],
        leader=row["leader"],
        leader_epoch=row["leader_epoch"],
        isr=frozenset(row["isr"] or ()),
    )


def _fault(row: Row) -> Fault:
    heal_ns = NEVER_NS if row["heal_ns"] is None else row["heal_ns"]
    return Fault(row["kind"], row["target"] or "", row["argument"] or "", row["inject_ns"], heal_ns)
