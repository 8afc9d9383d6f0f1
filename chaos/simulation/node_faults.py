"""Faults of nodes: processes that end, pause or lose their power, files that are damaged, disks that fail, clocks.

- A node that several faults keep down starts when the last of them is over, and the rows of all of them end then. A
  node that its disk has ended is started when that fault is over.
- Without KIP-966 the last in-sync replica of a partition leads again whatever it lost: if one starts that has lost
  content, that is an unclean election, and is written down as one.
"""

import errno
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any

from chaos.fault_rows import LAST_HAS_LOST, Heal, begun, row
from chaos.faults import (
    ClockDrift,
    ClockJump,
    DamageDisk,
    DiskError,
    DiskFull,
    Errno,
    Fault,
    FileKind,
    FlipBit,
    Kill,
    Node,
    Pause,
    PowerCut,
    RestartWith,
    ShutDown,
    SlowFlush,
    Unregister,
    Wipe,
)
from chaos.simulation import damage
from chaos.simulation.clients.administration import Request, unregister
from chaos.simulation.roles import Roles
from fixtures.faults.damage import Damage
from linearizability.history.recorder import Recorder
from reference_broker.simulation.cluster import SimulatedCluster
from reference_broker.simulation.disk import Failure
from reference_broker.simulation.machine import Machine

Administer = Callable[[Request], None]
"""Sends a request of an administrator, and waits for nothing."""

_ERRNO = {Errno.EIO: errno.EIO, Errno.ENOSPC: errno.ENOSPC}


