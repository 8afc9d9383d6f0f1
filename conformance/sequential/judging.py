"""Judgement of one script's responses: the judged fields that are not as expected, the worst first.

| rank | meaning |
|---|---|
| fatal | no response: the connection was closed or silent, the bytes cannot be decoded or are about something else |
| semantic | other records, offsets or state; a valid request that failed, or an invalid one that succeeded |
| error code | another error than the expected one |
| cosmetic | an offset, epoch or time beside an error, on which no client acts |

A cosmetic deviation alone is no violation, unless the requirement is about such fields.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Final, TypeAlias

from conformance.sequential.expectation import Expectation, Mismatch, OneOf, mismatches
from conformance.sequential.model import expected
from conformance.sequential.response import NO_RESPONSE_FIELDS, NOT_READY, Response
from conformance.sequential.steps import (
    AsClient,
    AwaitTopic,
    CreateTopic,
    Eventually,
    Metadata,
    On,
    Script,
    Step,
    WithUnknownTags,
)
from linearizability.finding import Finding
from linearizability.judgement import Verdict

_Steps: TypeAlias = Sequence[tuple[Step, Response, Expectation]]

_ABSENT_ON_ERROR: Final = frozenset(
    {
        "base_offset",
        "log_append_time",
        "log_start_offset",
        "high_watermark",
        "last_stable_offset",
        "offset",
        "timestamp",
        "leader_epoch",
        "end_offset",
        "low_watermark",
        "producer",
        "producer_epoch",
        "committed_offset",
        "committed_leader_epoch",
        "metadata",
    }
)
"""Fields that have no meaning beside an error. Other fields have one, such as the current leader (KIP-951)."""
_NOT_ABOUT_THE_REQUEST: Final = frozenset({"names", "has_elements"})
"""Fields that differ only if the response is not about what was requested, whatever the cluster's state."""
_CLOSED: Final = ("connection", "closed")
"""Deviation that is reported for any step, because it probably causes the deviations of later steps."""
_OTHERS_MAX: Final = 3
"""Maximum number of deviations that a finding lists beside the worst one."""


@dataclass(frozen=True, slots=True)
class Judges:
    """Response fields that a requirement judges, by kind of step. `|` adds the fields of another `Judges`.

    :ivar compares_versions: whether a step that deviates in each version in which the script sends it is not judged.
    """

    fields: Mapping[type[Step], frozenset[str]]
    compares_versions: bool = False

    def of(self, kind: type[Step]) -> frozenset[str]:
        """Return the judged fields of a kind of step; none if its responses are not judged."""
        return self.fields.get(kind, frozenset())

    def __contains__(self, kind: type[Step]) -> bool:
        return kind in self.fields

    def __or__(self, other: "Judges") -> "Judges":
        fields = {kind: self.of(kind) | other.of(kind) for kind in {**self.fields, **other.fields}}
        return Judges(fields, self.compares_versions or other.compares_versions)


class Rank(IntEnum):
    """Rank of a deviation, the worst first."""

    FATAL = 0
    SEMANTIC = 1
    ERROR_CODE = 2
    COSMETIC = 3


VIOLATIONS: Final = frozenset({Rank.FATAL, Rank.SEMANTIC, Rank.ERROR_CODE})
"""The ranks of violations, unless a requirement is about cosmetic fields."""


@dataclass(frozen=True, slots=True)
class Deviation:
    """A judged field that is not as expected, in the response to one step."""

    rank: Rank
    step: int
    """The number of the step, from 1 on."""
    kind: type[Step]
    mismatch: Mismatch

    @property
    def where(self) -> str:
        """The step as text for a message."""
        return where(self.step, self.kind)

    def __str__(self) -> str:
        actual, wanted = _short(self.mismatch.actual), _short(self.mismatch.expected)
        if self.mismatch.field == "malformed":
            return f"{self.where}: malformed response: {actual}"
        if self.mismatch.field == NOT_READY:
            return f"{self.where}: {actual}"
        return f"{self.where}: {self.mismatch.field} was {actual}, not {wanted}"


