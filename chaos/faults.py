"""Faults: what can be broken on purpose, as plain values that mean the same in the simulation and on real clusters.

A schedule is a tuple of `Timed`: when a fault begins, in milliseconds since the start of a run's faulty phase, and for
how long it lasts. All that still lasts when the last one ends is healed then, and the phase is over. Values print as
Python.

A node is its id, or a `Role`, which is resolved at the moment of the injection, so that "the leader" is whoever leads
by then. Roles of a replica are about the first partition of the script's first topic. A fault of which nothing is found
then (there is no leader at this moment) does nothing.

Every fault is a row of the table `faults`; `chaos.fault_rows` says of which kind. Those of `chaos.live_faults` are for
real clusters alone: the simulation finds nothing to break.
"""

from dataclasses import dataclass

from chaos.fault_words import Damage, Errno, FileKind, Held, Keeps, Listener, Node, Operation, Place, Role
from chaos.live_faults import CutShort, HoldRequests, LimitMemory, Refuse, Slice, StaleCopy, Starve, Upgrade
from conformance.concurrent.moves import AsPython

__all__ = [
    "AddBroker",
    "ClockDrift",
    "ClockJump",
    "Configure",
    "Cut",
    "CutShort",
    "Damage",
    "DamageDisk",
    "DiskError",
    "DiskFull",
    "Elect",
    "Errno",
    "Fault",
    "FileKind",
    "FlipBit",
    "HalfOpen",
    "Held",
    "HoldRequests",
    "Isolate",
    "Keeps",
    "Kill",
    "LimitMemory",
    "Listener",
    "Node",
    "Operation",
    "Pause",
    "Place",
    "PowerCut",
    "Reassign",
    "Refuse",
    "Reset",
    "RestartWith",
    "Ring",
    "Role",
    "ShutDown",
    "Slice",
    "Slow",
    "SlowFlush",
    "Split",
    "StaleCopy",
    "Starve",
    "Timed",
    "Unregister",
    "Upgrade",
    "Wipe",
]


# --- network


@dataclass(frozen=True, slots=True, repr=False)
class Cut(AsPython):
    """Cut the direction from one place to another, or both.

    :param listener: only what nodes reach each other by there; null: all of it.
    """

    source: Place
    destination: Place
    both_ways: bool = False
    keeps: Keeps = Keeps.BYTES
    listener: Listener | None = None


@dataclass(frozen=True, slots=True, repr=False)
class Isolate(AsPython):
    """Cut a node off from all others, in both directions."""

    node: Node
    from_clients: bool = False
    keeps: Keeps = Keeps.BYTES
    listener: Listener | None = None


@dataclass(frozen=True, slots=True, repr=False)
class Split(AsPython):
    """Cut the nodes of one side off from those of the other; clients reach all of them."""

    side: tuple[Node, ...]
    keeps: Keeps = Keeps.BYTES


@dataclass(frozen=True, slots=True, repr=False)
class Ring(AsPython):
    """Let each node hear only from the half of the others that follow it in the circle of ids.

    Each is in a majority, and no two are in the same.
    """

    keeps: Keeps = Keeps.BYTES


@dataclass(frozen=True, slots=True, repr=False)
class Slow(AsPython):
    """Make the direction from one place to another slow, or both.

    :param jitter_ms: at most so much more, by chance; never reorders within a connection.
    :param bytes_per_ms: null: as many as wanted.
    """

    source: Place
    destination: Place
    delay_ms: int = 0
    jitter_ms: int = 0
    bytes_per_ms: int | None = None
    both_ways: bool = True


@dataclass(frozen=True, slots=True, repr=False)
class Reset(AsPython):
    """End every connection between two places, once."""

    one: Place
    other: Place


@dataclass(frozen=True, slots=True, repr=False)
class HalfOpen(AsPython):
    """End every connection between two places, once, while whoever opened it does not hear of that."""

    one: Place
    other: Place


# --- disk


@dataclass(frozen=True, slots=True, repr=False)
class DiskError(AsPython):
    """Let operations of a node's disk fail. A node that this ends is started again when it is over.

    :param operation: null: all.
    :param files: null: all.
    """

    node: Node
    error: Errno = Errno.EIO
    operation: Operation | None = None
    files: FileKind | None = None


@dataclass(frozen=True, slots=True, repr=False)
class DiskFull(AsPython):
    """Leave a node's disk so much room. A node that this ends is started again when it is over."""

    node: Node
    free_bytes: int = 0


