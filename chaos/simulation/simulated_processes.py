"""Processes of the target `simulation`: `ProcessControl` over the simulated machines."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from chaos.simulation.disk_copy import DiskCopy
from chaos.simulation.stage import SimulatedStage
from chaos.simulation.transport import SimulatedTransport
from fixtures.targets.target import TargetError
from reference_broker.simulation.cluster import READY_MAX_MS, SimulatedCluster

SHUTDOWN_MAX_MS = 60_000
START_MS = 1_000
"""What a process takes before it does anything, about as elsewhere: an observer sees that the node is gone."""


class SimulatedProcesses:
    """Processes of one simulated cluster."""

    def __init__(
        self,
        started: Callable[[], tuple[SimulatedCluster, SimulatedStage]],
        founders: Sequence[int],
        node_ids: Callable[[], Sequence[int]],
        copies: Mapping[int, DiskCopy],
    ) -> None:
        """Control nothing yet.

        Args:
            started: returns the started cluster, or raises `TargetError`.
            founders: the nodes that the cluster starts with, which are its controllers.
            node_ids: returns the nodes that it has now.
            copies: of the nodes' disks, which a start reads back.
        """
        self._started = started
        self._founders = founders
        self._node_ids = node_ids
        self._copies = copies

    def kill(self, node: int) -> None:
        """End the process at once."""
        self._cluster.kill(node)

    @contextmanager
    def pause(self, node: int) -> Iterator[None]:
        """Stop the process inside the context."""
        machine = self._cluster.machines[node]
        machine.pause()
        try:
            yield
        finally:
            machine.resume()

    def shut_down(self, node: int) -> None:
        """Let it hand over and end."""
        cluster, stage = self._started()
        cluster.shut_down(node)
        if not stage.wait(lambda: node not in cluster.nodes, SHUTDOWN_MAX_MS):
            raise TargetError(f"node {node} did not end within a virtual minute")

    def ended(self) -> Mapping[int, str]:
        """Return those that do not run, and why they ended if they did so by themselves."""
        machines = {node: self._cluster.machines[node] for node in self._node_ids()}
        return {node: machine.failed for node, machine in machines.items() if machine.node is None}

    def restart(self, node: int) -> None:
        """Start it with the disk it has, and let time pass until it serves, which takes most of the controllers."""
        cluster, stage = self._started()
        if node in cluster.nodes:
            raise TargetError(f"simulation: node {node} is running")
        SimulatedTransport(cluster, stage).sleep(START_MS / 1000)
        copy = self._copies.get(node)
        if copy is not None and copy.is_open:
            copy.take_back(cluster.machines[node].disk)
        cluster.start(node)
        if len(cluster.nodes.keys() & set(self._founders)) > len(self._founders) // 2:
            self.await_serving(node)

    def await_serving(self, node: int) -> None:
        """Let time pass until a node serves. Raises `TargetError` if it ends instead, or takes too long."""
        cluster, stage = self._started()
        if not stage.wait(lambda: node not in cluster.nodes or cluster.nodes[node].is_ready, READY_MAX_MS):
            raise TargetError(f"node {node} does not serve within a virtual minute")
        if node not in cluster.nodes:
            raise TargetError(f"node {node} did not start: {cluster.machines[node].failed}")

    @property
    def _cluster(self) -> SimulatedCluster:
        return self._started()[0]
