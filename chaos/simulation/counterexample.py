"""A trial that shows a violation, as a program for a person to read, change and start."""

import sys
from dataclasses import dataclass
from textwrap import fill

from chaos.simulation.run import Outcome, run
from chaos.simulation.seeding import seeded
from chaos.trial import Client, Poll, SendBatches, SteppingClient, Trial
from chaos.trial.source import printed
from linearizability.printable import PROGRAM_MAX, printable

_WIDTH = 118


@dataclass(frozen=True, slots=True)
class Counterexample:
    """A violation and the smallest trial found that shows it.

    :param seed: from which it was found; null for a trial that was written.
    :param defect: with which it violates; empty: with none.
    :param at_ms: when, in virtual time.
    :param digest: of the run, the same whenever it runs again.
    :param is_confirmed: it ran twice, to the same digest.
    :param runs: how many trials shrinking took.
    """

    trial: Trial
    name: str
    text: str
    seed: int | None
    defect: str = ""
    at_ms: int = 0
    digest: str = ""
    is_confirmed: bool = True
    runs: int = 0

    @property
    def command(self) -> str:
        """The command line that finds it again."""
        return f"kafkatrial simulate --seeds {self.seed}" + (f" --defect {self.defect}" if self.defect else "")

    @property
    def size(self) -> str:
        """`2 clients, 5 operations, 1 fault`."""
        trial = self.trial
        operations = sum(map(operations_of, trial.clients))
        counts = ((len(trial.clients), "client"), (operations, "operation"), (len(trial.schedule), "fault"))
        return ", ".join(f"{count} {noun}{'' if count == 1 else 's'}" for count, noun in counts)


def operations_of(client: Client) -> int:
    """Return the number of operations of a client's steps, at least; of a workload, 1."""
    if not isinstance(client, SteppingClient):
        return 1
    return sum(
        step.batches if isinstance(step, SendBatches) else step.times if isinstance(step, Poll) else 1
        for step in client.steps
    )


_PROGRAM = '''\
"""{title}

{story}
"""

import kafkatrial.suite

kafkatrial.suite.activate()

from fixtures.faults import *
from chaos.simulation.counterexample import run_program
from chaos.trial import *

trial = {trial}

if __name__ == "__main__":
    raise SystemExit(run_program(trial{defect}))
'''


def program_of(counterexample: Counterexample) -> str:
    """The source of a program that runs the trial, says what happened, and exits 1 where that is a violation."""
    found = counterexample
    story = [found.text] if found.text else []
    story.append(f"Shrunk to {found.size}. The run's digest is {found.digest}.")
    if found.seed is not None:
        story.append(f"Found by: {found.command}")
    return _PROGRAM.format(
        title=f"{found.name}, {found.at_ms} virtual milliseconds after the start of the cluster.",
        story="\n\n".join(fill(_plain(paragraph), _WIDTH) for paragraph in story),
        trial=printed(found.trial, used=len("trial = ")),
        defect=f", defect={found.defect!r}" if found.defect else "",
    )


def _plain(text: str) -> str:
    """What can stand in a docstring."""
    return text.replace("\\", "\\\\").replace('"""', "'''")


def run_program(trial: Trial, *, defect: str = "") -> int:
    """Run a trial and say what happened; the exit code: 0, or 1 where something is violated."""
    with seeded(defect):
        outcome = run(trial)
    sys.stdout.write(f"{printable(told(outcome), PROGRAM_MAX)}\n")
    return 0 if outcome.violation is None else 1


def told(outcome: Outcome) -> str:
    """What happened in a run, in two lines."""
    violation = outcome.violation
    found = "no violation" if violation is None else f"{violation.name} at {violation.at_ms} ms: {violation.text}"
    return (
        f"{found}\n{outcome.operations} operations, {outcome.events} events, "
        f"{outcome.virtual_ms / 1000:.1f} virtual seconds, digest {outcome.digest}"
    )
