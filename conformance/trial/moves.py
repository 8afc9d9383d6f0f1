"""Moves in the faulty phase of a trial: begins and ends of faults, waits and requests.

Moves run one after the other. A move that waits for a state of the cluster, such as `AwaitIsr`, ends when every node
that is up reports this state; the broker that joined is not queried. A timeout ends such a move, too, and is no error:
the history checks judge whether the state was reached. All faults still in force after the last move are healed. Moves
are plain values and print as Python.

Moves name nodes by their roles at the start of the trial (`Role.FIRST_REPLICA`), so that a trial means the same on
every cluster.
"""

from dataclasses import dataclass

from fixtures.clients.administration import Election
from fixtures.clients.steps import Idle
from fixtures.faults import AnyFault, Node
from fixtures.python_source import AsPython

# --- faults


@dataclass(frozen=True, slots=True, repr=False)
class Begin(AsPython):
    """Injection of a fault, which is in force until it is healed. A shutdown is awaited."""

    fault: AnyFault


@dataclass(frozen=True, slots=True, repr=False)
class Heal(AsPython):
    """End of all faults of a node; None: end of all faults of links. If the node was down, wait until it listens.

    The node has the same name as in `Begin`.
    """

    node: Node | None = None


@dataclass(frozen=True, slots=True, repr=False)
class StartBroker(AsPython):
    """Start of a broker that joins the cluster. The move ends when the broker listens.

    The broker leaves after the last move at the latest.
    """


@dataclass(frozen=True, slots=True, repr=False)
class StopBroker(AsPython):
    """Shutdown of the broker that joined."""


# --- waiting


@dataclass(frozen=True, slots=True, repr=False)
class AwaitIsr(AsPython):
    """Wait until the ISR of partition 0 has `size` members."""

    size: int


@dataclass(frozen=True, slots=True, repr=False)
class AwaitLeader(AsPython):
    """Wait until this node leads partition 0; None: until the partition has no leader."""

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
    """Produce request to a node with one batch for partition 0; its response is awaited."""

    to: Node
    records: int
    acks: int = -1
    timeout_ms: int = 10_000


@dataclass(frozen=True, slots=True, repr=False)
class FetchFromEnd(AsPython):
    """ListOffsets request to a node for the end of partition 0, and a Fetch from that offset."""

    to: Node


@dataclass(frozen=True, slots=True, repr=False)
class ProbeLeaderEpochs(AsPython):
    """OffsetForLeaderEpoch for the previous epoch, a Fetch beyond its end, and requests with older and newer epochs.

    The requests are sent when the node has returned the leader epoch in which it leads; none is sent in the first
    epoch (0).
    """

    to: Node


@dataclass(frozen=True, slots=True, repr=False)
class ElectLeader(AsPython):
    """ElectLeaders request for partition 0, to a node that is up."""

    election: Election = Election.PREFERRED


@dataclass(frozen=True, slots=True, repr=False)
class UnregisterNewcomer(AsPython):
    """UnregisterBroker request for the broker that joined, to another node."""


@dataclass(frozen=True, slots=True, repr=False)
class DeleteRecordsToEnd(AsPython):
    """DeleteRecords request for partition 0 up to its end offset."""


@dataclass(frozen=True, slots=True, repr=False)
class MoveReplicas(AsPython):
    """Reassignment of partition 0 to these nodes. The move ends when every node that is up reports them as the ISR."""

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
