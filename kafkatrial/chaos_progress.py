"""Progress of a chaos session: a line for each fault and round, and a live line on a terminal."""

from rich.console import Console
from rich.text import Text

from chaos.live.events import (
    ChaosStarted,
    FaultInjected,
    RoundJudged,
    RoundNotRun,
    RoundStarted,
    ShrinkingStarted,
    Shrunk,
)
from conformance.events import Event
from kafkatrial.chaos_results import ChaosResults
from kafkatrial.live_line import LiveLine
from linearizability.judgement import Verdict
from linearizability.printable import counted, printable

_STYLES = {Verdict.OK: "green", Verdict.UNKNOWN: "yellow", Verdict.VIOLATION: "bold red"}


class ChaosProgress(LiveLine):
    """A context manager that prints a line for each fault, round and saved failure, and shows a live line."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._noted = Text("")

    def handle(self, event: Event, results: ChaosResults) -> None:
        """Print the event, or show it in the live line."""
        match event:
            case ChaosStarted():
                self._print(_banner(event))
            case RoundStarted(target, trial, unsupported):
                self._noted = Text("")
                self._doing = Text(f"round {len(results.rounds) + 1}: seed {trial.seed} on {target}")
                for fault, reason in unsupported:
                    self._print(Text(printable(f"  left out {fault}: {reason}"), "yellow"))
            case FaultInjected(injected):
                missed = "" if injected.found else f" ({injected.rejection or 'nothing to break'})"
                self._print(Text(printable(f"  {injected.timed}{missed}"), "dim"))
            case RoundJudged():
                self._print(_judged(event))
            case RoundNotRun(target, trial, reason):
                self._print(Text(printable(f"{target} seed {trial.seed} did not run: {reason}"), "bold red"))
            case ShrinkingStarted(target, seed, name, seconds_max):
                self._print(
                    Text(f"shrinking {name} of seed {seed} on {target}, at most {seconds_max / 60:.0f} minutes")
                )
            case Shrunk(found, directory):
                standing = " (flaky: it did not occur in another run)" if found.is_confirmed is False else ""
                self._print(Text(f"{found.name} kept in {directory}{standing}"))
            case _:
                pass

    def note(self, progress: object) -> None:
        """Show a line of the current round's live view. The live view calls this method every few seconds."""
        if self._is_shown:
            self._noted = Text(printable(progress), "dim")
        else:
            self._print(Text(printable(f"  live: {progress}")))

    def _parts(self) -> tuple[Text, ...]:
        return self._doing, self._noted


def _banner(event: ChaosStarted) -> Text:
    limit = "" if event.seconds_max is None else f", for {event.seconds_max / 60:g} minutes"
    rounds = "" if event.rounds_max is None else f", {counted(event.rounds_max, 'round')}"
    return Text(f"seed {event.seed}{rounds}{limit} on {', '.join(event.targets)}; faults: {', '.join(event.kinds)}")


def _judged(event: RoundJudged) -> Text:
    report = event.report
    line = Text(f"{event.target} seed {report.trial.seed} ")
    line.append(str(report.verdict), _STYLES[report.verdict])
    line.append(f": {counted(report.acknowledged, 'record')} acknowledged")
    for acks, lost in sorted(report.lost.items()):
        line.append(f", {lost:,} of acks={'all' if acks < 0 else acks} lost")
    line.append(f", silent for {report.silence_max_s:.1f} s at most")
    recovery_s = report.facts.recovery_s
    line.append(f", recovered in {recovery_s:.1f} s" if recovery_s is not None else ", not recovered")
    line.append(f"; {event.seconds:.0f} s")
    for violation in report.violations:
        line.append(f"\n  ✘ {violation.name} {printable(violation.text)}", "bold red")
    for reason in report.unknown:
        line.append(f"\n  ? {printable(reason)}", "yellow")
    return line
