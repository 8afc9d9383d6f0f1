"""Failures on disk: saved where they are found, and run again first by the next campaign.

A directory for each: `failure.json` with the trial, for `kafkatrial replay`; `program.py`; and what else the front door
puts there. Its name consists of the defect, what is violated, and a hash of the trial, so that a failure is saved
once.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Final

from chaos.simulation.counterexample import Counterexample, program_of
from chaos.trial.saved import NotATrialError, load_trial
from chaos.trial.trial import Trial
from conformance.trial_document import document

FILE_NAME: Final = "failure.json"
PROGRAM_NAME: Final = "program.py"


class SavedFailureError(Exception):
    """A saved failure cannot be read. The message is one line, with the file's name."""


@dataclass(frozen=True, slots=True)
class Saved:
    """A failure that was saved: a trial, what it violated, and with which defect (empty: none)."""

    directory: Path
    trial: Trial
    name: str
    defect: str


def save(root: Path, found: Counterexample) -> Path:
    """Write a failure, anew where it is there; its directory. Raises `OSError`."""
    source = repr(found.trial)
    hashed = blake2b(f"{found.defect} {source}".encode(), digest_size=4).hexdigest()
    directory = root / "-".join(filter(None, (found.defect, found.name, hashed)))
    directory.mkdir(parents=True, exist_ok=True)
    facts = {
        "name": found.name,
        "text": found.text,
        "defect": found.defect,
        "seed": found.seed,
        "at_ms": found.at_ms,
        "digest": found.digest,
        "is_confirmed": found.is_confirmed,
    }
    (directory / FILE_NAME).write_text(document(found.trial, facts), encoding="utf-8")
    (directory / PROGRAM_NAME).write_text(program_of(found), encoding="utf-8")
    return directory


def load_saved(root: Path) -> tuple[Saved, ...]:
    """All that are saved below a directory, by name; none where it does not exist.

    Raises:
        SavedFailureError: one cannot be read, or is of a version that has other trials.
    """
    return tuple(_loaded(root))


def _loaded(root: Path) -> Iterator[Saved]:
    for file in sorted(root.glob(f"*/{FILE_NAME}")):
        try:
            found = load_trial(file)
        except NotATrialError as error:
            raise SavedFailureError(f"{error}; delete its directory") from None
        if not isinstance(found.trial, Trial) or not found.name:
            raise SavedFailureError(f"{file}: not a failure of a simulation; delete its directory")
        yield Saved(file.parent, found.trial, found.name, found.defect)
