"""Comparison of two targets by the scripts of sequential requirements, with the differences grouped by cause.

No model is involved: the responses of one target are compared with those of the other. A cause consists of a rank (see
the table), a request and a field of its response. For errors, lost connections and brokers that go down, it also has
the values of both targets. For each cause, the result has the shortest script that was found to show it. If an earlier
step of this script shows another difference, that one is the likely reason (`GroupedDifference.after`).

| rank | meaning |
|---|---|
| fatal | a broker went down, or one target sent bytes that cannot be decoded, or no response |
| semantic | other records, offsets or state; a request that one accepts and the other rejects |
| error code | different errors |
| cosmetic | a difference on which no client acts; it never fails a comparison |

If the errors differ, the other fields of the response are not compared.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Final

from conformance.applicability import reason_not_applicable
from conformance.engine import seed_of
from conformance.liveness import responds
from conformance.profiles import Profile
from conformance.requirements.requirement import Requirement
from conformance.search import smallest, try_scripts
from conformance.sequential import differences as responses_compared
from conformance.sequential.connections import TargetDown
from conformance.sequential.differences import Severity
from conformance.sequential.judging import Rank, kind_of
from conformance.sequential.program import program
from conformance.sequential.response import ERROR_FIELDS, NO_RESPONSE_FIELDS, NOT_READY
from conformance.sequential.routing import NotReady
from conformance.sequential.scripted_check import ScriptedCheck
from conformance.sequential.session import Session
from conformance.sequential.steps import RawRequest, Script, Step
from fixtures.clients.messages import api_name
from fixtures.clients.raw import UnsupportedApi
from fixtures.targets.target import Target, reasons_for_lacking

_BROKER: Final = "broker"
"""The `field` of a cause if a broker goes down."""
_FIELDS_WITH_VALUES: Final = frozenset({*ERROR_FIELDS, "connection"})
"""Fields whose values on both targets are part of the cause."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Key by which differences are grouped: rank, request and field of the response, and sometimes the values."""

    rank: Rank
    request: str
    field: str
    values: str = ""
    """The values of both targets, if they are part of the cause."""

    @property
    def kind(self) -> str:
        """The rank as text, such as `error-code`."""
        return self.rank.name.lower().replace("_", "-")

    @property
    def id(self) -> str:
        """The cause in one line, as in a baseline file."""
        return f"{self.kind} {self.request} {self.field}" + (f": {self.values}" if self.values else "")


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One occurrence of a cause: the number of the step, and what each target returned."""

    step: int
    here: str
    there: str


@dataclass(frozen=True, slots=True)
class GroupedDifference:
    """All differences of one cause."""

    cause: Cause
    shown: Occurrence
    """The occurrence in the shortest script."""
    program: str
    requirements: tuple[str, ...]
    """Requirements with a script that shows the cause. The script of the first of them was shrunk."""
    scripts: int
    """Number of scripts that show the cause."""
    after: tuple[str, ...] = ()
    """Ids of other causes that occur earlier in the shortest script, except cosmetic ones."""
    is_flaky: bool = False
    """Whether the difference did not recur when the shrunk script ran again."""


@dataclass(slots=True)
class Comparison:
    """The result of a comparison so far."""

    differences: dict[Cause, GroupedDifference] = field(default_factory=dict)
    compared: dict[str, int] = field(default_factory=dict)
    """By requirement id, the number of scripts that were compared."""
    skipped: dict[str, str] = field(default_factory=dict)
    """By requirement id, why its scripts, or the rest of them, could not be compared."""
    unknown: dict[str, str] = field(default_factory=dict)
    """By requirement id, why some of the scripts have no result."""

    def in_order(self) -> list[GroupedDifference]:
        """Return the differences, the worst kind first, and of each kind those without an earlier cause."""
        return sorted(self.differences.values(), key=lambda each: (each.cause.rank, bool(each.after), each.cause.id))


def causes_of(
    script: Script, here: Sequence[Mapping[str, object]], there: Sequence[Mapping[str, object]]
) -> dict[Cause, Occurrence]:
    """Return the causes of the differences between two targets' responses to a script, each with its first occurrence.

    They are in the order of the steps. `here` and `there` have one response for each step.
    """
    found: dict[Cause, Occurrence] = {}
    for number, (step, response, other) in enumerate(zip(script.steps, here, there, strict=True), start=1):
        for name, severity, value, other_value in _fields(step, response, other):
            values = f"{value} / {other_value}" if name in _FIELDS_WITH_VALUES else ""
            cause = Cause(_rank(name, severity, (value, other_value)), request_name(step), name, values)
            found.setdefault(cause, Occurrence(number, value, other_value))
    return found


def _fields(step: Step, here: Mapping[str, object], there: Mapping[str, object]) -> Iterator[tuple[str, str, str, str]]:
    """Yield name, severity and both values of each field that differs. If errors differ, yield only these."""
    found = []
    for difference in responses_compared.differences("", [step], [here], [there]):
        name = difference.here.partition(" ")[0]
        value, other_value = (text.removeprefix(f"{name} ") for text in (difference.here, difference.there))
        found.append((name, difference.severity, value, other_value))
    yield from [each for each in found if each[0] in ERROR_FIELDS] or found


def _rank(name: str, severity: str, values: tuple[str, str]) -> Rank:
    if name in NO_RESPONSE_FIELDS or name == _BROKER:
        return Rank.FATAL
    if name in ERROR_FIELDS:
        successes = {value.count("NONE") for value in values}
        return Rank.ERROR_CODE if len(successes) == 1 else Rank.SEMANTIC
    return Rank.COSMETIC if severity == Severity.WIRE_COSMETIC else Rank.SEMANTIC


def _broker_down(script: Script, step: int, here: str, there: str) -> dict[Cause, Occurrence]:
    """Return the cause for a step that brings a broker of one target down, with the states of both targets."""
    cause = Cause(Rank.FATAL, request_name(script.steps[step - 1]), _BROKER, f"{here} / {there}")
    return {cause: Occurrence(step, here, there)}


def request_name(step: Step) -> str:
    """Return the name of a step's request: the API of a raw request, otherwise the class of the (inner) step."""
    inner = getattr(step, "step", None)
    if isinstance(inner, Step):
        return request_name(inner)
    return api_name(step.api) if isinstance(step, RawRequest) else kind_of(step).__name__


