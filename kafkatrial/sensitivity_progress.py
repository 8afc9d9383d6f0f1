"""Progress of `kafkatrial sensitivity`: a line for each defect and false alarm, and a live line on a terminal.

Without a live line, every 250th trial on the clean broker prints a line as well.
"""

from rich.text import Text

from chaos.sensitivity import CleanRan, DefectTried, SensitivityStarted
from conformance.events import Event
from kafkatrial.live_line import LiveLine
from linearizability.printable import counted, printable
from reports.sensitivity import Sensitivity

_CLEAN_PERIOD = 250


class SensitivityProgress(LiveLine):
    """A context manager that shows every event, with the results so far."""

    def handle(self, event: Event, results: Sensitivity) -> None:
        """Change the live line, and print the line of the event, if it has one, above it."""
        self._doing = Text(progress_text(event, results))
        line = line_of(event, results)
        is_due = isinstance(event, CleanRan) and results.clean_scripts % _CLEAN_PERIOD == 0
        if line is None and is_due and not self._is_shown:
            line = self._doing
        if line is not None:
            self._print(line)


def progress_text(event: Event, results: Sensitivity) -> str:
    """Return `31 of 120 defects tried, 1 missed`, or the number of trials on the clean broker."""
    if isinstance(event, CleanRan):
        return f"{results.clean_scripts:,} of {event.total:,} trials on the clean broker"
    missed = f", {len(results.missed)} missed" if results.missed else ""
    return f"{len(results.rows)} of {results.planned} defects tried{missed}"


def line_of(event: Event, results: Sensitivity) -> Text | None:
    """Return the line for an event; None if it has no line."""
    match event:
        case SensitivityStarted():
            return Text(
                f"{counted(len(event.defects), 'defect')}, {event.seconds:g} s of computing for each, "
                f"seeds from {event.first} on, {counted(event.workers, 'worker')}"
            )
        case DefectTried(name=""):
            return (
                _tried(event, results).append(" missed", "bold red").append(f" after {counted(event.trials, 'trial')}")
            )
        case DefectTried():
            by = "its requirement" if "/" in event.name else "its saved trial"
            by = by if event.seed is None else f"the trial of seed {event.seed}"
            return (
                _tried(event, results)
                .append(" detected", "green")
                .append(f" by {event.name}, {event.trials:,} trials, {event.seconds:.1f} s ({by})")
            )
        case CleanRan(false_alarm=alarm) if alarm is not None:
            text = f"seed {alarm.seed} violates {alarm.name} on the clean broker: {printable(alarm.text)}"
            return Text.assemble(("false alarm ", "bold red"), text)
    return None


def _tried(event: DefectTried, results: Sensitivity) -> Text:
    return Text(f"[{len(results.rows)}/{results.planned}] {event.defect}")
