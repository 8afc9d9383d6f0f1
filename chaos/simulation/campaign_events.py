"""Events of a campaign, for the terminal, JSON and files."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from chaos.campaign.counterexample import Counterexample
from conformance.events import Event


@dataclass(frozen=True, slots=True)
class CampaignStarted(Event):
    """Start of the campaign, with all its settings.

    :param last: last seed; None if only the time limits the campaign.
    """

    event: ClassVar[str] = "campaign-started"
    first: int
    last: int | None
    seconds_max: float | None
    workers: int
    defect: str
    failures_max: int | None


class Standing(StrEnum):
    """Result of running a saved failure again."""

    FAILS = "still fails"
    CHANGED = "fails otherwise"
    FIXED = "fixed"


@dataclass(frozen=True, slots=True)
class FailureReplayed(Event):
    """Repetition of a saved failure. `name` and `text` describe the present violation; empty if there is none."""

    event: ClassVar[str] = "failure-replayed"
    directory: str
    saved_name: str
    standing: Standing
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class SeedRan(Event):
    """Result of the trial of a seed.

    :param seconds: processor time of the trial.
    :param coverage: how often each state or transition was reached.
    :param name: name of the violation; empty if there is none.
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
    """Start of the shrinking of the trials of these seeds."""

    event: ClassVar[str] = "shrinking-started"
    seeds: tuple[int, ...]
    seconds_max: float


@dataclass(frozen=True, slots=True)
class Shrunk(Event):
    """The smallest trial found with the same violation."""

    event: ClassVar[str] = "shrunk"
    counterexample: Counterexample


@dataclass(frozen=True, slots=True)
class CampaignEnded(Event):
    """End of the campaign. `complete` is false if it was interrupted."""

    event: ClassVar[str] = "campaign-ended"
    complete: bool
    seconds: float
