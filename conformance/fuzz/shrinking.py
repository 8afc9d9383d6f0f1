"""From the requests of a symptom to the fewest that show it: sent again, one after the other, to new clusters.

The first replay sends all suspects and stops where the symptom shows. The request before which it did not show is
sent alone to another new cluster; where that is not enough, parts of what came before it are left out, half by half,
for as long as there is time.
"""

import socket
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from conformance.concurrent.run import HistoryRun
from conformance.fuzz.cluster import FuzzTarget, address_of, discover, make_topics, probed_nodes
from conformance.fuzz.finding import Finding, Observed, Symptom
from conformance.fuzz.generator import FuzzRequest
from conformance.fuzz.health import Health, Limits
from conformance.fuzz.probe import Probe, Sample
from conformance.fuzz.session import has_controller

RESPONSE_TIMEOUT_S: Final = 0.3
SETTLED_S: Final = 2.0
"""How long after the last request a symptom may still show."""
_CONTROLLER_TIMEOUT_S: Final = 20.0
_SEED: Final = 0

Started = Callable[[Path], FuzzTarget]
"""A new cluster in a directory, not started yet."""


class Replays:
    """Replays the requests of one finding.

    :param deadline_s: on the monotonic clock, after which no replay begins.
    """

    def __init__(self, finding: Finding, new_cluster: Started, limits: Limits, deadline_s: float) -> None:
        self._finding = finding
        self._new_cluster = new_cluster
        self._limits = limits
        self._deadline_s = deadline_s
        self.count = 0

    def smallest(self) -> Finding:
        """The finding with the fewest requests that show it; as it was, and not confirmed, where none do."""
        suspects = self._finding.requests
        place = self.showing(suspects)
        if place is None:
            return replace(self._finding, is_confirmed=False)
        shown = suspects[: place + 1]
        if len(shown) > 1 and self._in_time() and self.showing(shown[-1:]) is not None:
            shown = shown[-1:]
        return replace(self._finding, requests=self._reduced(shown), is_confirmed=True)

    def _reduced(self, shown: tuple[FuzzRequest, ...]) -> tuple[FuzzRequest, ...]:
        """Leave out what is not needed, ever smaller pieces of it (Zeller's ddmin)."""
        size = len(shown) // 2
        while size and self._in_time():
            start = 0
            while start < len(shown) and len(shown) > 1 and self._in_time():
                fewer = shown[:start] + shown[start + size :]
                if fewer and self.showing(fewer) is not None:
                    shown = fewer
                else:
                    start += size
            size //= 2
        return shown

    def _in_time(self) -> bool:
        return time.monotonic() < self._deadline_s

    def showing(self, requests: Sequence[FuzzRequest]) -> int | None:
        """Send them to a new cluster. The place of the one after which the symptom showed; null: it did not."""
        self.count += 1
        with tempfile.TemporaryDirectory(prefix="kafkatrial-", ignore_cleanup_errors=True) as directory:
            target = self._new_cluster(Path(directory) / "cluster")
            with target, HistoryRun(target, Path(directory) / "run", _SEED) as run:
                surroundings = make_topics(run)
                world = discover(target)
                replay = _Replay(target, Health(target, self._limits), self._limits, self._finding.symptom)
                for place, request in enumerate(requests):
                    frame = self._finding.world.translated(request.data, world)
                    if replay.shows(replace(request, data=frame)):
                        return place
                is_last = replay.shows_later()
                if self._finding.symptom is Symptom.NO_CONTROLLER:
                    is_last = not has_controller(surroundings, _CONTROLLER_TIMEOUT_S)
        return len(requests) - 1 if is_last else None


class _Replay:
    """Requests one at a time, each followed by a look at every node."""

    def __init__(self, target: FuzzTarget, health: Health, limits: Limits, symptom: Symptom) -> None:
        self._target = target
        self._health = health
        self._limits = limits
        self._symptom = symptom

    def shows(self, request: FuzzRequest) -> bool:
        """Whether the symptom showed after this request."""
        with (
            suppress(OSError),
            socket.create_connection(address_of(self._target, request), RESPONSE_TIMEOUT_S) as connected,
        ):
            connected.sendall(request.data)
            if self._look():
                return True
            connected.recv(1 << 16)
        return self._look()

    def shows_later(self) -> bool:
        """Whether it shows within some time after the last request."""
        deadline_s = time.monotonic() + SETTLED_S
        while time.monotonic() < deadline_s:
            if self._look():
                return True
        return False

    def _look(self) -> bool:
        return any(self._is_sought(observed) for observed in self._health.observe(self._late()))

    def _is_sought(self, observed: Observed) -> bool:
        slow = {Symptom.LATE_RESPONSE, Symptom.HANG}
        return observed.symptom is self._symptom or {observed.symptom, self._symptom} <= slow

    def _late(self) -> list[Sample]:
        ended = self._target.ended_nodes()
        samples = []
        for node in probed_nodes(self._target):
            if node.id not in ended:
                with Probe(node) as probe:
                    samples.append(probe.sample())
        return [sample for sample in samples if sample.is_late(self._limits.response_s)]
