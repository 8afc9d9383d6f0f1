"""Lets a real cluster suffer a schedule of faults, and heals it; the faults mean what they mean to the simulation.

Rules of this file:
- One task walks through the schedule. It waits for no node: what takes its time (a node that starts, an administrator's
  request) goes on beside it, and a fault that comes in between takes what it finds. Only who is unregistered is not
  started before that was answered, or given up.
- A fault's row of the history begins before the fault does and ends when it is over.
- Whatever happens, Ctrl-C too, all is healed: `__call__` ends with every fault over and every node started.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Final, Protocol

from chaos.fault_rows import Heal, begun
from chaos.faults import (
    AddBroker,
    Configure,
    Cut,
    Elect,
    Fault,
    HalfOpen,
    HoldRequests,
    Isolate,
    Keeps,
    PowerCut,
    Reassign,
    Refuse,
    Reset,
    Ring,
    Slice,
    Slow,
    Split,
    Timed,
    Unregister,
)
from chaos.links import Impairment, end_of, pairs_of
from chaos.live.nodes import BreakableNodes, Nodes, entered
from chaos.live.requests import Administration
from chaos.live.watch import View
from conformance.concurrent.surroundings import Surroundings
from fixtures.clients.recorded_admin import Election
from fixtures.clients.stage import Event
from fixtures.targets.controls import (
    Barrier,
    Direction,
    LinkCondition,
    MembershipControl,
    NetworkedTarget,
    RequestedTarget,
)
from fixtures.targets.target import TargetError

_BARRIERS: Final = {Keeps.BYTES: Barrier.HOLDS, Keeps.NOTHING: Barrier.LOSES}


class BreakableTarget(BreakableNodes, NetworkedTarget, RequestedTarget, MembershipControl, Protocol):
    """Whatever a target may offer; which of it this one does is known before a schedule begins."""


@dataclass(frozen=True, slots=True)
class Injected:
    """One fault of the schedule as it came to be.

    :ivar found: false where there was nothing to break.
    :ivar refused: why the target did not let it happen: what it clashes with, for instance. Empty where it did.
    """

    timed: Timed
    found: bool
    refused: str = ""


@dataclass(slots=True)
class Injector:
    """One schedule on one started cluster. Call it once: that walks through the schedule, and heals.

    :param steady_ms: before the schedule begins.
    :param seed: of what is left to chance: what a power cut leaves.
    :param cancelled: once it is set, all is healed, and the call returns.
    :param flushed_topics: those whose records are durable once they are acknowledged.
    :param recover: waits until the cluster is in order, or its time for that is over. It is called before each fault
        that begins while no other is in force, and the schedule stands still meanwhile. Null: no waits.
    """

    target: BreakableTarget
    surroundings: Surroundings
    view: View
    schedule: Sequence[Timed]
    steady_ms: int
    seed: int
    cancelled: Event
    told: Callable[[Injected], None] = lambda _: None
    flushed_topics: Collection[str] = ()
    recover: Callable[[], object] | None = None
    injected: list[Injected] = field(default_factory=list)
    nodes: Nodes = field(init=False)
    _founders: int = field(init=False)
    _administration: Administration = field(init=False)

    def __post_init__(self) -> None:
        self.nodes = Nodes(self.target, self.surroundings, self.view, self.seed, self.flushed_topics)
        self._founders = len(self.nodes.ids)
        self._administration = Administration(self.surroundings, self.cancelled)

    def __call__(self) -> None:
        """Walk through the schedule. Raises what a control raised, after everything was healed."""
        with ExitStack() as all_over:
            all_over.callback(self.nodes.start_all)
            all_over.callback(self._administration.finish)
            self._walk(all_over)

    def _walk(self, all_over: ExitStack) -> None:
        clock = self.surroundings.target.transport
        start_s = clock.monotonic() + self.steady_ms / 1000
        heals: dict[int, ExitStack] = {}
        for at_ms, _, number, is_end in sorted(self._moments()):
            if self.recover is not None and self.injected and not heals:
                waits_s = clock.monotonic()
                self.recover()
                start_s += clock.monotonic() - waits_s
            if self.cancelled.wait(max(0.0, start_s + at_ms / 1000 - clock.monotonic())):
                return
            if is_end:
                heals.pop(number).close()
            else:
                heals[number] = all_over.enter_context(ExitStack())
                self._inject(self.schedule[number], heals[number])
            self.nodes.look_for_deaths()

    def _moments(self) -> Iterator[tuple[int, int, int, bool]]:
        """Begins and ends: when, in which order at that time (what ends first), of which fault, and which it is."""
        for number, timed in enumerate(self.schedule):
            yield timed.at_ms, 1, number, False
            yield timed.at_ms + timed.for_ms, int(timed.for_ms == 0), number, True

    def _inject(self, timed: Timed, over: ExitStack) -> None:
        heal, refused = None, ""
        try:
            heal = self._break(timed.fault)
        except TargetError as error:
            refused = str(error)
        if heal is not None:
            over.callback(heal)
        injected = Injected(timed, heal is not None, refused)
        self.injected.append(injected)
        self.told(injected)

    def _break(self, fault: Fault) -> Heal | None:
        """Inject a fault; what heals it, null where nothing was found to break."""
        match fault:
            case Cut() | Isolate() | Split() | Ring() | Slow() | Slice():
                return self._impair(fault)
            case Refuse(source, destination) | HoldRequests(source, destination):
                return self._hold_up(fault, end_of(source, self.nodes.find), self.nodes.find(destination))
            case Reset(one, other) | HalfOpen(one, other):
                return self._reset(fault, end_of(one, self.nodes.find), end_of(other, self.nodes.find))
            case PowerCut():
                return self.nodes.cut_power(fault)
            case Configure() | Elect() | Reassign():
                return self._ask(fault)
            case AddBroker():
                return self._add_broker(fault)
            case Unregister():
                return self._unregister(fault)
            case _:
                node = self.nodes.find(fault.node)
                return None if node is None else self.nodes.break_node(fault, node)

    # --- network

    def _impair(self, fault: Impairment) -> Heal | None:
        pairs = pairs_of(fault, self.nodes.ids, self.nodes.find)
        if not pairs:
            return None
        listener = fault.listener if isinstance(fault, Cut | Isolate) else None
        over = begun(
            self.surroundings.recorder, fault, ",".join(f"{source}->{destination}" for source, destination in pairs)
        )
        directions = [
            Direction(*pair, listener if all(isinstance(end, int) for end in pair) else None) for pair in pairs
        ]
        return entered(over, lambda: self.target.links.impair(directions, _condition(fault)))

    def _hold_up(self, fault: Refuse | HoldRequests, source: int | str | None, destination: int | None) -> Heal | None:
        """What a place asks of a node."""
        if source is None or destination is None or source == destination:
            return None
        over = begun(self.surroundings.recorder, fault, f"{source}->{destination}")
        direction = Direction(source, destination)
        if isinstance(fault, Refuse):
            return entered(over, lambda: self.target.links.refuse(direction))
        return entered(
            over,
            lambda: self.target.requests.hold(direction, fault.api_keys, delay_ms=fault.delay_ms, held=fault.held),
        )

    def _reset(self, fault: Reset | HalfOpen, one: int | str | None, other: int | str | None) -> Heal | None:
        if one is None or other is None or one == other:
            return None
        over = begun(self.surroundings.recorder, fault, f"{one}->{other}")
        if isinstance(fault, HalfOpen):
            return entered(over, lambda: self.target.links.half_open(one, other))
        self.target.links.reset(one, other)
        return over.close

    # --- the cluster

    def _add_broker(self, fault: AddBroker) -> Heal | None:
        """It stays, until the cluster is stopped."""
        if len(self.nodes.ids) > self._founders:
            return None  # one is enough to move replicas to, and costs a start
        over = begun(self.surroundings.recorder, fault, str(max(self.nodes.ids) + 1))
        self._administration.beside(self.target.add_broker)
        return over.close

    def _unregister(self, fault: Unregister) -> Heal | None:
        node = self.nodes.find(fault.node)
        if node is None:
            return None
        heal = self.nodes.keep_down(fault, node, self.target.processes.kill)
        asked = self._administration.ask(lambda client: client.unregister_broker(node))

        def over() -> None:
            """A broker that is unregistered while it runs is not heard any more, and does not register again."""
            asked.result()
            heal()

        return over

    def _ask(self, fault: Configure | Elect | Reassign) -> Heal | None:
        topic = self.surroundings.topic
        over = begun(self.surroundings.recorder, fault, topic if isinstance(fault, Configure) else f"{topic}-0")
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


def _condition(fault: Impairment) -> LinkCondition:
    match fault:
        case Slow():
            return LinkCondition(delay_ms=fault.delay_ms, jitter_ms=fault.jitter_ms, bytes_per_ms=fault.bytes_per_ms)
        case Slice():
            return LinkCondition(slice_bytes=fault.slice_bytes)
        case _:
            return LinkCondition(_BARRIERS[fault.keeps])
