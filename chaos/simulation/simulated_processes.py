"""Processes of a simulated cluster: the controls of `fixtures.targets.controls` over the simulated machines."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from chaos.simulation.disk_copy import DiskCopy
from chaos.simulation.stage import SimulatedStage
from chaos.simulation.transport import SimulatedTransport
from fixtures.targets.target import TargetError
from reference_broker.simulation.cluster import READY_MAX_MS, SimulatedCluster

SHUTDOWN_MAX_MS = 60_000
START_MS = 1_000
"""Virtual time from a call of `restart` to the start of the node, so that an observer notices that it was down."""


class MachineProcesses:
    """`ProcessFaultControl`; its methods do not advance time."""

    def __init__(self, cluster: Callable[[], SimulatedCluster]) -> None:
        """Control the processes of a cluster.

        :param cluster: returns the started cluster.
        """
        self._find_cluster = cluster

    @property
    def _cluster(self) -> SimulatedCluster:
        return self._find_cluster()

    def node_ids(self) -> Sequence[int]:
        """Return the ids of all machines."""
        return tuple(self._cluster.machines)

    def kill(self, node: int) -> None:
        """End the process at once. Idempotent."""
        machine = self._cluster.machines[node]
        if machine.node is not None:
            machine.kill()

    @contextmanager
    def pause(self, node: int) -> Iterator[None]:
        """Stop the process inside the context."""
        machine = self._cluster.machines[node]
        incarnation = machine.incarnation
        machine.pause()
        try:
            yield
        finally:
            if machine.incarnation == incarnation:
                machine.resume()

    def ended(self) -> Mapping[int, str]:
        """Return the nodes that do not run. The value is the error of a node that failed, else empty."""
        machines = {node: self._cluster.machines[node] for node in self.node_ids()}
        return {node: machine.failed for node, machine in machines.items() if machine.node is None}

    def send_sigterm(self, node: int) -> None:
        """Begin a controlled shutdown; a paused process is resumed first. No effect on a node that does not run."""
        machine = self._cluster.machines[node]
        if machine.node is not None:
            machine.resume()
            machine.shut_down()

    def launch(self, node: int) -> None:
        """Start a node that does not run. It ends at once if it cannot open its disk."""
        self._cluster.start(node)

    def configure(self, node: int, name: str, value: str) -> None:
        """Override a setting of a node from its next start on."""
        self._cluster.node_properties.setdefault(node, {})[name] = value

    def set_version(self, node: int, version: str) -> None:
        """Raise `TargetError`."""
        raise TargetError("the simulation has one version")


class SimulatedProcesses(MachineProcesses):
    """`ProcessControl` of the target `simulation`: time advances until a node has completed the operation."""

    def __init__(
        self,
        started: Callable[[], tuple[SimulatedCluster, SimulatedStage]],
        initial_nodes: Sequence[int],
        node_ids: Callable[[], Sequence[int]],
        copies: Mapping[int, DiskCopy],
    ) -> None:
        """Create the controls of a cluster that has not started yet.

        Args:
            started: returns the started cluster, or raises `TargetError`.
            initial_nodes: the initial nodes of the cluster, which are its controllers.
            node_ids: returns the ids of the present nodes.
            copies: copies of the nodes' disks; changes of a copy are applied to the disk when the node starts.
        """
        super().__init__(lambda: started()[0])
        self._started = started
        self._initial_nodes = initial_nodes
        self._node_ids = node_ids
        self._copies = copies

    def node_ids(self) -> Sequence[int]:
        """Return the ids of all nodes, without brokers that were removed (`Simulation.remove_broker`)."""
        return self._node_ids()

    def shut_down(self, node: int) -> None:
        """Begin a controlled shutdown, and wait for its end."""
        cluster, stage = self._started()
        cluster.shut_down(node)
        if not stage.wait(lambda: node not in cluster.nodes, SHUTDOWN_MAX_MS):
            raise TargetError(f"node {node} did not end within a virtual minute")

    def restart(self, node: int) -> None:
        """Start a node, and advance time until it serves.

        If no majority of the controllers runs, no node can serve; then return without waiting.

        :raises TargetError: the node is running already, ends, or does not serve in time.
        """
        cluster, stage = self._started()
        if node in cluster.nodes:
            raise TargetError(f"simulation: node {node} is running")
        SimulatedTransport(cluster, stage).sleep(START_MS / 1000)
        copy = self._copies.get(node)
        if copy is not None and copy.is_open:
            copy.copy_back(cluster.machines[node].disk)
        cluster.start(node)
        if len(cluster.nodes.keys() & set(self._initial_nodes)) > len(self._initial_nodes) // 2:
            self.await_serving(node)

    def await_serving(self, node: int) -> None:
        """Advance time until a node serves. Raises `TargetError` if it ends instead, or takes too long."""
        cluster, stage = self._started()
        if not stage.wait(lambda: node not in cluster.nodes or cluster.nodes[node].is_ready, READY_MAX_MS):
            raise TargetError(f"node {node} does not serve within a virtual minute")
        if node not in cluster.nodes:
            raise TargetError(f"node {node} did not start: {cluster.machines[node].failed}")
