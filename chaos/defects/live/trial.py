"""Trial of a defect on real processes: the round saved for it runs on `defective:NAME`, and on the clean broker.

A defect is detected if the report of the round has a violation. Real processes are not deterministic, so a round
without a violation is repeated, up to a limit. A violation on the clean broker is a false alarm. It means that the
round shows a violation even without the defect, and so proves nothing about the defect.

A round with a power cut runs on the FUSE disk, which loses exactly the bytes and directory entries that were not
flushed. A journalling file system may keep more, so that a defect could be missed by chance.
"""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

import chaos.targets  # noqa: F401  registers the target `defective`
from chaos.campaign.violation import Violation
from chaos.defects.live.rounds import ROUNDS
from chaos.live.report import Report
from chaos.live.session import remove_unsupported_faults, run_on
from conformance.trial.trial import Trial
from fixtures.disk.kinds import DiskKind
from fixtures.faults import PowerCut
from fixtures.targets.target import NotInstalledError, TargetError
from linearizability.temporary_folder import TemporaryFolder

CLEAN: Final = "reference"


@dataclass(frozen=True, slots=True)
class LiveTrialResult:
    """Result of one round with one defect, or on the clean broker.

    :ivar target: `defective:NAME`, or `CLEAN`.
    :ivar violations: violations of the last run. If there are none, the defect was missed, or the clean broker passed.
    :ivar rounds: number of times that the round was started.
    :ivar not_run: reason if the round could not run: a missing capability of this machine, or a cluster that did not
        start.
    """

    target: str
    violations: tuple[Violation, ...]
    rounds: int
    seconds: float
    not_run: str = ""


class RunRound(Protocol):
    """A function that runs a round, such as `run_on`; tests replace it."""

    def __call__(self, target: str, trial: Trial, run_dir: Path, *, disk: DiskKind | None) -> Report:
        """Run the round on a target whose log directories are on a disk of this kind. Raises `TargetError`."""
        ...


def required_disk(trial: Trial) -> DiskKind | None:
    """Return the kind of disk that the round needs to show its defect; None if any disk is sufficient."""
    cuts_power = any(isinstance(timed.fault, PowerCut) for timed in trial.schedule)
    return DiskKind.FUSE if cuts_power else None


def try_defects(names: Iterable[str], *, rounds_max: int, run: RunRound = run_on) -> Iterator[LiveTrialResult]:
    """Run the round of each defect with the defect, then each of these rounds once on the clean broker."""
    names = tuple(names)
    for name in names:
        yield _try_round(f"defective:{name}", ROUNDS[name], rounds_max, run)
    for trial in dict.fromkeys(ROUNDS[name] for name in names):
        yield _try_round(CLEAN, trial, 1, run)


def reasons_not_to_run(target: str, trial: Trial) -> str:
    """Return what this machine or the target lacks for a round, as text; empty if it lacks nothing."""
    try:
        return remove_unsupported_faults(target, trial, required_disk(trial)).reasons
    except NotInstalledError as error:
        return str(error)


def _try_round(target: str, trial: Trial, rounds_max: int, run: RunRound) -> LiveTrialResult:
    """Run a round until it has a violation or cannot run, at most `rounds_max` times."""
    began_s = time.monotonic()
    disk = required_disk(trial)
    not_run = reasons_not_to_run(target, trial)
    violations: tuple[Violation, ...] = ()
    rounds = 0
    while not not_run and not violations and rounds < rounds_max:
        rounds += 1
        try:
            with TemporaryFolder() as directory:
                violations = run(target, trial, Path(directory) / "run", disk=disk).violations
        except TargetError as error:
            not_run = str(error)
    return LiveTrialResult(target, violations, rounds, time.monotonic() - began_s, not_run)
