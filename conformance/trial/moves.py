"""Moves in the faulty phase of a trial: begins and ends of faults, waits and requests.

Moves run one after the other. One that waits for the cluster (`AwaitIsr`) ends when every node that is up reports the
state, or after a timeout without an error: the history checks judge what a cluster does not do. All faults still in
force after the last move are healed. Moves are plain values and print as Python.

Moves name nodes by the roles of the moment at which the trial starts (`Role.FIRST_REPLICA`), so that a trial means the
same on every cluster.
"""

from dataclasses import dataclass

from fixtures.clients.administration import Election
from fixtures.clients.steps import Idle
from fixtures.faults import AnyFault, Node
from fixtures.python_source import AsPython

# --- faults


@dataclass(frozen=True, slots=True, repr=False)
class Begin(AsPython):
    """Inject a fault. It is in force until it is healed; a shutdown is awaited."""

    fault: AnyFault


@dataclass(frozen=True, slots=True, repr=False)
class Heal(AsPython):
    """Heal all faults of a node, and wait until it listens if it was down; null: heal all other faults, those of links.

    The node is named as it was when the faults began.
    """

    node: Node | None = None


@dataclass(frozen=True, slots=True, repr=False)
class StartBroker(AsPython):
    """Start a broker that joins the cluster, and wait until it listens. It leaves after the last move at the latest."""


@dataclass(frozen=True, slots=True, repr=False)
class StopBroker(AsPython):
    """Shut down the broker that joined."""


# --- waiting


@dataclass(frozen=True, slots=True, repr=False)
class AwaitIsr(AsPython):
    """Wait until the ISR of partition 0 has `size` members."""

    size: int


@dataclass(frozen=True, slots=True, repr=False)
class AwaitLeader(AsPython):
    """Wait until this node leads partition 0, or until it has no leader (None)."""

    node: Node | None


@dataclass(frozen=True, slots=True, repr=False)
class AwaitBrokers(AsPython):
    """Wait until the cluster has `count` brokers."""

    count: int


@dataclass(frozen=True, slots=True, repr=False)
class AwaitController(AsPython):
    """Wait until a node other than this one is the active controller."""

    other_than: Node


# --- requests, each sent once to one node


@dataclass(frozen=True, slots=True, repr=False)
class ProduceBatch(AsPython):
    """Send one batch to partition 0 of a node, and wait for its response."""

    to: Node
    records: int
    acks: int = -1
    timeout_ms: int = 10_000


@dataclass(frozen=True, slots=True, repr=False)
class FetchFromEnd(AsPython):
    """Send ListOffsets for the end of partition 0 to a node, and a Fetch from that offset."""

    to: Node


@dataclass(frozen=True, slots=True, repr=False)
class ProbeLeaderEpochs(AsPython):
    """Send OffsetForLeaderEpoch for the previous epoch, a Fetch beyond its end, and requests in epochs below and above.

    Waits until the node returns the epoch in which it leads.
    """

    to: Node


@dataclass(frozen=True, slots=True, repr=False)
class ElectLeader(AsPython):
    """Send ElectLeaders for partition 0 to a node that is up."""

    election: Election = Election.PREFERRED


@dataclass(frozen=True, slots=True, repr=False)
class UnregisterNewcomer(AsPython):
    """Send UnregisterBroker for the broker that joined to another node."""


@dataclass(frozen=True, slots=True, repr=False)
class DeleteRecordsToEnd(AsPython):
    """Send DeleteRecords for partition 0 up to its end offset."""


@dataclass(frozen=True, slots=True, repr=False)
class MoveReplicas(AsPython):
    """Reassign partition 0 to these nodes, and wait until it is complete and every node that is up reports the ISR."""

    replicas: tuple[Node, ...]


Await = AwaitIsr | AwaitLeader | AwaitBrokers | AwaitController
Move = (
    Begin
    | Heal
    | StartBroker
    | StopBroker
    | Idle
    | Await
    | ProduceBatch
    | FetchFromEnd
    | ProbeLeaderEpochs
    | ElectLeader
    | UnregisterNewcomer
    | DeleteRecordsToEnd
    | MoveReplicas
)
