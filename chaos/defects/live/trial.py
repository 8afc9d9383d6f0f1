"""Whether chaos on real processes catches a defect: its round is run on `defective:NAME`, and on the clean broker too.

What catches it is whatever the report of a round calls a violation, as for any cluster. Real processes do not do the
same twice, so a round is run again where it showed nothing, up to a bound. What the clean broker violates in a round is
a false alarm, and that round proves nothing.

A round with a power cut runs on the FUSE disk, which loses exactly what was not flushed, directory entries among it. A
journalling file system may keep more than it has to, so that a defect would count as missed by chance.
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
from chaos.live.session import fitted, run_on
from chaos.trial import Trial
from fixtures.disk.kinds import DiskKind
from fixtures.faults import PowerCut
from fixtures.targets.target import NotInstalledError, TargetError
from linearizability.temporary_folder import TemporaryFolder

CLEAN: Final = "reference"


@dataclass(frozen=True, slots=True)
class LiveTried:
    """One defect, or the clean broker, in one round.

    :ivar target: `defective:NAME`, or the clean broker.
    :ivar violations: names of all that the last run violated, and the text of the first; empty: missed, or clean.
    :ivar rounds: how many were run.
    :ivar not_run: why it was not run: what this machine lacks, or why a cluster did not start. Empty where it was.
    """

    target: str
    violations: tuple[Violation, ...]
    rounds: int
    seconds: float
    not_run: str = ""


class Run(Protocol):
    """How a round is run; `run_on` is the one on real processes."""

    def __call__(self, target: str, trial: Trial, run_dir: Path, *, disk: DiskKind | None) -> Report:
        """Run the round on a target whose log directories lie on a disk; raises `TargetError`."""
        ...


def required_disk(trial: Trial) -> DiskKind | None:
    """Return the disk on which the round can show its defect; None if any will do."""
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
    """Return what this machine or the target lacks for a round; empty if nothing."""
    try:
        return "; ".join(fitted(target, trial, required_disk(trial)).unsupported.values())
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
