"""Results of a chaos session, folded from its events."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from chaos.live.coverage import STATES
from chaos.live.events import ChaosEnded, ChaosStarted, RoundJudged, RoundNotRun, Shrunk
from conformance.events import Event
from kafkatrial.exit_codes import ExitCode
from linearizability.judgement import Verdict


@dataclass(slots=True)
class ChaosResults:
    """Results of all rounds so far. Runs that shrink a failure are not rounds."""

    rounds: list[RoundJudged] = field(default_factory=list)
    not_run: list[RoundNotRun] = field(default_factory=list)
    shrunk: list[Shrunk] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    """Number of faults that found a target, by kind of fault."""
    coverage: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Number of rounds that had both a fault of a kind, which found a target, and a state; by kind and state."""
    lost: Counter[tuple[str, int]] = field(default_factory=Counter)
    """Number of lost records, by target and acks."""
    seed: int = 0
    rounds_max: int | None = None
    seconds: float = 0.0
    complete: bool = False

    def handle(self, event: Event) -> None:
        """Add an event to the results."""
        match event:
            case ChaosStarted():
                self.seed, self.rounds_max = event.seed, event.rounds_max
            case RoundJudged(is_shrinking=True) | RoundNotRun(is_shrinking=True):
                pass
            case RoundJudged():
                self._add(event)
            case RoundNotRun():
                self.not_run.append(event)
            case Shrunk():
                self.shrunk.append(event)
            case ChaosEnded(complete, seconds):
                self.complete, self.seconds = complete, seconds
            case _:
                pass

    def _add(self, judged: RoundJudged) -> None:
        self.rounds.append(judged)
        report = judged.report
        kinds = [type(each.timed.fault).__name__ for each in report.facts.injected if each.found]
        self.faults.update(kinds)
        for state in report.coverage:
            self.coverage.update((kind, state) for kind in set(kinds))
        self.lost.update({(judged.target, acks): lost for acks, lost in report.lost.items()})

    @property
    def failing(self) -> list[RoundJudged]:
        """Rounds with a violation."""
        return [judged for judged in self.rounds if judged.report.violations]

    @property
    def acknowledged(self) -> int:
        """Number of acknowledged records."""
        return sum(judged.report.acknowledged for judged in self.rounds)

    @property
    def reached(self) -> Counter[str]:
        """The number of times that each state was reached."""
        return sum((judged.report.coverage for judged in self.rounds), Counter[str]())

    @property
    def never_reached(self) -> list[str]:
        """States that no round reached."""
        reached = self.reached
        return [state for state in STATES if not reached[state]]

    @property
    def exit_code(self) -> ExitCode:
        """The exit code, by precedence: a violation, an interruption, a round that did not run, an unknown verdict."""
        if self.failing:
            return ExitCode.VIOLATION
        if not self.complete:
            return ExitCode.INTERRUPTED
        if self.not_run:
            return ExitCode.INTERNAL
        if not self.rounds:
            return ExitCode.NOTHING_RAN
        unknown = any(judged.report.verdict is Verdict.UNKNOWN for judged in self.rounds)
        return ExitCode.INCONCLUSIVE if unknown else ExitCode.OK

    def as_json(self) -> dict[str, Any]:
        """Return the results as one JSON object."""
        return {
            "verdict": {ExitCode.VIOLATION: "violation", ExitCode.OK: "ok"}.get(self.exit_code, "unknown"),
            "complete": self.complete,
            "seed": self.seed,
            "rounds_max": self.rounds_max,
            "seconds": round(self.seconds, 1),
            "acknowledged": self.acknowledged,
            "faults": dict(sorted(self.faults.items())),
            "reached": dict(sorted(self.reached.items())),
            "never_reached": self.never_reached,
            "rounds": [_round_json(judged) for judged in self.rounds],
            "not_run": [
                {"target": each.target, "seed": each.trial.seed, "reason": each.reason} for each in self.not_run
            ],
            "failures": [
                {
                    "target": each.counterexample.target,
                    "name": each.counterexample.name,
                    "text": each.counterexample.text,
                    "confirmed": each.counterexample.is_confirmed,
                    "directory": each.directory,
                }
                for each in self.shrunk
            ],
        }


def _round_json(judged: RoundJudged) -> dict[str, Any]:
    report = judged.report
    return {
        "target": judged.target,
        "seed": report.trial.seed,
        "verdict": str(report.verdict),
        "violations": [{"name": each.name, "text": each.text} for each in report.violations],
        "unknown": list(report.unknown),
        "permitted": report.permitted,
        "lost": {str(acks): lost for acks, lost in sorted(report.lost.items())},
        "acknowledged": report.acknowledged,
        "silence_max_s": round(report.silence_max_s, 3),
        "recovery_s": report.facts.recovery_s,
        "seconds": round(judged.seconds, 1),
        "overhead_s": round(report.overhead_s, 1),
        "coverage": dict(report.coverage),
        "faults": [repr(each.timed) for each in report.facts.injected if each.found],
        "run_dir": judged.run_dir,
    }
