"""Failures on disk: saved when they are found, run first by the next campaign, and run again on request.

Each has its own directory: `failure.json` has the trial and the facts of its violation, for `kafkatrial replay`,
`kafkatrial chaos --again` and `kafkatrial simulate`; `program.py` runs it; package `kafkatrial` adds pictures and
histories. The directory's name consists of the target (unless it is the simulation), the defect (if there is one), the
name of the violation, and a hash of the defect and the trial. So the same failure is saved only once.
"""

from dataclasses import asdict
from hashlib import blake2b
from pathlib import Path
from typing import Final

from chaos.campaign.counterexample import FILE_NAME, SIMULATION, Counterexample, saved_program_of
from conformance.trial.document import document
from conformance.trial.saved import NotATrialError, SavedTrial, load_trial

PROGRAM_NAME: Final = "program.py"


class SavedFailureError(Exception):
    """Error for a saved failure that cannot be read. The message is one line, with the file's name."""


def directory_of(root: Path, found: Counterexample) -> Path:
    """Return the directory of a failure: the same for the same failure."""
    hashed = blake2b(f"{found.defect} {found.trial!r}".encode(), digest_size=4).hexdigest()
    target = "" if found.target == SIMULATION else found.target.replace(":", "-")
    return root / "-".join(filter(None, (target, found.defect, found.name, hashed)))


def save(root: Path, found: Counterexample) -> Path:
    """Write a failure, or replace it; return its directory. Raises `OSError`."""
    directory = directory_of(root, found)
    directory.mkdir(parents=True, exist_ok=True)
    facts = {name: value for name, value in asdict(found).items() if name != "trial"}
    (directory / FILE_NAME).write_text(document(found.trial, facts), encoding="utf-8")
    (directory / PROGRAM_NAME).write_text(saved_program_of(found), encoding="utf-8")
    return directory


def load_failure(directory: Path) -> SavedTrial:
    """Return the failure that a directory holds. Raises `SavedFailureError`."""
    file = directory / FILE_NAME
    if not file.is_file():
        raise SavedFailureError(f"{directory}: no {FILE_NAME}, so no failure that can be run again")
    try:
        found = load_trial(file)
    except NotATrialError as error:
        raise SavedFailureError(f"{error}; delete its directory") from None
    if found.trial.requirement or not found.name:
        raise SavedFailureError(f"{file}: not a failure of simulate or chaos; delete its directory")
    return found


def load_failures(root: Path) -> tuple[SavedTrial, ...]:
    """Return all failures below a directory, by name; none if it does not exist. Raises `SavedFailureError`."""
    return tuple(load_failure(file.parent) for file in sorted(root.glob(f"*/{FILE_NAME}")))
