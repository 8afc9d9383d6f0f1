"""Summary of a simulation campaign on a terminal: figures, coverage, and each counterexample."""

from pathlib import Path

from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Column
from rich.text import Text

from chaos.campaign.counterexample import Counterexample, program_of
from kafkatrial.exit_codes import ExitCode
from kafkatrial.simulation_results import SimulationResults
from linearizability.printable import counted, printable
from reports.console import plain_table
from reports.program import render_command, render_program

_LISTED_MAX = 10


def render_simulation(results: SimulationResults) -> RenderableType:
    """Return the summary of a campaign."""
    parts: list[RenderableType] = []
    if results.seeds:
        parts += [_figures(results), _coverage(results)]
    if len(results.failing) > 1:
        parts.append(_failing(results))
    found = zip(results.counterexamples, results.directories, strict=True)
    parts += [_counterexample(counterexample, directory) for counterexample, directory in found]
    parts.append(_last_line(results))
    return Group(*(line for part in parts for line in (Text(), part)))


def _figures(results: SimulationResults) -> RenderableType:
    rate = results.seeds / results.seconds if results.seconds else 0.0
    headings = ("Seeds", "Seconds", "Seeds/s", "Speed", "Events/s", "Operations", "Failing")
    table = plain_table(*(Column(heading, justify="right") for heading in headings))
    table.add_row(
        f"{results.seeds:,}",
        f"{results.seconds:.1f}",
        f"{rate:.1f}",
        f"{results.times_real:,.0f} times real time",
        f"{results.events_per_s:,.0f}",
        f"{results.operations:,}",
        Text(f"{len(results.failing):,}", "bold red" if results.failing else "green"),
    )
    return Group(table, Text("Speed and events per second are those of one core.", "dim"))


def _coverage(results: SimulationResults) -> RenderableType:
    counts = [Text(f"{name} {count:,}") for name, count in sorted(results.coverage.items()) if count]
    parts: list[RenderableType] = [Text("Reached", "bold"), Padding(Columns(counts, padding=(0, 3)), (0, 0, 0, 2))]
    if results.never_reached:
        parts.append(Text.assemble(("Never reached  ", "bold yellow"), ", ".join(results.never_reached)))
    return Group(*parts)


def _failing(results: SimulationResults) -> RenderableType:
    table = plain_table("Violated", Column("Seeds", overflow="fold"))
    by_name: dict[str, list[int]] = {}
    for ran in results.failing:
        by_name.setdefault(ran.name, []).append(ran.seed)
    for name, seeds in by_name.items():
        listed = ", ".join(map(str, seeds[:_LISTED_MAX]))
        table.add_row(name, f"{listed}, and {len(seeds) - _LISTED_MAX} more" if len(seeds) > _LISTED_MAX else listed)
    return table


def _counterexample(found: Counterexample, directory: Path) -> RenderableType:
    title = Text.assemble(("✘ violation ", "bold red"), (found.name, "bold"), f"  at {found.at_ms} ms of virtual time")
    if found.is_confirmed is None:
        title.append("  it ran once, and was not shrunk", "yellow")
    elif not found.is_confirmed:
        title.append("  not confirmed: it did not occur again", "yellow")
    files = ", ".join(sorted(path.name for path in directory.iterdir())) if directory.is_dir() else "nothing"
    shrunk = f"  Shrunk in {found.runs} runs to {found.size}:"
    return Group(
        title,
        Text(f"  {printable(found.text)}"),
        Text(shrunk, "dim"),
        render_program(program_of(found)),
        Text(f"  Kept in    {directory} ({files})"),
        render_command("  Reproduce: ", found.command),
    )


def _last_line(results: SimulationResults) -> Text:
    code = results.exit_code
    style = "green" if code is ExitCode.OK else "bold red" if code is ExitCode.VIOLATION else "yellow"
    meanings = {
        ExitCode.OK: f"no violation in {counted(results.seeds, 'seed')}",
        ExitCode.VIOLATION: "a violation",
    }
    return Text(f"exit code {int(code)}: {meanings.get(code, code.meaning)}", style)