class NotCompared(Exception):  # noqa: N818 - a script without a result
    """Lack of a result of a script on one of the targets; the text is the reason."""


@dataclass(slots=True)
class Comparer:
    """Two started targets, and the result so far."""

    here: Target
    there: Target
    seed: int
    profile: Profile
    result: Comparison = field(default_factory=Comparison)

    def run(self, requirements: Iterable[Requirement]) -> Iterator[str]:
        """Compare the targets by the scripts of each sequential requirement. Yield each id before its scripts run.

        Raises `TargetError` if a broker that went down does not start again.
        """
        for requirement in requirements:
            if isinstance(requirement.check, ScriptedCheck):
                yield requirement.id
                lacks = [text for target in (self.here, self.there) if (text := _lacks(requirement, target))]
                if lacks:
                    self.result.skipped[requirement.id] = "; ".join(lacks)
                else:
                    self._compare(requirement, requirement.check)

    def _compare(self, requirement: Requirement, check: ScriptedCheck) -> None:
        with ExitStack() as stack:
            unique = f"compare.{requirement.id.replace('/', '.')[:70]}-{time.time_ns():x}"
            sessions = [stack.enter_context(Session(target, unique)) for target in (self.here, self.there)]
            _RequirementComparison(self, requirement, check, sessions).compare()

    @property
    def targets(self) -> tuple[Target, Target]:
        """Both targets: `here`, then `there`."""
        return self.here, self.there


def _lacks(requirement: Requirement, target: Target) -> str:
    lacking = reason_not_applicable(
        requirement,
        capabilities=target.capabilities,
        version=None,
        nodes=len(target.nodes),
        reasons=reasons_for_lacking(target),
    )
    return f"{target.name} {lacking}" if lacking else ""


