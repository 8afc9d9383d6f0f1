"""Consumer groups as the operations of a run show them: departures, fencing, deletions and share groups.

They are reduced from batches of `operations`; the times when a process was last seen come from `assignments` as well.
They have few rows and are part of every shard's context.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from linearizability.anomalies.arrow import is_in
from linearizability.anomalies.faults import NEVER_NS

GROUP_FIELDS: Final = ("process", "f", "invoke_ns", "complete_ns", "outcome", "error", "group")
"""The columns of `operations` that are read."""

_FENCED: Final = pa.array(
    ["FENCED_INSTANCE_ID", "FENCED_MEMBER_EPOCH", "ILLEGAL_GENERATION", "STALE_MEMBER_EPOCH", "UNKNOWN_MEMBER_ID"]
)
_LEAVES: Final = pa.array(["close", "crash", "leave_group", "unassign", "unsubscribe"])
DELETES_OFFSETS: Final = "(?i)^delete.*(group|offset)|^offset.*delete"
"""The operations that delete group offsets. Clients have various names for DeleteGroups and OffsetDelete."""
_OFFSETS_ONLY: Final = "(?i)offset"
_SHARES: Final = "share|^acknowledge"


@dataclass(frozen=True, slots=True)
class Departure:
    """A process that left its group, or learned that it is no longer a member of one."""

    process: int
    group: str | None
    invoke_ns: int
    complete_ns: int


@dataclass(frozen=True, slots=True)
class GroupDeletion:
    """A DeleteGroups request that may have succeeded. The next group of that name begins with the first generation."""

    group: str | None
    """None stands for any group."""
    invoke_ns: int
    complete_ns: int
    """NEVER_NS if the outcome is unknown, because the request may then take effect at any later time."""


@dataclass(frozen=True, slots=True)
class Groups:
    """The groups of a run, or of a part of it."""

    departures: tuple[Departure, ...] = ()
    deleted: frozenset[str | None] = frozenset()
    """Groups whose offsets may have been deleted on request; None stands for any group."""
    deletions: tuple[GroupDeletion, ...] = ()
    shared: frozenset[str | None] = frozenset()
    """Share groups, whose members own partitions together."""
    last_seen_ns: Mapping[int, int] = field(default_factory=dict)
    """Per process, when it last invoked or completed an operation, or was assigned, lost or gave up a partition."""

    def may_be_deleted(self, group: str) -> bool:
        """Whether a missing offset of a group may have been deleted on request."""
        return group in self.deleted or None in self.deleted

    def incarnation(self, group: str, at_ns: int) -> int | None:
        """Return how often a group was deleted before a time; None if a request to delete it was in progress then."""
        deletions = [deletion for deletion in self.deletions if deletion.group in (group, None)]
        if any(deletion.invoke_ns <= at_ns <= deletion.complete_ns for deletion in deletions):
            return None
        return sum(deletion.complete_ns < at_ns for deletion in deletions)


def groups_of(table: pa.Table) -> Groups:
    """Return the groups of rows of `operations` (GROUP_FIELDS)."""
    gone = pc.or_(is_in(table["error"], _FENCED), pc.is_in(table["f"], value_set=_LEAVES))
    deletes = pc.and_(pc.match_substring_regex(table["f"], DELETES_OFFSETS), pc.not_equal(table["outcome"], "fail"))
    deletes_groups = pc.and_(deletes, pc.invert(pc.match_substring_regex(table["f"], _OFFSETS_ONLY)))
    seen = pa.table([table["process"], pc.coalesce(table["complete_ns"], table["invoke_ns"])], names=["process", "at"])
    return Groups(
        departures=tuple(_departure(row) for row in table.filter(gone).to_pylist()),
        deleted=frozenset(table["group"].filter(deletes).to_pylist()),
        deletions=tuple(
            GroupDeletion(row["group"], row["invoke_ns"], _complete_ns(row) if row["outcome"] == "ok" else NEVER_NS)
            for row in table.filter(deletes_groups).to_pylist()
        ),
        shared=frozenset(table["group"].filter(pc.match_substring_regex(table["f"], _SHARES)).to_pylist()),
        last_seen_ns=last_seen_ns(seen, "at"),
    )


def last_seen_ns(table: pa.Table, when: str) -> dict[int, int]:
    """Return, per process, the latest time in the column `when`."""
    last = table.group_by("process", use_threads=False).aggregate([(when, "max")])
    return dict(zip(last["process"].to_pylist(), last[f"{when}_max"].to_pylist(), strict=True))


def merge_groups(groups: Iterable[Groups]) -> Groups:
    """Merge the groups of the parts of a run."""
    parts = list(groups)
    last: dict[int, int] = {}
    for part in parts:
        for process, at_ns in part.last_seen_ns.items():
            last[process] = max(at_ns, last.get(process, at_ns))
    return Groups(
        departures=tuple(departure for part in parts for departure in part.departures),
        deleted=frozenset().union(*(part.deleted for part in parts)),
        deletions=tuple(deletion for part in parts for deletion in part.deletions),
        shared=frozenset().union(*(part.shared for part in parts)),
        last_seen_ns=last,
    )


def _departure(row: Mapping[str, Any]) -> Departure:
    return Departure(row["process"], row["group"], row["invoke_ns"], _complete_ns(row))


def _complete_ns(row: Mapping[str, Any]) -> int:
    return NEVER_NS if row["complete_ns"] is None else int(row["complete_ns"])
