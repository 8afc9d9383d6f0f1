"""Counterexample: a trial with a violation, usually shrunk, and the source of a Python program that runs the trial."""

from dataclasses import dataclass
from textwrap import fill
from typing import Final

from conformance.trial.source import imports_of, printed
from conformance.trial.trial import Client, Trial
from fixtures.clients.steps import Poll, SendBatches, SteppingClient

SIMULATION: Final = "simulation"
FILE_NAME: Final = "failure.json"
_WIDTH: Final = 118
_CONFIRMATIONS: Final = {
    True: "The result occurred twice.",
    False: "The result did not recur: flaky.",
    None: "The trial was not run a second time.",
}


@dataclass(frozen=True, slots=True)
class Counterexample:
    """A trial that shows a violation, or a finding of chaos on a real cluster.

    :param name: name of the violation or the finding.
    :param text: description for a person.
    :param seed: seed of the trial before shrinking; None for a trial that was written by hand.
    :param target: target on which it was found.
    :param defect: defect that was seeded into the simulation; empty if there was none.
    :param at_ms: virtual time of the violation; 0 if the target is not the simulation.
    :param digest: on the simulation, hash of the run's trace, the same in every run of the trial; otherwise empty.
    :param is_confirmed: whether a second run showed the same violation, on the simulation also with the same digest.
        None if there was no second run.
    :param runs: number of runs during shrinking.
    """

    trial: Trial
    name: str
    text: str
    seed: int | None
    target: str = SIMULATION
    defect: str = ""
    at_ms: int = 0
    digest: str = ""
    is_confirmed: bool | None = True
    runs: int = 0

    @property
    def command(self) -> str:
        """The command line that runs the seed on the simulation again: the trial before shrinking."""
        return f"kafkatrial simulate --seeds {self.seed}" + (f" --defect {self.defect}" if self.defect else "")

    @property
    def size(self) -> str:
        """The size of the trial, such as `2 clients, 5 operations, 1 fault`."""
        trial = self.trial
        operations = sum(map(operations_of, trial.clients))
        counts = ((len(trial.clients), "client"), (operations, "operation"), (len(trial.schedule), "fault"))
        return ", ".join(f"{count} {noun}{'' if count == 1 else 's'}" for count, noun in counts)


def operations_of(client: Client) -> int:
    """Return the number of operations of a client, without retries, for the size of a trial.

    A workload counts as one operation.
    """
    if not isinstance(client, SteppingClient):
        return 1
    return sum(
        step.batches if isinstance(step, SendBatches) else step.times if isinstance(step, Poll) else 1
        for step in client.steps
    )


_PROGRAM: Final = '''\
"""{title}

{story}
"""

import kafkatrial.suite

kafkatrial.suite.activate()

from chaos.campaign.program import run_program
{imports}

trial = {trial}

if __name__ == "__main__":
    raise SystemExit(run_program(trial{arguments}))
'''
_SAVED_PROGRAM: Final = f'''\
"""{{title}}

{{story}}

The trial is in {FILE_NAME}.
"""

import kafkatrial.suite

kafkatrial.suite.activate()

from chaos.campaign.program import run_saved

if __name__ == "__main__":
    raise SystemExit(run_saved(__file__))
'''


def program_of(found: Counterexample) -> str:
    """Return the source of a program that contains and runs the trial. Its exit code is that of `run_program`."""
    arguments = {} if found.target == SIMULATION else {"target": found.target, "name": found.name}
    if found.defect:
        arguments["defect"] = found.defect
    return _PROGRAM.format(
        **_header(found),
        imports=imports_of(found.trial),
        trial=printed(found.trial, used=len("trial = ")),
        arguments="".join(f", {name}={value!r}" for name, value in arguments.items() if value),
    )


def saved_program_of(found: Counterexample) -> str:
    """Return the source of a program that runs the trial in the file `FILE_NAME` beside the program."""
    return _SAVED_PROGRAM.format(**_header(found))


def _header(found: Counterexample) -> dict[str, str]:
    is_virtual = found.target == SIMULATION
    when = f", {found.at_ms} virtual milliseconds after the start of the cluster" if is_virtual else ""
    digest = f" The run's digest is {found.digest}." if found.digest else ""
    story = [found.text] if found.text else []
    story.append(f"Shrunk by {found.runs} runs to {found.size}. {_CONFIRMATIONS[found.is_confirmed]}{digest}")
    if found.seed is not None:
        story.append(f"Found by: {found.command}" if is_virtual else f"Found with seed {found.seed}.")
    return {
        "title": f"{found.name} on {found.target}{when}.",
        "story": "\n\n".join(fill(_escaped(paragraph), _WIDTH) for paragraph in story),
    }


def _escaped(text: str) -> str:
    """Return the text, escaped for use in a docstring."""
    return text.replace("\\", "\\\\").replace('"""', "'''")
