"""What a campaign tells while it runs: a terminal, JSON and files are made of these."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from chaos.campaign.counterexample import Counterexample
from conformance.events import Event


@dataclass(frozen=True, slots=True)
class CampaignStarted(Event):
    """First of all: everything that was drawn or chosen.

    :param last: null: until the time is over.
    """

    event: ClassVar[str] = "campaign-started"
    first: int
    last: int | None
    seconds_max: float | None
    workers: int
    defect: str
    failures_max: int | None


class Standing(StrEnum):
    """What became of a saved failure."""

    FAILS = "still fails"
    CHANGED = "fails otherwise"
    FIXED = "fixed"


@dataclass(frozen=True, slots=True)
class FailureReplayed(Event):
    """A saved failure ran again. `name` and `text` say what is violated now."""

    event: ClassVar[str] = "failure-replayed"
    directory: str
    saved_name: str
    standing: Standing
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class SeedRan(Event):
    """A seed's trial ran, and was judged.

    :param seconds: of the worker's processor.
    :param coverage: how often each state or transition was reached.
    :param name: of what was violated; empty where nothing was.
    :param at_ms: when that was, in virtual time.
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
    """The trials of these seeds are made small."""

    event: ClassVar[str] = "shrinking-started"
    seeds: tuple[int, ...]
    seconds_max: float


@dataclass(frozen=True, slots=True)
class Shrunk(Event):
    """The smallest trial found that violates the same."""

    event: ClassVar[str] = "shrunk"
    counterexample: Counterexample


@dataclass(frozen=True, slots=True)
class CampaignEnded(Event):
    """Last of all. `complete` is false when the campaign was interrupted."""

    event: ClassVar[str] = "campaign-ended"
    complete: bool
    seconds: float
