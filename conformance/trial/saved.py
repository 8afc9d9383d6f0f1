"""Saved trials: the JSON files that simulation, chaos and failed requirements leave, and `kafkatrial replay` runs."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from conformance.trial.document import trial_of
from conformance.trial.limits import check_limits
from conformance.trial.trial import Trial
from conformance.value_json import NotAValueError
from linearizability.history.errors import HistoryError
from linearizability.history.files import read_bounded

_DIGITS_MAX: Final = 100
"""Limit for the digits of an integer, more than any field accepts."""


class NotATrialError(Exception):
    """File that this version cannot read as a saved trial. The message is one line, with the file's name."""


@dataclass(frozen=True, slots=True)
class SavedTrial:
    """A trial from a file.

    :ivar name: name of the violation for which it was saved; empty if the file has none.
    :ivar defect: defect that was seeded into the reference broker; empty if there was none.
    :ivar target: target with the violation; empty if the file has none.
    """

    trial: Trial
    name: str = ""
    defect: str = ""
    target: str = ""
    file: Path = Path()

    @property
    def directory(self) -> Path:
        """The directory of the file."""
        return self.file.parent


def _integer(text: str) -> int | float:
    """Return an integer of JSON; for more digits than `_DIGITS_MAX` a float, which no field accepts."""
    return int(text) if len(text) <= _DIGITS_MAX else float(text)


def load_trial(file: Path) -> SavedTrial:
    """Read a saved trial. Raises `NotATrialError`."""
    try:
        found: Any = json.loads(read_bounded(file), parse_int=_integer)
        trial = trial_of(found, Trial)
        name, defect, target = facts = [found.get(field) or "" for field in ("name", "defect", "target")]
        if not all(isinstance(fact, str) for fact in facts):
            raise NotAValueError("name, defect and target of a saved trial are strings")
        check_limits(trial)
    except HistoryError as error:  # with the file's name
        raise NotATrialError(str(error)) from None
    except (UnicodeDecodeError, json.JSONDecodeError):
        raise NotATrialError(f"{file}: not a saved trial: it is not JSON") from None
    except RecursionError:
        raise NotATrialError(f"{file}: not a saved trial: its arrays or objects are nested too deeply") from None
    except ValueError as error:
        raise NotATrialError(f"{file}: {error}") from None
    return SavedTrial(trial, name, defect, target, file)
