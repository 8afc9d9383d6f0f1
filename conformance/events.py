"""Events of a run. Terminal, JUnit, HTML and NDJSON reports are handlers of these.

Every event is a frozen value whose fields can be written as JSON, so that another process (the pytest plugin) can
follow a run line by line: `as_json` adds the event's name under `event`.
"""

from dataclasses import asdict, dataclass
from typing import ClassVar

from linearizability.finding import Finding


@dataclass(frozen=True, slots=True)
class Event:
    """Base of all events."""

    event: ClassVar[str]

    def as_json(self) -> dict[str, object]:
        """Return the event as one flat JSON object."""
        return {"event": self.event, **asdict(self)}


@dataclass(frozen=True, slots=True)
class RunStarted(Event):
    """First event: the parameters of the run."""

    event: ClassVar[str] = "run-started"
    run_dir: str
    seed: int
    profile: str
    targets: tuple[str, ...]
    requirements: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TargetStarting(Event):
    """Start of a cluster. `nodes` is 0 if the number is known only after the start."""

    event: ClassVar[str] = "target-starting"
    target: str
    nodes: int


@dataclass(frozen=True, slots=True)
class TargetStarted(Event):
    """End of the start of a cluster: it has accepted and returned a record.

    :ivar warning: why an existing cluster did not accept and return a record, although its brokers respond; empty if it
        did.
    """

    event: ClassVar[str] = "target-started"
    target: str
    nodes: int
    seconds: float
    versions: dict[str, str]
    warning: str = ""


@dataclass(frozen=True, slots=True)
class RequirementStarted(Event):
    """Start of the check of a requirement on all targets, with the same scripts.

    Some requirements are checked at the same time. If such a check has no final verdict, the requirement is checked
    again alone, with a second event. `index` is the number of requirements judged before, plus one.
    """

    event: ClassVar[str] = "requirement-started"
    requirement: str
    index: int
    total: int


@dataclass(frozen=True, slots=True)
class ScriptRan(Event):
    """Progress inside a requirement: script number `done` of at most `planned` ended on one target."""

    event: ClassVar[str] = "script-ran"
    requirement: str
    target: str
    done: int
    planned: int


@dataclass(frozen=True, slots=True)
class RequirementJudged(Event):
    """The verdict on one requirement for one target."""

    event: ClassVar[str] = "requirement-judged"
    finding: Finding

    def as_json(self) -> dict[str, object]:
        """Return the finding as one flat JSON object."""
        return {"event": self.event, **self.finding.as_json()}


@dataclass(frozen=True, slots=True)
class RunEnded(Event):
    """Last event: whether the run is complete, its seed and its duration."""

    event: ClassVar[str] = "run-ended"
    complete: bool
    """False when the run was interrupted."""
    seed: int
    seconds: float
