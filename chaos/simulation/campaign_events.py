"""Events that a campaign yields. The command line shows them in the terminal, as JSON, and in files."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from chaos.campaign.counterexample import Counterexample
from conformance.events import Event


@dataclass(frozen=True, slots=True)
class CampaignStarted(Event):
    """Start of the campaign, with its settings as in `Plan`."""

    event: ClassVar[str] = "campaign-started"
    first: int
    last: int | None
    seconds_max: float | None
    workers: int
    defect: str
    failures_max: int | None


class Standing(StrEnum):
    """Result of a repeated saved failure, compared with the saved violation."""

    FAILS = "still fails"
    CHANGED = "fails otherwise"
    FIXED = "fixed"


@dataclass(frozen=True, slots=True)
class FailureReplayed(Event):
    """Run of a saved failure. `name` and `text` describe the violation of this run; empty if it has none."""

    event: ClassVar[str] = "failure-replayed"
    directory: str
    saved_name: str
    standing: Standing
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class SeedRan(Event):
    """Result of the trial of a seed.

    :param events: number of events of the simulation.
    :param operations: number of operations in the history.
    :param seconds: processor time of the trial.
    :param coverage: how often each state and transition occurred.
    :param name: name of the violation; empty if there is none.
    :param text: description of the violation; empty if there is none.
    :param at_ms: virtual time of the violation.
    """

    event: ClassVar[str] = "seed-ran"
    seed: int
    digest: str
    events: int
    virtual_ms: int
    operations: int
    seconds: float
    coverage: Mapping[str, int]
    name: str = ""
    text: str = ""
    at_ms: int = 0


@dataclass(frozen=True, slots=True)
class ShrinkingStarted(Event):
    """Start of shrinking.

    :param seeds: seeds whose trials are shrunk.
    :param seconds_max: maximum processor time for each of them.
    """

    event: ClassVar[str] = "shrinking-started"
    seeds: tuple[int, ...]
    seconds_max: float


@dataclass(frozen=True, slots=True)
class Shrunk(Event):
    """A counterexample: the smallest trial found, or the original trial if it was not shrunk."""

    event: ClassVar[str] = "shrunk"
    counterexample: Counterexample


@dataclass(frozen=True, slots=True)
class CampaignEnded(Event):
    """End of the campaign, after `seconds` of wall-clock time. `complete` is false if it was interrupted."""

    event: ClassVar[str] = "campaign-ended"
    complete: bool
    seconds: float
