"""Findings and a drawn round as pytest items: `pytest -m chaos --target apache-kafka --seed 7`.

Each item is one `kafkatrial chaos` in a child process of its own, so that an item that is interrupted heals and stops
its cluster by itself, and the items need nothing of each other.
"""

import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from kafkatrial.exit_codes import ExitCode

_KAFKATRIAL = (sys.executable, "-P", "-m", "kafkatrial")
_STOP_TIMEOUT_S = 120
_SEED_BITS = 32
_TAIL_LINES = 40


class ChaosSession:
    """The items of one pytest session. `seed` is that of the drawn rounds."""

    def __init__(self, targets: Sequence[str], seed: str | None) -> None:
        self._targets = tuple(targets) or ("reference",)
        self.seed = str(secrets.randbits(_SEED_BITS)) if seed is None else seed

    def collect(self, session: pytest.Session) -> Iterator["ChaosItem"]:
        """An item per finding and target, and one for a drawn round on each."""
        suite = ChaosSuite.from_parent(session, name="chaos", nodeid="chaos")
        listed = _run("chaos", "--show", "list")
        if listed.returncode:
            pytest.exit(listed.stdout.strip() or "kafkatrial chaos said nothing", returncode=listed.returncode)
        names = [line.split()[0] for line in listed.stdout.splitlines() if line.strip()]
        for target in self._targets:
            for name in names:
                words = ("--target", target, "--show", name)
                yield ChaosItem.from_parent(suite, name=f"{name}[{target}]", words=words)
            drawn = ("--target", target, "--seed", self.seed, "--rounds", "2", "--shrink-minutes", "0")
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
        said = ran.stdout.strip().splitlines() or ["it said nothing"]
        if ran.returncode == ExitCode.NOTHING_RAN:
            pytest.skip(said[-1])
        if ran.returncode != ExitCode.OK:
            command = " ".join(("kafkatrial", "chaos", *self._words))
            raise NotShownError("\n".join([f"{command} exited with {ran.returncode}", *said[-_TAIL_LINES:]]))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """What the command said alone: a traceback through this file helps nobody."""
        if isinstance(excinfo.value, NotShownError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        """No file of the user's: the finding is the place."""
        return self.path, None, f"chaos::{self.name}"


def _run(*words: str) -> subprocess.CompletedProcess[str]:
    """A command of ours in a session of its own; interrupted, it heals and stops before this goes on."""
    child = subprocess.Popen(
        [*_KAFKATRIAL, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        said, _ = child.communicate()
    except BaseException:
        child.send_signal(signal.SIGTERM)
        child.communicate(timeout=_STOP_TIMEOUT_S)
        raise
    return subprocess.CompletedProcess(child.args, child.returncode, said)
