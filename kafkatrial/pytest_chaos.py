"""Findings and a drawn round as pytest items: `pytest -m chaos --target apache-kafka --seed 7`.

Each item is one `kafkatrial chaos` in a child process of its own, so that an item that is interrupted heals and stops
its cluster by itself, and the items need nothing of each other.
"""

import os
import re
import secrets
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
"""By its path: what is imported here is imported into a user's own tests, and they may have `fixtures` of their own."""
_TIMEOUT_S = 3600.0
"""An item takes a minute or two."""
_STOP_TIMEOUT_S = 120.0
_SEED_BITS = 32
_TRACEBACK = re.compile(r"\(traceback in (.+)\)$")
_TAIL_LINES = 40


def draw_seed() -> str:
    """Return a seed for the drawn rounds of a session that was given none."""
    return str(secrets.randbits(_SEED_BITS))


class ChaosSession:
    """The items of one pytest session. `seed` is that of the drawn rounds."""

    def __init__(self, targets: Sequence[str], seed: str) -> None:
        self._targets = tuple(targets) or ("reference",)
        self._seed = seed

    def collect(self, session: pytest.Session) -> Iterator["ChaosItem"]:
        """An item per finding and target, and one for a drawn round on each."""
        suite = ChaosSuite.from_parent(session, name="chaos", nodeid="chaos")
        listed = _run("chaos", "--show", "list")
        if listed.code:
            pytest.exit(listed.said.strip() or "kafkatrial chaos said nothing", returncode=listed.code)
        names = [line.split()[0] for line in listed.said.splitlines() if line.strip()]
        for target in self._targets:
            for name in names:
                words = ("--target", target, "--show", name)
                yield ChaosItem.from_parent(suite, name=f"{name}[{target}]", words=words)
            drawn = ("--target", target, "--seed", self._seed, "--rounds", "2", "--shrink-minutes", "0")
            yield ChaosItem.from_parent(suite, name=f"drawn-rounds[{target}]", words=drawn)


class ChaosSuite(pytest.Collector):
    """Parent of the items, with the node id `chaos`."""

    def collect(self) -> list[pytest.Item]:
        """Nothing: the items are appended once the user's own are collected."""
        return []


class NotShownError(Exception):
    """The command failed. The message is what it said last."""


class ChaosItem(pytest.Item):
    """`chaos::<finding>[target]`."""

    def __init__(self, *, words: Sequence[str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._words = words
        self.add_marker(pytest.mark.chaos)

    def runtest(self) -> None:
        """Run the command and turn its exit code into pytest's words."""
        ran = _run("chaos", *self._words)
        said = ran.said.strip().splitlines() or ["it said nothing"]
        if ran.code == ExitCode.NOTHING_RAN:
            pytest.skip(said[-1])
        if ran.code != ExitCode.OK:
            command = " ".join(("kafkatrial", "chaos", *self._words))
            lines = [f"{command} exited with {ran.code}", *said[-_TAIL_LINES:], *_traceback_named(said[-_TAIL_LINES:])]
            raise NotShownError("\n".join(lines))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """What the command said alone: a traceback through this file helps nobody."""
        if isinstance(excinfo.value, NotShownError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        """No file of the user's: the finding is the place."""
        return self.path, None, f"chaos::{self.name}"


@dataclass(frozen=True, slots=True)
class _Ran:
    """A command of ours that has ended: its exit code, and all that it said."""

    code: int
    said: str


def _traceback_named(said: Sequence[str]) -> Iterator[str]:
    """The lines of a traceback that a command kept in a file: in CI that file is gone with the machine."""
    for line in said:
        if named := _TRACEBACK.search(line):
            with suppress(OSError):
                yield from Path(named[1]).read_text(errors="replace").splitlines()


def _run(*words: str) -> _Ran:
    """A command of ours, which ends with this process, however that ends.

    Interrupted, it heals and stops before this goes on; where this process is killed, it is killed as well, and those
    that watch it clean up.
    """
    with TemporaryFile() as output:
        with _guarded((*_KAFKATRIAL, *words), output) as guard:
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
    """A command below the suite's guard, which says its pid first, and kills it once our end of its input is closed."""
    return subprocess.Popen(
        script_command(_GUARD, *command),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=output,
        start_new_session=True,
    )


def _end(guard: "subprocess.Popen[bytes]", pid: int) -> None:
    """Let the command heal and stop."""
    with suppress(ProcessLookupError, subprocess.TimeoutExpired):
        if guard.poll() is None:
            os.killpg(pid, signal.SIGTERM)
            guard.wait(_STOP_TIMEOUT_S)
