"""Controls of a simulated cluster for faults: `FaultControls` over its machines and network."""

import errno
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from chaos.simulation.simulated_links import SimulatedLinks
from chaos.simulation.simulated_processes import MachineProcesses
from fixtures.disk.faults import DiskFault, DiskOperation, PowerLoss, Unflushed
from fixtures.overlapping import OverlappingSettings
from fixtures.targets.controls import RequestControl, ResourceControl
from fixtures.targets.target import TargetError
from reference_broker.simulation.cluster import SimulatedCluster
from reference_broker.simulation.disk import Failure

_OPERATIONS: Final = {DiskOperation.WRITE: "append", DiskOperation.RENAME: "replace"}
"""Names of operations in `SimulatedDisk`, where they differ from those of `DiskOperation`."""


class SimulatedControls:
    """`FaultControls` of one cluster.

    :param clients: names of the clients as ends of links.
    """

    def __init__(self, cluster: SimulatedCluster, clients: Sequence[str]) -> None:
        self.links = SimulatedLinks(lambda: cluster.network, clients)
        self.processes = MachineProcesses(lambda: cluster)
        self.disks = SimulatedDisks(cluster)
        self.clocks = SimulatedClocks(cluster)

    @property
    def requests(self) -> RequestControl:
        """Raise `TargetError`."""
        raise TargetError("the simulation holds no requests of one kind")

    @property
    def limits(self) -> ResourceControl:
        """Raise `TargetError`."""
        raise TargetError("the simulation limits neither processor time nor memory")


class SimulatedDisks:
    """`DiskFaultControl` over simulated disks."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._machines = cluster.machines
        self._armed: set[int] = set()
        self._space_limits = defaultdict[int, OverlappingSettings[int | None]](lambda: OverlappingSettings(None))

    def cut_power(
        self, nodes: Sequence[int], unflushed: Unflushed = Unflushed.TORN, seed: int = 0
    ) -> Mapping[int, PowerLoss]:
        """Cut the power of nodes. How much unflushed data is lost depends on the cluster's seed.

        A power cut armed for one of these nodes (`arm_power_cut`) is disarmed. If it has already stopped the node, the
        node loses nothing more.
        """
        assert unflushed is Unflushed.TORN, unflushed
        lost = {}
        for node in nodes:
            machine = self._machines[node]
            machine.disk.crashes_after = None
            is_completed = node in self._armed and machine.node is None
            self._armed.discard(node)
            lost[node] = PowerLoss(0 if is_completed else machine.cut_power())
        return lost

    def arm_power_cut(self, node: int, after_changes: int) -> None:
        """Cut a node's power during a change of its disk, after this number of changes; at once if it does not run."""
        machine = self._machines[node]
        if machine.node is None:
            machine.cut_power()
        else:
            machine.disk.crashes_after = after_changes
        self._armed.add(node)

    @contextmanager
    def inject(self, node: int, fault: DiskFault) -> Iterator[None]:
        """Inside the context, make operations of a node's disk fail, or delay its flushes. Delays add up."""
        disk = self._machines[node].disk
        if fault.error is None:
            disk.flush_ms += int(fault.delay_ms)
            try:
                yield
            finally:
                disk.flush_ms -= int(fault.delay_ms)
            return
        names = [_OPERATIONS.get(operation, str(operation)) for operation in fault.operations] or [""]
        failures = [Failure(getattr(errno, fault.error), name, (fault.files or "").strip("*")) for name in names]
        disk.failures += failures
        try:
            yield
        finally:
            for failure in failures:
                disk.failures.remove(failure)

    @contextmanager
    def fill(self, node: int, free_bytes: int = 0) -> Iterator[None]:
        """Inside the context, limit the free space of a node's disk. Of several limits the newest applies."""

        def limit(newest: int | None) -> None:
            self._machines[node].disk.free_bytes = newest

        with self._space_limits[node].add(free_bytes, limit):
            limit(free_bytes)
            yield


class SimulatedClocks:
    """`ClockControl` over the machines' clocks."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._machines = cluster.machines
        self._rates_ppm = defaultdict[int, OverlappingSettings[int]](lambda: OverlappingSettings(0))

    @contextmanager
    def jump(self, node: int, by_ms: int) -> Iterator[None]:
        """Move a node's wall clock by a time, and move it back when the context is left."""
        self._machines[node].jump_clock(by_ms)
        try:
            yield
        finally:
            self._machines[node].jump_clock(-by_ms)

    @contextmanager
    def drift(self, node: int, rate_ppm: int) -> Iterator[None]:
        """Inside the context, make both clocks of a node faster, in millionths; slower if negative."""
        drift_clock = self._machines[node].drift_clock
        with self._rates_ppm[node].add(rate_ppm, drift_clock):
            drift_clock(rate_ppm)
            yield

    @property
    def residue(self) -> tuple[str, ...]:
        """The nodes whose wall clocks differ from the correct time because of a jump."""
        return tuple(f"node {node}" for node, machine in self._machines.items() if machine.clock.wall_offset_ms)
