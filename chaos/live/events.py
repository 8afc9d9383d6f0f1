"""Events of a chaos session, for the terminal, JSON and files."""

from dataclasses import dataclass
from typing import ClassVar

from chaos.campaign.counterexample import Counterexample
from chaos.live.injector import Injected
from chaos.live.report import Report
from conformance.events import Event
from conformance.trial.trial import Trial


@dataclass(frozen=True, slots=True)
class ChaosStarted(Event):
    """First event: the plan of the session. `kinds` are the kinds of faults in its schedules."""

    event: ClassVar[str] = "chaos-started"
    targets: tuple[str, ...]
    seed: int
    seconds_max: float | None
    rounds_max: int | None
    kinds: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RoundStarted(Event):
    """A cluster is started for a round. `unsupported`: faults that the target does not support, with the reasons.

    `run_dir` may not exist yet.
    """

    event: ClassVar[str] = "round-started"
    target: str
    trial: Trial
    unsupported: tuple[tuple[str, str], ...]
    run_dir: str


@dataclass(frozen=True, slots=True)
class FaultInjected(Event):
    """A fault of the schedule has begun."""

    event: ClassVar[str] = "fault-injected"
    injected: Injected


@dataclass(frozen=True, slots=True)
class RoundJudged(Event):
    """A round is over. `seconds` is its duration with start, drain and judgement."""

    event: ClassVar[str] = "round-judged"
    target: str
    report: Report
    run_dir: str
    seconds: float


@dataclass(frozen=True, slots=True)
class RoundNotRun(Event):
    """A round could not be run: its cluster did not start, or a control failed."""

    event: ClassVar[str] = "round-not-run"
    target: str
    trial: Trial
    reason: str


@dataclass(frozen=True, slots=True)
class ShrinkingStarted(Event):
    """Shrinking of a round with a violation or a finding starts."""

    event: ClassVar[str] = "shrinking-started"
    target: str
    seed: int
    name: str
    seconds_max: float


@dataclass(frozen=True, slots=True)
class Shrunk(Event):
    """The smallest round found with the same violation or finding, and its directory."""

    event: ClassVar[str] = "shrunk"
    counterexample: Counterexample
    directory: str


@dataclass(frozen=True, slots=True)
class ChaosEnded(Event):
    """Last event. `complete` is false if the session was interrupted."""

    event: ClassVar[str] = "chaos-ended"
    complete: bool
    seconds: float
