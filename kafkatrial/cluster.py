"""A cluster in a child process, driven over its control interface: `kafkatrial broker` for a test in Python.

Imports nothing but the standard library, because it lives in the process of a user's tests.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self
from urllib.error import HTTPError
from urllib.request import ProxyHandler, Request, build_opener

_STOP_TIMEOUT_S = 30
_REQUEST_TIMEOUT_S = 120
"""A restarted JVM takes a while to serve."""


class ClusterError(Exception):
    """The cluster did not start, or refused what it was asked. The message is one line."""


@dataclass(frozen=True, slots=True)
class ClusterNode:
    """One broker. `state`: running, paused, killed or shut down."""

    id: int
    host: str
    port: int
    state: str


class KafkaCluster:
    """A running cluster. A context manager: leaving it stops the cluster."""

    def __init__(self, process: "subprocess.Popen[str]", bootstrap_servers: str, control_url: str) -> None:
        self._process = process
        self._opener = build_opener(ProxyHandler({}))
        self.bootstrap_servers = bootstrap_servers
        """`host:port,host:port`, for the setting `bootstrap.servers`."""
        self.control_url = control_url
        """Base address of the control interface."""

    @classmethod
    def start(cls, target: str = "reference", nodes: int | str | None = None) -> Self:
        """Start a cluster and wait until it takes and returns records.

        Raises:
            ClusterError: it did not start, or is not installed.
        """
        command = [sys.executable, "-P", "-m", "kafkatrial", "broker", "--exit-with-stdin", "--target", target]
        if nodes is not None:
            command += ["--nodes", str(nodes)]
        with tempfile.TemporaryFile("w+") as errors:
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True
            )
            assert process.stdout is not None
            bootstrap_servers = process.stdout.readline().strip()
            control_url = process.stdout.readline().removeprefix("control ").strip()
            if not control_url:
                process.communicate(timeout=_STOP_TIMEOUT_S)
                errors.seek(0)
                lines = errors.read().strip().splitlines() or ["kafkatrial broker ended and said nothing"]
                raise ClusterError(lines[-1])
        return cls(process, bootstrap_servers, control_url)

    @property
    def nodes(self) -> tuple[ClusterNode, ...]:
        """The brokers, by ascending id, as they are now."""
        described: Any = self._ask("GET", "/cluster")["nodes"]
        return tuple(ClusterNode(**node) for node in described)

    def kill(self, node: int) -> None:
        """SIGKILL."""
        self._ask("POST", f"/nodes/{node}/kill")

    def shut_down(self, node: int) -> None:
        """SIGTERM: the node hands over what it leads; returns when its process has ended."""
        self._ask("POST", f"/nodes/{node}/shutdown")

    def restart(self, node: int) -> None:
        """Start a node that was killed or shut down, with the same disk; returns once it serves."""
        self._ask("POST", f"/nodes/{node}/restart")

    @contextmanager
    def pause(self, node: int) -> Iterator[None]:
        """SIGSTOP inside the context, SIGCONT when it is left."""
        self._ask("POST", f"/nodes/{node}/pause")
        try:
            yield
        finally:
            self._ask("POST", f"/nodes/{node}/resume")

    @contextmanager
    def cut(self, source: int | str, destination: int) -> Iterator[None]:
        """Black-hole what `source` (a node id, or `client`) sends to `destination`, inside the context."""
        self._ask("POST", f"/links/{source}/{destination}/cut")
        try:
            yield
        finally:
            self._ask("DELETE", f"/links/{source}/{destination}/cut")

    def stop(self) -> None:
        """End the cluster. Idempotent."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    def _ask(self, method: str, path: str) -> Mapping[str, object]:
        request = Request(self.control_url + path, method=method)  # noqa: S310  always http on loopback
        try:
            with self._opener.open(request, timeout=_REQUEST_TIMEOUT_S) as response:
                answer: Mapping[str, object] = json.load(response)
                return answer
        except HTTPError as error:
            with error:
                raise ClusterError(json.load(error)["error"]) from None
        except OSError as error:
            raise ClusterError(f"the cluster's control interface does not answer: {error}") from error
