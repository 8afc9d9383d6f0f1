"""What a schedule does to single nodes: their processes, disks and clocks.

Rules of this file:
- A node that several faults keep down starts when the last of them is over, and the rows of all of them end then. A
  node that its disk has ended is started when that fault is over.
- A last in-sync replica, of any topic, that starts again after it has lost content is recorded as an unclean election:
  without KIP-966 it leads again, whatever it lost.
"""

import shutil
import threading
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

from chaos.fault_rows import LAST_HAS_LOST, Heal, begun, row
from chaos.faults import (
    ClockDrift,
    ClockJump,
    CutShort,
    DamageDisk,
    DiskError,
    DiskFull,
    Fault,
    FileKind,
    FlipBit,
    Kill,
    LimitMemory,
    Node,
    Operation,
    Pause,
    PowerCut,
    RestartWith,
    ShutDown,
    SlowFlush,
    StaleCopy,
    Starve,
    Upgrade,
    Wipe,
)
from chaos.live.watch import PartitionSeen, TopicPartition, View
from conformance.concurrent.surroundings import Surroundings
from fixtures.disk.faults import DiskError as Refusal
from fixtures.disk.faults import DiskFault, DiskOperation, Unflushed
from fixtures.faults.damage import Damage, cut_short, damage, flip_bit, put_back, wipe
from fixtures.targets.controls import (
    ClockedTarget,
    DiskedTarget,
    LimitedTarget,
    LogDirectories,
    SupervisedTarget,
)
from fixtures.targets.target import TargetError
from linearizability.anomalies.faults import NEVER_NS
from linearizability.temporary_folder import TemporaryFolder

_OPERATIONS: Final = {
    Operation.APPEND: DiskOperation.WRITE,
    Operation.FLUSH: DiskOperation.FLUSH,
    Operation.READ: DiskOperation.READ,
    Operation.REPLACE: DiskOperation.RENAME,
    Operation.TRUNCATE: DiskOperation.TRUNCATE,
    Operation.DELETE: DiskOperation.DELETE,
}


class BreakableNodes(SupervisedTarget, DiskedTarget, ClockedTarget, LimitedTarget, LogDirectories, Protocol):
    """Whatever a target may offer; which of it this one does is known before a schedule begins."""


def entered(over: ExitStack, breaks: Callable[[], AbstractContextManager[object]]) -> Heal:
    """Enter what breaks something: it is left before the row ends, which ends at once where it cannot be entered."""
    try:
        over.enter_context(breaks())
    except BaseException:
        over.close()
        raise
    return over.close


