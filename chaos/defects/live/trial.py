"""Trial of a defect on real processes: its round runs on `defective:NAME`, and on the clean broker.

A defect is detected by any violation in the report of the round. Real processes are not deterministic, so a round
without a violation is repeated, up to a limit. A violation of the clean broker is a false alarm: the violation that the
same round shows with the defect is then no evidence that the defect was detected.

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
class LiveTried:
    """Result of one round with one defect, or on the clean broker.

    :ivar target: `defective:NAME`, or the clean broker.
    :ivar violations: violations of the last run; empty if the defect was missed, or if there was no false alarm.
    :ivar rounds: number of times that the round ran.
    :ivar not_run: why the round was not run: a missing capability of this machine, or a cluster that did not start.
    """

    target: str
    violations: tuple[Violation, ...]
    rounds: int
    seconds: float
    not_run: str = ""


class Run(Protocol):
    """A function that runs a round; `run_on` runs it on real processes."""

    def __call__(self, target: str, trial: Trial, run_dir: Path, *, disk: DiskKind | None) -> Report:
        """Run the round on a target with log directories on a disk of this kind. Raises `TargetError`."""
        ...


def required_disk(trial: Trial) -> DiskKind | None:
    """Return the disk on which the round can show its defect; None if any disk is sufficient."""
    cuts_power = any(isinstance(timed.fault, PowerCut) for timed in trial.schedule)
    return DiskKind.FUSE if cuts_power else None


def try_defects(names: Iterable[str], *, rounds_max: int, run: Run = run_on) -> Iterator[LiveTried]:
    """Try each defect by its round, then each of these rounds on the clean broker."""
    names = tuple(names)
    for name in names:
        yield _tried(f"defective:{name}", ROUNDS[name], rounds_max, run)
    for trial in dict.fromkeys(ROUNDS[name] for name in names):
        yield _tried(CLEAN, trial, 1, run)


def reasons_not_to_run(target: str, trial: Trial) -> str:
    """Return the missing capabilities of this machine or the target for a round; empty if there are none."""
    try:
        return remove_unsupported_faults(target, trial, required_disk(trial)).reasons
    except NotInstalledError as error:
        return str(error)


def _tried(target: str, trial: Trial, rounds_max: int, run: Run) -> LiveTried:
    began_s = time.monotonic()
    disk = required_disk(trial)
    lacking = reasons_not_to_run(target, trial)
    violations: tuple[Violation, ...] = ()
    rounds = 0
    while not lacking and not violations and rounds < rounds_max:
        rounds += 1
        try:
            with TemporaryFolder() as directory:
                violations = run(target, trial, Path(directory) / "run", disk=disk).violations
        except TargetError as error:
            lacking = str(error)
    return LiveTried(target, violations, rounds, time.monotonic() - began_s, lacking)
