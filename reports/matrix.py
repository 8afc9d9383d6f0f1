"""Matrix: the verdicts of several runs, targets by requirements, without IO.

- A column is a target with one version of its broker. Runs of the same target and version, on any machine, are merged.
- The worst finding of these runs decides a cell (`WORST_FIRST`); of equally bad findings, the latest one does. With
  `latest`, the finding of the run that started last decides, whatever the others found.
- If an expected violation blocks a requirement, its cell is unknown, because the requirement was not checked. In the
  exit code of a run, such a requirement counts as an expected violation.
- Requirements are those of all runs: MUST before SHOULD before MAY, each level by areas in the order of the runs.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final

from linearizability.finding import Finding, Standing
from linearizability.judgement import Verdict
from reports.results import RequirementInfo, Results, TargetInfo

WORST_FIRST: Final = (
    Standing.VIOLATION,
    Standing.EXPECTED,
    Standing.UNKNOWN,
    Standing.FIXED,
    Standing.OK,
    Standing.NOT_APPLICABLE,
)
"""`not applicable` is last: if one run could not check a requirement, the verdict of another run counts."""
_LEVELS: Final = ("MUST", "SHOULD", "MAY")
BROKER: Final = "broker"
"""The entry in `versions` of a target that distinguishes its columns: the version of the broker."""


@dataclass(frozen=True, slots=True)
class TargetColumn:
    """One target with one version of its broker. `runs` are the runs against it, the latest first."""

    name: str
    runs: tuple[Results, ...]

    @property
    def infos(self) -> tuple[TargetInfo, ...]:
        """The target as each run describes it, the latest first."""
        return tuple(next(target for target in run.targets if target.name == self.name) for run in self.runs)

    @property
    def version(self) -> str:
        """Version of the broker; empty if it is unknown."""
        return self.infos[0].versions.get(BROKER, "")

    @property
    def title(self) -> str:
        """The name, followed by the version of the broker unless the name contains it."""
        return self.name if self.version in self.name else f"{self.name} {self.version}"

    @property
    def versions(self) -> tuple[str, ...]:
        """All versions of the latest run, such as `java 17.0.15`."""
        return tuple(f"{name} {version}" for name, version in self.infos[0].versions.items())

    @property
    def nodes(self) -> tuple[int, ...]:
        """The different numbers of nodes in the runs."""
        return tuple(sorted({info.nodes for info in self.infos if info.nodes}))

    @property
    def dates(self) -> str:
        """The day of the run, or the first and the last day of several."""
        return " to ".join(sorted({day_of(run) for run in (self.runs[0], self.runs[-1])}))


def day_of(run: Results) -> str:
    """Return the day on which a run started."""
    return run.started_at.partition("T")[0]


@dataclass(frozen=True, slots=True)
class Matrix:
    """The merged runs."""

    columns: tuple[TargetColumn, ...]
    requirements: tuple[RequirementInfo, ...]
    judged: Mapping[tuple[str, int], tuple[tuple[Results, Finding], ...]]
    """The runs with their findings, the latest first, by requirement and number of the column."""
    latest: bool = False
    """Whether only the latest finding counts."""

    def cell(self, requirement: str, column: int) -> Finding | None:
        """Return the finding that decides; None if no run has judged the requirement."""
        found = [finding for _, finding in self.judged.get((requirement, column), ())]
        return found[0] if found and self.latest else min(found, key=_severity, default=None)

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels that occur, MUST first."""
        return tuple(dict.fromkeys(requirement.level for requirement in self.requirements))

    def at_level(self, level: str) -> tuple[RequirementInfo, ...]:
        """Return the requirements of a level."""
        return tuple(requirement for requirement in self.requirements if requirement.level == level)

    def areas(self) -> Iterator[tuple[str, str, tuple[RequirementInfo, ...]]]:
        """Yield level, area and requirements."""
        for (level, area), found in groupby(self.requirements, key=lambda each: (each.level, each.area)):
            yield level, area, tuple(found)

    def counts(self, column: int, level: str) -> Counter[Standing | None]:
        """Return the number of a column's cells at a level by standing, worst first, None (not judged) last."""
        cells = (self.cell(requirement.id, column) for requirement in self.at_level(level))
        found = Counter(None if finding is None else finding.standing for finding in cells)
        return Counter({standing: found[standing] for standing in (*WORST_FIRST, None) if found[standing]})

    def failing(self, column: int) -> tuple[Finding, ...]:
        """Return the violations of a column, expected ones included, in the order of the requirements."""
        found = (self.cell(requirement.id, column) for requirement in self.requirements)
        wanted = (Standing.VIOLATION, Standing.EXPECTED)
        return tuple(finding for finding in found if finding is not None and finding.standing in wanted)


def merge(runs: Sequence[Results], *, latest: bool = False) -> Matrix:
    """Return the matrix of at least one run."""
    newest_first = sorted(runs, key=lambda run: run.started_at, reverse=True)
    columns = tuple(
        TargetColumn(name, tuple(run for run in newest_first if _key_of(run, name) == (name, version)))
        for name, version in dict.fromkeys(_key(target) for run in runs for target in run.targets)
    )
    requirements = _in_order(runs, {info.id: info for run in reversed(newest_first) for info in run.requirements})
    judged: dict[tuple[str, int], tuple[tuple[Results, Finding], ...]] = {}
    for number, column in enumerate(columns):
        for run in column.runs:
            findings = (_as_checked(each) for each in reversed(run.outcomes) if each.target == column.name)
            found = {each.requirement: each for each in findings}
            for requirement, finding in found.items():
                judged[requirement, number] = (*judged.get((requirement, number), ()), (run, finding))
    return Matrix(columns, requirements, judged, latest)


def _as_checked(finding: Finding) -> Finding:
    """Return the finding. If it is unknown because an expected violation blocks it, do not mark it as expected."""
    return replace(finding, expected_violation=False) if finding.verdict is Verdict.UNKNOWN else finding


def _key(target: TargetInfo) -> tuple[str, str]:
    return target.name, target.versions.get(BROKER, "")


def _key_of(run: Results, name: str) -> tuple[str, str] | None:
    return next((_key(target) for target in run.targets if target.name == name), None)


def _in_order(runs: Sequence[Results], infos: Mapping[str, RequirementInfo]) -> tuple[RequirementInfo, ...]:
    """Return the requirements by level, MUST first, and then by area in the order of the first occurrence."""
    found = [infos[name] for name in dict.fromkeys(info.id for run in runs for info in run.requirements)]
    areas = list(dict.fromkeys(info.area for info in found))
    others = sorted({info.level for info in found} - set(_LEVELS))
    levels = [*_LEVELS, *others]
    return tuple(sorted(found, key=lambda info: (levels.index(info.level), areas.index(info.area))))


def _severity(finding: Finding) -> int:
    return WORST_FIRST.index(finding.standing)