@dataclass(frozen=True, slots=True, repr=False)
class SlowFlush(AsPython):
    """Let every flush of a node's disk take so long."""

    node: Node
    flush_ms: int


@dataclass(frozen=True, slots=True, repr=False)
class FlipBit(AsPython):
    """Kill a node, flip one bit in a file of the first partition, and start it when the time is over.

    :param per_mille: where in the file, of its length.
    """

    node: Node
    files: FileKind = FileKind.LOG
    per_mille: int = 500


@dataclass(frozen=True, slots=True, repr=False)
class DamageDisk(AsPython):
    """Kill a node, damage its files of the first topic, and start it when the time is over."""

    node: Node
    what: Damage


# --- process


@dataclass(frozen=True, slots=True, repr=False)
class Kill(AsPython):
    """SIGKILL, and start when the time is over."""

    node: Node


@dataclass(frozen=True, slots=True, repr=False)
class ShutDown(AsPython):
    """SIGTERM: a controlled shutdown. Start when the time is over."""

    node: Node


@dataclass(frozen=True, slots=True, repr=False)
class PowerCut(AsPython):
    """Cut the power of some nodes at once, or of all; start them when the time is over.

    What was not flushed is lost, wholly or in part.

    :param nodes: empty: all.
    :param after_writes: in the middle of a disk's so-manieth change from now on; null: between two.
    """

    nodes: tuple[Node, ...] = ()
    after_writes: int | None = None


@dataclass(frozen=True, slots=True, repr=False)
class Pause(AsPython):
    """SIGSTOP, and SIGCONT when the time is over."""

    node: Node


@dataclass(frozen=True, slots=True, repr=False)
class Wipe(AsPython):
    """Kill a node, and start it when the time is over with none of the records of any topic.

    What makes it a node of the quorum stays (`meta.properties`, the metadata log): without, it would be another node.
    """

    node: Node


@dataclass(frozen=True, slots=True, repr=False)
class RestartWith(AsPython):
    """Kill a node, and start it when the time is over with another setting that only a start can change. It stays."""

    node: Node
    name: str
    value: str


# --- clock


@dataclass(frozen=True, slots=True, repr=False)
class ClockJump(AsPython):
    """Let a node's wall clock jump, and back when the time is over."""

    node: Node
    by_ms: int


@dataclass(frozen=True, slots=True, repr=False)
class ClockDrift(AsPython):
    """Let a node's clocks run faster (below zero: slower) by so many millionths."""

    node: Node
    rate_ppm: int


# --- cluster


@dataclass(frozen=True, slots=True, repr=False)
class Reassign(AsPython):
    """Move the first partition to these nodes. It stays there."""

    replicas: tuple[int, ...]


@dataclass(frozen=True, slots=True, repr=False)
class Elect(AsPython):
    """Have a leader elected for the first partition: the preferred one, or any replica that lives."""

    unclean: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class Configure(AsPython):
    """Set a property of the first topic, and take it back when the time is over."""

    name: str
    value: str


@dataclass(frozen=True, slots=True, repr=False)
class AddBroker(AsPython):
    """One node more, a broker that is no voter; where one has this id, nothing happens. It stays."""

    node: int


@dataclass(frozen=True, slots=True, repr=False)
class Unregister(AsPython):
    """Kill a node, and take its registration from the cluster; start it when the time is over, as if it were new."""

    node: Node


Fault = (
    Cut
    | Isolate
    | Split
    | Ring
    | Slow
    | Reset
    | HalfOpen
    | DiskError
    | DiskFull
    | SlowFlush
    | FlipBit
    | DamageDisk
    | Kill
    | ShutDown
    | PowerCut
    | Pause
    | Wipe
    | ClockJump
    | ClockDrift
    | Reassign
    | Elect
    | Configure
    | RestartWith
    | AddBroker
    | Unregister
    | Refuse
    | Slice
    | HoldRequests
    | CutShort
    | StaleCopy
    | Starve
    | LimitMemory
    | Upgrade
)


@dataclass(frozen=True, slots=True, repr=False)
class Timed(AsPython):
    """A fault, when it begins, and for how long.

    :param at_ms: since the start of the faulty phase.
    :param for_ms: 0 for what happens once.
    """

    at_ms: int
    fault: Fault
    for_ms: int = 0
