"""Broker process for tests: `with running(directory) as broker: broker.address`."""

import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]


@dataclass
class RunningBroker:
    """A process that has printed `ready`."""

    process: subprocess.Popen[str]
    host: str
    port: int

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    def stop(self) -> tuple[int, str]:
        """Send SIGTERM and return exit code and standard error."""
        self.process.send_signal(signal.SIGTERM)
        _, errors = self.process.communicate(timeout=20)
        return self.process.returncode, errors

    def kill(self) -> None:
        """Send SIGKILL and wait for the end."""
        self.process.kill()
        self.process.communicate(timeout=20)


def command(data: Path, *arguments: str, listener: str = "127.0.0.1:0") -> Sequence[str]:
    fixed = [sys.executable, "-m", "reference_broker.server", "--node-id", "1", "--data", str(data)]
    return [*fixed, "--listener", listener, *arguments]


def run_to_end(data: Path, *arguments: str, listener: str = "127.0.0.1:0") -> subprocess.CompletedProcess[str]:
    """Run a broker that must fail to start, and return its exit code and output."""
    full_command = command(data, *arguments, listener=listener)
    return subprocess.run(full_command, cwd=ROOT, capture_output=True, text=True, timeout=30, check=False)


@contextmanager
def running(data: Path, *arguments: str, listener: str = "127.0.0.1:0") -> Iterator[RunningBroker]:
    """Run a broker; kill it at the end if it still runs."""
    process = subprocess.Popen(
        [*command(data, *arguments, listener=listener), "--exit-with-stdin"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        status, _, address = process.stdout.readline().strip().partition(" ")
        if status != "ready":
            raise AssertionError(process.communicate(timeout=20))
        host, _, port = address.rpartition(":")
        yield RunningBroker(process, host, int(port))
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate(timeout=20)
