"""A round that showed something, kept: a program to run it again, and what it was found with.

A directory for each: `failure.json` with the trial, for `kafkatrial replay`; `program.py` for people; `run/` with the
history of the smallest round that showed it. Running it again means running the program's own round, so that one that a
person has changed counts.
"""

import runpy
import sys
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from textwrap import fill
from typing import Any, Final

from chaos.live.findings import FINDINGS
from chaos.live.report import Report
from chaos.trial import Trial
from chaos.trial.source import printed
from conformance.trial_document import document
from linearizability.printable import printable
from linearizability.temporary_folder import TemporaryFolder

FILE_NAME: Final = "failure.json"
PROGRAM_NAME: Final = "program.py"
_WIDTH: Final = 118


class NotAFailureError(Exception):
    """A directory holds no failure that can be run again. The message is one line."""


@dataclass(frozen=True, slots=True)
class Failure:
    """What was found.

    :ivar trial: the smallest that showed it.
    :ivar name: of what it shows: a finding, an anomaly, or what else a report calls a violation.
    :ivar runs: how many rounds shrinking took.
    :ivar is_confirmed: the smallest has shown it twice; else it is flaky, and kept all the same. Null: nobody tried.
    """

    target: str
    trial: Trial
    name: str
    text: str
    runs: int = 0
    is_confirmed: bool | None = None

    @property
    def directory_name(self) -> str:
        """The same for the same failure."""
        hashed = blake2b(repr(self.trial).encode(), digest_size=4).hexdigest()
        return f"{self.target.replace(':', '-')}-{self.name}-{hashed}"


_PROGRAM: Final = '''\
"""{title}

{story}
"""

import kafkatrial.suite

kafkatrial.suite.activate()

from fixtures.faults import *
from chaos.live.failure import run_program
from chaos.trial import *

TARGET = {target!r}
NAME = {name!r}
ROUND = {round}

if __name__ == "__main__":
    raise SystemExit(run_program(ROUND, NAME, TARGET))
'''


_STANDINGS: Final = {
    True: "It has shown it twice.",
    False: "It has not shown it a second time: it is flaky.",
    None: "It has run once.",
}


def program_of(failure: Failure) -> str:
    """The source of a program that runs the round, says what happened, and exits 1 where it shows the same."""
    found = f"Found with seed {failure.trial.seed}, shrunk by {failure.runs} runs. {_STANDINGS[failure.is_confirmed]}"
    story = [failure.text, found]
    return _PROGRAM.format(
        title=f"{failure.name} on {failure.target}.",
        story="\n\n".join(fill(_plain(paragraph), _WIDTH) for paragraph in story),
        target=failure.target,
        name=failure.name,
        round=printed(failure.trial, used=len("ROUND = ")),
    )


def _plain(text: str) -> str:
    """What can stand in a docstring."""
    return text.replace("\\", "\\\\").replace('"""', "'''")


def save(directory: Path, failure: Failure) -> None:
    """Write a failure. Raises `OSError`."""
    directory.mkdir(parents=True, exist_ok=True)
    facts = {
        "target": failure.target,
        "name": failure.name,
        "text": failure.text,
        "seed": failure.trial.seed,
        "runs": failure.runs,
        "is_confirmed": failure.is_confirmed,
    }
    (directory / FILE_NAME).write_text(document(failure.trial, facts), encoding="utf-8")
    (directory / PROGRAM_NAME).write_text(program_of(failure), encoding="utf-8")


def load(directory: Path) -> Failure:
    """A failure as its program has it. Raises `NotAFailureError`."""
    program = directory / PROGRAM_NAME
    if not program.is_file():
        raise NotAFailureError(f"{directory}: no {PROGRAM_NAME}, so no failure that can be run again")
    try:
        names: dict[str, Any] = runpy.run_path(str(program))
        return Failure(names["TARGET"], names["ROUND"], names["NAME"], "")
    except Exception as error:  # noqa: BLE001  whatever a program that somebody has changed may raise
        raise NotAFailureError(f"{program}: {type(error).__name__}: {error}") from None


def run_program(trial: Trial, name: str, target: str) -> int:
    """Run a round and say what happened; the exit code: 0, or 1 where it shows what it was kept for."""
    from chaos.live.session import run_on

    with TemporaryFolder() as directory:
        report = run_on(target, trial, Path(directory) / "run")
    sys.stdout.write(f"{printable(told(report))}\n")
    return int(shows(report, name))


def shows(report: Report, name: str) -> bool:
    """Whether a round has shown a finding or a violation of that name."""
    if name in FINDINGS:
        return FINDINGS[name].shows(report)
    return any(name == violation.name for violation in report.violations)


def text_of(report: Report, name: str) -> str:
    """What a round has shown of that name, in a sentence."""
    if name in FINDINGS:
        return FINDINGS[name].text
    return next((violation.text for violation in report.violations if violation.name == name), name)


def told(report: Report) -> str:
    """What happened, some lines."""
    found = [f"violation {violation.name}: {violation.text}" for violation in report.violations] or ["no violation"]
    found += [f"unknown: {reason}" for reason in report.unknown]
    return "\n".join((*found, *summary_of(report)))


def summary_of(report: Report) -> list[str]:
    """Return the lines that are beside the verdict."""
    found = [f"permitted: {name} ({count})" for name, count in report.permitted.items()]
    found += [f"records of acks={'all' if acks < 0 else acks} lost: {lost:,}" for acks, lost in report.lost.items()]
    recovery_s = report.worked.recovery_s
    recovered = "not recovered" if recovery_s is None else f"recovered {recovery_s:.1f} s after the heal"
    found.append(
        f"{report.acknowledged:,} records acknowledged, at most {report.silence_max_s:.1f} s without one, {recovered}"
    )
    return found
