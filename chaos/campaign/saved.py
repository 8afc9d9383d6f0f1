"""Saved failures: a directory for each failure that a campaign has found.

`failure.json` contains the trial and the other fields of its `Counterexample`. `program.py` runs the trial. Package
`kafkatrial` adds pictures and histories. `kafkatrial simulate` runs all saved failures before any new trial;
`kafkatrial replay` and `kafkatrial chaos --again` run one of them.

The name of the directory consists of the target (unless it is the simulation), the defect (if there is one), the name
of the violation, and a hash of the defect and the trial. A failure that is found again has the same directory.
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
    """A saved failure that cannot be read. The message is one line, with the path."""


def directory_of(root: Path, found: Counterexample) -> Path:
    """Return the directory for a failure."""
    hashed = blake2b(f"{found.defect} {found.trial!r}".encode(), digest_size=4).hexdigest()
    target = "" if found.target == SIMULATION else found.target.replace(":", "-")
    return root / "-".join(filter(None, (target, found.defect, found.name, hashed)))


def save(root: Path, found: Counterexample) -> Path:
    """Write a failure into its directory, and return the directory. Raises `OSError`."""
    directory = directory_of(root, found)
    directory.mkdir(parents=True, exist_ok=True)
    facts = {name: value for name, value in asdict(found).items() if name != "trial"}
    (directory / FILE_NAME).write_text(document(found.trial, facts), encoding="utf-8")
    (directory / PROGRAM_NAME).write_text(saved_program_of(found), encoding="utf-8")
    return directory


def load_failure(directory: Path) -> SavedTrial:
    """Read the failure in a directory. Raises `SavedFailureError`."""
    file = directory / FILE_NAME
    if not file.is_file():
        raise SavedFailureError(f"{directory}: not the directory of a saved failure: it has no {FILE_NAME}")
    try:
        found = load_trial(file)
    except NotATrialError as error:
        raise SavedFailureError(f"{error}; delete its directory") from None
    if found.trial.requirement or not found.name:
        raise SavedFailureError(f"{file}: not a failure saved by simulate or chaos; delete its directory")
    return found


def load_failures(root: Path) -> tuple[SavedTrial, ...]:
    """Read the failures in all subdirectories, ordered by their names. Raises `SavedFailureError`.

    There is none if `root` does not exist.
    """
    return tuple(load_failure(file.parent) for file in sorted(root.glob(f"*/{FILE_NAME}")))
