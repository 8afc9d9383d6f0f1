"""How two targets' answers to one script differ, and how much that matters.

| severity | what it means | which fields |
|---|---|---|
| semantic | a client sees other data or another state | every other field; closed, not answered |
| error-code | a client takes another branch | `error` |
| wire-cosmetic | no client acts upon it | what an error answer says beside the error; `COSMETIC_FIELDS` |

Fields that one side's version lacks are not compared.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

from conformance.sequential.answer import NO_ANSWER_FIELDS, Answer
from linearizability.finding import Difference

COSMETIC_FIELDS: Final[Mapping[str, str]] = {
    "size": "bytes of a fetch answer: batching and compression are the broker's",
    "record_errors": "which records of a refused batch are named is advice",
    "leader_epochs": "a cluster may have had elections before the script",
    "leader_epoch": "a cluster may have had elections before the script",
    "log_start_offset": "in a produce answer; a fetch shows it by what it refuses",
    "replication_factor": "the script does not ask for a certain one",
}
"""Each with the reason why no client acts upon it."""


class Severity(StrEnum):
    """How much a difference matters."""

    WIRE_COSMETIC = "wire-cosmetic"
    ERROR_CODE = "error-code"
    SEMANTIC = "semantic"


def severity(field: str, here: Answer, there: Answer) -> Severity:
    """The class of one field's difference between two answers to one step."""
    if field in NO_ANSWER_FIELDS:
        return Severity.SEMANTIC
    if field == "error":
        return Severity.ERROR_CODE
    both_failed = here.get("error") == there.get("error") != "NONE" and "error" in here
    return Severity.WIRE_COSMETIC if both_failed or field in COSMETIC_FIELDS else Severity.SEMANTIC


def differences(other_target: str, here: Sequence[Answer], there: Sequence[Answer]) -> list[Difference]:
    """Where two targets' answers to the same script differ, step by step; steps count from 1."""
    found = []
    for number, (ours, theirs) in enumerate(zip(here, there, strict=True), start=1):
        for field in sorted(ours.keys() | theirs.keys()):
            absent = field not in ours or field not in theirs
            if absent and field not in NO_ANSWER_FIELDS:
                continue
            if ours.get(field) != theirs.get(field):
                found.append(
                    Difference(
                        other_target=other_target,
                        severity=severity(field, ours, theirs),
                        step=number,
                        here=_text(field, ours),
                        there=_text(field, theirs),
                    )
                )
    return found


def _text(field: str, answer: Answer) -> str:
    value: Any = answer.get(field, "an answer")
    return f"{field} {value if isinstance(value, str) else repr(value)}"
