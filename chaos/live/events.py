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
    """Start of a round, before its cluster starts.

    `unsupported` has the faults that the target does not support, with the reasons.

    `run_dir` may not exist yet.
    """

    event: ClassVar[str] = "round-started"
    target: str
    trial: Trial
    unsupported: tuple[tuple[str, str], ...]
    run_dir: str


@dataclass(frozen=True, slots=True)
class FaultInjected(Event):
    """Injection of a fault of the schedule."""

    event: ClassVar[str] = "fault-injected"
    injected: Injected


@dataclass(frozen=True, slots=True)
class RoundJudged(Event):
    """End of a round. `seconds` is its duration, including the start of the cluster, the drain and the judgement.

    `is_shrinking` is true for a run that shrinks the failure of a round; it has no `RoundStarted`.
    """

    event: ClassVar[str] = "round-judged"
    target: str
    report: Report
    run_dir: str
    seconds: float
    is_shrinking: bool = False


@dataclass(frozen=True, slots=True)
class RoundNotRun(Event):
    """End of a round that could not be run: its cluster did not start, a control failed, or a topic was not created.

    `is_shrinking` is that of `RoundJudged`.
    """

    event: ClassVar[str] = "round-not-run"
    target: str
    trial: Trial
    reason: str
    is_shrinking: bool = False


@dataclass(frozen=True, slots=True)
class ShrinkingStarted(Event):
    """Start of the shrinking of a round with a violation or a finding."""

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
