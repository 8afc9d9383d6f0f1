"""Known and expected violations, so that only new ones fail a run.

A target has one TOML file, the first of these that is given or exists:
- the file that the user names with `--expectations`;
- `expectations/<name>.toml` beside the TOML file that defines how the target starts (`[targets.<name>]`);
- `fixtures/data/expectations/<kind>-<version>.toml`, the suite's own file for this version of a kind of target;
- `fixtures/data/expectations/<kind>.toml`, the suite's own file for this kind of target.

An entry of such a file:

```toml
[[violation]]
requirement = "produce/duplicate-is-acknowledged-once"
reason = "idempotence is not implemented yet"
link = "https://example.org/issues/7"
```

The link may be left out. An expected violation that does not occur fails the run, too: the file is out of date.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from linearizability.history.errors import HistoryError
from linearizability.history.files import read_bounded

_DIRECTORY: Final = Path(__file__).parent.parent / "fixtures" / "data" / "expectations"
_REQUIRED: Final = ("requirement", "reason")
_KEYS: Final = (*_REQUIRED, "link")


class ExpectationsError(ValueError):
    """A file of expectations that cannot be used. The message is one line that names the file and the entry."""


@dataclass(frozen=True, slots=True)
class ExpectedViolation:
    """A known violation of a requirement: its reason, and a link to its issue."""

    requirement: str
    reason: str
    link: str = ""


def load_expectations(path: Path) -> Mapping[str, ExpectedViolation]:
    """Return the expected violations of a file, by requirement id. Raises `ExpectationsError`."""
    return parse_expectations(read_expectations(path), path)


def read_expectations(path: Path) -> str:
    """Return the text of a file. Raises `ExpectationsError`."""
    try:
        return read_bounded(path).decode()
    except HistoryError as error:
        raise ExpectationsError(f"cannot read the expectations {error}") from error
    except UnicodeDecodeError as error:
        raise ExpectationsError(f"{path} is not TOML: {error}") from error


def parse_expectations(text: str, path: Path) -> Mapping[str, ExpectedViolation]:
    """Parse the text of a file; return the violations by requirement id. Raises `ExpectationsError` with the path."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ExpectationsError(f"{path} is not TOML: {error}") from error
    if unknown := content.keys() - {"violation"}:
        raise ExpectationsError(f"{path}: unknown table {min(unknown)}; the only one is [[violation]]")
    entries = content.get("violation", [])
    if not isinstance(entries, list):
        raise ExpectationsError(f"{path}: write [[violation]] with two brackets, one table per violation")
    found: dict[str, ExpectedViolation] = {}
    for number, entry in enumerate(entries, start=1):
        violation = _parse(path, number, entry)
        if violation.requirement in found:
            raise ExpectationsError(f"{path}, violation {number}: {violation.requirement} is listed twice")
        found[violation.requirement] = violation
    return found


def _parse(path: Path, number: int, entry: Any) -> ExpectedViolation:
    if not isinstance(entry, dict):
        raise ExpectationsError(f"{path}, violation {number}: not a table; write [[violation]] and its keys")
    for key, value in entry.items():
        if key not in _KEYS:
            raise ExpectationsError(f"{path}, violation {number}: unknown key {key}; the keys are {', '.join(_KEYS)}")
        if not isinstance(value, str):
            raise ExpectationsError(f"{path}, violation {number}: {key} must be a string")
    for key in _REQUIRED:
        if key not in entry:
            raise ExpectationsError(f"{path}, violation {number}: no {key}; requirement and reason are required")
    return ExpectedViolation(**entry)


def expectations_file(target: str) -> Path | None:
    """Return the suite's file for a target, `kind` or `kind:version`; None if there is none."""
    kind = target.partition(":")[0]
    files = (_DIRECTORY / f"{name}.toml" for name in (target.replace(":", "-"), kind))
    return next((file for file in files if file.is_file()), None)
