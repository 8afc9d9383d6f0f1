"""Baseline of a comparison: known differences by the ids of their causes, each with a reason.

```json
{"format": 1, "differences": [{"id": "error-code Produce error: NONE / INVALID_RECORD", "reason": "no keys needed"}]}
```
"""

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kafkatrial.errors import CommandError, UsageError
from linearizability.drafts import draft_of
from linearizability.history.errors import HistoryError
from linearizability.history.files import read_bounded

_FORMAT: Final = 1


class _Known(BaseModel):
    """A known difference. The reason is empty until the user writes one."""

    model_config = ConfigDict(extra="forbid")
    id: Annotated[str, Field(min_length=1)]
    reason: str = ""


class _Baseline(BaseModel):
    """The content of a baseline file."""

    model_config = ConfigDict(extra="forbid")
    format: Literal[1]
    differences: list[_Known]


def read_baseline(file: Path) -> dict[str, str]:
    """Return the reason of each known difference, by the id of its cause. Raises UsageError."""
    try:
        found = _Baseline.model_validate_json(read_bounded(file))
    except HistoryError as error:
        raise UsageError(f"cannot read the baseline {error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise UsageError(f"{file}: not a baseline of format {_FORMAT}: {where}: {first['msg']}") from error
    return {known.id: known.reason for known in found.differences}


def updated_baseline(known: Mapping[str, str], found: Collection[str], *, is_whole: bool) -> dict[str, str]:
    """Return the new baseline: all differences that were found, with their reasons in the old one.

    :param known: the old baseline.
    :param is_whole: whether all scripts have a result. Otherwise the old entries that were not found are kept.
    """
    kept = {name: reason for name, reason in known.items() if name in found or not is_whole}
    return {name: kept.get(name, "") for name in sorted({*kept, *found})}


def write_baseline(file: Path, known: Mapping[str, str]) -> None:
    """Replace the baseline file atomically. Raises CommandError."""
    entries = [{"id": name, "reason": reason} for name, reason in known.items()]
    try:
        with draft_of(file) as draft:
            draft.write_text(json.dumps({"format": _FORMAT, "differences": entries}, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise CommandError(f"{file}: cannot be written: {error.strerror or error}") from error
