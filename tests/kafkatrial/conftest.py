"""Fixture: a fake target that only records the calls of its methods."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from fixtures.targets.target import Capability, Node


class RecordingLinks:
    """Links that record each cut and heal."""

    def __init__(self, done: list[str]) -> None:
        self._done = done

    @contextmanager
    def cut(self, source: int | str, destination: int) -> Iterator[None]:
        self._done.append(f"cut {source}->{destination}")
        yield
        self._done.append(f"heal {source}->{destination}")


class RecordingTarget:
    """Three nodes that can be killed, paused, restarted and cut off."""

    name = "recording"
    kind = "recording"
    version = "4.3.1"
    capabilities = frozenset({Capability.PROCESS_CONTROL, Capability.LINK_FAULTS})
    nodes = tuple(Node(node, f"127.9.9.{node}", 9092) for node in (1, 2, 3))
    bootstrap_servers = ",".join(f"{node.host}:{node.port}" for node in nodes)

    def __init__(self) -> None:
        self.done: list[str] = []
        self.links = RecordingLinks(self.done)
        self.processes = RecordingProcesses(self)
        self.ended: dict[int, int] = {}
        """Exit statuses of ended processes."""


class RecordingProcesses:
    """Process control that records each action, and keeps the exit statuses of ended processes in the target."""

    def __init__(self, target: RecordingTarget) -> None:
        self._target = target

    def kill(self, node: int) -> None:
        self._target.done.append(f"kill {node}")
        self._target.ended[node] = 137

    def shut_down(self, node: int) -> None:
        self._target.done.append(f"shut down {node}")
        self._target.ended[node] = 0

    def ended(self) -> dict[int, str]:
        return {node: f"last line of {node}" for node in self._target.ended}

    def exit_statuses(self) -> dict[int, int | None]:
        return {**self._target.ended}

    def restart(self, node: int) -> None:
        self._target.done.append(f"restart {node}")
        self._target.ended.pop(node, None)

    @contextmanager
    def pause(self, node: int) -> Iterator[None]:
        self._target.done.append(f"pause {node}")
        yield
        self._target.done.append(f"resume {node}")


@pytest.fixture
def target() -> RecordingTarget:
    return RecordingTarget()
