"""What the operations of a run say of consumer groups: who left or was fenced, whose offsets were deleted, who shares.

Reduced from batches of `operations`, and signs of life from those of `assignments` too: few rows in all, and part of
every shard's context.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from linearizability.anomalies.faults import NEVER_NS

GROUP_FIELDS: Final = ("process", "f", "invoke_ns", "complete_ns", "outcome", "error", "group")
"""What of `operations` they are made from."""

_FENCED: Final = pa.array(
    ["FENCED_INSTANCE_ID", "FENCED_MEMBER_EPOCH", "ILLEGAL_GENERATION", "STALE_MEMBER_EPOCH", "UNKNOWN_MEMBER_ID"]
)
_LEAVES: Final = pa.array(["close", "crash", "leave_group", "unassign", "unsubscribe"])
DELETES_OFFSETS: Final = "(?i)^delete.*(group|offset)|^offset.*delete"
"""Kafka has three requests: DeleteGroups, OffsetDelete, and what its clients call by other names."""
_SHARES: Final = "share|^acknowledge"


@dataclass(frozen=True, slots=True)
class Departure:
    """A process that left its group, or was told that it is no member of one any more."""

    process: int
    group: str | None
    invoke_ns: int
    complete_ns: int


@dataclass(frozen=True, slots=True)
class Groups:
    """The groups of a run, or of a part of it."""

    departures: tuple[Departure, ...] = ()
    deleted: frozenset[str | None] = frozenset()
    """Groups of which offsets may have been deleted on request; None stands for any."""
    shared: frozenset[str | None] = frozenset()
    """Share groups, whose members own partitions together."""
    last_seen_ns: Mapping[int, int] = field(default_factory=dict)
    """Per process, its last sign of life: an operation invoked or returned, a partition assigned, revoked or lost."""

    def may_be_deleted(self, group: str) -> bool:
        """Whether a missing offset of a group may be gone on request."""
        return group in self.deleted or None in self.deleted


def groups_of(table: pa.Table) -> Groups:
    """Of rows of `operations` (GROUP_FIELDS)."""
    gone = pc.or_(pc.is_in(table["error"], value_set=_FENCED), pc.is_in(table["f"], value_set=_LEAVES))
    deletes = pc.and_(pc.match_substring_regex(table["f"], DELETES_OFFSETS), pc.not_equal(table["outcome"], "fail"))
    seen = pa.table([table["process"], pc.coalesce(table["complete_ns"], table["invoke_ns"])], names=["process", "at"])
    return Groups(
        departures=tuple(_departure(row) for row in table.filter(gone).to_pylist()),
        deleted=frozenset(table["group"].filter(deletes).to_pylist()),
        shared=frozenset(table["group"].filter(pc.match_substring_regex(table["f"], _SHARES)).to_pylist()),
        last_seen_ns=last_seen_ns(seen, "at"),
    )


def last_seen_ns(table: pa.Table, when: str) -> dict[int, int]:
    """Per process, the latest time in the column `when`."""
    last = table.group_by("process", use_threads=False).aggregate([(when, "max")])
    return dict(zip(last["process"].to_pylist(), last[f"{when}_max"].to_pylist(), strict=True))


def merge_groups(groups: Iterable[Groups]) -> Groups:
    """The groups of the whole of which these are of the parts."""
    parts = list(groups)
    last: dict[int, int] = {}
    for part in parts:
        for process, at_ns in part.last_seen_ns.items():
            last[process] = max(at_ns, last.get(process, at_ns))
    return Groups(
        departures=tuple(departure for part in parts for departure in part.departures),
        deleted=frozenset().union(*(part.deleted for part in parts)),
        shared=frozenset().union(*(part.shared for part in parts)),
        last_seen_ns=last,
    )


def _departure(row: Mapping[str, Any]) -> Departure:
    complete_ns = NEVER_NS if row["complete_ns"] is None else row["complete_ns"]
    return Departure(row["process"], row["group"], row["invoke_ns"], complete_ns)
