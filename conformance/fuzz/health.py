"""The state of the nodes while they are fuzzed: whether they run, respond, use little memory, and log no traceback."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import psutil

from conformance.fuzz.cluster import FuzzTarget
from conformance.fuzz.finding import Observed, Symptom
from conformance.fuzz.probe import HANG_S, Sample

_MEGABYTE: Final = 1_000_000
_TRACEBACK: Final = "Traceback (most recent call last)"


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits for the response time and the memory of a node.

    :ivar response_s: limit for the response time of probes, which use separate connections.
    :ivar memory_bytes: limit of resident memory.
    """

    response_s: float
    memory_bytes: int


REFERENCE_LIMITS: Final = Limits(0.25, 300 * _MEGABYTE)
JVM_LIMITS: Final = Limits(2.0, 1_000 * _MEGABYTE)
"""Limits for a JVM. It has a heap of 384 MB and memory outside the heap, and garbage collection pauses it."""


def limits_for(kind: str) -> Limits:
    """Return the limits for a kind of target."""
    return JVM_LIMITS if kind.startswith("apache-kafka") else REFERENCE_LIMITS


class Health:
    """Observer of the nodes of a cluster. Each call of `observe` yields the symptoms since the last one."""

    def __init__(self, target: FuzzTarget, limits: Limits) -> None:
        self._target = target
        self._limits = limits
        self._positions = {node.id: self._log_size(node.id) for node in target.nodes}
        self._ended: set[int] = set()
        self._large: set[int] = set()
        self.largest_bytes = 0
        """The largest resident memory of any node."""

    def observe(self, late: Sequence[Sample] = ()) -> Iterator[Observed]:
        """Yield the new symptoms: ended nodes, then memory and tracebacks of each node, then late responses and hangs.

        :param late: the late samples of the prober since the last call.
        """
        now_s = time.monotonic()
        ended = self._target.processes.ended()
        for gone in sorted(set(ended) - self._ended):
            yield Observed(Symptom.NODE_ENDED, gone, f"node {gone} ended by itself: {ended[gone]}", now_s)
        self._ended = set(ended)
        for node in self._target.nodes:
            if node.id not in ended:
                yield from self._observe_memory(node.id, now_s)
            yield from self._observe_log(node.id, now_s)
        for sample in late:
            if sample.node not in ended:
                yield self._late(sample)

    def _late(self, sample: Sample) -> Observed:
        hangs = sample.took_s >= HANG_S
        waited = f"of {sample.took_s * 1000:.0f} ms, {sample.starved_s * 1000:.0f} without a processor"
        text = f"node {sample.node} took {sample.own_s * 1000:.0f} ms for a response ({waited})"
        return Observed(Symptom.HANG if hangs else Symptom.LATE_RESPONSE, sample.node, text, sample.began_s)

    def _observe_memory(self, node: int, now_s: float) -> Iterator[Observed]:
        try:
            resident = psutil.Process(self._target.processes.pid(node)).memory_info().rss
        except psutil.NoSuchProcess:
            return
        self.largest_bytes = max(self.largest_bytes, resident)
        if resident > self._limits.memory_bytes and node not in self._large:
            self._large.add(node)
            allowed = self._limits.memory_bytes / _MEGABYTE
            text = f"node {node} has {resident / _MEGABYTE:.0f} MB of resident memory; the bound is {allowed:.0f} MB"
            yield Observed(Symptom.MEMORY, node, text, now_s)

    def _observe_log(self, node: int, now_s: float) -> Iterator[Observed]:
        with self._target.processes.log_file(node).open("rb") as log:
            log.seek(self._positions[node])
            printed = log.read()
        whole = printed[: printed.rfind(b"\n") + 1]
        self._positions[node] += len(whole)
        lines = whole.decode("utf-8", "replace").splitlines()
        for number, line in enumerate(lines):
            if line.startswith(_TRACEBACK):
                yield Observed(Symptom.TRACEBACK, node, _error_of(lines[number + 1 :]), now_s)

    def _log_size(self, node: int) -> int:
        return self._target.processes.log_file(node).stat().st_size


def _error_of(lines: Sequence[str]) -> str:
    """Return the exception of a traceback with the last frame above it; only the frame if no exception was printed."""
    raised = ""
    for line in lines:
        if line.startswith("  File "):
            raised = line.strip()
        elif not line.startswith(" "):
            return f"{line[:200]} ({raised})"
    return raised