class NodeFaults:
    """Those of one run.

    :param topic: whose files are damaged.
    :param lost: told of each node that has lost content.
    """

    def __init__(
        self,
        cluster: SimulatedCluster,
        roles: Roles,
        recorder: Recorder,
        topic: str,
        *,
        administer: Administer,
        lost: Callable[[int], None],
    ) -> None:
        self._cluster = cluster
        self._roles = roles
        self._recorder = recorder
        self._topic = topic
        self._administer = administer
        self._lost = lost
        self._holds: Counter[int] = Counter()
        self._down: dict[int, ExitStack] = {}
        self._has_lost: set[int] = set()

    def break_node(self, fault: Any, machine: Machine) -> Heal | None:
        """One fault of one node; null where there is nothing to break."""
        match fault:
            case Kill():
                return self._keep_down(fault, machine, machine.kill)
            case ShutDown():
                return self._shut_down(fault, machine)
            case Wipe():
                return self._keep_down(fault, machine, machine.kill, lambda: damage.wipe(machine.disk))
            case DamageDisk(what=what):
                return self._keep_down(
                    fault,
                    machine,
                    machine.kill,
                    lambda: damage.damage(machine.disk, self._topic, what),
                    loses=what in {Damage.REPLICA, Damage.CHECKPOINTS},
                )
            case FlipBit(files=files, per_mille=per_mille):
                if files is FileKind.CHECKPOINT:  # text that a start refuses, and nothing heals
                    return None
                return self._keep_down(
                    fault,
                    machine,
                    machine.kill,
                    lambda: damage.flip_bit(machine.disk, self._topic, files, per_mille),
                )
            case RestartWith() | Unregister():
                return self._start_anew(machine, fault)
            case Pause():
                return self._pause(fault, machine)
            case DiskError() | DiskFull() | SlowFlush():
                return self._fail_disk(fault, machine)
            case ClockJump() | ClockDrift():
                return self._set_clock(fault, machine)
        raise TypeError(f"no fault of a node: {fault!r}")

    def _keep_down(
        self,
        fault: Fault,
        machine: Machine,
        end: Callable[[], object],
        then: Callable[[], object] | None = None,
        *,
        loses: bool = True,
    ) -> Heal:
        """End a node, if it runs, then do something to its disk, and let nothing start it before this is over.

        :param loses: whether `then` takes content.
        """
        node_id = machine.node_id
        self._down.setdefault(node_id, ExitStack()).enter_context(begun(self._recorder, fault, str(node_id)))
        self._holds[node_id] += 1
        if machine.node is not None:
            end()
        if then is not None:
            then()
            if loses:
                self._note_loss(node_id)
        return lambda: self._let_up(node_id)

    def _let_up(self, node_id: int) -> None:
        self._holds[node_id] -= 1
        self.start(node_id)

    def start(self, node_id: int) -> None:
        """Start a node that does not run and that nothing keeps down."""
        machine = self._cluster.machines[node_id]
        if self._holds[node_id]:
            return
        if machine.node is None:
            if node_id in self._has_lost:
                self._forfeit_if_alone(node_id)
            self._has_lost.discard(node_id)
            self._cluster.start(node_id)
        if machine.node is not None and node_id in self._down:
            self._down.pop(node_id).close()

    def _note_loss(self, node_id: int) -> None:
        self._has_lost.add(node_id)
        self._lost(node_id)
        self._forfeit_if_alone(node_id)

    def _forfeit_if_alone(self, node_id: int) -> None:
        if self._roles.is_alone_in_sync(node_id):
            row(self._recorder, "election", LAST_HAS_LOST, self._topic).close()

    def _shut_down(self, fault: ShutDown, machine: Machine) -> Heal:
        def begin() -> None:
            if machine.is_paused:
                machine.resume()
            machine.shut_down()

        heal = self._keep_down(fault, machine, begin)

        def over() -> None:
            """One that has not ended by now is killed, as an impatient supervisor does."""
            if machine.node is not None:
                machine.kill()
            heal()

        return over

    def _start_anew(self, machine: Machine, fault: RestartWith | Unregister) -> Heal:
        """Start a node as another one than it was."""
        if isinstance(fault, Unregister):
            change = partial(self._administer, unregister(machine.node_id))
        else:
            properties = self._cluster.node_properties.setdefault(machine.node_id, {})
            change = partial(properties.update, {fault.name: fault.value})
        return self._keep_down(fault, machine, machine.kill, change, loses=False)

    def cut_power(self, fault: PowerCut) -> Heal | None:
        """The power of some machines, or of all, goes; null where none was found."""
        names: tuple[Node, ...] = fault.nodes or tuple(self._cluster.machines)
        node_ids = list(dict.fromkeys(node for name in names if (node := self._roles.node(name)) is not None))
        heals = [self._cut_power_of(self._cluster.machines[node_id], fault) for node_id in node_ids]

        def heal() -> None:
            for of_node in heals:
                of_node()

        return heal if heals else None

    def _cut_power_of(self, machine: Machine, fault: PowerCut) -> Heal:
        def cut() -> None:
            machine.cut_power()
            self._note_loss(machine.node_id)

        if fault.after_writes is None or machine.node is None:
            between_writes = replace(fault, after_writes=None)  # one that does not run writes nothing
            return self._keep_down(between_writes, machine, lambda: None, cut, loses=False)
        heal = self._keep_down(fault, machine, lambda: None)
        machine.disk.crashes_after = fault.after_writes
        self._note_loss(machine.node_id)

        def over() -> None:
            """Where nothing was written meanwhile it goes between two writes."""
            machine.disk.crashes_after = None  # also of a node that was killed before it wrote again
            if machine.node is not None:
                machine.cut_power()
            self._note_loss(machine.node_id)
            heal()

        return over

    def _pause(self, fault: Pause, machine: Machine) -> Heal | None:
        if machine.node is None or machine.is_paused:
            return None
        over = begun(self._recorder, fault, str(machine.node_id))
        machine.pause()
        incarnation = machine.incarnation

        def heal() -> None:
            if machine.incarnation == incarnation:
                machine.resume()
            over.close()

        return heal

    # Its disk and its clock

    def _fail_disk(self, fault: DiskError | DiskFull | SlowFlush, machine: Machine) -> Heal:
        disk = machine.disk
        over = begun(self._recorder, fault, machine.place)
        match fault:
            case DiskError():
                failure = Failure(_ERRNO[fault.error], str(fault.operation or ""), str(fault.files or ""))
                disk.failures.append(failure)

                def undo() -> None:
                    disk.failures.remove(failure)

            case DiskFull():
                disk.free_bytes = fault.free_bytes

                def undo() -> None:
                    disk.free_bytes = None

            case SlowFlush():
                disk.flush_ms = fault.flush_ms

                def undo() -> None:
                    disk.flush_ms = 0

        def heal() -> None:
            undo()
            over.close()
            self.start(machine.node_id)

        return heal

    def _set_clock(self, fault: ClockJump | ClockDrift, machine: Machine) -> Heal:
        over = begun(self._recorder, fault, machine.place)
        if isinstance(fault, ClockJump):
            machine.jump_clock(fault.by_ms)
        else:
            machine.drift_clock(fault.rate_ppm)

        def heal() -> None:
            if isinstance(fault, ClockJump):
                machine.jump_clock(-fault.by_ms)
            else:
                machine.drift_clock(0)
            over.close()

        return heal
