"""Shrinking of a finding: its requests are replayed on new clusters, to find the fewest that reproduce the symptom.

The first replay sends all requests and stops when the symptom occurs. The request that was sent last is then replayed
alone; if it does not reproduce the symptom, smaller and smaller parts of the requests are left out while there is time
(Zeller's ddmin). A late response or a hang is confirmed only if the requests that remain reproduce it twice more.
"""

import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from conformance.concurrent.run import HistoryRun
from conformance.fuzz.cluster import FuzzTarget, address_of, discover, make_topics, probed_nodes
from conformance.fuzz.finding import FuzzFinding, Observed, Symptom
from conformance.fuzz.generator import FuzzRequest
from conformance.fuzz.health import Health, Limits
from conformance.fuzz.probe import Probe, Sample
from conformance.fuzz.session import has_controller
from linearizability.temporary_folder import TemporaryFolder

RESPONSE_TIMEOUT_S: Final = 0.3
SETTLED_S: Final = 2.0
"""Time after the last request in which a symptom may still occur."""
_CONTROLLER_TIMEOUT_S: Final = 20.0
_SEED: Final = 0
_TIMING_SYMPTOMS: Final = frozenset({Symptom.LATE_RESPONSE, Symptom.HANG})

NewCluster = Callable[[Path], FuzzTarget]
"""Creates a cluster in a directory, without starting it."""


class Replays:
    """Replays of the requests of one finding.

    :param deadline_s: time on the monotonic clock after which no more requests are left out. The first replay, and
        those that confirm a late response or a hang, run after this time, too.
    """

    def __init__(self, finding: FuzzFinding, new_cluster: NewCluster, limits: Limits, deadline_s: float) -> None:
        self._finding = finding
        self._new_cluster = new_cluster
        self._limits = limits
        self._deadline_s = deadline_s
        self.count = 0

    def shrink(self) -> FuzzFinding:
        """Return the finding with the smallest set of requests found that reproduces the symptom.

        If the first replay does not reproduce it, the requests stay the same, and the finding is not confirmed.
        """
        suspects = self._finding.requests
        place = self.replay(suspects)
        if place is None:
            return replace(self._finding, is_confirmed=False)
        reproducing = suspects[: place + 1]
        if len(reproducing) > 1 and self._in_time() and self.replay(reproducing[-1:]) is not None:
            reproducing = reproducing[-1:]
        smallest = self._reduced(reproducing)
        return replace(self._finding, requests=smallest, is_confirmed=self._is_reproducible(smallest))

    def _is_reproducible(self, requests: Sequence[FuzzRequest]) -> bool:
        """Whether two more replays of the requests reproduce a late response or a hang; true for other symptoms.

        A busy disk or steal time of the processor delays a response now and then, and such a delay is likely while
        thousands of requests are replayed.
        """
        if self._finding.symptom not in _TIMING_SYMPTOMS:
            return True
        return all(self.replay(requests) is not None for _ in range(2))

    def _reduced(self, reproducing: tuple[FuzzRequest, ...]) -> tuple[FuzzRequest, ...]:
        """Leave out requests that are not needed, in smaller and smaller chunks."""
        size = len(reproducing) // 2
        while size and self._in_time():
            start = 0
            while start < len(reproducing) and len(reproducing) > 1 and self._in_time():
                fewer = reproducing[:start] + reproducing[start + size :]
                if fewer and self.replay(fewer) is not None:
                    reproducing = fewer
                else:
                    start += size
            size //= 2
        return reproducing

    def _in_time(self) -> bool:
        return time.monotonic() < self._deadline_s

    def replay(self, requests: Sequence[FuzzRequest]) -> int | None:
        """Send requests to a new cluster. Return the index of the request after which the symptom occurred, or None.

        If the symptom occurs only in the check after the last request, return the last index.
        """
        self.count += 1
        with TemporaryFolder() as directory:
            target = self._new_cluster(directory / "cluster")
            with target, HistoryRun(target, directory / "run", _SEED) as run:
                context = make_topics(run)
                world = discover(target)
                replay = _Replay(target, Health(target, self._limits), self._limits, self._finding.symptom)
                for place, request in enumerate(requests):
                    frame = self._finding.world.translated(request.data, world)
                    if replay.occurs_after(replace(request, data=frame)):
                        return place
                occurs = replay.occurs_later()
                if self._finding.symptom is Symptom.NO_CONTROLLER:
                    occurs = not has_controller(context, _CONTROLLER_TIMEOUT_S)
        return len(requests) - 1 if occurs else None


class _Replay:
    """One replay: requests are sent one at a time, and every node is checked after each."""

    def __init__(self, target: FuzzTarget, health: Health, limits: Limits, symptom: Symptom) -> None:
        self._target = target
        self._health = health
        self._limits = limits
        self._symptom = symptom

    def occurs_after(self, request: FuzzRequest) -> bool:
        """Send a request. Return whether the symptom occurred."""
        with (
            suppress(OSError),
            socket.create_connection(address_of(self._target, request), RESPONSE_TIMEOUT_S) as connected,
        ):
            connected.sendall(request.data)
            if self._occurs():
                return True
            connected.recv(1 << 16)
        return self._occurs()

    def occurs_later(self) -> bool:
        """Whether the symptom occurs within `SETTLED_S` after the last request."""
        deadline_s = time.monotonic() + SETTLED_S
        while time.monotonic() < deadline_s:
            if self._occurs():
                return True
        return False

    def _occurs(self) -> bool:
        return any(self._is_same(observed) for observed in self._health.observe(self._late_samples()))

    def _is_same(self, observed: Observed) -> bool:
        """Whether the symptom is the one to reproduce. A late response and a hang count as the same."""
        return observed.symptom is self._symptom or {observed.symptom, self._symptom} <= _TIMING_SYMPTOMS

    def _late_samples(self) -> list[Sample]:
        ended = self._target.processes.ended()
        samples = []
        for node in probed_nodes(self._target):
            if node.id not in ended:
                with Probe(node) as probe:
                    samples.append(probe.sample())
        return [sample for sample in samples if sample.is_late(self._limits.response_s)]
