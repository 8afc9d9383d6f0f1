"""Target `simulation`: a cluster of the reference broker in this thread, in virtual time.

Time advances only while a caller waits, through the transport, the stage or a control of this target. A run that takes
minutes on processes takes a second here. The same calls give the same run.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from chaos.simulation.disk_copy import DiskCopy
from chaos.simulation.drivers import SimulatedDrivers
from chaos.simulation.simulated_links import SimulatedLinks
from chaos.simulation.simulated_processes import SimulatedProcesses
from chaos.simulation.stage import SimulatedStage
from chaos.simulation.transport import SimulatedTransport
from fixtures.clients.drivers import Drivers
from fixtures.clients.transport import Transport
from fixtures.targets.target import Capability, Node, TargetError
from fixtures.targets.trial_properties import trial_properties
from reference_broker.core.configuration.keys import BROKER_CONFIG_KEYS
from reference_broker.simulation.cluster import (
    CLIENT,
    PORTS,
    SimulatedCluster,
    host_of,
)


class Simulation:
    """A `Target` over a simulated cluster, with controls of links, processes, membership and log directories."""

    kind = "simulation"
    name = "simulation"
    version = None

    def __init__(self, nodes: int = 3, *, properties: Mapping[str, str] | None = None, seed: int = 0) -> None:
        self._count = nodes
        given = trial_properties(nodes) | dict(properties or {})
        self._properties = {name: value for name, value in given.items() if name in BROKER_CONFIG_KEYS}
        self._seed = seed
        self._cluster: SimulatedCluster | None = None
        self._stage: SimulatedStage | None = None
        self._notes: dict[int, list[str]] = {}
        self._initial_nodes = tuple(range(1, nodes + 1))
        self._node_ids = self._initial_nodes
        self._copies: dict[int, DiskCopy] = {}
        self.links = SimulatedLinks(lambda: self.cluster.network)
        self.processes = SimulatedProcesses(
            lambda: (self.cluster, self.stage), self._initial_nodes, lambda: self._node_ids, self._copies
        )

    @property
    def cluster(self) -> SimulatedCluster:
        """The running cluster. Raises `TargetError` before its start."""
        if self._cluster is None:
            raise TargetError("the simulation has not started")
        return self._cluster

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What the controls can do. `REPLICATION`, and `LINK_FAULTS` between nodes, need at least three nodes."""
        alone = {
            Capability.TOPIC_ADMIN,
            Capability.CLIENT_LINK_FAULTS,
            Capability.PROCESS_CONTROL,
            Capability.DURABLE_STORAGE,
            Capability.LOG_DIRECTORIES,
        }
        several = {Capability.REPLICATION, Capability.LINK_FAULTS} if self._count >= 3 else set()
        return frozenset(alone | several)

    @property
    def node_count(self) -> int:
        """The number of nodes at the start."""
        return self._count

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The present nodes; all are brokers."""
        return tuple(_advertised(node_id) for node_id in self._node_ids)

    @property
    def transport(self) -> Transport:
        """Transport with virtual time and simulated connections."""
        return SimulatedTransport(self.cluster, self.stage)

    @property
    def stage(self) -> SimulatedStage:
        """Stage for threads of clients, of which one runs at a time. Raises `TargetError` before the start."""
        if self._stage is None:
            raise TargetError("the simulation has not started")
        return self._stage

    @property
    def drivers(self) -> Drivers:
        """Factory of producers and consumers in virtual time."""
        return SimulatedDrivers(self.cluster, self.stage, self._initial_nodes)

    @property
    def bootstrap_servers(self) -> str:
        """Host and port of each node. The host names resolve only in this target's transport."""
        return ",".join(f"{node.host}:{node.port}" for node in self.nodes)

    @property
    def cluster_properties(self) -> Mapping[str, str]:
        """The Kafka properties of every node."""
        return self._properties

    @property
    def versions(self) -> Mapping[str, str]:
        """No versions: the simulation runs no other software than this suite."""
        return {}

    def start(self) -> None:
        """Start all nodes, and advance time until they serve."""
        self._cluster = SimulatedCluster(self._count, seed=self._seed, properties=self._properties)
        self._stage = SimulatedStage(self._cluster.scheduler)
        if not self._cluster.await_ready():
            raise TargetError("the simulated cluster is not ready within a virtual minute")

    def stop(self) -> None:
        """Stop the cluster, but keep the log lines of its nodes for `collect_logs`."""
        if self._cluster is not None:
            self._notes = {node_id: machine.notes for node_id, machine in self._cluster.machines.items()}
            self.stage.stop()
        for copy in self._copies.values():
            copy.close()
        self._cluster = self._stage = None
        self._node_ids = self._initial_nodes
        self._copies.clear()

    def collect_logs(self, directory: Path) -> None:
        """Write the log lines of each node to `broker.log` in a directory named by its id."""
        for node_id, notes in self._notes.items():
            (directory / str(node_id)).mkdir(parents=True, exist_ok=True)
            (directory / str(node_id) / "broker.log").write_text("".join(f"{line}\n" for line in notes))

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    # MembershipControl

    def add_broker(self) -> Node:
        """Add a node that is only a broker, and advance time until it serves."""
        node = max(self.cluster.machines) + 1
        self.cluster.add_broker(node)
        self._node_ids = (*self._node_ids, node)
        self.processes.await_serving(node)
        return _advertised(node)

    def remove_broker(self, node: int) -> None:
        """Shut down a broker that `add_broker` added, and remove it from `nodes`."""
        if node in self._initial_nodes:
            raise TargetError(f"simulation: node {node} is a controller, and stays")
        self.processes.shut_down(node)
        self._node_ids = tuple(each for each in self._node_ids if each != node)

    # LogDirectories

    def log_directories(self, node: int) -> Sequence[Path]:
        """Return the directory with the copy of the node's disk (`DiskCopy`)."""
        machine = self.cluster.machines[node]
        if node not in self._copies:
            self._copies[node] = DiskCopy()
        copy = self._copies[node]
        if not copy.is_open:
            copy.show(machine.disk)
            copy.is_open = machine.node is None
        return (copy.path,)


def _advertised(node_id: int) -> Node:
    return Node(node_id, host_of(node_id), PORTS[CLIENT])