@dataclass(slots=True)
class _RequirementComparison:
    """Comparison by the scripts of one requirement. `sessions` are in the order of `Comparer.targets`."""

    comparer: Comparer
    requirement: Requirement
    check: ScriptedCheck
    sessions: Sequence[Session]
    found: dict[Script, dict[Cause, Occurrence]] = field(default_factory=dict)
    """The causes that each script shows."""

    def compare(self) -> None:
        """Run every script on both targets. For each new cause, shrink the first script that shows it."""
        result, name = self.comparer.result, self.requirement.id
        try:
            try_scripts(
                self.check.scripts,
                seed_value=self._seed,
                scripts_max=self._scripts_max,
                attempt=self._attempt,
            )
        except UnsupportedApi as error:
            result.skipped[name] = str(error)
        result.compared[name] = len(self.found)
        scripts_by_cause: dict[Cause, list[Script]] = {}
        for script, found in self.found.items():
            for cause in found:
                scripts_by_cause.setdefault(cause, []).append(script)
        for cause, scripts in scripts_by_cause.items():
            if known := result.differences.get(cause):
                names = (*known.requirements, name)
                result.differences[cause] = replace(known, requirements=names, scripts=known.scripts + len(scripts))
            else:
                result.differences[cause] = self._shrink(cause, scripts[0], len(scripts))

    @property
    def _seed(self) -> int:
        return seed_of(self.comparer.seed, self.requirement.family or self.requirement.id)

    @property
    def _scripts_max(self) -> int:
        return max(1, self.comparer.profile.scripts_max // self.check.cost)

    def _attempt(self, script: Script) -> None:
        if script in self.found:
            return
        try:
            self.found[script] = self._differences(script)
        except NotCompared as error:
            self.comparer.result.unknown[self.requirement.id] = str(error)

    def _differences(self, script: Script) -> dict[Cause, Occurrence]:
        """Run a script on both targets; return the causes of the differences. Start a target again that went down.

        If both targets go down, there is no difference, even if different steps bring them down.
        """
        here, there = (self._responses(script, number) for number in range(2))
        if isinstance(here, int) and isinstance(there, int):
            return {}
        if isinstance(here, int):
            found = _broker_down(script, here, "down", "alive")
        elif isinstance(there, int):
            found = _broker_down(script, there, "alive", "down")
        else:
            found = causes_of(script, here, there)
        if any(cause.rank is Rank.FATAL for cause in found):
            for number in range(2):
                self._revive(number)
        return found

    def _responses(self, script: Script, number: int) -> tuple[Mapping[str, object], ...] | int:
        """Return the responses of a target; if it goes down, the number of the step that brings it down."""
        session, target = self.sessions[number], self.comparer.targets[number]
        try:
            responses = session.run(script)
        except NotReady as error:
            raise NotCompared(f"{target.name}: {error}") from error
        except TargetDown:
            return self._fatal_step(script, number)
        if reason := next((response[NOT_READY] for response in responses if NOT_READY in response), ""):
            raise NotCompared(f"{target.name}: {reason}")
        return responses

    def _fatal_step(self, script: Script, number: int) -> int:
        """Return the length of the shortest prefix of the script that brings a target down; start the target again."""
        for length in range(1, len(script.steps) + 1):
            self._revive(number)
            try:
                self.sessions[number].run(Script(script.steps[:length]))
            except TargetDown:
                self._revive(number)
                return length
            except NotReady:
                continue
        raise NotCompared(f"{self.comparer.targets[number].name} went down, but not when the script ran again")

    def _revive(self, number: int) -> None:
        """Start a target again if it does not respond. Its session then uses new connections."""
        target = self.comparer.targets[number]
        if not responds(target):
            target.stop()
            target.start()
        self.sessions[number].reconnect()

    def _shrink(self, cause: Cause, first: Script, scripts: int) -> GroupedDifference:
        """Return the difference with the shortest script found, or with the first one if that does not recur.

        :param scripts: the number of scripts of this requirement that show the cause.
        """
        deadline = time.monotonic() + self.comparer.profile.shrink_seconds
        script = smallest(
            self.check.scripts,
            seed_value=self._seed,
            scripts_max=self._scripts_max,
            first=first,
            passed=[each for each, found in self.found.items() if cause not in found],
            violates=lambda script: cause in self._rerun(script),
            time_is_up=lambda: time.monotonic() > deadline,
        )
        found = self._rerun(script)
        shown = found.get(cause)
        is_flaky = shown is None
        if shown is None:
            script, found = first, self.found[first]
            shown = found[cause]
        return GroupedDifference(
            cause,
            shown,
            self._program(script),
            (self.requirement.id,),
            scripts,
            tuple(
                other.id
                for other, occurrence in found.items()
                if occurrence.step < shown.step and other.rank is not Rank.COSMETIC
            ),
            is_flaky,
        )

    def _rerun(self, script: Script) -> dict[Cause, Occurrence]:
        """Run a script again; return the causes that it shows, or none if it has no result."""
        try:
            return self._differences(script)
        except (NotCompared, UnsupportedApi):
            return {}

    def _program(self, script: Script) -> str:
        here, there = self.comparer.targets
        others = (there.name,)
        return program(script, requirement=self.requirement.id, target=here.name, nodes=len(here.nodes), others=others)
