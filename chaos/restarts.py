"""Nodes that end and come back with their disks: killed at moments drawn from a seed, or shut down one after the other.

One node is down at a time, so that a majority of the controllers is always there. Whether the next one goes while the
last is still catching up is drawn too: then a partition may have no leader for a while, and may still lose nothing.
"""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from fixtures.targets.target import ProcessControl, TargetError
from linearizability.history.recorder import Recorder

PAUSE_MAX_MS = 3_000
DOWN_MAX_MS = 5_000
"""More than a session of the kill test's clusters lasts: some of the dead come back before they are missed."""

AwaitInSync = Callable[[], bool]
"""Returns once every replica is in the ISR; false if that took too long."""


@dataclass(frozen=True, slots=True)
class Kill:
    """SIGKILL for one node."""

    node: int
    when_in_sync: bool
    """Wait for full ISRs before the pause."""
    pause_ms: int
    """Between the last restart (or the full ISRs) and this kill."""
    down_ms: int
    """Between the kill and the restart."""


def draw_kills(seed: int, nodes: Sequence[int]) -> Iterator[Kill]:
    """Kills without end; the same seed gives the same ones."""
    draw = random.Random(seed)
    while True:
        yield Kill(
            node=draw.choice(nodes),
            when_in_sync=draw.random() < 0.5,
            pause_ms=draw.randrange(PAUSE_MAX_MS),
            down_ms=draw.randrange(DOWN_MAX_MS),
        )


@dataclass(slots=True)
class Killing:
    """Kills nodes again and again for some time; every one is running again when it ends. An `Injection`."""

    control: ProcessControl
    recorder: Recorder
    kills: Iterator[Kill]
    await_in_sync: AwaitInSync
    duration_s: float
    injected: int = 0

    def await_hold(self) -> None:
        """Nothing holds from the beginning."""

    def __call__(self) -> None:
        """Raises `TargetError` where a node ended by itself, or did not come back."""
        deadline = time.monotonic() + self.duration_s
        for kill in self.kills:
            if kill.when_in_sync:
                self.await_in_sync()
            time.sleep(kill.pause_ms / 1000)
            if time.monotonic() >= deadline:
                break
            self._inject(kill)
        raise_if_ended(self.control)

    def _inject(self, kill: Kill) -> None:
        raise_if_ended(self.control)
        with self.recorder.fault("kill", str(kill.node)):
            self.control.kill(kill.node)
            time.sleep(kill.down_ms / 1000)
            self.control.restart(kill.node)
        self.injected += 1


@dataclass(slots=True)
class RollingRestart:
    """Shuts each node down and starts it again, the next one once all replicas are in sync. An `Injection`."""

    control: ProcessControl
    recorder: Recorder
    nodes: Sequence[int]
    await_in_sync: AwaitInSync

    def await_hold(self) -> None:
        """Nothing holds from the beginning."""

    def __call__(self) -> None:
        """Raises `TargetError` where a node ended by itself, did not end when told to, or did not catch up."""
        for node in self.nodes:
            raise_if_ended(self.control)
            with self.recorder.fault("restart", str(node)):
                self.control.shut_down(node)
                self.control.restart(node)
            if not self.await_in_sync():
                raise TargetError(f"node {node} did not catch up after its restart")


def raise_if_ended(control: ProcessControl) -> None:
    """A node that ended by itself is a finding of its own, which a kill would hide."""
    for node, last_words in control.ended_nodes().items():
        raise TargetError(f"node {node} ended by itself: {last_words}")