def judge(
    script: Script, responses: Sequence[Response], judged: Judges, ranks: Collection[Rank] = VIOLATIONS
) -> Finding:
    """Compare responses with the model. Pure. The worst deviation is named, and the finding lists the others.

    If a topic was not created, or got no leader, the later steps are not judged, and the verdict is unknown. There are
    three exceptions: the requirement judges creation, an earlier step deviates, or a later step has no response. If the
    requirement judges leaders, a topic without a leader is a violation. A closed connection is a violation whatever the
    requirement judges, because it may be the reason why later steps deviate.

    :param ranks: the ranks of deviations that are violations.
    """
    steps = tuple(_steps(script, responses))
    unusable = _unusable(steps, judged)
    found = _deviations(steps, judged, unusable)
    if worst := next((each for each in found if each.rank in ranks), None):
        return _violation(worst, [each for each in found if each is not worst])
    return Finding(Verdict.OK) if unusable is None else Finding(Verdict.UNKNOWN, unusable[1])


def deviations(script: Script, responses: Sequence[Response], judged: Judges) -> list[Deviation]:
    """Return the judged fields that are not as expected, the worst first, then in the order of the script."""
    steps = tuple(_steps(script, responses))
    return _deviations(steps, judged, _unusable(steps, judged))


def _deviations(steps: _Steps, judged: Judges, unusable: tuple[int, str] | None) -> list[Deviation]:
    found = (
        Deviation(_rank(mismatch.field, expectation, response), number, kind_of(step), mismatch)
        for number, (step, response, expectation) in enumerate(steps, start=1)
        for mismatch in mismatches(expectation, response, judged.of(kind_of(step)))
        if kind_of(step) in judged or (mismatch.field, mismatch.actual) == _CLOSED
    )
    shown = [each for each in found if unusable is None or each.rank is Rank.FATAL or each.step < unusable[0]]
    if "leaders" in judged.of(Metadata):
        shown += _without_leader(steps)
    if last := max((each.step for each in shown), default=0):
        shown += [each for each in _awaited_without_success(steps[: last - 1]) if each not in shown]
    if judged.compares_versions:
        shown = _in_some_versions(steps, shown)
    return sorted(shown, key=lambda each: (each.rank, each.step, each.mismatch.field != "error"))


def _in_some_versions(steps: _Steps, found: Sequence[Deviation]) -> list[Deviation]:
    """Return the deviations except those that a step has in each version in which the script sends it.

    If the script repeats a step in one version, the nth occurrence is compared with the nth one of the other versions.
    A response without the field, because its version lacks it, is not counted.
    """
    numbers: dict[tuple[Step, int], list[int]] = {}
    keys = []
    occurrences: Counter[Step] = Counter()
    for number, (step, _, _) in enumerate(steps, start=1):
        key = (_without_version(step), occurrences[step] if _has_version(step) else 0)
        occurrences[step] += 1
        numbers.setdefault(key, []).append(number)
        keys.append(key)
    deviating = {(each.step, each.mismatch.field) for each in found}

    def is_in_each(deviation: Deviation) -> bool:
        field = deviation.mismatch.field
        alike = numbers[keys[deviation.step - 1]]
        counted = [each for each in alike if (each, field) in deviating or field in steps[each - 1][1]]
        return len(counted) > 1 and all((number, field) in deviating for number in counted)

    return [each for each in found if not is_in_each(each)]


def _has_version(step: Step) -> bool:
    return getattr(step, "version", None) is not None


def _without_version(step: Step) -> Step:
    return replace(step, version=None) if _has_version(step) else step  # type: ignore[call-arg]


def _awaited_without_success(steps: _Steps) -> Iterator[Deviation]:
    """Yield the deviations of awaited effects, whether or not the requirement judges them.

    After the first timeout, the session does not wait for later effects, so the timeout may cause later deviations.
    """
    for number, (step, response, expectation) in enumerate(steps, start=1):
        if isinstance(step, AwaitTopic | Eventually):
            awaited = step.awaited if isinstance(step, Eventually) else None
            for mismatch in mismatches(expectation, response, awaited):
                yield Deviation(_rank(mismatch.field, expectation, response), number, kind_of(step), mismatch)


