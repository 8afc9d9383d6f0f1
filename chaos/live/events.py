"""Events of a chaos session, for the terminal, JSON and files."""

from dataclasses import dataclass
from typing import ClassVar

from chaos.campaign.counterexample import Counterexample
from chaos.live.injector import Injected
from chaos.live.report import Report
from chaos.trial import Trial
from conformance.events import Event


@dataclass(frozen=True, slots=True)
class ChaosStarted(Event):
    """First of all: everything that was drawn or chosen. `kinds` are those of which schedules are made."""

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
    """A round is over. `seconds` is all that it took."""

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
    """A round that showed something is made smaller."""

    event: ClassVar[str] = "shrinking-started"
    target: str
    seed: int
    name: str
    seconds_max: float


@dataclass(frozen=True, slots=True)
class Shrunk(Event):
    """The smallest round found that shows the same, and where it is kept."""

    event: ClassVar[str] = "shrunk"
    counterexample: Counterexample
    directory: str


@dataclass(frozen=True, slots=True)
class ChaosEnded(Event):
    """Last of all. `complete` is false when it was interrupted."""

    event: ClassVar[str] = "chaos-ended"
    complete: bool
    seconds: float
