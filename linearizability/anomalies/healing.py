"""Fault periods: the nodes that faults affect, and the time that Kafka may take to recover after a change.

Choices. A node is *struck* while a fault affects it. A fault affects the nodes that it names, alone or as an end of a
link (`1->2`). A `cut` *isolates* one node, and affects only that node, if three conditions hold: it cuts the links in
both directions between the node and the clients and other nodes; its argument does not limit it to a `listener`; and
the other nodes include all voters. Without the last condition, the node may still reach a controller, and keep leading
although no client reaches it. Any other fault of client links affects every node. A target that names no node affects
every node, an election affects none, and a `configuration` affects every node for the rest of the run, because its
effect is unknown.

The allowance after each start and end of a fault is thirty seconds plus twice the sum of the times that Kafka takes to
detect a dead controller, a dead broker and a lagging follower: the highest values of TIMES_MS that were in force.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise, takewhile
from operator import or_
from typing import Final

from linearizability.anomalies.faults import NEVER_NS, Fault, nodes_named
from linearizability.anomalies.settings import Settings

TIMES_MS: Final = {
    "broker.session.timeout.ms": 9_000,
    "controller.quorum.election.backoff.max.ms": 1_000,
    "controller.quorum.election.timeout.ms": 1_000,
    "controller.quorum.fetch.timeout.ms": 2_000,
    "replica.lag.time.max.ms": 30_000,
}
"""The properties that determine the allowance, with Kafka's defaults."""

SPARE_NS: Final = 30_000_000_000
BEGINNING_NS: Final = -(2**63)
"""The start of the first period: before every time."""
_ARROW: Final = re.compile(r"(?<!-)-+>")
_CLIENTS: Final = re.compile(r"\bclients?\b")
Nodes = frozenset[int] | None
"""Some nodes; None is every node."""


@dataclass(frozen=True, slots=True)
class Struck:
    """The nodes that some faults affect."""

    nodes: Nodes
    if_voters_among: Nodes = None
    """The nodes that are an end of a link in every isolating cut. `nodes` is valid only if these include all voters.

    None means no condition.
    """

    def __or__(self, other: "Struck") -> "Struck":
        if self.nodes is None or other.nodes is None:
            return Struck(None)
        return Struck(self.nodes | other.nodes, _both(self.if_voters_among, other.if_voters_among))


def _both(one: Nodes, other: Nodes) -> Nodes:
    if one is None or other is None:
        return one if other is None else other
    return one & other


NOTHING: Final = Struck(frozenset())
EVERYTHING: Final = Struck(None)


@dataclass(frozen=True, slots=True)
class Period:
    """A period in which no fault begins or ends, and the nodes that its faults affect."""

    begin_ns: int
    end_ns: int
    struck: Struck


class Schedule:
    """The faults of a run as periods in which none begins or ends."""

    def __init__(self, settings: Settings) -> None:
        self._faults = settings.faults
        times = (max(settings.numbers("", name), default=default) for name, default in TIMES_MS.items())
        self.allowed_ns = SPARE_NS + 2 * 1_000_000 * sum(times)
        """The time that the cluster may take to recover after a change."""
        edges = {time for fault in self._faults for time in (fault.inject_ns, fault.heal_ns)}
        self._edges_ns = sorted(edges - {NEVER_NS})
        self.periods = tuple(self._periods())
        """Periods that together cover all time."""

    def _periods(self) -> Iterator[Period]:
        faults = list(self._faults)
        for begin_ns, end_ns in pairwise([BEGINNING_NS, *self._edges_ns, NEVER_NS]):
            faults = [fault for fault in faults if _over_ns(fault) > begin_ns]
            active = takewhile(lambda fault: fault.inject_ns < end_ns, faults)  # noqa: B023 - used up at once
            yield Period(begin_ns, end_ns, _struck_by_any(active))

    @property
    def whole(self) -> Iterator[Period]:
        """The periods in which no fault affects a node; elections do not count."""
        return (period for period in self.periods if period.struck == NOTHING)

    def is_unchanged(self, requested_ns: int, received_ns: int) -> bool:
        """Whether no fault began or ended from the allowance before a request until its response."""
        edge = bisect_right(self._edges_ns, received_ns)
        return edge == 0 or self._edges_ns[edge - 1] + self.allowed_ns < requested_ns

    def struck_between(self, begin_ns: int, end_ns: int) -> Struck:
        """Return the nodes that are struck at some time between two times, both exclusive."""
        return _struck_by_any(
            fault for fault in self._faults if fault.inject_ns < end_ns and _over_ns(fault) > begin_ns
        )


def _over_ns(fault: Fault) -> int:
    """Return when a fault stops affecting nodes; a configuration never does."""
    return NEVER_NS if fault.is_configuration else fault.heal_ns


def _struck_by_any(faults: Iterable[Fault]) -> Struck:
    return reduce(or_, map(_struck_by, faults), NOTHING)


def _struck_by(fault: Fault) -> Struck:
    if not fault.may_shrink_isr:
        return EVERYTHING if fault.is_configuration else NOTHING
    if _CLIENTS.search(fault.target or ""):
        return _isolated(fault)
    return Struck(nodes_named(_ARROW.sub(" ", fault.target or "")))


def _isolated(fault: Fault) -> Struck:
    """Return the one node that a cut separates from clients and other nodes; EVERYTHING if there is no such node."""
    links = [tuple(map(_end, _ARROW.split(link))) for link in re.split(r"[,;]", fault.target or "")]
    if fault.kind != "cut" or "listener" in (fault.argument or "") or {link[::-1] for link in links} != set(links):
        return EVERYTHING
    known = [frozenset[int]().union(*filter(None, link)) for link in links if None not in link]
    common = frozenset.intersection(*known) if len(known) == len(links) else frozenset()
    return Struck(common, frozenset().union(*known)) if len(common) == 1 else EVERYTHING


def _end(text: str) -> Nodes:
    """Return the node at one end of a link; an empty set for the clients, None if the text cannot be parsed."""
    return frozenset() if _CLIENTS.fullmatch(text.strip()) else nodes_named(text)