def _without_leader(steps: _Steps) -> Iterator[Deviation]:
    """Yield a deviation for each new topic unless all brokers know each partition's leader and the leader serves."""
    for number, (step, response, _) in enumerate(steps, start=1):
        if NOT_READY in response:
            wanted = "for each partition a leader that every broker describes and that serves requests"
            mismatch = Mismatch(NOT_READY, wanted, response[NOT_READY])
            yield Deviation(Rank.SEMANTIC, number, kind_of(step), mismatch)


def _steps(script: Script, responses: Sequence[Response]) -> Iterator[tuple[Step, Response, Expectation]]:
    return zip(script.steps, responses, expected(script), strict=True)


def _rank(field: str, expectation: Expectation, response: Response) -> Rank:
    if field in _NOT_ABOUT_THE_REQUEST or (field in NO_RESPONSE_FIELDS and field not in expectation):
        return Rank.FATAL
    if field == "errors":
        permitted = expectation[field]
        errors = permitted.values[0] if isinstance(permitted, OneOf) else permitted
        succeeded = [tuple(each).count("NONE") for each in (errors, response[field])]
        return Rank.ERROR_CODE if len(set(succeeded)) == 1 else Rank.SEMANTIC
    wanted, actual = expectation.get("error", "NONE"), response.get("error", "NONE")
    if field == "error":
        return Rank.SEMANTIC if "NONE" in (wanted, actual) else Rank.ERROR_CODE
    is_cosmetic = field in _ABSENT_ON_ERROR and "NONE" not in (wanted, actual)
    return Rank.COSMETIC if is_cosmetic else Rank.SEMANTIC


def _unusable(steps: _Steps, judged: Judges) -> tuple[int, str] | None:
    """Return the first step that is not judged because a topic cannot be used, and the reason; else None."""
    for number, (step, response, expectation) in enumerate(steps, start=1):
        here = where(number, kind_of(step))
        wrong = mismatches(expectation, response, frozenset({"error"}))
        if isinstance(step, CreateTopic) and CreateTopic not in judged and wrong:
            return number, f"{here}: the topic was not created: {wrong[0].actual}"
        if NOT_READY in response:
            return number + 1, f"{here}: {response[NOT_READY]}"
    return None


def _violation(worst: Deviation, others: Sequence[Deviation]) -> Finding:
    listed = "; ".join(map(str, others[:_OTHERS_MAX]))
    more = f"; {len(others) - _OTHERS_MAX} more" if len(others) > _OTHERS_MAX else ""
    return Finding(
        Verdict.VIOLATION,
        f"{worst} (also {listed}{more})" if others else str(worst),
        expected=f"{worst.where}: {_found(worst.mismatch.field, worst.mismatch.expected)}",
        actual=f"{worst.where}: {_found(worst.mismatch.field, worst.mismatch.actual)}",
    )


def _found(field: str, value: str) -> str:
    """Return a value with its field's name; a value that is a phrase is returned unchanged.

    The phrases are "a response", which is expected if none arrived, and the reason why a topic cannot be used.
    """
    if value == "a response" or field == NOT_READY:
        return value
    return f"malformed response: {value}" if field == "malformed" else f"{field} {value}"


def kind_of(step: Step) -> type[Step]:
    """Return the type of a step; for a step around another one, such as `On`, the type of the inner step."""
    return kind_of(step.step) if isinstance(step, On | Eventually | AsClient | WithUnknownTags) else type(step)


def where(number: int, kind: type[Step]) -> str:
    """Return a step as text for a message."""
    return f"step {number}, {kind.__name__}"


def _short(text: str, length_max: int = 120) -> str:
    return text if len(text) <= length_max else text[: length_max - 1] + "…"
