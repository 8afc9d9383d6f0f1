"""Cluster of processes for tests: `with Processes(directory, roles) as cluster: cluster.address(1)`."""

import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from fixtures.network.loopback import LoopbackBlock
from tests.reference_broker.server.process import ROOT

CLUSTER_ID = "c" * 22
READY_TIMEOUT_S = 60


class Processes:
    """One process per node; the nodes with the controller role are the voters."""

    def __init__(self, directory: Path, roles: Mapping[int, str]) -> None:
        self.directory = directory
        self._roles = roles
        self._processes: dict[int, subprocess.Popen[str]] = {}
        self._block = LoopbackBlock.reserve()

    def __enter__(self) -> Self:
        for node in self._roles:
            self.start(node)
        for node in self._roles:
            self.wait(node)
        return self

    def __exit__(self, *exc_info: object) -> None:
        for process in self._processes.values():
            if process.poll() is None:
                process.kill()
            process.communicate(timeout=20)
        self._block.close()

    def address(self, node: int) -> tuple[str, int]:
        """Return the address of a broker's client listener."""
        return self._block.node(node), self._block.ports.client

    def controller_address(self, node: int) -> str:
        return f"{self._block.node(node)}:{self._block.ports.controller}"

    def start(self, node: int) -> None:
        pipe = subprocess.PIPE
        command = self._command(node, node, self._roles[node], CLUSTER_ID)
        self._processes[node] = subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe, text=True)

    def run_rejected_broker(
        self, address_number: int, node_id: int, cluster_id: str, *arguments: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a broker until it ends by itself.

        :param address_number: number of the loopback address and of the data directory; other processes use neither.
        """
        command = [*self._command(address_number, node_id, "broker", cluster_id), *arguments]
        command.remove("--exit-with-stdin")
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)

    def _command(self, address_number: int, node_id: int, role: str, cluster_id: str) -> list[str]:
        block, ports = self._block, self._block.ports
        listening = {"CLIENT": ports.client, "REPLICATION": ports.replication} if "broker" in role else {}
        listening |= {"CONTROLLER": ports.controller} if "controller" in role else {}
        voters = (voter for voter, roles in self._roles.items() if "controller" in roles)
        properties = {
            "process.roles": role,
            "listeners": ",".join(f"{name}://{block.node(address_number)}:{port}" for name, port in listening.items()),
            "inter.broker.listener.name": "REPLICATION",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": ",".join(f"{voter}@{self.controller_address(voter)}" for voter in voters),
        }
        command = [sys.executable, "-m", "reference_broker.server", "--node-id", str(node_id), "--exit-with-stdin"]
        command += ["--data", str(self.directory / f"node-{address_number}"), "--cluster-id", cluster_id]
        return command + [f"--set={name}={value}" for name, value in properties.items()]

    def wait(self, node: int) -> None:
        """Wait until a node is ready."""
        process = self._processes[node]
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line.startswith("ready "):
            raise AssertionError(process.communicate(timeout=READY_TIMEOUT_S))

    def kill(self, node: int) -> None:
        self._processes[node].kill()
        self._processes[node].communicate(timeout=20)

    def terminate(self, node: int, times: int) -> int:
        """Send SIGTERM several times and return the exit code."""
        process = self._processes[node]
        for _ in range(times):
            process.send_signal(signal.SIGTERM)
            time.sleep(0.1)
        process.communicate(timeout=30)
        return process.returncode

    def stop(self) -> dict[int, tuple[int, str]]:
        """Send SIGTERM to all nodes at once; return exit codes and standard errors."""
        for process in self._processes.values():
            process.send_signal(signal.SIGTERM)
        ends = {node: process.communicate(timeout=30)[1] for node, process in self._processes.items()}
        return {node: (self._processes[node].returncode, errors) for node, errors in ends.items()}
