"""Moves of the nemesis in the faulty phase of a script: faults, waits and requests.

Moves run one after the other. One that waits for the cluster (`AwaitIsr`) ends when every node that is up reports the
state, or after a timeout without an error: the history checks judge what a cluster does not do. All faults still in
force after the last move are healed. Moves are plain values and print as Python.

Nodes are named by their role for partition 0 when the script starts, so that a script means the same on every cluster:
its replicas in the order of the assignment, of which the first leads.
"""

from dataclasses import dataclass
from enum import StrEnum

from fixtures.clients.administration import Election
from fixtures.faults.damage import Damage
from fixtures.python_source import AsPython
from fixtures.targets.controls import Listener, Lost


class InitialRole(StrEnum):
    """A node by its role for partition 0 when the script starts, or the clients."""

    CLIENT = "client"
    LEADER = "leader"
    """The first replica."""
    FOLLOWER = "follower"
    """The second replica."""
    LAST_FOLLOWER = "last-follower"
    """The third replica."""
    OUTSIDER = "outsider"
    """A node without a replica."""
    NEWCOMER = "newcomer"
    """A broker that joined after the start."""


# --- faults


@dataclass(frozen=True, slots=True, repr=False)
class Cut(AsPython):
    """Lose one direction of a link until it is healed.

    Between two nodes only the traffic of `listener` is cut: heartbeats and metadata still pass if it is replication.
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
    """Send SIGKILL. The node stays down until it is restarted."""

    node: InitialRole


@dataclass(frozen=True, slots=True, repr=False)
class ShutDown(AsPython):
    """Send SIGTERM for a controlled shutdown, and wait for the process to end. The node stays down until restarted."""

    node: InitialRole


@dataclass(frozen=True, slots=True, repr=False)
class DamageDisk(AsPython):
    """Damage the disk of a node that is down."""

    node: InitialRole
    what: Damage


@dataclass(frozen=True, slots=True, repr=False)
class Restart(AsPython):
    """Start a node that is down, and wait until it listens."""

    node: InitialRole


@dataclass(frozen=True, slots=True, repr=False)
class PauseNode(AsPython):
    """Send SIGSTOP. The node is paused until it is resumed."""

    node: InitialRole


@dataclass(frozen=True, slots=True, repr=False)
class Resume(AsPython):
    """Send SIGCONT."""

    node: InitialRole


@dataclass(frozen=True, slots=True, repr=False)
class AddBroker(AsPython):
    """Add a broker to the cluster, and wait until it listens. It is removed after the last move at the latest."""


@dataclass(frozen=True, slots=True, repr=False)
class RemoveBroker(AsPython):
    """Shut down the broker that joined."""


# --- waiting


@dataclass(frozen=True, slots=True, repr=False)
class Wait(AsPython):
    """Wait for a fixed time."""

    duration_ms: int


@dataclass(frozen=True, slots=True, repr=False)
class AwaitIsr(AsPython):
    """Wait until the ISR of partition 0 has `size` members."""

    size: int


@dataclass(frozen=True, slots=True, repr=False)
class AwaitLeader(AsPython):
    """Wait until this node leads partition 0, or until it has no leader (None)."""

    node: InitialRole | None


@dataclass(frozen=True, slots=True, repr=False)
class AwaitBrokers(AsPython):
    """Wait until the cluster has `count` brokers."""

    count: int


@dataclass(frozen=True, slots=True, repr=False)
class AwaitController(AsPython):
    """Wait until a node other than this one is the active controller."""

    other_than: InitialRole


# --- requests, each sent once to one node


@dataclass(frozen=True, slots=True, repr=False)
class Produce(AsPython):
    """Send one batch to partition 0 of a node, and wait for its response."""

    to: InitialRole
    records: int
    acks: int = -1
    timeout_ms: int = 10_000


@dataclass(frozen=True, slots=True, repr=False)
class FetchFromEnd(AsPython):
    """Send ListOffsets for the end of partition 0 to a node, and a Fetch from that offset."""

    to: InitialRole


@dataclass(frozen=True, slots=True, repr=False)
class ProbeLeaderEpochs(AsPython):
    """Send OffsetForLeaderEpoch for the previous epoch, a Fetch beyond its end, and requests in epochs below and above.

    Waits until the node returns the epoch in which it leads.
    """

    to: InitialRole


@dataclass(frozen=True, slots=True, repr=False)
class ElectLeader(AsPython):
    """Send ElectLeaders for partition 0 to a node that is up."""

    election: Election = Election.PREFERRED


@dataclass(frozen=True, slots=True, repr=False)
class Unregister(AsPython):
    """Send UnregisterBroker for the broker that joined to another node."""


@dataclass(frozen=True, slots=True, repr=False)
class DeleteRecordsToEnd(AsPython):
    """Send DeleteRecords for partition 0 up to its end offset."""


@dataclass(frozen=True, slots=True, repr=False)
class Reassign(AsPython):
    """Reassign partition 0 to these nodes, and wait until it is complete and every node that is up reports the ISR."""

    replicas: tuple[InitialRole, ...]


Break = Cut | Heal | Kill | ShutDown | DamageDisk | Restart | PauseNode | Resume
"""Moves that inject or heal faults."""
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
