"""The faults of a run as the promise table distinguishes them: which of them lost content, and on which nodes.

Content is lost by `power` (unless every message was flushed), by `wipe`, by disk faults except those that only fail or
delay requests (EIO, ENOSPC, slow), and by other faults whose kind names a loss (such as truncate or corrupt). A disk
fault whose argument names no kind is assumed to have lost content. If that assumption is wrong, a violation is reported
as permitted. The opposite assumption would cause false alarms.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

NEVER_NS: Final = 2**63 - 1
"""A time after all others, for events that did not happen."""

_CLUSTER_KINDS: Final = frozenset({"configuration", "election", "leader_election", "elect_leaders", "unclean_election"})
_REJECTING: Final = re.compile(r"eio|enospc|slow|full|erofs|delay|latency|stall|hang|\berror|refus", re.IGNORECASE)
_LOSING: Final = re.compile(
    r"lost|lose|loss|torn|flip|truncat|delet|drop|corrupt|zero|garbage|unsynced|un-fsynced|stale|misdirect",
    re.IGNORECASE,
)
_RESTARTING: Final = re.compile(
    r"kill|crash|shut|down|power|wipe|memory|oom|restart|reboot|upgrade|terminat", re.IGNORECASE
)
_SLOW: Final = re.compile(r"slow|delay|latency|stall|hang", re.IGNORECASE)
_NODE: Final = re.compile(r"(?:node|broker|kafka|replica|b)?[-_: ]?(\d{1,10})", re.IGNORECASE)
"""A node id has at most ten digits, because `int` rejects texts of thousands of digits."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A row of `faults`; `heal_ns` is NEVER_NS if the fault never healed."""

    kind: str
    target: str | None
    argument: str | None
    inject_ns: int
    heal_ns: int

    @property
    def is_configuration(self) -> bool:
        """Whether the fault only changed a setting."""
        return self.kind == "configuration"

    @property
    def may_shrink_isr(self) -> bool:
        """Whether the fault may have removed a replica from the ISR: true unless it is a setting or an election."""
        return self.kind not in _CLUSTER_KINDS

    @property
    def is_unclean_election(self) -> bool:
        """Whether the fault requested an unclean election."""
        return "election" in self.kind and "unclean" in f"{self.kind} {self.argument or ''}".lower()

    @property
    def is_power(self) -> bool:
        """Whether the fault is a power cut, which loses data that was not flushed."""
        return self.kind == "power"

    @property
    def loses_content(self) -> bool:
        """Whether the fault lost or altered data that had been written; `power` is not considered here."""
        if self.kind == "wipe":
            return True
        text = f"{self.kind} {self.argument or ''}"
        if self.kind.startswith("disk"):
            return bool(_LOSING.search(text)) or not _REJECTING.search(text)
        return not self.is_power and self.may_shrink_isr and bool(_LOSING.search(self.kind))

    @property
    def restarts_a_node(self) -> bool:
        """Whether a node may have been restarted.

        That holds for kinds such as kill, power and upgrade, and for disk faults unless they only delay requests.
        """
        if self.kind.startswith("disk"):
            return not _SLOW.search(self.argument or "")
        return self.may_shrink_isr and bool(_RESTARTING.search(self.kind))

    def affects_any(self, nodes: frozenset[int] | None) -> bool:
        """Whether the fault affected one of these nodes. None, here or as the affected nodes, means every node."""
        own = self.nodes()
        return own is None or nodes is None or not own.isdisjoint(nodes)

    def nodes(self) -> frozenset[int] | None:
        """Return the affected nodes; None if the target does not name them, which counts as every node."""
        return nodes_named(self.target or "")


def nodes_named(text: str) -> frozenset[int] | None:
    """Return the nodes of a list such as `1, node-2`; None if the text is not such a list."""
    found = [_NODE.fullmatch(part) for part in re.split(r"[,;\s]+", text.strip())]
    return frozenset(int(match[1]) for match in found if match) if all(found) else None


def faults_from_rows(rows: Iterable[Mapping[str, Any]]) -> tuple[Fault, ...]:
    """Return the rows of the table `faults` as values, sorted by injection."""
    faults = [
        Fault(
            row["kind"],
            row["target"],
            row["argument"],
            row["inject_ns"],
            NEVER_NS if row["heal_ns"] is None else row["heal_ns"],
        )
        for row in rows
    ]
    return tuple(sorted(faults, key=lambda fault: fault.inject_ns))


def healed_after_ns(faults: Iterable[Fault]) -> int | None:
    """Return when the last fault was healed: None if there was no fault, NEVER_NS while one has not healed."""
    return max((fault.heal_ns for fault in faults), default=None)
