"""Results of a simulation campaign, folded from its events."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chaos.campaign.counterexample import Counterexample, program_of
from chaos.simulation.campaign_events import CampaignEnded, FailureReplayed, SeedRan, Shrunk, Standing
from conformance.events import Event
from kafkatrial.exit_codes import ExitCode
from reference_broker.simulation.coverage import STATES


@dataclass(slots=True)
class SimulationResults:
    """Results so far.

    :ivar worker_seconds: processor time of all workers.
    :ivar failing: the seeds with a violation.
    :ivar directories: directory of each counterexample, in their order.
    """

    seeds: int = 0
    events: int = 0
    operations: int = 0
    virtual_ms: int = 0
    worker_seconds: float = 0.0
    coverage: Counter[str] = field(default_factory=Counter)
    failing: list[SeedRan] = field(default_factory=list)
    replayed: list[FailureReplayed] = field(default_factory=list)
    counterexamples: list[Counterexample] = field(default_factory=list)
    directories: list[Path] = field(default_factory=list)
    complete: bool = False
    seconds: float = 0.0

    def handle(self, event: Event) -> None:
        """Add an event to the results."""
        match event:
            case SeedRan():
                self._add(event)
            case FailureReplayed():
                self.replayed.append(event)
            case Shrunk():
                self.counterexamples.append(event.counterexample)
            case CampaignEnded():
                self.complete, self.seconds = event.complete, event.seconds
            case _:
                pass

    def _add(self, ran: SeedRan) -> None:
        self.seeds += 1
        self.events += ran.events
        self.operations += ran.operations
        self.virtual_ms += ran.virtual_ms
        self.worker_seconds += ran.seconds
        self.coverage.update(ran.coverage)
        if ran.name:
            self.failing.append(ran)

    @property
    def times_real(self) -> float:
        """Virtual time divided by processor time."""
        return self.virtual_ms / 1000 / self.worker_seconds if self.worker_seconds else 0.0

    @property
    def events_per_s(self) -> float:
        """Number of events per second of processor time."""
        return self.events / self.worker_seconds if self.worker_seconds else 0.0

    @property
    def exit_code(self) -> ExitCode:
        """The exit code; a saved failure that is not fixed is a violation."""
        if self.failing or any(replayed.standing is not Standing.FIXED for replayed in self.replayed):
            return ExitCode.VIOLATION
        if not self.complete:
            return ExitCode.INTERRUPTED
        return ExitCode.OK if self.seeds or self.replayed else ExitCode.NOTHING_RAN

    @property
    def never_reached(self) -> list[str]:
        """The states and transitions that no seed has reached."""
        return [state for state in STATES if not self.coverage[state]]

    def as_json(self) -> dict[str, Any]:
        """Return the results as one JSON object."""
        code = self.exit_code
        return {
            "verdict": "violation" if code is ExitCode.VIOLATION else "ok" if code is ExitCode.OK else "unknown",
            "complete": self.complete,
            "seeds": self.seeds,
            "seconds": round(self.seconds, 3),
            "seeds_per_s": round(self.seeds / self.seconds, 2) if self.seconds else 0.0,
            "virtual_over_real": round(self.times_real, 1),
            "events": self.events,
            "events_per_s": round(self.events_per_s),
            "operations": self.operations,
            "coverage": {name: count for name, count in sorted(self.coverage.items()) if count},
            "never_reached": self.never_reached,
            "replayed": [replayed.as_json() for replayed in self.replayed],
            "failing": [
                {"seed": ran.seed, "name": ran.name, "text": ran.text, "at_ms": ran.at_ms, "digest": ran.digest}
                for ran in self.failing
            ],
            "counterexamples": [
                {
                    "name": found.name,
                    "text": found.text,
                    "seed": found.seed,
                    "defect": found.defect,
                    "size": found.size,
                    "at_ms": found.at_ms,
                    "digest": found.digest,
                    "is_confirmed": found.is_confirmed,
                    "program": program_of(found),
                    "command": found.command,
                    "directory": str(directory),
                }
                for found, directory in zip(self.counterexamples, self.directories, strict=True)
            ],
        }
