"""Injector: applies a schedule of faults to a live cluster, and reverts it.

Rules of this file:
- One task applies the schedule and does not wait for nodes. A slow action (the start of a node, an administrative
  request) runs in another task, and the next fault may be injected before that action is complete. The only exception
  is the end of `Unregister`: it starts the node after the UnregisterBroker request has a response or is given up.
- When `__call__` returns, even after an error or Ctrl-C, all faults are reverted and every node has been started.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Protocol

from chaos.live.nodes import Nodes, ObservedLosses
from chaos.live.requests import LiveAdministration
from chaos.live.watch import View
from conformance.concurrent.trial_context import TrialContext
from fixtures.clients.stage import Event
from fixtures.faults import Timed
from fixtures.faults.context import FaultContext
from fixtures.faults.replica_files import LogDirectoryFiles
from fixtures.targets.controls import (
    ClockedTarget,
    DiskedTarget,
    LimitedTarget,
    LogDirectories,
    MembershipControl,
    NetworkedTarget,
    RequestedTarget,
    SupervisedTarget,
)
from fixtures.targets.target import TargetError


class BreakableTarget(
    SupervisedTarget,
    DiskedTarget,
    ClockedTarget,
    LimitedTarget,
    NetworkedTarget,
    RequestedTarget,
    LogDirectories,
    MembershipControl,
    Protocol,
):
    """A target with some of these controls: those that its capabilities name."""


@dataclass(frozen=True, slots=True)
class Injected:
    """One fault of the schedule after its injection.

    :ivar found: false if there was nothing to break, or if the target rejected the fault.
    :ivar rejection: why the target rejected the fault, such as a conflict with another fault; empty if it did not.
    """

    timed: Timed
    found: bool
    rejection: str = ""


@dataclass(slots=True)
class Injector:
    """One schedule on one started cluster. Call it once: it applies the schedule and reverts all faults.

    :param steady_ms: time before the schedule begins.
    :param seed: seed of the random effects, such as the bytes that survive a power cut.
    :param cancelled: once it is set, all faults are reverted, and the call returns.
    :param on_injected: called with each fault after its injection.
    :param flushed_topics: topics whose records are durable once they are acknowledged.
    :param recover: waits until the cluster has recovered, or until the time allowed for recovery is over. Before each
        fault but the first, it is called if no other fault is in force, and the schedule is paused. None: the schedule
        is never paused.
    """

    target: BreakableTarget
    trial_context: TrialContext
    view: View
    schedule: Sequence[Timed]
    steady_ms: int
    seed: int
    cancelled: Event
    on_injected: Callable[[Injected], None] = lambda _: None
    flushed_topics: Collection[str] = ()
    recover: Callable[[], object] | None = None
    injected: list[Injected] = field(default_factory=list)
    nodes: Nodes = field(init=False)
    _fault_context: FaultContext = field(init=False)
    _administration: LiveAdministration = field(init=False)

    def __post_init__(self) -> None:
        target, recorder, topic = self.target, self.trial_context.recorder, self.trial_context.topic
        self._administration = LiveAdministration(target, self.trial_context, self.cancelled)
        self._fault_context = FaultContext(
            target=target,
            recorder=recorder,
            topic=topic,
            list_nodes=lambda: [node.id for node in self.trial_context.target.nodes],
            find_node=self.view.node,
            files=LogDirectoryFiles(target.log_directories),
            administrator=self._administration,
            losses=ObservedLosses(recorder, self.view, self.flushed_topics),
            seed=self.seed,
        )
        self.nodes = Nodes(target, self._fault_context, self.view)

    def __call__(self) -> None:
        """Apply the schedule. Raises the error of a control after all faults are reverted."""
        with ExitStack() as all_over:
            all_over.callback(self.nodes.start_all)
            all_over.callback(self._administration.finish)
            self._apply_schedule(all_over)

    def _apply_schedule(self, all_over: ExitStack) -> None:
        clock = self.trial_context.target.transport
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
            self.nodes.note_deaths()

    def _moments(self) -> Iterator[tuple[int, int, int, bool]]:
        """Yield each start and end of a fault: time, order at that time, index, and whether it is an end.

        At the same time, faults end before others start. Only a fault without a duration ends after its own start.
        """
        for number, timed in enumerate(self.schedule):
            yield timed.at_ms, 1, number, False
            yield timed.at_ms + timed.for_ms, int(timed.for_ms == 0), number, True

    def _inject(self, timed: Timed, over: ExitStack) -> None:
        heal, rejection = None, ""
        try:
            heal = timed.fault.apply(self._fault_context)
        except TargetError as error:
            rejection = str(error)
        if heal is not None:
            over.callback(heal)
        injected = Injected(timed, heal is not None, rejection)
        self.injected.append(injected)
        self.on_injected(injected)
