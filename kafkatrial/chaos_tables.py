"""Summary of a chaos session on a terminal: figures, coverage, and each failure with the command that repeats it."""

import shlex

from rich.console import Group, RenderableType
from rich.table import Column, Table
from rich.text import Text

from chaos.live.campaign import Plan
from chaos.live.coverage import STATES
from chaos.live.fault_kinds import KINDS
from fixtures.targets.recipe_file import targets_option
from kafkatrial.chaos_results import ChaosResults
from kafkatrial.exit_codes import ExitCode
from kafkatrial.packets import as_option
from linearizability.printable import printable
from reports.console import plain_table
from reports.program import render_command


def render_chaos(results: ChaosResults, plan: Plan) -> RenderableType:
    """Return the summary of a session."""
    parts: list[RenderableType] = []
    if results.rounds:
        parts += [_figures(results), _coverage(results)]
    for each in results.shrunk:
        text = Text(f"{each.counterexample.name} on {each.counterexample.target}\n", "bold red")
        text.append(printable(each.counterexample.text), "")
        again = f"kafkatrial chaos --again {each.directory}{_disk_option(plan)}{_common_options()}"
        parts.append(Group(text, render_command("", again, "cyan")))
    code = results.exit_code
    last = Text(f"seed {results.seed} (kafkatrial chaos {options_of(plan)}), histories in {plan.out}: ")
    parts.append(last.append(code.meaning, "green" if code is ExitCode.OK else "bold red"))
    return Group(*(line for part in parts for line in (Text(), part)))


def options_of(plan: Plan) -> str:
    """Return the options that generate the same rounds again. They do not limit the number of rounds or the time."""
    options = [f"--target {target}" for target in plan.targets] + [f"--seed {plan.seed}"]
    if plan.sought is not None:
        options.append(f"--find {plan.sought.name}")
    elif plan.kinds != tuple(KINDS):
        options += [f"--fault {kind}" for kind in plan.kinds]
    if plan.load != 1:
        options.append(f"--load {plan.load}")
    return " ".join(options) + _disk_option(plan) + _common_options()


def _common_options() -> str:
    return as_option() + "".join(f" {shlex.quote(word)}" for word in targets_option())


def _disk_option(plan: Plan) -> str:
    return "" if plan.disk is None else f" --disk {plan.disk}"


def _figures(results: ChaosResults) -> RenderableType:
    table = _table("Target", "Rounds", "Failed", "Records acked", "Lost acks=0", "acks=1", "acks=all", "Overhead s")
    for target in dict.fromkeys(judged.target for judged in results.rounds):
        own = [judged for judged in results.rounds if judged.target == target]
        overhead_s = sum(judged.seconds - judged.report.facts.work_s for judged in own) / len(own)
        table.add_row(
            target,
            f"{len(own):,}",
            f"{sum(bool(judged.report.violations) for judged in own):,}",
            f"{sum(judged.report.acknowledged for judged in own):,}",
            *(f"{results.lost[target, acks]:,}" for acks in (0, 1, -1)),
            f"{overhead_s:.1f}",
        )
    return table


def _coverage(results: ChaosResults) -> RenderableType:
    """Return a table of kinds of faults by states. A cell is the number of rounds with both the fault and the state."""
    reached = [state for state in STATES if results.reached[state]]
    table = _table("Fault", "injected", *(str(number) for number in range(1, len(reached) + 1)))
    for kind, count in sorted(results.faults.items()):
        cells = (results.coverage[kind, state] for state in reached)
        table.add_row(kind, f"{count:,}", *(f"{cell:,}" if cell else "·" for cell in cells))
    states = Text("number of rounds with both the fault and the state\n", "dim")
    for number, state in enumerate(reached, 1):
        states.append(f"{number} {state} ({results.reached[state]:,})   ", "")
    if results.never_reached:
        states.append("\nnever reached: ", "yellow").append(", ".join(results.never_reached))
    return Group(table, states)


def _table(*headings: str) -> Table:
    table = plain_table(
        *(
            Column(heading, justify="right" if number else "left", no_wrap=not number)
            for number, heading in enumerate(headings)
        )
    )
    table.padding = (0, 1, 0, 0)  # the table of targets fits 80 columns
    return table
