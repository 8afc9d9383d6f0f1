"""Faults of a script: one move injects a fault, another heals it; each waits for the effect on the node.

Rows in `faults` are those of the faults (`fixtures.faults`), but for a shutdown, which has two: `shutdown` until the
process has ended, and `down` from then until the node is up.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

from conformance.concurrent.trial_context import TrialContext
from fixtures import faults
from fixtures.faults.context import FaultContext, FaultControls, Heal, Row
from fixtures.faults.fault import Fault, NodeFault
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

_DOWN: Row = ("down", None)


class ScriptedFaults:
    """Faults that are in force on the target of one script.

    Every method raises `TargetError` for a fault that the target does not support.

    :ivar lost: nodes that did not restart. Their rows have no end.
    """

    def __init__(self, context: TrialContext) -> None:
        target = context.target
        self._recorder = context.recorder
        self._controls = _Controls(target)
        self._fault_context = FaultContext(
            target=self._controls,
            recorder=context.recorder,
            topic=context.topic,
            list_nodes=lambda: [node.id for node in target.nodes],
            find_node=lambda node: node if isinstance(node, int) else None,
            files=LogDirectoryFiles(self._controls.log_directories),
        )
        self._links = ExitStack()
        self._nodes: dict[int, ExitStack] = {}
        self.lost: set[int] = set()

    @property
    def unavailable(self) -> set[int]:
        """Nodes that are down or paused."""
        return {*self._nodes, *self.lost}

    def cut(self, fault: faults.CutConnections) -> None:
        """Cut connections until all links are healed."""
        self._links.callback(self._apply(fault))

    def heal_links(self) -> None:
        """Heal every link."""
        self._links.close()

    def apply(self, node: int, fault: NodeFault) -> None:
        """Apply a fault that is in force until its node is healed."""
        heal = self._apply(fault)
        self._nodes.setdefault(node, ExitStack()).callback(heal)

    def shut_down(self, node: int) -> None:
        """Shut a node down until it is healed; return when its process has ended."""
        healing = self._nodes.setdefault(node, ExitStack())
        healing.callback(self._fault_context.start, node)  # its process may end after the timeout of the shutdown
        kind, argument = faults.ShutDown(node).row
        with self._recorder.fault(kind, str(node), argument):
            self._controls.processes.send_sigterm(node)
        healing.callback(self._fault_context.keep_down(_DOWN, node, lambda _: None))

    def heal(self, node: int) -> None:
        """Heal all faults of a node; if it was down, return once it listens or is `lost`."""
        try:
            self._nodes.pop(node, ExitStack()).close()
        except TargetError:
            self.lost.add(node)

    def end(self) -> None:
        """Heal all faults that are in force; paused nodes first, because the start of another may need them."""
        try:
            self.heal_links()
        finally:
            for node in sorted(self._nodes, key=lambda node: node in self._controls.processes.ended()):
                self.heal(node)

    def _apply(self, fault: Fault) -> Heal:
        heal = fault.apply(self._fault_context)
        if heal is None:
            raise TargetError(f"{fault!r} has no effect on this target")
        return heal


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

    def become(self, node: int, version: str) -> None:
        raise TargetError("a script cannot upgrade a node")
