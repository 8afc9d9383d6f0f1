"""What is done to a cluster in the faulty phase of a script, move by move: the nemesis's vocabulary.

Moves follow each other; one that waits for the cluster (`AwaitIsr`) goes on when every node that is up says what it
waits for, or when its time is over, because what a cluster does not do is for the history_checks to judge. All that is
still broken after the last move is healed. Moves are plain values and print as Python.

Nodes are named by what they are to partition 0 when the script starts, so that a script means the same on every
cluster: its replicas in the order of the assignment, of which the first leads.
"""

from dataclasses import dataclass
from enum import StrEnum

from fixtures.clients.administration import Election
from fixtures.faults.damage import Damage
from fixtures.python_source import AsPython
from fixtures.targets.controls import Listener, Lost


class InitialRole(StrEnum):
    """A node, or the clients, by what it is to partition 0 when the script starts."""

    CLIENT = "client"
    LEADER = "leader"
    """The first replica."""
    FOLLOWER = "follower"
    """The second."""
    LAST_FOLLOWER = "last-follower"
    """The third."""
    OUTSIDER = "outsider"
    """A node without a replica."""
    NEWCOMER = "newcomer"
    """A broker that has joined since."""


# --- faults


@dataclass(frozen=True, slots=True, repr=False)
class Cut(AsPython):
    """Lose one direction of a link until it is healed.

    Between two nodes only `listener`'s traffic is cut; heartbeats and metadata still pass where replication is.
    """

    source: InitialRole
    destination: InitialRole
    lost: Lost = Lost.REQUESTS
    listener: Listener = Listener.REPLICATION


@dataclass(frozen=True, slots=True, repr=False)
class Heal(AsPython):
    """Heal every link."""


@dataclass(frozen=True, slots=True, repr=False)
class Kill(AsPython):
    """SIGKILL. The node stays down until it is restarted."""

    node: InitialRole


@dataclass(frozen=True, slots=True, repr=False)
class ShutDown(AsPython):
    """SIGTERM: a controlled shutdown. Goes on when the process has ended; the node stays down until restarted."""

    node: InitialRole


@dataclass(frozen=True, slots=True, repr=False)
class DamageDisk(AsPython):
    """Damage the disk of a node that is down."""

    node: InitialRole
    what: Damage


@dataclass(frozen=True, slots=True, repr=False)
class Restart(AsPython):
    """Start a node that is down; goes on once it listens."""

    node: InitialRole


@dataclass(frozen=True, slots=True, repr=False)
class PauseNode(AsPython):
    """SIGSTOP, until it is resumed."""

    node: InitialRole


@dataclass(frozen=True, slots=True, repr=False)
class Resume(AsPython):
    """SIGCONT."""

    node: InitialRole


@dataclass(frozen=True, slots=True, repr=False)
class AddBroker(AsPython):
    """Let a broker join the cluster; goes on once it listens. It leaves with the nemesis, at the latest."""


@dataclass(frozen=True, slots=True, repr=False)
class RemoveBroker(AsPython):
    """Shut the broker down that has joined."""


# --- waiting


@dataclass(frozen=True, slots=True, repr=False)
class Wait(AsPython):
    """Let time pass."""

    duration_ms: int


@dataclass(frozen=True, slots=True, repr=False)
class AwaitIsr(AsPython):
    """Until the ISR of partition 0 has so many members."""

    size: int


@dataclass(frozen=True, slots=True, repr=False)
class AwaitLeader(AsPython):
    """Until this node leads partition 0; null: until nobody does."""

    node: InitialRole | None


@dataclass(frozen=True, slots=True, repr=False)
class AwaitBrokers(AsPython):
    """Until the cluster has so many brokers."""

    count: int


@dataclass(frozen=True, slots=True, repr=False)
class AwaitController(AsPython):
    """Until another node than this one is the active controller."""

    other_than: InitialRole


# --- requests, each sent once to one node


@dataclass(frozen=True, slots=True, repr=False)
class Produce(AsPython):
    """Send one batch to partition 0 of a node, and wait for its answer."""

    to: InitialRole
    records: int
    acks: int = -1
    timeout_ms: int = 10_000


@dataclass(frozen=True, slots=True, repr=False)
class FetchFromEnd(AsPython):
    """Ask a node for the records of partition 0 from its end offset on, and for that offset."""

    to: InitialRole


@dataclass(frozen=True, slots=True, repr=False)
class ProbeLeaderEpochs(AsPython):
    """Ask a leader where the epoch before its own ended, and read as clients from beyond there, behind and ahead.

    Waits for the node to say in which epoch it leads.
    """

    to: InitialRole


@dataclass(frozen=True, slots=True, repr=False)
class ElectLeader(AsPython):
    """ElectLeaders for partition 0, asked of a node that is up."""

    election: Election = Election.PREFERRED


@dataclass(frozen=True, slots=True, repr=False)
class Unregister(AsPython):
    """UnregisterBroker for the broker that has joined, asked of another node."""


@dataclass(frozen=True, slots=True, repr=False)
class DeleteRecordsToEnd(AsPython):
    """Move the log start of partition 0 up to its end offset."""


@dataclass(frozen=True, slots=True, repr=False)
class Reassign(AsPython):
    """Reassign partition 0 to these nodes, and wait until that is over and every node that is up knows it."""

    replicas: tuple[InitialRole, ...]


Break = Cut | Heal | Kill | ShutDown | DamageDisk | Restart | PauseNode | Resume
"""Faults, and their ends."""
Await = AwaitIsr | AwaitLeader | AwaitBrokers | AwaitController
Move = (
    Break
    | AddBroker
    | RemoveBroker
    | Wait
    | Await
    | Produce
    | FetchFromEnd
    | ProbeLeaderEpochs
    | ElectLeader
    | Unregister
    | DeleteRecordsToEnd
    | Reassign
)
