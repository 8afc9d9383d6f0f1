"""Turns the faults of a schedule into what a simulated cluster suffers, and back, and writes the table `faults`.

Rules of this file:
- A fault's row begins before the fault does and ends when it is over. Kinds and words are those that the definitions of
  anomalies know (`linearizability.anomalies.faults`): what lost content is `power`, `wipe`, or a `disk` fault whose
  words say so.
- A node that several faults keep down starts when the last of them is over, and the rows of all of them end then. A
  node that its disk has ended is started when that fault is over.
- Without KIP-966 the last in-sync replica of a partition leads again whatever it lost: if one starts that has lost
  content, that is an unclean election, and is written down as one.
"""

import errno
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import partial
from typing import Any

from chaos.faults import (
    AddBroker,
    ClockDrift,
    ClockJump,
    Configure,
    Cut,
    DamageDisk,
    DiskError,
    DiskFull,
    Elect,
    Errno,
    Fault,
    FileKind,
    FlipBit,
    HalfOpen,
    Isolate,
    Keeps,
    Kill,
    Listener,
    Node,
    Operation,
    Pause,
    Place,
    PowerCut,
    Reassign,
    Reset,
    RestartWith,
    Ring,
    Role,
    ShutDown,
    Slow,
    SlowFlush,
    Split,
    Timed,
    Unregister,
    Wipe,
)
from chaos.simulation import damage
from chaos.simulation.clients.administration import Request, administer, elect, unregister
from chaos.simulation.clients.process import place_of
from chaos.simulation.clients.questions import alter_topic
from chaos.simulation.roles import Roles
from chaos.simulation.script import AlterTopic, MovePartition
from fixtures.clients.recorded_admin import Election
from fixtures.faults.damage import Damage
from linearizability.history.recorder import Recorder
from reference_broker.simulation.cluster import CLIENT, SimulatedCluster
from reference_broker.simulation.disk import Failure
from reference_broker.simulation.machine import Machine
from reference_broker.simulation.network import Condition, Link
from reference_broker.simulation.network import Cut as NetworkCut

Heal = Callable[[], None]
Administer = Callable[[Request], None]
"""Sends a request of an administrator, and waits for nothing."""

_CUTS = {Keeps.BYTES: NetworkCut.HOLD, Keeps.NOTHING: NetworkCut.LOSE}
_LISTENERS = {None: None, Listener.REPLICATION: "REPLICATION", Listener.CONTROLLER: "CONTROLLER"}
_ERRNO = {Errno.EIO: errno.EIO, Errno.ENOSPC: errno.ENOSPC}
_CLIENTS = "client"
_WORDS = {Operation.TRUNCATE: "shortening", Operation.DELETE: "removal"}
"""Of operations whose own name would say that content was lost."""


