"""Requirements as pytest items, judged by one `kafkatrial run` in a child process.

The first item that runs starts the child, with the requirements of all items that were selected; each item then waits
for its own verdict. The child writes its events as lines of JSON to a pipe. It has a separate session, so that a Ctrl-C
reaches it once, through this process.
"""

import json
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from kafkatrial import suite
from kafkatrial.exit_codes import ExitCode

_KAFKATRIAL = suite.command()
_STOP_TIMEOUT_S = 60


class ConformanceRun:
    """The child process, and the verdicts it has sent so far."""

    def __init__(self, options: Sequence[str]) -> None:
        self._options = list(options)
        self._plan = _plan(self._options)
        self._wanted: list[str] = []
        self._child: subprocess.Popen[bytes] | None = None
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115  closed by stop()
        self._changed = threading.Condition()
        self._verdicts: dict[tuple[str, str], dict[str, Any]] = {}
        self._run_dir = ""
        self._ended = False
        self._unknown = 0

    # --- collection

    def collect(self, session: pytest.Session) -> Iterator["RequirementItem"]:
        """Yield an item per requirement and target."""
        parent = ConformanceSuite.from_parent(session, name="conformance", nodeid="conformance")
        for requirement in self._plan["requirements"]:
            for target in self._plan["targets"]:
                yield RequirementItem.from_parent(
                    parent,
                    name=f"{requirement['id']}[{target}]",
                    run=self,
                    requirement=requirement["id"],
                    target=target,
                )

    def keep(self, items: Sequence[pytest.Item]) -> None:
        """Select the requirements of these items for the run."""
        selected = (item.requirement for item in items if isinstance(item, RequirementItem))
        self._wanted = list(dict.fromkeys(selected))

    # --- the child

    def verdict(self, requirement: str, target: str) -> dict[str, Any]:
        """Wait for a verdict; end the session if the child ended without it."""
        self._start()
        with self._changed:
            self._changed.wait_for(lambda: self._ended or (requirement, target) in self._verdicts)
            verdict = self._verdicts.get((requirement, target))
        if verdict is None:
            assert self._child is not None
            code = self._child.wait()
            pytest.exit(self._last_line(code), returncode=code or ExitCode.INTERNAL)
        return verdict

    def _start(self) -> None:
        if self._child is not None:
            return
        receiving, sending = os.pipe()
        options = [*self._options, "--events", str(sending)]
        if "--seed" not in self._options:
            options += ["--seed", str(self._plan["seed"])]
        self._child = subprocess.Popen(
            [*_KAFKATRIAL, "run", *options, *self._wanted],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._errors,
            pass_fds=[sending],
            start_new_session=True,
        )
        os.close(sending)
        threading.Thread(target=self._follow, args=(receiving,), name="kafkatrial events", daemon=True).start()

    def _follow(self, receiving: int) -> None:
        with os.fdopen(receiving, "rb") as lines:
            for line in lines:
                event = json.loads(line)
                with self._changed:
                    if event["event"] == "requirement-judged":
                        self._verdicts[event["requirement"], event["target"]] = event
                    elif event["event"] == "run-started":
                        self._run_dir = event["run_dir"]
                    self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def stop(self) -> None:
        """Wait until the child has stopped its clusters and written its reports.

        If a verdict is missing, the child is interrupted. It is killed after `_STOP_TIMEOUT_S`.
        """
        if self._child is not None:
            is_complete = len(self._verdicts) == len(self._wanted) * len(self._plan["targets"])
            if not is_complete and self._child.poll() is None:
                self._child.send_signal(signal.SIGTERM)
            try:
                self._child.wait(_STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self._child.kill()
                self._child.wait()
        self._errors.close()

    def _last_line(self, code: int) -> str:
        self._errors.seek(0)
        lines = self._errors.read().strip().splitlines()
        return lines[-1] if lines else f"kafkatrial run ended with {code} and printed nothing"

    # --- end of the session

    def count_unknown(self) -> None:
        """Count an item that failed only because its verdict is unknown."""
        self._unknown += 1

    def exit_status(self, status: int, failed: int) -> int:
        """Return INCONCLUSIVE (6) if every failed item only has an unknown verdict; else the given `status`."""
        inconclusive = status == pytest.ExitCode.TESTS_FAILED and failed == self._unknown > 0
        return ExitCode.INCONCLUSIVE if inconclusive else status

    def summary(self) -> Iterator[str]:
        """Yield the lines with the seed and the path of the report, which are printed at the end of the session."""
        if self._child is not None:
            yield f"kafkatrial seed {self._plan['seed']}"
            if self._run_dir:
                yield f"kafkatrial report: {Path(self._run_dir) / 'report.html'}"


def _plan(options: Sequence[str]) -> dict[str, Any]:
    """Return the targets, requirements and seed that `kafkatrial run` selects for the options. Nothing is started."""
    planned = subprocess.run([*_KAFKATRIAL, "run", "--plan", *options], capture_output=True, text=True, check=False)
    if planned.returncode:
        lines = planned.stderr.strip().splitlines() or ["kafkatrial run --plan printed nothing"]
        pytest.exit(lines[-1], returncode=planned.returncode)
    plan: dict[str, Any] = json.loads(planned.stdout)
    return plan


class ConformanceSuite(pytest.Collector):
    """Parent of the items, with the node id `conformance`."""

    def collect(self) -> list[pytest.Item]:
        """Return nothing: the items are appended after those of the user."""
        return []


class RequirementNotMetError(Exception):
    """Error of a requirement that is violated, is unknown, or holds despite an expected violation.

    The message is the finding.
    """


class RequirementItem(pytest.Item):
    """The item `conformance::<requirement id>[target]`."""

    def __init__(self, *, run: ConformanceRun, requirement: str, target: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._run = run
        self.requirement = requirement
        self._target = target
        self.add_marker(pytest.mark.conformance)

    def runtest(self) -> None:
        """Wait for the verdict and report it as an outcome of pytest."""
        verdict = self._run.verdict(self.requirement, self._target)
        match verdict["standing"]:
            case "ok":
                return
            case "not applicable":
                pytest.skip(verdict["reason"])
            case "expected violation":
                pytest.xfail(verdict["reason"])
            case "unknown":
                self._run.count_unknown()
        raise RequirementNotMetError(verdict["text"])

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return only the finding, without a traceback through this file."""
        if isinstance(excinfo.value, RequirementNotMetError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        """Return the requirement as the location, because the item is not in a file of the user."""
        return self.path, None, f"conformance::{self.name}"