@dataclass(slots=True)
class Nodes:
    """The nodes of one cluster, and what holds them down.

    :param seed: of what a power cut leaves.
    :param flushed_topics: those of which a power cut takes nothing that was acknowledged.
    """

    target: BreakableNodes
    surroundings: Surroundings
    view: View
    seed: int
    flushed_topics: Collection[str] = ()
    deaths: dict[int, str] = field(default_factory=dict)
    """Nodes that ended by themselves though nothing broke their disks, and what they said last."""
    _holds: Counter[int] = field(default_factory=Counter)
    _paused: set[int] = field(default_factory=set)
    _rows: dict[int, ExitStack] = field(default_factory=dict)
    _lossy: dict[tuple[str, int], int] = field(default_factory=dict)
    """Topics and nodes that have lost content of them, with the time of the node's next start."""
    _whole_ns: dict[TopicPartition, int] = field(default_factory=dict)
    """When the newest request was sent whose response showed a full ISR; earlier starts have caught up by that time."""
    _spoilt: set[int] = field(default_factory=set)
    """Nodes whose disks were ever broken: they may end by themselves."""
    _forfeited: set[tuple[TopicPartition, int, int]] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.view.on_change = self._note_election

    @property
    def ids(self) -> list[int]:
        """Of all nodes."""
        return [node.id for node in self.surroundings.target.nodes]

    def find(self, name: Node) -> int | None:
        """The node of that name by now; null where there is none."""
        node = self.view.node(name)
        return node if node in self.ids else None

    def _row(self, fault: Fault, node: int) -> ExitStack:
        return begun(self.surroundings.recorder, fault, str(node))

    def break_node(self, fault: Any, node: int) -> Heal | None:
        """Inject a fault of one node; what heals it, null where there is nothing to break."""
        match fault:
            case Kill() | ShutDown() | RestartWith() | Upgrade():
                return self._end(fault, node)
            case Wipe() | DamageDisk() | FlipBit() | CutShort():
                return self._spoil(fault, node)
            case StaleCopy():
                return self._restore_later(fault, node)
            case Pause():
                return self._pause(fault, node)
            case DiskError() | DiskFull() | SlowFlush():
                return self._fail_disk(fault, node)
            case Starve() | LimitMemory() | ClockJump() | ClockDrift():
                return self._hamper(fault, node)
        raise TypeError(f"no fault of a node: {fault!r}")

    def _end(self, fault: Kill | ShutDown | RestartWith | Upgrade, node: int) -> Heal:
        match fault:
            case RestartWith(name=name, value=value):
                self.target.processes.configure(node, name, value)
            case Upgrade(version=version):
                self.target.processes.become(node, version)
        if isinstance(fault, ShutDown | Upgrade):
            return self._shut_down(fault, node)
        return self.keep_down(fault, node, self.target.processes.kill)

    def _spoil(self, fault: Wipe | DamageDisk | FlipBit | CutShort, node: int) -> Heal | None:
        """What lies on a node's disk, while the node is down."""
        if isinstance(fault, FlipBit | CutShort) and fault.files is FileKind.CHECKPOINT:
            return None  # text that a start refuses, and nothing heals
        topic = self.surroundings.topic

        def spoil() -> None:
            directories = self._directories(node)
            match fault:
                case Wipe():
                    wipe(directories)
                case DamageDisk(what=what):
                    damage(directories, topic, what)
                case FlipBit(files=files, per_mille=per_mille):
                    flip_bit(directories, topic, files, per_mille)
                case CutShort(files=files, per_mille=per_mille):
                    cut_short(directories, topic, files, per_mille)

        return self.keep_down(fault, node, self.target.processes.kill, spoil, self._spoilt_topics(fault))

    def _spoilt_topics(self, fault: Wipe | DamageDisk | FlipBit | CutShort) -> Collection[str]:
        """Return the topics of which a fault takes content; only some faults change other topics than the first."""
        match fault:
            case Wipe() | DamageDisk(what=Damage.CHECKPOINTS):
                return self.view.topics
            case DamageDisk(what=Damage.INDEXES | Damage.SNAPSHOTS | Damage.TORN_TAIL):
                return ()
        return (self.surroundings.topic,)

    def _hamper(self, fault: Starve | LimitMemory | ClockJump | ClockDrift, node: int) -> Heal:
        """A node goes on with less, or with another clock."""
        target = self.target
        match fault:
            case Starve(cpu_per_mille=cpu_per_mille):
                return entered(self._row(fault, node), lambda: target.limits.starve(node, cpu_per_mille))
            case LimitMemory(bytes_max=bytes_max):
                return entered(self._frail(fault, node), lambda: target.limits.limit_memory(node, bytes_max))
            case ClockJump(by_ms=by_ms):
                return entered(self._row(fault, node), lambda: target.clocks.jump(node, by_ms))
            case ClockDrift(rate_ppm=rate_ppm):
                return entered(self._row(fault, node), lambda: target.clocks.drift(node, rate_ppm))

    def _directories(self, node: int) -> Sequence[Path]:
        return self.target.log_directories(node)

    def keep_down(
        self,
        fault: Fault,
        node: int,
        end: Callable[[int], object],
        then: Callable[[], object] | None = None,
        lost: Collection[str] = (),
    ) -> Heal:
        """End a node, then do something to its disk, and let nothing start it before this is over.

        :param lost: the topics of which `then` takes content.
        """
        self._rows.setdefault(node, ExitStack()).push(self._row(fault, node))
        self._holds[node] += 1
        try:
            end(node)
        except TargetError:
            self._let_up(node)
            raise
        if then is not None:
            self._spoilt.add(node)
            with suppress(OSError):  # a disk that fails lets nobody else change it either
                then()
        self._note_loss(node, lost)
        return lambda: self._let_up(node)

    def _let_up(self, node: int) -> None:
        self._holds[node] -= 1
        self._start(node)

    def _start(self, node: int) -> None:
        """Start a node that does not run and that nothing keeps down."""
        if self._holds[node]:
            return
        if node in self.target.processes.ended():
            self._forfeit_if_alone(node)
            self.target.processes.launch(node)
            self._note_start(node)
        if node in self._rows:
            self._rows.pop(node).close()

    def start_all(self) -> None:
        """Start what does not run, as a person would who finds it so."""
        self.look_for_deaths()
        for node in self.ids:
            self._start(node)

    def start_anew(self) -> None:
        """Kill and start the nodes that are missing from an ISR.

        A node that was unregistered while it ran, by a request that came late, is not heard any more, and does not
        register again: an operator who wants it back starts it again.
        """
        missing = {node for seen in self.view.partitions.values() for node in set(seen.replicas) - set(seen.isr)}
        for node in sorted(missing.intersection(self.ids)):
            with row(self.surroundings.recorder, "kill", "started again, as it may have been unregistered", str(node)):
                self.target.processes.kill(node)
                self._start(node)

    def look_for_deaths(self) -> None:
        """A node that ended by itself is a finding of its own, unless its disk was broken."""
        for node, last_words in self.target.processes.ended().items():
            if not self._holds[node] and node not in self._spoilt:
                self.deaths.setdefault(node, last_words)

    def _frail(self, fault: Fault, node: int) -> ExitStack:
        """The row of a fault that may end a node by itself: such a one is started when the fault is over."""
        self._spoilt.add(node)
        over = ExitStack()
        over.callback(self._start, node)
        over.push(self._row(fault, node))
        return over

    def _shut_down(self, fault: ShutDown | Upgrade, node: int) -> Heal:
        heal = self.keep_down(fault, node, self.target.processes.ask_to_end)

        def over() -> None:
            """One that has not ended by now is killed, as an impatient supervisor does."""
            self.target.processes.kill(node)
            heal()

        return over

    def _pause(self, fault: Pause, node: int) -> Heal | None:
        if node in self.target.processes.ended() or node in self._paused:
            return None
        self._paused.add(node)
        over = ExitStack()
        over.callback(self._paused.discard, node)
        over.push(self._row(fault, node))
        return entered(over, lambda: self.target.processes.pause(node))

    # --- disks

    def cut_power(self, fault: PowerCut) -> Heal | None:
        """Of some nodes at once, or of all; what starts them."""
        names = fault.nodes or tuple(self.ids)
        nodes = list(dict.fromkeys(node for name in names if (node := self.find(name)) is not None))
        if not nodes:
            return None
        for node in nodes:
            self.keep_down(fault, node, lambda _: None)
            self._spoilt.add(node)
        over = ExitStack()
        for node in reversed(nodes):
            over.callback(self._let_up, node)
        try:
            self._begin_power_cut(fault, nodes, over)
        except TargetError:
            over.close()
            raise
        return over.close

    def _begin_power_cut(self, fault: PowerCut, nodes: Sequence[int], over: ExitStack) -> None:
        if fault.after_writes is None:
            self._lose_power(nodes)
            return
        for node in nodes:
            self.target.disks.arm_power_cut(node, fault.after_writes)
            self._note_power_loss(node)
        over.callback(self._lose_power, nodes)

    def _lose_power(self, nodes: Sequence[int]) -> None:
        self.target.disks.cut_power(nodes, Unflushed.TORN, self.seed)
        for node in nodes:
            self._note_power_loss(node)

    def _fail_disk(self, fault: DiskError | DiskFull | SlowFlush, node: int) -> Heal:
        over = self._frail(fault, node)
        match fault:
            case DiskFull(free_bytes=free_bytes):
                return entered(over, lambda: self.target.disks.fill(node, free_bytes))
            case SlowFlush(flush_ms=flush_ms):
                slow = DiskFault(frozenset({DiskOperation.FLUSH}), error=None, delay_ms=flush_ms)
                return entered(over, lambda: self.target.disks.inject(node, slow))
            case DiskError():
                operations = frozenset() if fault.operation is None else frozenset({_OPERATIONS[fault.operation]})
                files = None if fault.files is None else f"*{fault.files}{'*' * (fault.files is FileKind.CHECKPOINT)}"
                broken = DiskFault(operations, files, Refusal(fault.error))
                return entered(over, lambda: self.target.disks.inject(node, broken))

    def _restore_later(self, fault: StaleCopy, node: int) -> Heal:
        """Copy a node's disk while the node is down. The heal puts the copy in its place: what came since is lost."""
        over = self._frail(fault, node)
        try:
            self.target.processes.kill(node)
            kept = over.enter_context(TemporaryFolder())
            directories = self._directories(node)
            copies = [Path(kept) / str(number) for number in range(len(directories))]
            for directory, copy in zip(directories, copies, strict=True):
                shutil.copytree(directory, copy)
        except (TargetError, OSError) as error:
            over.close()
            raise TargetError(f"node {node} cannot be copied: {error}") from error
        self._start(node)
        over.callback(self._restore, node, copies)
        return over.close

    def _restore(self, node: int, copies: Sequence[Path]) -> None:
        self.target.processes.kill(node)
        with suppress(OSError):
            put_back(self._directories(node), self.surroundings.topic, copies)
        self._note_loss(node, (self.surroundings.topic,))

    # --- what was lost

    def _note_power_loss(self, node: int) -> None:
        self._note_loss(node, [topic for topic in self.view.topics if topic not in self.flushed_topics])

    def _note_loss(self, node: int, topics: Collection[str]) -> None:
        with self._lock:
            self._lossy |= {(topic, node): NEVER_NS for topic in topics}
        self._forfeit_if_alone(node)

    def _note_start(self, node: int) -> None:
        now_ns = self.surroundings.recorder.now_ns()
        with self._lock:
            self._lossy |= {key: now_ns for key in self._lossy if key[1] == node}

    def _forfeit_if_alone(self, node: int) -> None:
        for place, seen in self.view.partitions.items():
            if seen.isr == (node,):
                self._note_election(place, seen)

    def _note_election(self, place: TopicPartition, seen: PartitionSeen) -> None:
        """Record an unclean election if the last in-sync replica of a partition has lost content."""
        with self._lock:
            if seen.is_whole:
                self._whole_ns[place] = seen.at_ns
            if len(seen.isr) != 1:
                return
            (node,) = seen.isr
            started_ns = self._lossy.get((place.topic, node))
            key = (place, seen.epoch, node)
            if started_ns is None or started_ns < self._whole_ns.get(place, 0) or key in self._forfeited:
                return
            self._forfeited.add(key)
        row(self.surroundings.recorder, "election", LAST_HAS_LOST, place.topic).close()
