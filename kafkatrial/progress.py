"""Progress of a run: one live line on a terminal, plain lines anywhere else.

Plain lines are whole sentences, one per verdict, so that a CI log reads by itself and nothing is lost when it is cut.
Both go to standard output; colour follows NO_COLOR, as Rich does.
"""

from typing import Protocol, Self

from rich.console import Console
from rich.text import Text

from conformance.events import (
    Event,
    RequirementJudged,
    RequirementStarted,
    RunStarted,
    ScriptRan,
    TargetStarted,
    TargetStarting,
)
from kafkatrial.live_line import LiveLine
from linearizability.finding import Finding
from linearizability.printable import printable
from reports.terminal import CELLS


class Progress(Protocol):
    """Context manager that shows every event."""

    def handle(self, event: Event) -> None:
        """Show an event."""
        ...

    def __enter__(self) -> Self: ...
    def __exit__(self, *exc_info: object) -> None: ...


class PlainProgress:
    """Printer of one line per target and per verdict."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._total = 0
        self._index = 0

    def handle(self, event: Event) -> None:
        """Print the line of an event, if it has one."""
        match event:
            case RunStarted():
                self._print(banner(event))
            case TargetStarting():
                self._print(Text(f"starting {event.target}, {_nodes(event.nodes)}"))
            case TargetStarted():
                self._print(ready_line(event))
            case RequirementStarted():
                self._index, self._total = event.index, event.total
            case RequirementJudged(finding):
                self._print(Text(f"[{self._index}/{self._total}] ").append_text(verdict_line(finding)))
            case _:
                pass

    def _print(self, text: Text) -> None:
        self._console.print(text, soft_wrap=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        pass


class LiveProgress(LiveLine):
    """Live line with the current requirement, completed scripts and elapsed time; verdicts are printed above it."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._doing = Text("")
        self._count = ""
        self._requirement = ""
        self._scripts: dict[str, tuple[int, int]] = {}

    def handle(self, event: Event) -> None:
        """Change the live line, or print above it."""
        match event:
            case RunStarted():
                self._console.print(banner(event), soft_wrap=True)
            case TargetStarting():
                self._doing = Text(f"starting {event.target}, {_nodes(event.nodes)}")
            case TargetStarted():
                self._console.print(ready_line(event), soft_wrap=True)
            case RequirementStarted():
                self._requirement = event.requirement
                self._doing, self._scripts = Text(event.requirement, "bold"), {}
                self._count = f"[{event.index}/{event.total}]"
            case ScriptRan() if event.requirement == self._requirement:  # others may be checked beside it
                self._scripts[event.target] = (event.done, event.planned)
            case RequirementJudged(finding):
                self._console.print(verdict_line(finding), soft_wrap=True)
            case _:
                pass

    def _parts(self) -> tuple[Text, ...]:
        scripts = "  ".join(f"{target} {done}/{planned}" for target, (done, planned) in self._scripts.items())
        return Text(self._count, "dim"), self._doing, Text(scripts, "dim")


def progress_for(console: Console) -> Progress:
    """Return the live line on an interactive terminal, else plain lines."""
    return LiveProgress(console) if console.is_terminal and console.is_interactive else PlainProgress(console)


def banner(event: RunStarted) -> Text:
    """Return the line with the seed and the choices of the run, printed at its start."""
    return Text(
        f"seed {event.seed}, profile {event.profile}, {len(event.requirements)} requirements "
        f"on {', '.join(event.targets)}\nrun {event.run_dir}"
    )


def ready_line(event: TargetStarted) -> Text:
    """Return the line for a started cluster: its versions and its start time."""
    versions = ", ".join(f"{name} {version}" for name, version in event.versions.items())
    facts = "; ".join(filter(None, (_nodes(event.nodes), versions)))
    return Text(f"{event.target} is ready after {event.seconds:.1f} s ({facts})")


def verdict_line(finding: Finding) -> Text:
    """Return the line for a verdict and its reason."""
    sign, style = CELLS[finding.standing]
    line = Text.assemble((f"{sign:<11} ", style), f"{finding.requirement}  on {finding.target}")
    if finding.reason:
        line.append(f": {printable(finding.reason)}", "dim")
    return line


def _nodes(count: int) -> str:
    return {0: "an existing cluster", 1: "1 node"}.get(count, f"{count} nodes")
