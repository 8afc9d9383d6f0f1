"""Failures on disk: saved where they are found, and run again first by the next campaign.

A directory for each: `failure.json` with the script as its source, `program.py`, and what else the front door puts
there. Its name tells the defect, what is violated, and the script by its hash, so that the same failure is saved once.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

from chaos.simulation.counterexample import Counterexample, program_of
from chaos.simulation.script import Script
from chaos.simulation.source import parsed
from linearizability.history.errors import HistoryError
from linearizability.history.files import read_bounded

FILE_NAME: Final = "failure.json"
PROGRAM_NAME: Final = "program.py"
_FORMAT: Final = 1


class SavedFailureError(Exception):
    """A saved failure cannot be read. The message is one line, with the file's name."""


@dataclass(frozen=True, slots=True)
class Saved:
    """A failure that was saved: a script, what it violated, and with which defect (empty: none)."""

    directory: Path
    script: Script
    name: str
    defect: str


def save(root: Path, found: Counterexample) -> Path:
    """Write a failure, anew where it is there; its directory. Raises `OSError`."""
    source = repr(found.script)
    hashed = blake2b(f"{found.defect} {source}".encode(), digest_size=4).hexdigest()
    directory = root / "-".join(filter(None, (found.defect, found.name, hashed)))
    directory.mkdir(parents=True, exist_ok=True)
    facts = {
        "format": _FORMAT,
        "name": found.name,
        "text": found.text,
        "defect": found.defect,
        "seed": found.seed,
        "at_ms": found.at_ms,
        "digest": found.digest,
        "is_confirmed": found.is_confirmed,
        "script": source,
    }
    (directory / FILE_NAME).write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
    (directory / PROGRAM_NAME).write_text(program_of(found), encoding="utf-8")
    return directory


def load_saved(root: Path) -> tuple[Saved, ...]:
    """All that are saved below a directory, by name; none where it does not exist.

    Raises:
        SavedFailureError: one cannot be read, or is of a version that has other scripts.
    """
    return tuple(_loaded(root))


def _loaded(root: Path) -> Iterator[Saved]:
    for file in sorted(root.glob(f"*/{FILE_NAME}")):
        try:
            facts: Any = json.loads(read_bounded(file))
            yield Saved(file.parent, parsed(facts["script"]), facts["name"], facts["defect"])
        except (HistoryError, OSError, ValueError, RecursionError, TypeError, KeyError) as error:
            raise SavedFailureError(
                f"{file}: not a failure of this version of kafkatrial ({error}); delete its directory"
            ) from None
