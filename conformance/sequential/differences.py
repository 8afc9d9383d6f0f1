"""Differences between two targets' responses to one script, and their severity.

| severity | meaning | fields |
|---|---|---|
| semantic | a client sees other data or another state | every other field; a connection that is closed or silent |
| error-code | a client may handle it differently | `error`, `errors` |
| wire-cosmetic | no client acts on it | the other fields of an error response; `COSMETIC_FIELDS` |

Fields that one side's version lacks are not compared.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

from conformance.sequential.judging import kind_of
from conformance.sequential.response import ERROR_FIELDS, NO_RESPONSE_FIELDS, Response
from conformance.sequential.steps import (
    AwaitTopic,
    CreateTopic,
    Fetch,
    ListOffsets,
    LongPoll,
    Metadata,
    OffsetForLeaderEpoch,
    Produce,
    RawRequest,
    Step,
)
from linearizability.finding import Difference

_ELECTED = "a cluster may have had elections before the script"
_SIZE = "bytes of a fetch response: the broker may choose batches and compression"

COSMETIC_FIELDS: Final[Mapping[type[Step], Mapping[str, str]]] = {
    Produce: {
        "record_errors": "the list of invalid records of a rejected batch is informational",
        "log_start_offset": "a fetch below it is OFFSET_OUT_OF_RANGE",
    },
    Fetch: {"size": _SIZE, "leader_epochs": _ELECTED},
    LongPoll: {"size": _SIZE, "leader_epochs": _ELECTED},
    ListOffsets: {"leader_epoch": _ELECTED},
    OffsetForLeaderEpoch: {"leader_epoch": _ELECTED},
    AwaitTopic: {"leader_epochs": _ELECTED},
    Metadata: {"partitions": "a cluster chooses where the replicas of most topics are"},
    CreateTopic: {"replication_factor": "the script does not request a specific one"},
    RawRequest: {"explained": "whether errors have messages"},
}
"""By kind of step, the fields of its response on which no client acts, each with the reason."""


class Severity(StrEnum):
    """Severity of a difference."""

    WIRE_COSMETIC = "wire-cosmetic"
    ERROR_CODE = "error-code"
    SEMANTIC = "semantic"


def severity(kind: type[Step], field: str, here: Response, there: Response) -> Severity:
    """Return the severity of one field's difference between two responses to one step of this kind."""
    if field in NO_RESPONSE_FIELDS:
        return Severity.SEMANTIC
    if field in ERROR_FIELDS:
        return Severity.ERROR_CODE
    ours, theirs = map(_errors, (here, there))
    both_failed = ours == theirs and "NONE" not in ours and len(ours) > 0
    is_cosmetic = both_failed or field in COSMETIC_FIELDS.get(kind, {})
    return Severity.WIRE_COSMETIC if is_cosmetic else Severity.SEMANTIC


def _errors(response: Response) -> tuple[str, ...]:
    """Return the errors of a raw request's response, or the error of another one's."""
    return tuple(response.get("errors", (response.get("error", "NONE"),)))


def differences(
    other_target: str, steps: Sequence[Step], here: Sequence[Response], there: Sequence[Response]
) -> list[Difference]:
    """Return the differences between two targets' responses to the same steps, which count from 1."""
    found = []
    for number, (step, ours, theirs) in enumerate(zip(steps, here, there, strict=True), start=1):
        for field in sorted(ours.keys() | theirs.keys()):
            absent = field not in ours or field not in theirs
            if absent and field not in NO_RESPONSE_FIELDS:
                continue
            if ours.get(field) != theirs.get(field):
                found.append(
                    Difference(
                        other_target=other_target,
                        severity=severity(kind_of(step), field, ours, theirs),
                        step=number,
                        here=_text(field, ours),
                        there=_text(field, theirs),
                    )
                )
    return found


def _text(field: str, response: Response) -> str:
    value: Any = response.get(field, "a response")
    return f"{field} {value if isinstance(value, str) else repr(value)}"
