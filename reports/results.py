"""results.json: the findings of a run in a public format (version 1), from which all reports are generated.

A run is a matrix with one `Finding` for each requirement and target. Reading a file checks it against these types, so
that a file from a newer kafkatrial, or a damaged one, is rejected in one line.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, PlainSerializer, TypeAdapter, ValidationError

from linearizability.drafts import draft_of
from linearizability.finding import Difference, Finding, Standing
from linearizability.history.errors import HistoryError
from linearizability.history.files import read_bounded
from linearizability.judgement import Verdict

FORMAT: Final = 1
FILE_NAME = "results.json"


@dataclass(frozen=True, slots=True)
class Source:
    """The document that contains a promise."""

    title: str
    url: str | None = None


@dataclass(frozen=True, slots=True)
class RequirementInfo:
    """A requirement that was selected for the run."""

    id: str
    level: str
    text: str = ""
    sources: tuple[Source, ...] = ()

    @property
    def area(self) -> str:
        """The part of the id before the slash."""
        return self.id.partition("/")[0]


@dataclass(frozen=True, slots=True)
class TargetInfo:
    """A target of the run. `ready_s` is null if its cluster never became ready."""

    name: str
    nodes: int | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    ready_s: float | None = None


def _require_complete(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Check that each finding has a requirement, a target and a valid verdict, which the types do not require."""
    for finding in findings:
        if not finding.requirement or not finding.target or finding.verdict is Verdict.PERMITTED:
            raise ValueError("a requirement, a target and the verdict on them are needed")
    return findings


def _outcomes_json(findings: tuple[Finding, ...]) -> list[dict[str, object]]:
    """Return the findings in format 1.

    Levels are omitted, because `requirements` has them. The reasons of a judgement are omitted, because its finding
    repeats them.
    """
    documents = [finding.as_json() for finding in findings]
    for document in documents:
        del document["level"]
        if isinstance(judgement := document["judgement"], dict):
            del judgement["reasons"]
    return documents


@dataclass(frozen=True, slots=True)
class Results:
    """A whole run. `complete` is false while it runs, and stays false if it is interrupted."""

    kafkatrial: str
    """Version of kafkatrial that wrote the results."""
    started_at: str
    """ISO 8601, UTC."""
    seed: int
    profile: str
    targets: tuple[TargetInfo, ...]
    requirements: tuple[RequirementInfo, ...]
    outcomes: Annotated[tuple[Finding, ...], AfterValidator(_require_complete), PlainSerializer(_outcomes_json)] = ()
    complete: bool = False
    seconds: float = 0.0
    exit_code: int | None = None
    """Null while it runs."""
    conclusion: str = ""
    """The meaning of the exit code, in a sentence."""
    format: Literal[1] = FORMAT

    def finding(self, requirement: str, target: str) -> Finding | None:
        """Return the cell of the matrix; None if it was not judged before the run ended."""
        found = (o for o in self.outcomes if (o.requirement, o.target) == (requirement, target))
        return next(found, None)

    def requirement(self, requirement_id: str) -> RequirementInfo:
        """Return the selected requirement with that id."""
        return next(r for r in self.requirements if r.id == requirement_id)

    def with_standing(self, *standings: Standing) -> tuple[Finding, ...]:
        """Return the findings with one of these standings, in the order in which they were judged."""
        return tuple(finding for finding in self.outcomes if finding.standing in standings)

    def counts(self) -> dict[Standing, int]:
        """Return the number of findings by standing, in the order of the enum, without zeros."""
        counts = Counter(finding.standing for finding in self.outcomes)
        return {standing: counts[standing] for standing in Standing if counts[standing]}

    def differences(self) -> Iterator[tuple[Finding, Difference]]:
        """Yield each difference between two targets once, with the finding of the target that is first in the run."""
        order = {target.name: number for number, target in enumerate(self.targets)}
        for finding in self.outcomes:
            for difference in finding.differences:
                if order[finding.target] < order.get(difference.other_target, len(order)):
                    yield finding, difference

    @property
    def unjudged(self) -> tuple[tuple[RequirementInfo, TargetInfo], ...]:
        """The requirements and targets without a verdict, if the run was ended early; empty if it is complete."""
        if self.complete:
            return ()
        judged = {(finding.requirement, finding.target) for finding in self.outcomes}
        return tuple((r, t) for t in self.targets for r in self.requirements if (r.id, t.name) not in judged)

    @property
    def unfinished(self) -> str:
        """The progress of a run that was ended early, for reports; empty if it is complete."""
        return "" if self.complete else unfinished_text(len(self.outcomes), len(self.targets) * len(self.requirements))

    def concluded(self, exit_code: int, conclusion: str) -> "Results":
        """Return the same results with the exit code of the run and its meaning."""
        return replace(self, exit_code=exit_code, conclusion=conclusion)


def unfinished_text(judged: int, planned: int) -> str:
    """Return the progress of a run as text: one verdict for each requirement and target is planned."""
    return f"unfinished: {judged} of {planned} requirements judged"


class ResultsError(Exception):
    """A results file that is missing, damaged or of another format version. The message is one line."""


_RESULTS = TypeAdapter(Results)


def write_results(results: Results, run_dir: Path) -> Path:
    """Replace `run_dir/results.json` atomically, so that an interrupted run leaves a readable one."""
    path = run_dir / FILE_NAME
    with draft_of(path) as draft:
        draft.write_bytes(_RESULTS.dump_json(results, indent=1) + b"\n")
    return path


def read_results(run_dir: Path) -> Results:
    """Read `run_dir/results.json`.

    Raises:
        ResultsError: it is missing, damaged, or not of format version 1.
    """
    path = run_dir / FILE_NAME
    try:
        return _RESULTS.validate_json(read_bounded(path))
    except HistoryError as error:
        raise ResultsError(str(error)) from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise ResultsError(f"{path}: not a results file of format {FORMAT}: {where}: {first['msg']}") from error
