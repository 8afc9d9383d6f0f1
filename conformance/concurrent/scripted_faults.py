"""Faults of a script: a move injects a fault, and a later move heals it.

The move that begins a shutdown returns once the process has ended, and a move that starts a node again returns once the
node listens.

Each fault has the row in the table `faults` that `fixtures.faults` defines. Only a shutdown has two rows: `shutdown`
until the process has ended, and `down` from that time until the node is up.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

from conformance.concurrent.trial_context import TrialContext
from fixtures.faults.context import FaultContext, FaultControls
from fixtures.faults.fault import Fault, NodeFault
from fixtures.faults.places import FindNode
from fixtures.faults.replica_files import LogDirectoryFiles
from fixtures.targets.controls import (
    LogDirectories,
    NetworkedTarget,
    NetworkFaultControl,
    ProcessControl,
    ProcessFaultControl,
    ProcessTarget,
)
from fixtures.targets.target import Target, TargetError


class ScriptedFaults:
    """Faults that are in force on the target of one script.

    :ivar lost: nodes that did not restart. The rows of their faults have no end.
    """

    def __init__(self, context: TrialContext, find_node: FindNode) -> None:
        target = context.target
        self._controls = _Controls(target)
        self._fault_context = FaultContext(
            target=self._controls,
            recorder=context.recorder,
            topic=context.topic,
            list_nodes=lambda: [node.id for node in target.nodes],
            find_node=find_node,
            files=LogDirectoryFiles(self._controls.log_directories),
            awaits_shutdowns=True,
        )
        self._nodes: dict[int, ExitStack] = {}
        self._links = ExitStack()
        self.lost: set[int] = set()

    @property
    def unavailable(self) -> set[int]:
        """Nodes that are down or paused."""
        return {*self._nodes, *self.lost}

    def begin(self, fault: Fault) -> None:
        """Apply a fault. For a shutdown, return once the process has ended. Raises `TargetError` if the fault fails.

        The fault remains in force until `heal` of its node; a fault of links remains until `heal_links`.
        """
        node = self._fault_context.find(fault.node) if isinstance(fault, NodeFault) else None
        healing = self._links if node is None else self._nodes.setdefault(node, ExitStack())
        try:
            heal = fault.apply(self._fault_context)
        except TargetError:
            if node is not None:
                healing.callback(self._fault_context.start, node)  # a shutdown that timed out may still end the process
            raise
        if heal is None:
            raise TargetError(f"{fault!r} has no effect on this target")
        healing.callback(heal)

    def heal_links(self) -> None:
        """Heal all faults of links, which do not belong to one node."""
        self._links.close()

    def heal(self, node: int) -> None:
        """Heal all faults of a node; if it was down, return once it listens. If it does not start, add it to `lost`."""
        try:
            self._nodes.pop(node, ExitStack()).close()
        except TargetError:
            self.lost.add(node)

    def end(self) -> None:
        """Heal all faults: links, then paused nodes (other nodes may need them to start), then nodes that are down."""
        try:
            self.heal_links()
        finally:
            for node in sorted(self._nodes, key=self._is_down):
                self.heal(node)

    def _is_down(self, node: int) -> bool:
        try:
            return node in self._controls.processes.ended()
        except TargetError:  # without process control, no fault of the node is in force
            return False


class _Controls(FaultControls):
    """Controls of a target's links, processes and disks."""

    def __init__(self, target: Target) -> None:
        self._target = target

    @property
    def links(self) -> NetworkFaultControl:
        if not isinstance(self._target, NetworkedTarget):
            raise TargetError(f"{self._target.name} has no links to cut")
        return self._target.links

    @property
    def processes(self) -> ProcessFaultControl:
        if not isinstance(self._target, ProcessTarget):
            raise TargetError(f"{self._target.name} has no processes to control")
        return _AwaitedProcesses(self._target.processes)

    def log_directories(self, node: int) -> Sequence[Path]:
        if not isinstance(self._target, LogDirectories):
            raise TargetError(f"{self._target.name} has no log directories to damage")
        return self._target.log_directories(node)


class _AwaitedProcesses(ProcessFaultControl):
    """Process control that waits for shutdowns and starts."""

    def __init__(self, processes: ProcessControl) -> None:
        self._processes = processes

    def kill(self, node: int) -> None:
        if node not in self.ended():
            self._processes.kill(node)

    def pause(self, node: int) -> AbstractContextManager[None]:
        return self._processes.pause(node)

    def ended(self) -> Mapping[int, str]:
        return self._processes.ended()

    def send_sigterm(self, node: int) -> None:
        self._processes.shut_down(node)

    def launch(self, node: int) -> None:
        self._processes.restart(node)

    def configure(self, node: int, name: str, value: str) -> None:
        raise TargetError("a script cannot change a node's configuration")

    def set_version(self, node: int, version: str) -> None:
        raise TargetError("a script cannot upgrade a node")
