"""Main functions of the programs of counterexamples. They run the trial, print the result, and return the exit code."""

import sys
from pathlib import Path

from chaos.campaign.counterexample import SIMULATION
from chaos.campaign.saved import load_failure
from chaos.replay import lines_of, replay
from conformance.trial.saved import SavedTrial
from conformance.trial.trial import Trial
from linearizability.printable import PROGRAM_MAX, printable
from linearizability.temporary_folder import TemporaryFolder


def run_program(trial: Trial, *, target: str = SIMULATION, name: str = "", defect: str = "") -> int:
    """Run a trial and print the result. Return 1 if it shows any violation or the finding `name`, else 0."""
    return _run(SavedTrial(trial, name, defect, target))


def run_saved(program: str) -> int:
    """Run the trial that is saved beside a program, as `run_program` does.

    :param program: path of the program's file.
    """
    return _run(load_failure(Path(program).parent))


def _run(saved: SavedTrial) -> int:
    with TemporaryFolder() as directory:
        replayed = replay(saved, saved.target or SIMULATION, Path(directory) / "run")
    lines = lines_of(replayed)[:-1]  # without the last line: the history is deleted
    sys.stdout.write(f"{printable(chr(10).join(lines), PROGRAM_MAX)}\n")
    return int(bool(replayed.violations) or saved.name in replayed.shown)
