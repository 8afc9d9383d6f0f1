"""Faults that only real clusters can suffer, as plain values like all others (`chaos.faults`).

They take a real network's bytes, a kernel that gives a process less, files that lie still, or another version of the
broker. In the simulation such a fault finds nothing to break.
"""

from dataclasses import dataclass

from chaos.fault_words import FileKind, Held, Node, Place
from conformance.concurrent.moves import AsPython


class LiveFault(AsPython):
    """Any of them."""

    __slots__ = ()


# --- network


@dataclass(frozen=True, slots=True, repr=False)
class Refuse(LiveFault):
    """End the connections that one place opened to a node, and refuse new ones."""

    source: Place
    destination: Node


@dataclass(frozen=True, slots=True, repr=False)
class Slice(LiveFault):
    """Let bytes arrive in pieces of about this size, in one direction or both: requests come in many reads."""

    source: Place
    destination: Place
    slice_bytes: int = 64
    both_ways: bool = True


@dataclass(frozen=True, slots=True, repr=False)
class HoldRequests(LiveFault):
    """Hold back the requests of some APIs that one place sends to a node, or the answers to them.

    What follows one on its connection waits with it.

    :param api_keys: as in the protocol: 0 Produce, 1 Fetch, 56 AlterPartition, 63 BrokerHeartbeat.
    :param delay_ms: each waits so long; null: until the time is over.
    """

    source: Place
    destination: Node
    api_keys: tuple[int, ...]
    delay_ms: int | None = None
    held: Held = Held.REQUESTS


# --- files that lie still


@dataclass(frozen=True, slots=True, repr=False)
class CutShort(LiveFault):
    """Kill a node, cut the last file of a kind of the first partition short, and start it when the time is over.

    :param per_mille: how much of its length is left.
    """

    node: Node
    files: FileKind = FileKind.LOG
    per_mille: int = 500


@dataclass(frozen=True, slots=True, repr=False)
class StaleCopy(LiveFault):
    """Copy a node's files of the first topic now; when the time is over they take the place of what is there by then.

    As when a backup is restored. The node is killed for each of the two, and started at once.
    """

    node: Node


# --- process


@dataclass(frozen=True, slots=True, repr=False)
class Starve(LiveFault):
    """Give a node only so many thousandths of one processor."""

    node: Node
    cpu_per_mille: int = 50


@dataclass(frozen=True, slots=True, repr=False)
class LimitMemory(LiveFault):
    """Give a node's process no more memory; one that must have more is killed. It is started when the time is over."""

    node: Node
    bytes_max: int


@dataclass(frozen=True, slots=True, repr=False)
class Upgrade(LiveFault):
    """Shut a node down and start it as another version of the broker. It stays that."""

    node: Node
    version: str
