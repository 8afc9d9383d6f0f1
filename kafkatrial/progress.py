"""Progress of a run: a line per target and per verdict, and a live line on a terminal."""

from collections.abc import Sequence

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
from linearizability.printable import counted, printable
from reports.terminal import CELLS


class RunProgress(LiveLine):
    """A context manager that shows events; the live line has the requirement, its scripts and the elapsed time."""

    def __init__(self, console: Console, notes: Sequence[str] = ()) -> None:
        """Show events on a console.

        :param notes: lines to print after the first one.
        """
        super().__init__(console)
        self._notes = notes
        self._count = ""
        self._requirement = ""
        self._scripts: dict[str, tuple[int, int]] = {}

    def handle(self, event: Event) -> None:
        """Change the live line, or print above it."""
        match event:
            case RunStarted():
                self._print(banner(event))
                for note in self._notes:
                    self._print(Text(note))
            case TargetStarting():
                self._begin(Text(f"starting {event.target}, {_nodes(event.nodes)}"))
            case TargetStarted():
                self._print(ready_line(event))
            case RequirementStarted():
                self._requirement = event.requirement
                self._doing, self._scripts = Text(event.requirement, "bold"), {}
                self._count = f"[{event.index}/{event.total}]"
            case ScriptRan() if event.requirement == self._requirement:  # others may be checked at the same time
                self._scripts[event.target] = (event.done, event.planned)
            case RequirementJudged(finding):
                count = Text("" if self._is_shown else f"{self._count} ")
                self._print(count.append_text(verdict_line(finding)))
            case _:
                pass

    def _parts(self) -> tuple[Text, ...]:
        scripts = "  ".join(f"{target} {done}/{planned}" for target, (done, planned) in self._scripts.items())
        return Text(self._count, "dim"), self._doing, Text(scripts, "dim")


def banner(event: RunStarted) -> Text:
    """Return the lines with the seed and the options of the run, printed at its start."""
    return Text(
        f"seed {event.seed}, profile {event.profile}, {counted(len(event.requirements), 'requirement')} "
        f"on {', '.join(event.targets)}\nrun {event.run_dir}"
    )


def ready_line(event: TargetStarted) -> Text:
    """Return the line for a started cluster: its versions and its start time."""
    versions = ", ".join(f"{name} {version}" for name, version in event.versions.items())
    facts = "; ".join(filter(None, (_nodes(event.nodes), versions)))
    if event.warning:
        return Text(f"{event.target} responds ({facts}). Warning: {printable(event.warning)}", "yellow")
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
