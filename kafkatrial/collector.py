"""Collector of the results of a run from the events of the engine; every report is generated from these results."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from conformance.events import Event, RequirementJudged, RunEnded, TargetStarted, TargetStarting
from conformance.requirements.requirement import Requirement
from kafkatrial.exit_codes import ExitCode
from kafkatrial.versions import own_version
from linearizability.finding import Standing
from reports.results import RequirementInfo, Results, Source, TargetInfo


class Collector:
    """The results so far, updated by every event."""

    def __init__(
        self, targets: Sequence[str], requirements: Sequence[Requirement], *, seed: int, profile: str, now: datetime
    ) -> None:
        self.results = Results(
            kafkatrial=own_version(),
            started_at=now.isoformat(timespec="seconds"),
            seed=seed,
            profile=profile,
            targets=tuple(TargetInfo(name) for name in targets),
            requirements=tuple(map(_info, requirements)),
        )

    def handle(self, event: Event) -> None:
        """Add one event to the results."""
        match event:
            case TargetStarting():
                self._update_target(event.target, nodes=event.nodes)
            case TargetStarted():
                self._update_target(event.target, nodes=event.nodes, versions=event.versions, ready_s=event.seconds)
            case RequirementJudged():
                self.results = replace(self.results, outcomes=(*self.results.outcomes, event.finding))
            case RunEnded():
                self.results = replace(self.results, complete=event.complete, seconds=event.seconds)
            case _:
                pass

    def _update_target(self, name: str, **facts: object) -> None:
        targets = (replace(t, **facts) if t.name == name else t for t in self.results.targets)  # type: ignore[arg-type]
        self.results = replace(self.results, targets=tuple(targets))


def exit_code_of_results(results: Results) -> ExitCode:
    """Return the exit code of a run that has ended. A violation takes precedence over an interruption.

    An expected violation that did not occur counts as a violation, so that its expectation is removed.
    """
    standings = results.counts()
    if Standing.VIOLATION in standings or Standing.FIXED in standings:
        return ExitCode.VIOLATION
    if not results.complete:
        return ExitCode.INTERRUPTED
    if Standing.UNKNOWN in standings:
        return ExitCode.INCONCLUSIVE
    return ExitCode.OK if standings.keys() - {Standing.NOT_APPLICABLE} else ExitCode.NOTHING_RAN


def _info(requirement: Requirement) -> RequirementInfo:
    sources = tuple(Source(source.title, source.url) for source in requirement.sources)
    return RequirementInfo(requirement.id, str(requirement.level), requirement.text, sources)
