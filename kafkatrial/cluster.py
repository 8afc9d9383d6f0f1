"""A cluster for a test in Python: `kafkatrial broker` in a child process, controlled over its control interface.

This module imports little more than the standard library, because it runs in the process of a user's tests.
"""

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Self
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import ProxyHandler, Request, build_opener

from kafkatrial import suite
from kafkatrial.environment import CONTROL_TOKEN

_STOP_TIMEOUT_S = 30
_REQUEST_TIMEOUT_S = 300
"""Long enough for restarted JVMs to serve again."""


class ClusterError(Exception):
    """Error of a cluster that did not start, or did not carry out a request. The message is one line.

    :ivar status: HTTP status of the response of the control interface; None if there was no response.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class ClusterNode:
    """One broker.

    :ivar state: running, paused, killed, shut down, or ended, if its process ended by itself.
    :ivar action: the action in progress on it, or None.
    :ivar exit_status: exit status of its process, as a shell reports it; None while the process runs.
    :ivar reason: the line of its log with the cause, if it ended by itself.
    """

    id: int
    host: str
    port: int
    state: str
    action: str | None
    exit_status: int | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class ClusterPartition:
    """One partition, as the broker with the highest leader epoch describes it.

    :ivar leader: None if there is no leader, or if its process has ended.
    """

    topic: str
    partition: int
    leader: int | None
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class KafkaCluster:
    """A running cluster. As a context manager, it stops the cluster when the context is left.

    A node is given by its id or by its role: `controller`, `leader:TOPIC:PARTITION` or `follower:TOPIC:PARTITION`.
    """

    def __init__(
        self, process: "subprocess.Popen[str]", bootstrap_servers: str, control_url: str, token: str | None = None
    ) -> None:
        self._process = process
        self._opener = build_opener(ProxyHandler({}))
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self.bootstrap_servers = bootstrap_servers
        """`host:port,host:port`, for the setting `bootstrap.servers`."""
        self.control_url = control_url
        """Base address of the control interface."""

    @classmethod
    def start(cls, target: str = "reference", nodes: int | str | None = None) -> Self:
        """Start a cluster and wait until it accepts and returns records.

        Raises:
            ClusterError: it did not start, or is not installed.
        """
        command = [*suite.command(), "broker", "--exit-with-stdin", "--target", target]
        if nodes is not None:
            command += ["--nodes", str(nodes)]
        with tempfile.TemporaryFile("w+") as errors:
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True
            )
            assert process.stdout is not None
            try:
                bootstrap_servers = process.stdout.readline().strip()
                control_url = process.stdout.readline().removeprefix("control ").strip()
            except BaseException:
                _end(process)
                raise
            if not control_url:
                _end(process)
                errors.seek(0)
                lines = errors.read().strip().splitlines() or ["kafkatrial broker ended and printed nothing"]
                raise ClusterError(lines[-1])
        return cls(process, bootstrap_servers, control_url, os.environ.get(CONTROL_TOKEN))

    @property
    def nodes(self) -> tuple[ClusterNode, ...]:
        """The brokers, by ascending id, as they are now."""
        described: Any = self._request("GET", "/cluster")["nodes"]
        return tuple(ClusterNode(**node) for node in described)

    def leader(self, topic: str, partition: int = 0) -> int:
        """Return the id of a partition's leader; wait for an election if need be."""
        return self._node_id(f"leader:{topic}:{partition}")

    def follower(self, topic: str, partition: int = 0) -> int:
        """Return the id of a follower in a partition's ISR, the lowest of several; wait for one if need be."""
        return self._node_id(f"follower:{topic}:{partition}")

    def controller(self) -> int:
        """Return the id of the active controller; wait for an election if need be."""
        return self._node_id("controller")

    def partition(self, topic: str, partition: int = 0) -> ClusterPartition:
        """Describe a partition as it is now."""
        described: Any = self._request("GET", f"/topics/{quote(topic, safe='')}/partitions/{partition}")
        replicas, isr = tuple(described.pop("replicas")), tuple(described.pop("isr"))
        return ClusterPartition(**described, replicas=replicas, isr=isr)

    def kill(self, node: int | str) -> None:
        """Kill a node with SIGKILL."""
        self._act(node, "kill")

    def shut_down(self, node: int | str) -> None:
        """Shut a node down with SIGTERM, so that it hands over its leaderships. Wait until its process has ended."""
        self._act(node, "shutdown")

    def restart(self, node: int) -> None:
        """Start a node that is down, with the same disk; wait until it serves."""
        self._act(node, "restart")

    @contextmanager
    def pause(self, node: int | str) -> Iterator[int]:
        """Stop a node with SIGSTOP, yield its id, and resume it at the end unless its pause has already ended."""
        paused = self._act(node, "pause")
        try:
            yield paused
        finally:
            with _ignore_conflict():
                self._act(paused, "resume")

    @contextmanager
    def cut(self, source: int | str, destination: int | str) -> Iterator[None]:
        """Drop bytes that `source` (a node, or `client`) sends to `destination`, until the context is left."""
        link = self._request("POST", f"/links/{_quoted(source)}/{_quoted(destination)}/cut")
        try:
            yield
        finally:
            with _ignore_conflict():
                self._request("DELETE", f"/links/{link['source']}/{link['destination']}/cut")

    def restore(self) -> None:
        """End every fault and restart every node that is down; return once each replica is in sync.

        Topics, records and groups are kept.
        """
        self._request("POST", "/restore")

    def stop(self) -> None:
        """End the cluster. Idempotent."""
        _end(self._process)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    def _node_id(self, reference: str) -> int:
        node: Any = self._request("GET", f"/nodes/{_quoted(reference)}")["id"]
        return int(node)

    def _act(self, node: int | str, action: str) -> int:
        acted_on: Any = self._request("POST", f"/nodes/{_quoted(node)}/{action}")["node"]
        return int(acted_on)

    def _request(self, method: str, path: str) -> Mapping[str, object]:
        request = Request(self.control_url + path, method=method, headers=self._headers)  # noqa: S310  http on loopback
        try:
            with self._opener.open(request, timeout=_REQUEST_TIMEOUT_S) as response:
                content: Mapping[str, object] = json.load(response)
                return content
        except HTTPError as error:
            with error:
                raise ClusterError(json.load(error)["error"], error.code) from None
        except OSError as error:
            raise ClusterError(f"no response from the cluster's control interface: {error}") from error


def _end(process: "subprocess.Popen[str]") -> None:
    """End the child: it stops its cluster when its standard input is closed, and is killed if that takes too long."""
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(_STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()


def _quoted(node: int | str) -> str:
    return quote(str(node), safe=":")


@contextmanager
def _ignore_conflict() -> Iterator[None]:
    """Ignore the status 409, which means that the fault ended earlier: its node was killed, or `restore` ended it."""
    try:
        yield
    except ClusterError as error:
        if error.status != HTTPStatus.CONFLICT:
            raise
