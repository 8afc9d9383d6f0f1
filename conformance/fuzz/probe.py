"""Prober of the nodes: response times of ApiVersions and Metadata, measured on separate connections.

The two requests are sent in turn. The result is the time that the node itself took, however busy this machine was. So
the time for which the prober's thread and the node's threads were ready to run, but had no processor, is subtracted
(`schedstat` of Linux). For a node with more than `_THREADS_MAX` threads, only the time of the prober's thread is
subtracted. On a kernel that does not count this time, nothing is subtracted.

The probes of a session run in a separate process, because the fuzzer holds its interpreter lock for milliseconds.
"""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final, Self

from fixtures.clients import requests
from fixtures.clients.messages import ApiKey, request_schema
from fixtures.clients.raw import RawClient, RawClientError, ResponseTimeout
from linearizability.isolated_python import isolate_children

HANG_S: Final = 10.0
"""Minimum response time of a node that hangs; also the timeout of a probe."""
PERIOD_S: Final = 0.05
_THREADS_MAX: Final = 8
"""With more threads than this, the sum of their delays does not show how long a response was delayed."""
_REPORT_PERIOD_S: Final = 0.5
_END_TIMEOUT_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class ProbedNode:
    """The address and the pid of a node."""

    id: int
    host: str
    port: int
    pid: int


@dataclass(frozen=True, slots=True)
class Sample:
    """Result of one probe.

    :ivar began_s: start time on the monotonic clock of this machine.
    :ivar took_s: time until the response or the timeout; 0 after another error.
    :ivar starved_s: total time for which the prober's thread and the node's threads waited for a processor meanwhile.
    :ivar error: the reason for a missing response; empty if there was one.
    """

    node: int
    began_s: float
    took_s: float
    starved_s: float
    error: str = ""

    @property
    def own_s(self) -> float:
        """The time that the node itself took."""
        return max(0.0, self.took_s - self.starved_s)

    def is_late(self, bound_s: float) -> bool:
        """Whether the node's own time exceeds both the bound and the time spent waiting for a processor."""
        return self.own_s > max(bound_s, self.starved_s)


class Probe:
    """Probes of one node, one at a time."""

    def __init__(self, node: ProbedNode) -> None:
        self._node = node
        self._client = RawClient(node.host, node.port, client_id="probe", timeout_s=HANG_S)
        self._count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._client.close()

    def sample(self) -> Sample:
        """Send one request and wait for its response. After an error, the next sample opens a new connection."""
        starved_before_s, began_s = self._starved_s(), time.monotonic()
        error, took_s = "", 0.0
        try:
            self._send()
            took_s = time.monotonic() - began_s
        except RawClientError as failed:
            error = str(failed)
            took_s = time.monotonic() - began_s if isinstance(failed, ResponseTimeout) else 0.0
            self._client.close()
        return Sample(self._node.id, began_s, took_s, self._starved_s() - starved_before_s, error)

    def _send(self) -> None:
        self._count += 1
        if self._count % 2:
            self._client.request(request_schema(ApiKey.API_VERSIONS, 0).ApiVersionsRequest())
        else:
            self._client.request(requests.metadata(request_schema(ApiKey.METADATA, 9), []))

    def _starved_s(self) -> float:
        """Return the time that this thread and the node's threads have waited for a processor since they started.

        The node's threads are left out if there are more than `_THREADS_MAX`.
        """
        own = Path(f"/proc/self/task/{threading.get_native_id()}/schedstat")
        tasks = list(Path(f"/proc/{self._node.pid}/task").glob("*/schedstat"))
        return _run_delay_s(own) + (sum(map(_run_delay_s, tasks)) if len(tasks) <= _THREADS_MAX else 0.0)


def _run_delay_s(schedstat: Path) -> float:
    try:
        return int(schedstat.read_text().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


@dataclass(slots=True)
class Responses:
    """Statistics of the probes of a session."""

    count: int = 0
    slowest_s: float = 0.0
    """Slowest response, including the time for which prober and node waited for a processor."""
    slowest_own_s: float = 0.0


class Probing:
    """Probes of all nodes in a separate process, while the context lasts.

    :param bound_s: limit for the response time of a node; slower samples are kept for `late`.
    """

    def __init__(self, nodes: Sequence[ProbedNode], bound_s: float) -> None:
        isolate_children()
        context = multiprocessing.get_context("spawn")
        self._results, self._sink = context.Pipe(duplex=False)
        self._process = context.Process(target=_probe_all, args=(tuple(nodes), bound_s, self._sink), daemon=True)
        self.responses = Responses()

    def __enter__(self) -> Self:
        self._process.start()
        self._sink.close()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._process.kill()
        self._process.join(_END_TIMEOUT_S)
        self._results.close()

    def late(self) -> list[Sample]:
        """Return the late samples since the last call, and add the statistics of all samples to `responses`."""
        samples: list[Sample] = []
        while self._results.poll():
            responses, newest = self._results.recv()
            self.responses.count += responses.count
            self.responses.slowest_s = max(self.responses.slowest_s, responses.slowest_s)
            self.responses.slowest_own_s = max(self.responses.slowest_own_s, responses.slowest_own_s)
            samples += newest
        return samples


def _probe_all(nodes: Sequence[ProbedNode], bound_s: float, results: Connection) -> None:
    """Run one thread for each node, and report until the parent has ended. Main function of the process.

    Ctrl-C is sent to every process of the terminal; the parent handles it, and ends this process.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    lock = threading.Lock()
    responses, late = Responses(), list[Sample]()

    def probe(node: ProbedNode) -> None:
        with Probe(node) as each:
            while True:
                sample = each.sample()
                with lock:
                    responses.count += not sample.error
                    responses.slowest_s = max(responses.slowest_s, sample.took_s)
                    responses.slowest_own_s = max(responses.slowest_own_s, sample.own_s)
                    if sample.is_late(bound_s):
                        late.append(sample)
                time.sleep(PERIOD_S)

    for node in nodes:
        threading.Thread(target=probe, args=(node,), daemon=True).start()
    parent = os.getppid()
    while os.getppid() == parent:
        time.sleep(_REPORT_PERIOD_S)
        with lock:
            newest, late = late, []
            counted, responses = responses, Responses()
        try:
            results.send((counted, newest))
        except OSError:
            return
