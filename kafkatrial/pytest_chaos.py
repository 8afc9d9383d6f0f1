"""Findings and generated rounds as pytest items: `pytest -m chaos --target apache-kafka --seed 7`.

Each item is one `kafkatrial chaos` in a separate child process, so that an interrupted item heals and stops its cluster
on its own, and items do not depend on each other.
"""

import os
import re
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, BinaryIO

import pytest

from kafkatrial import suite
from kafkatrial.exit_codes import ExitCode
from linearizability.isolated_python import script_command

_KAFKATRIAL = suite.command()
_GUARD = suite.directory() / "fixtures" / "targets" / "guard.py"
"""Path instead of a module name, because the tests of a user may have another package `fixtures`."""
_TIMEOUT_S = 3600.0
"""Timeout of an item, which usually takes a minute or two."""
_STOP_TIMEOUT_S = 120.0
_TRACEBACK = re.compile(r"\(traceback in (.+)\)$")
_TAIL_LINES = 40


class ChaosSession:
    """The items of one pytest session. `seed` is that of the generated rounds."""

    def __init__(self, targets: Sequence[str], seed: str) -> None:
        self._targets = tuple(targets) or ("reference",)
        self._seed = seed

    def collect(self, session: pytest.Session) -> Iterator["ChaosItem"]:
        """Yield an item per finding and target, and one for the generated rounds on each target."""
        parent = ChaosSuite.from_parent(session, name="chaos", nodeid="chaos")
        listed = _run("chaos", "--show", "list")
        if listed.code:
            pytest.exit(listed.output.strip() or "kafkatrial chaos printed nothing", returncode=listed.code)
        names = [line.split()[0] for line in listed.output.splitlines() if line.strip()]
        for target in self._targets:
            for name in names:
                arguments = ("--target", target, "--show", name)
                yield ChaosItem.from_parent(parent, name=f"{name}[{target}]", arguments=arguments)
            generated = ("--target", target, "--seed", self._seed, "--rounds", "2", "--shrink-minutes", "0")
            yield ChaosItem.from_parent(parent, name=f"generated-rounds[{target}]", arguments=generated)


class ChaosSuite(pytest.Collector):
    """Parent of the items, with the node id `chaos`."""

    def collect(self) -> list[pytest.Item]:
        """Return nothing: the items are appended after those of the user."""
        return []


class ChaosCommandError(Exception):
    """Error of a command that failed. The message has the end of its output."""


class ChaosItem(pytest.Item):
    """The item `chaos::<finding>[target]` or `chaos::generated-rounds[target]`."""

    def __init__(self, *, arguments: Sequence[str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._arguments = arguments
        self.add_marker(pytest.mark.chaos)

    def runtest(self) -> None:
        """Run the command and report its exit code as an outcome of pytest."""
        ran = _run("chaos", *self._arguments)
        output = ran.output.strip().splitlines() or ["the command printed nothing"]
        if ran.code == ExitCode.NOTHING_RAN:
            pytest.skip(output[-1])
        if ran.code != ExitCode.OK:
            command = " ".join(("kafkatrial", "chaos", *self._arguments))
            tail = output[-_TAIL_LINES:]
            raise ChaosCommandError("\n".join((f"{command} exited with {ran.code}", *tail, *_traceback_named_in(tail))))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return only the output of the command, without a traceback through this file."""
        if isinstance(excinfo.value, ChaosCommandError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        """Return the item's name as the location, because the item is not in a file of the user."""
        return self.path, None, f"chaos::{self.name}"


@dataclass(frozen=True, slots=True)
class _Ran:
    """A finished command: its exit code, and its output with standard error."""

    code: int
    output: str


def _traceback_named_in(output: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a traceback file that the output names, because in CI the file is deleted with the machine."""
    for line in output:
        if named := _TRACEBACK.search(line):
            with suppress(OSError):
                yield from Path(named[1]).read_text(errors="replace").splitlines()


def _run(*arguments: str) -> _Ran:
    """Run a kafkatrial command, which cannot outlive this process.

    If this process is interrupted, the command heals and stops its cluster first. If this process is killed, the
    command is killed as well, and its guards and cleanup processes end what it started.
    """
    with TemporaryFile() as output:
        with _guarded((*_KAFKATRIAL, *arguments), output) as guard:
            assert guard.stdout is not None
            pid, late = int(guard.stdout.readline()), ""
            try:
                guard.wait(_TIMEOUT_S)
            except BaseException as reason:
                _end(guard, pid)
                if not isinstance(reason, subprocess.TimeoutExpired):
                    raise
                late = f"\nended: it took more than {_TIMEOUT_S:.0f} s"
        output.seek(0)
        return _Ran(guard.returncode, output.read().decode(errors="replace") + late)


def _guarded(command: Sequence[str], output: BinaryIO) -> "subprocess.Popen[bytes]":
    """Start a command under the guard (`guard.py`).

    The guard first writes the command's pid. It kills the command when the guard's standard input is closed.
    """
    return subprocess.Popen(
        script_command(_GUARD, *command),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=output,
        start_new_session=True,
    )


def _end(guard: "subprocess.Popen[bytes]", pid: int) -> None:
    """Interrupt the command, and wait until it has healed and stopped its cluster, at most for `_STOP_TIMEOUT_S`."""
    with suppress(ProcessLookupError, subprocess.TimeoutExpired):
        if guard.poll() is None:
            os.killpg(pid, signal.SIGTERM)
            guard.wait(_STOP_TIMEOUT_S)
