"""Progress of a simulation campaign: a line for each failure, and the progress so far.

On a terminal, the progress is a live line. Elsewhere, it is printed every ten seconds.
"""

from rich.console import Console
from rich.text import Text

from chaos.simulation.campaign_events import (
    CampaignStarted,
    FailureReplayed,
    SeedRan,
    ShrinkingStarted,
    Standing,
)
from chaos.simulation.seeds import trial_of_seed
from conformance.events import Event
from conformance.trial.source import printed
from kafkatrial.live_line import LiveLine
from kafkatrial.simulation_results import SimulationResults
from linearizability.printable import counted

_PLAIN_PERIOD_S = 10.0


class SimulationProgress(LiveLine):
    """A context manager that shows events, with the results so far."""

    def __init__(self, console: Console, *, digests: bool = False) -> None:
        super().__init__(console)
        self._digests = digests
        self._total: int | None = None
        self._results: SimulationResults | None = None
        self._printed_s = self._began_s

    def handle(self, event: Event, results: SimulationResults) -> None:
        """Change the live line, or print above it."""
        self._results = results
        match event:
            case CampaignStarted():
                self._total = total_of(event)
                self._print(banner(event))
            case SeedRan():
                self._doing = Text("")
                if self._digests or event.name:
                    self._print(seed_line(event, digest=self._digests))
                if not self._is_shown and self._console.get_time() - self._printed_s >= _PLAIN_PERIOD_S:
                    self._printed_s = self._console.get_time()
                    self._print(Text(progress_text(results, self._total, self._elapsed_s)))
            case FailureReplayed():
                self._print(replayed_line(event))
            case ShrinkingStarted():
                self._begin(shrinking_line(event))
            case _:
                pass

    def _parts(self) -> tuple[Text, ...]:
        far = "" if self._results is None else progress_text(self._results, self._total, self._elapsed_s)
        return (self._doing or Text(far),)


def total_of(event: CampaignStarted) -> int | None:
    """Return the number of seeds; None if only the time limits the campaign."""
    return None if event.last is None else event.last - event.first + 1


def banner(event: CampaignStarted) -> Text:
    """Return the selected options, and the whole trial if there is a single seed."""
    seeds = f"seeds {event.first}..{'' if event.last is None else event.last}"
    if event.last == event.first:
        seeds = f"seed {event.first}"
    limit = "" if event.seconds_max is None else f", for {event.seconds_max / 60:g} minutes"
    stop = "runs all seeds" if event.failures_max is None else f"stops after {event.failures_max} failing"
    text = f"{seeds}{limit}, {counted(event.workers, 'worker')}, {stop}, defect: {event.defect or 'none'}"
    if event.last == event.first:
        text += f"\n{printed(trial_of_seed(event.first))}"
    return Text(text)


def progress_text(results: SimulationResults, total: int | None, elapsed_s: float) -> str:
    """Return the progress: `312 of 1,000 seeds, 21.3 a second, 5,900 times real time on a core`."""
    of_total = "" if total is None else f" of {total:,}"
    failing = f", {len(results.failing)} failing" if results.failing else ""
    return (
        f"{results.seeds:,}{of_total} seeds, {results.seeds / max(elapsed_s, 0.001):.1f} a second, "
        f"{results.times_real:,.0f} times real time on a core{failing}"
    )


def seed_line(event: SeedRan, *, digest: bool) -> Text:
    """Return the line for a seed, with its violation, if there is one, and with its digest if `digest` is true."""
    line = Text(f"seed {event.seed}")
    if digest:
        line.append(f" {event.digest}")
    if event.name:
        line.append(" ✘ violation ", "bold red").append(f"{event.name} at {event.at_ms} ms: {event.text}")
    return line


def replayed_line(event: FailureReplayed) -> Text:
    """Return the line for a saved failure that ran again: whether it is fixed, or its violation."""
    line = Text(f"saved failure {event.directory} ({event.saved_name}): ")
    if event.standing is Standing.FIXED:
        return line.append(f"{event.standing}; delete the directory to forget it", "green")
    return line.append(str(event.standing), "bold red").append(f": {event.name}: {event.text}")


def shrinking_line(event: ShrinkingStarted) -> Text:
    """Return the line that is shown while seeds are shrunk: the seeds and the time limit."""
    seeds = ", ".join(map(str, event.seeds))
    return Text(f"shrinking {'seed' if len(event.seeds) == 1 else 'seeds'} {seeds}: {event.seconds_max:.0f} s at most")
