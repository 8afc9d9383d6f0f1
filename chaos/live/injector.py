"""Lets a real cluster suffer a schedule of faults, and heals it; the faults mean what they mean to the simulation.

Rules of this file:
- One task walks through the schedule. It waits for no node: what takes its time (a node that starts, an administrator's
  request) goes on beside it, and a fault that comes in between takes what it finds.
- A fault's row of the history begins before the fault does and ends when it is over.
- A node that several faults keep down starts when the last of them is over, and the rows of all of them end then. A
  node that its disk has ended is started when that fault is over.
- Whatever happens, Ctrl-C too, all is healed: `__call__` ends with every fault over and every node started.
- A last in-sync replica that starts again after it has lost content is written down as an unclean election: without
  KIP-966 it leads again, whatever it lost.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Protocol

from chaos.faults import (
    ClockDrift,
    ClockJump,
    Configure,
    Cut,
    DamageDisk,
    DiskError,
    DiskFull,
    Elect,
    Fault,
    FileKind,
    FlipBit,
    HalfOpen,
    Isolate,
    Keeps,
    Kill,
    Operation,
    Pause,
    PowerCut,
    Reassign,
    Reset,
    Ring,
    ShutDown,
    Slow,
    SlowFlush,
    Split,
    Timed,
    Wipe,
)
from chaos.live.links import end_of, pairs_of
from chaos.live.requests import Administration
from chaos.live.watch import PartitionSeen, View
from chaos.live.words import words_of
from conformance.concurrent.surroundings import Surroundings
from fixtures.clients.recorded_admin import Election
from fixtures.clients.stage import Event
from fixtures.disk.faults import DiskError as Refusal
from fixtures.disk.faults import DiskFault, DiskOperation, Unflushed
from fixtures.faults.damage import Damage, damage, wipe
from fixtures.targets.target import (
    Barrier,
    ClockControl,
    Direction,
    DiskControl,
    LinkCondition,
    LogDirectories,
    NetworkControl,
    ProcessSupervision,
)

Heal = Callable[[], object]
_BARRIERS: Final = {Keeps.BYTES: Barrier.HOLDS, Keeps.NOTHING: Barrier.LOSES}
_OPERATIONS: Final = {
    Operation.APPEND: DiskOperation.WRITE,
    Operation.FLUSH: DiskOperation.FLUSH,
    Operation.READ: DiskOperation.READ,
    Operation.REPLACE: DiskOperation.RENAME,
    Operation.TRUNCATE: DiskOperation.TRUNCATE,
    Operation.DELETE: DiskOperation.DELETE,
}
_LOSING: Final = frozenset({Damage.REPLICA, Damage.CHECKPOINTS})


class BreakableTarget(ProcessSupervision, NetworkControl, DiskControl, ClockControl, LogDirectories, Protocol):
    """Whatever a target may offer; which of it this one does is known before a schedule begins."""


@dataclass(frozen=True, slots=True)
class Injected:
    """One fault of the schedule as it came to be. `found` is false where there was nothing to break."""

    timed: Timed
    found: bool


@dataclass(slots=True)
class Injector:
    """One schedule on one started cluster. Call it once: that walks through the schedule, and heals.

    :param steady_ms: before the schedule begins.
    :param seed: of what is left to chance: what a power cut leaves.
    :param cancelled: once it is set, all is healed, and the call returns.
    """

    target: BreakableTarget
    surroundings: Surroundings
    view: View
    schedule: Sequence[Timed]
    steady_ms: int
    seed: int
    cancelled: Event
    told: Callable[[Injected], None] = lambda _: None
    injected: list[Injected] = field(default_factory=list)
    deaths: dict[int, str] = field(default_factory=dict)
    """Nodes that ended by themselves though nothing broke their disks, and what they said last."""
    _administration: Administration = field(init=False)
    _holds: Counter[int] = field(default_factory=Counter)
    _paused: set[int] = field(default_factory=set)
    _rows: dict[int, ExitStack] = field(default_factory=dict)
    _lossy: set[int] = field(default_factory=set)
    """Nodes that have lost content, until they have been in a full ISR again."""
    _spoilt: set[int] = field(default_factory=set)
    """Nodes whose disks were ever broken: they may end by themselves."""
    _forfeited: set[tuple[int, int]] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._administration = Administration(self.surroundings, self.cancelled)
        self.view.changed = self._note_election

    def __call__(self) -> None:
        """Walk through the schedule. Raises what a control raised, after everything was healed."""
        with ExitStack() as all_over:
            all_over.callback(self._start_all)
            all_over.callback(self._administration.finish)
            self._walk(all_over)

    def _walk(self, all_over: ExitStack) -> None:
        clock = self.surroundings.target.transport
        start_s = clock.monotonic() + self.steady_ms / 1000
        heals: dict[int, ExitStack] = {}
        for at_ms, _, number, is_end in sorted(self._moments()):
            if self.cancelled.wait(max(0.0, start_s + at_ms / 1000 - clock.monotonic())):
                return
            if is_end:
                heals[number].close()
            else:
                heals[number] = all_over.enter_context(ExitStack())
                self._inject(self.schedule[number], heals[number])
            self._look_for_deaths()

    def _moments(self) -> Iterator[tuple[int, int, int, bool]]:
        """Begins and ends: when, in which order at that time (what ends first), of which fault, and which it is."""
        for number, timed in enumerate(self.schedule):
            yield timed.at_ms, 1, number, False
            yield timed.at_ms + timed.for_ms, int(timed.for_ms == 0), number, True

    def _inject(self, timed: Timed, over: ExitStack) -> None:
        heal = self._break(timed.fault)
        if heal is not None:
            over.callback(heal)
        injected = Injected(timed, heal is not None)
        self.injected.append(injected)
        self.told(injected)

    def _break(self, fault: Fault) -> Heal | None:
        """Inject a fault; what heals it, null where nothing was found to break."""
        match fault:
            case Cut() | Isolate() | Split() | Ring() | Slow():
                return self._impair(fault)
            case Reset(one, other) | HalfOpen(one, other):
                return self._reset(fault, end_of(one, self._find), end_of(other, self._find))
            case PowerCut():
                return self._cut_power(fault)
            case Configure() | Elect() | Reassign():
                return self._ask(fault)
            case _:
                node = self._find(fault.node)
                return None if node is None else self._break_node(fault, node)

    def _find(self, name: Any) -> int | None:
        node = self.view.node(name)
        return node if node in self._nodes else None

    @property
    def _nodes(self) -> list[int]:
        return [node.id for node in self.surroundings.target.nodes]

    def _row(self, fault: Fault, target: str | None) -> ExitStack:
        """A row of `faults`, which ends when what is returned is closed."""
        stack = ExitStack()
        kind, argument = words_of(fault)
        stack.enter_context(self.surroundings.recorder.fault(kind, target, argument))
        return stack

    # --- network

    def _impair(self, fault: Cut | Isolate | Split | Ring | Slow) -> Heal | None:
        pairs = pairs_of(fault, self._nodes, self._find)
        if not pairs:
            return None
        listener = fault.listener if isinstance(fault, Cut | Isolate) else None
        if isinstance(fault, Slow):
            condition = LinkCondition(
                delay_ms=fault.delay_ms, jitter_ms=fault.jitter_ms, bytes_per_ms=fault.bytes_per_ms
            )
        else:
            condition = LinkCondition(_BARRIERS[fault.keeps])
        over = self._row(fault, ",".join(f"{source}->{destination}" for source, destination in pairs))
        directions = [
            Direction(*pair, listener if all(isinstance(end, int) for end in pair) else None) for pair in pairs
        ]
        return self._entered(over, self.target.impair(directions, condition))

    def _reset(self, fault: Reset | HalfOpen, one: int | str | None, other: int | str | None) -> Heal | None:
        if one is None or other is None or one == other:
            return None
        over = self._row(fault, f"{one}->{other}")
        if isinstance(fault, HalfOpen):
            return self._entered(over, self.target.half_open(one, other))
        self.target.reset(one, other)
        return over.close

    def _entered(self, over: ExitStack, context: Any) -> Heal:
        """Enter what breaks something: it is left before the row ends."""
        try:
            over.enter_context(context)
        except BaseException:
            over.close()
            raise
        return over.close

    # --- nodes

    def _break_node(self, fault: Any, node: int) -> Heal | None:
        match fault:
            case Kill():
                return self._keep_down(fault, node, self.target.kill)
            case ShutDown():
                return self._shut_down(fault, node)
            case Pause():
                return self._pause(fault, node)
            case Wipe():
                return self._keep_down(fault, node, self.target.kill, lambda: wipe(self._directories(node)), loses=True)
            case DamageDisk(what=what):
                spoil = partial(damage, self._directories(node), self.surroundings.topic, what)
                return self._keep_down(fault, node, self.target.kill, spoil, loses=what in _LOSING)
            case FlipBit():
                return None
            case DiskError() | DiskFull() | SlowFlush():
                return self._fail_disk(fault, node)
            case ClockJump(by_ms=by_ms):
                return self._entered(self._row(fault, str(node)), self.target.jump_clock(node, by_ms))
            case ClockDrift(rate_ppm=rate_ppm):
                return self._entered(self._row(fault, str(node)), self.target.drift_clock(node, rate_ppm))
        raise TypeError(f"no fault of a node: {fault!r}")

    def _directories(self, node: int) -> Sequence[Any]:
        return self.target.log_directories(node)

    def _keep_down(
        self,
        fault: Fault,
        node: int,
        end: Callable[[int], object],
        then: Callable[[], object] | None = None,
        *,
        loses: bool = False,
    ) -> Heal:
        """End a node, then do something to its disk, and let nothing start it before this is over."""
        self._rows.setdefault(node, ExitStack()).push(self._row(fault, str(node)))
        self._holds[node] += 1
        end(node)
        if then is not None:
            then()
            self._spoilt.add(node)
        if loses:
            self._note_loss(node)
        return lambda: self._let_up(node)

    def _let_up(self, node: int) -> None:
        self._holds[node] -= 1
        self._start(node)

    def _start(self, node: int) -> None:
        """Start a node that does not run and that nothing keeps down."""
        if self._holds[node]:
            return
        if node in self.target.ended_nodes():
            self._forfeit_if_alone(node)
            self.target.launch(node)
        if node in self._rows:
            self._rows.pop(node).close()

    def _start_all(self) -> None:
        """Start what does not run, as a person would who finds it so."""
        self._look_for_deaths()
        for node in self._nodes:
            self._start(node)

    def _look_for_deaths(self) -> None:
        """A node that ended by itself is a finding of its own, unless its disk was broken."""
        for node, last_words in self.target.ended_nodes().items():
            if not self._holds[node] and node not in self._spoilt:
                self.deaths.setdefault(node, last_words)

    def _shut_down(self, fault: ShutDown, node: int) -> Heal:
        heal = self._keep_down(fault, node, self.target.ask_to_end)

        def over() -> None:
            """One that has not ended by now is killed, as an impatient supervisor does."""
            self.target.kill(node)
            heal()

        return over

    def _pause(self, fault: Pause, node: int) -> Heal | None:
        if node in self.target.ended_nodes() or node in self._paused:
            return None
        self._paused.add(node)
        over = ExitStack()
        over.callback(self._paused.discard, node)
        over.push(self._row(fault, str(node)))
        return self._entered(over, self.target.pause(node))

    # --- disks

    def _cut_power(self, fault: PowerCut) -> Heal | None:
        names = fault.nodes or tuple(self._nodes)
        nodes = list(dict.fromkeys(node for name in names if (node := self._find(name)) is not None))
        if not nodes:
            return None
        for node in nodes:
            self._keep_down(fault, node, lambda _: None)
            self._spoilt.add(node)
        if fault.after_writes is None:
            self._lose_power(nodes)
        else:
            for node in nodes:
                self.target.arm_power_cut(node, fault.after_writes)
                self._note_loss(node)

        def over() -> None:
            if fault.after_writes is not None:
                self._lose_power(nodes)
            for node in nodes:
                self._let_up(node)

        return over

    def _lose_power(self, nodes: Sequence[int]) -> None:
        self.target.cut_power(nodes, Unflushed.TORN, self.seed)
        for node in nodes:
            self._note_loss(node)

    def _fail_disk(self, fault: DiskError | DiskFull | SlowFlush, node: int) -> Heal:
        self._spoilt.add(node)
        over = ExitStack()
        over.callback(self._start, node)
        over.push(self._row(fault, str(node)))
        match fault:
            case DiskFull(free_bytes=free_bytes):
                return self._entered(over, self.target.fill_disk(node, free_bytes))
            case SlowFlush(flush_ms=flush_ms):
                slow = DiskFault(frozenset({DiskOperation.FLUSH}), error=None, delay_ms=flush_ms)
                return self._entered(over, self.target.break_disk(node, slow))
            case DiskError():
                operations = frozenset() if fault.operation is None else frozenset({_OPERATIONS[fault.operation]})
                files = None if fault.files is None else f"*{fault.files}{'*' * (fault.files is FileKind.CHECKPOINT)}"
                broken = DiskFault(operations, files, Refusal(fault.error))
                return self._entered(over, self.target.break_disk(node, broken))

    # --- what was lost

    def _note_loss(self, node: int) -> None:
        with self._lock:
            self._lossy.add(node)
        self._forfeit_if_alone(node)

    def _forfeit_if_alone(self, node: int) -> None:
        for seen in self.view.partitions.values():
            self._note_election(seen, node)

    def _note_election(self, seen: PartitionSeen, node: int | None = None) -> None:
        """The last in-sync replica of a partition has lost content, or a new answer says that such a one is the last.

        :param node: look at this one only.
        """
        with self._lock:
            if seen.is_whole and node is None:
                self._lossy -= set(seen.isr) - set(self._holds)
            if len(seen.isr) != 1 or not self._lossy.issuperset(seen.isr):
                return
            key = (seen.epoch, seen.isr[0])
            if key in self._forfeited:
                return
            self._forfeited.add(key)
        words = "unclean: the last in-sync replica lost content"
        with self.surroundings.recorder.fault("election", self.surroundings.topic, words):
            pass

    # --- the cluster

    def _ask(self, fault: Configure | Elect | Reassign) -> Heal | None:
        topic = self.surroundings.topic
        over = self._row(fault, topic if isinstance(fault, Configure) else f"{topic}-0")
        match fault:
            case Configure(name, value):
                self._administration.ask(lambda client: client.alter_topic(topic, name, value))

                def heal() -> None:
                    self._administration.insist(lambda client: client.alter_topic(topic, name, None))
                    over.close()

                return heal
            case Elect(unclean):
                election = Election.UNCLEAN if unclean else Election.PREFERRED
                self._administration.ask(lambda client: client.elect_leaders(topic, 0, election, timeout_ms=3_000))
            case Reassign(replicas):
                self._administration.ask(lambda client: client.reassign(topic, 0, replicas))
        return over.close