class Injector:
    """The faults of one run.

    :param clients: numbers of the processes that count as clients.
    :param lost: told of each node that has lost content.
    :param asked_for: told of each unclean election that is asked for.
    """

    def __init__(
        self,
        cluster: SimulatedCluster,
        recorder: Recorder,
        roles: Roles,
        topic: str,
        *,
        clients: Iterable[int],
        administer: Administer,
        lost: Callable[[int], None],
        asked_for: Callable[[str, int], None],
    ) -> None:
        self._cluster = cluster
        self._recorder = recorder
        self._roles = roles
        self._topic = topic
        self._places = [place_of(number) for number in clients]
        self._administer = administer
        self._lost = lost
        self._asked_for = asked_for
        self._holds: Counter[int] = Counter()
        self._rows: dict[int, ExitStack] = {}
        self._has_lost: set[int] = set()
        self._open = 0

    def schedule(self, schedule: Iterable[Timed]) -> None:
        """Let all of it happen, from this moment on."""
        scheduler = self._cluster.scheduler
        for timed in schedule:
            self._open += 1
            scheduler.after(timed.at_ms, lambda timed=timed: self._inject(timed))  # type: ignore[misc]

    @property
    def is_over(self) -> bool:
        """Whether every fault has been healed."""
        return self._open == 0

    def start_all(self) -> None:
        """Start what does not run, as a person would who finds it so."""
        for node_id in self._cluster.machines:
            self._start(node_id)

    def _inject(self, timed: Timed) -> None:
        self._cluster.trace.add(self._cluster.scheduler.now_ms, "fault", "schedule", text=repr(timed.fault))
        heal = self._break(timed.fault)

        def over() -> None:
            self._open -= 1
            if heal is not None:
                self._cluster.trace.add(self._cluster.scheduler.now_ms, "heal", "schedule", text=repr(timed.fault))
                heal()

        self._cluster.scheduler.after(timed.for_ms, over)

    def _break(self, fault: Fault) -> Heal | None:
        """Inject a fault; what heals it, null where nothing was found to break."""
        match fault:
            case Cut() | Isolate() | Split() | Ring() | Slow():
                return self._degrade(fault)
            case Reset(one, other):
                return self._reset(one, other, (True, True))
            case HalfOpen(one, other):
                return self._reset(one, other, (False, True))
            case PowerCut():
                return self._cut_power(fault)
            case Configure() | Elect() | Reassign():
                return self._ask(fault)
            case AddBroker(node):
                return self._add_broker(node)
            case _:
                node_id = self._roles.node(fault.node)
                return None if node_id is None else self._break_node(fault, self._cluster.machines[node_id])

    # Network

    def _degrade(self, fault: Cut | Isolate | Split | Ring | Slow) -> Heal | None:
        pairs = list(dict.fromkeys(self._pairs(fault)))
        if not pairs:
            return None
        listener = None
        if isinstance(fault, Slow):
            condition = Condition(None, fault.delay_ms, fault.jitter_ms, fault.bytes_per_ms)
            kind, argument = "delay", f"{fault.delay_ms} ms, jitter {fault.jitter_ms} ms"
        else:
            condition = Condition(_CUTS[fault.keeps])
            kind, argument = "cut", f"keeps {fault.keeps}"
            if isinstance(fault, Cut | Isolate):
                listener = _LISTENERS[fault.listener]
        links = [_link(pair, listener) for pair in pairs]
        row = self._row(kind, ",".join(f"{source}->{destination}" for source, destination in pairs), argument)
        for link in links:
            self._cluster.network.set(link, condition)

        def heal() -> None:
            for link in links:
                self._cluster.network.heal(link, condition)
            row.close()

        return heal

    def _pairs(self, fault: Cut | Isolate | Split | Ring | Slow) -> Iterable[tuple[str, str]]:
        """The directions that a fault is about."""
        nodes = list(self._cluster.machines)
        match fault:
            case Cut() | Slow():
                source, destination = self._end(fault.source), self._end(fault.destination)
                if source is not None and destination is not None and source != destination:
                    yield source, destination
                    if fault.both_ways:
                        yield destination, source
            case Isolate():
                node_id = self._roles.node(fault.node)
                others: list[str] = [str(other) for other in nodes if other != node_id]
                if node_id is not None:
                    yield from _both_ways([str(node_id)], others + [_CLIENTS] * fault.from_clients)
            case Split():
                side = {self._roles.node(name) for name in fault.side}
                yield from _both_ways(
                    [str(node) for node in nodes if node in side], [str(node) for node in nodes if node not in side]
                )
            case Ring():
                half = len(nodes) // 2
                for place, node in enumerate(nodes):
                    for step in range(half + 1, len(nodes)):
                        yield str(nodes[(place + step) % len(nodes)]), str(node)

    def _end(self, place: Place) -> str | None:
        if place is Role.CLIENTS:
            return _CLIENTS
        node_id = self._roles.node(place)
        return None if node_id is None else str(node_id)

    def _reset(self, one: Place, other: Place, tells: tuple[bool, bool]) -> Heal | None:
        source, destination = self._end(one), self._end(other)
        if source is None or destination is None or source == destination:
            return None
        row = self._row("reset", f"{source}->{destination}", "both told" if all(tells) else "half open")
        for first in self._places if source == _CLIENTS else [source]:
            for second in self._places if destination == _CLIENTS else [destination]:
                self._cluster.network.reset(first, second, tells=tells)
        return row.close

    # Nodes

    def _break_node(self, fault: Any, machine: Machine) -> Heal | None:
        match fault:
            case Kill():
                return self._keep_down(machine, "kill", None, machine.kill)
            case ShutDown():
                return self._shut_down(machine)
            case Wipe():
                return self._keep_down(machine, "wipe", None, machine.kill, lambda: damage.wipe(machine.disk))
            case DamageDisk(what=what):
                return self._keep_down(
                    machine,
                    what.kind,
                    str(what),
                    machine.kill,
                    lambda: damage.damage(machine.disk, self._topic, what),
                    loses=what in {Damage.REPLICA, Damage.CHECKPOINTS},
                )
            case FlipBit(files=files, per_mille=per_mille):
                if files is FileKind.CHECKPOINT:  # text that a start refuses, and nothing heals
                    return None
                return self._keep_down(
                    machine,
                    "disk",
                    f"bit flipped in {files}",
                    machine.kill,
                    lambda: damage.flip_bit(machine.disk, self._topic, files, per_mille),
                )
            case RestartWith() | Unregister():
                return self._start_anew(machine, fault)
            case Pause():
                return self._pause(machine)
            case DiskError() | DiskFull() | SlowFlush():
                return self._fail_disk(fault, machine)
            case ClockJump() | ClockDrift():
                return self._set_clock(fault, machine)
        raise TypeError(f"no fault of a node: {fault!r}")

    def _keep_down(
        self,
        machine: Machine,
        kind: str,
        argument: str | None,
        end: Callable[[], object],
        then: Callable[[], object] | None = None,
        *,
        loses: bool = True,
    ) -> Heal:
        """End a node, if it runs, then do something to its disk, and let nothing start it before this is over.

        :param loses: whether `then` takes content.
        """
        node_id = machine.node_id
        self._rows.setdefault(node_id, ExitStack()).enter_context(self._recorder.fault(kind, str(node_id), argument))
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
        self._start(node_id)

    def _start(self, node_id: int) -> None:
        """Start a node that does not run and that nothing keeps down."""
        machine = self._cluster.machines[node_id]
        if self._holds[node_id]:
            return
        if machine.node is None:
            if node_id in self._has_lost and self._roles.is_alone_in_sync(node_id):
                self._row("election", self._topic, "unclean: the last in-sync replica lost content").close()
            self._has_lost.discard(node_id)
            self._cluster.start(node_id)
        if machine.node is not None and node_id in self._rows:
            self._rows.pop(node_id).close()

    def _note_loss(self, node_id: int) -> None:
        self._has_lost.add(node_id)
        self._lost(node_id)
        if self._roles.is_alone_in_sync(node_id):
            self._row("election", self._topic, "unclean: the last in-sync replica lost content").close()

    def _shut_down(self, machine: Machine) -> Heal:
        def begin() -> None:
            if machine.is_paused:
                machine.resume()
            machine.shut_down()

        heal = self._keep_down(machine, "shutdown", None, begin)

        def over() -> None:
            """One that has not ended by now is killed, as an impatient supervisor does."""
            if machine.node is not None:
                machine.kill()
            heal()

        return over

    def _start_anew(self, machine: Machine, fault: RestartWith | Unregister) -> Heal:
        """Start a node as another one than it was."""
        if isinstance(fault, Unregister):
            what, change = "unregistered", partial(self._administer, unregister(machine.node_id))
        else:
            properties = self._cluster.node_properties.setdefault(machine.node_id, {})
            what, change = f"{fault.name}={fault.value}", partial(properties.update, {fault.name: fault.value})
        return self._keep_down(machine, "kill", what, machine.kill, change, loses=False)

    def _cut_power(self, fault: PowerCut) -> Heal | None:
        names: tuple[Node, ...] = fault.nodes or tuple(self._cluster.machines)
        node_ids = list(dict.fromkeys(node for name in names if (node := self._roles.node(name)) is not None))
        heals = [self._cut_power_of(self._cluster.machines[node_id], fault.after_writes) for node_id in node_ids]

        def heal() -> None:
            for of_node in heals:
                of_node()

        return heal if heals else None

    def _cut_power_of(self, machine: Machine, after_writes: int | None) -> Heal:
        def cut() -> None:
            machine.cut_power()
            self._note_loss(machine.node_id)

        if after_writes is None or machine.node is None:
            return self._keep_down(machine, "power", None, lambda: None, cut, loses=False)
        heal = self._keep_down(machine, "power", "in the middle of a write", lambda: None)
        machine.disk.crashes_after = after_writes
        self._note_loss(machine.node_id)

        def over() -> None:
            """Where nothing was written meanwhile it goes between two writes."""
            machine.disk.crashes_after = None  # also of a node that was killed before it wrote again
            if machine.node is not None:
                machine.cut_power()
            self._note_loss(machine.node_id)
            heal()

        return over

    def _pause(self, machine: Machine) -> Heal | None:
        if machine.node is None or machine.is_paused:
            return None
        row = self._row("pause", str(machine.node_id), None)
        machine.pause()
        incarnation = machine.incarnation

        def heal() -> None:
            if machine.incarnation == incarnation:
                machine.resume()
            row.close()

        return heal

    def _fail_disk(self, fault: DiskError | DiskFull | SlowFlush, machine: Machine) -> Heal:
        disk = machine.disk
        match fault:
            case DiskError():
                operation = fault.operation or ""
                what = _WORDS.get(fault.operation, str(operation)) if fault.operation else "every operation"
                row = self._row("disk", machine.place, f"{fault.error}: {what} of {fault.files or 'every file'}")
                failure = Failure(_ERRNO[fault.error], str(operation), str(fault.files or ""))
                disk.failures.append(failure)

                def undo() -> None:
                    disk.failures.remove(failure)

            case DiskFull():
                row = self._row("disk", machine.place, "ENOSPC: full")
                disk.free_bytes = fault.free_bytes

                def undo() -> None:
                    disk.free_bytes = None

            case SlowFlush():
                row = self._row("disk", machine.place, f"slow: a flush takes {fault.flush_ms} ms")
                disk.flush_ms = fault.flush_ms

                def undo() -> None:
                    disk.flush_ms = 0

        def heal() -> None:
            undo()
            row.close()
            self._start(machine.node_id)

        return heal

    def _set_clock(self, fault: ClockJump | ClockDrift, machine: Machine) -> Heal:
        if isinstance(fault, ClockJump):
            row = self._row("clock", machine.place, f"jump {fault.by_ms} ms")
            machine.jump_clock(fault.by_ms)
        else:
            row = self._row("clock", machine.place, f"drift {fault.rate_ppm} ppm")
            machine.drift_clock(fault.rate_ppm)

        def heal() -> None:
            if isinstance(fault, ClockJump):
                machine.jump_clock(-fault.by_ms)
            else:
                machine.drift_clock(0)
            row.close()

        return heal

    # The cluster

    def _add_broker(self, node_id: int) -> Heal | None:
        if node_id in self._cluster.machines:
            return None
        row = self._row("reassignment", str(node_id), "a broker more")
        self._cluster.add_broker(node_id)
        return row.close

    def _ask(self, fault: Configure | Elect | Reassign) -> Heal | None:
        match fault:
            case Configure(name, value):
                row = self._row("configuration", self._topic, f"{name}={value}")
                self._administer(administer(AlterTopic(name, value, self._topic)))

                def heal() -> None:
                    question = alter_topic(self._topic, name, None)
                    taken_back = administer(AlterTopic(name, value, self._topic))
                    self._administer(Request(taken_back.f, self._topic, None, question, taken_back.codes_of))
                    row.close()

                return heal
            case Elect(unclean):
                # Whether that came to an unclean one is for `forfeits` to write down.
                row = self._row("election", f"{self._topic}-0", "of any replica" if unclean else "preferred")
                if unclean:
                    self._asked_for(self._topic, 0)
                self._administer(elect(self._topic, 0, Election.UNCLEAN if unclean else Election.PREFERRED))
            case Reassign(replicas):
                row = self._row("reassignment", f"{self._topic}-0", ",".join(map(str, replicas)))
                self._administer(administer(MovePartition(replicas, self._topic)))
        return row.close

    def _row(self, kind: str, target: str | None, argument: str | None) -> ExitStack:
        """A row of `faults`, which ends when what is returned is closed."""
        stack = ExitStack()
        stack.enter_context(self._recorder.fault(kind, target, argument))
        return stack


def _link(pair: tuple[str, str], listener: str | None) -> Link:
    """What goes from one end to the other; only clients connect to the listener for clients."""
    source, destination = pair
    if _CLIENTS in pair:
        return Link(None if source == _CLIENTS else source, None if destination == _CLIENTS else destination, CLIENT)
    return Link(source, destination, listener)


def _both_ways(side: list[str], others: list[str]) -> Iterable[tuple[str, str]]:
    for one in side:
        for other in others:
            yield one, other
            yield other, one
