"""Source of a Python program that runs one trial of a requirement, for a user to read, change and run."""

from conformance.printed_programs import targets_argument
from conformance.trial.source import imports_of, printed
from conformance.trial.trial import Trial

_PROGRAM = '''\
"""A trial of {trial.requirement}. Prints the verdict on its history as JSON. The argument may name another target."""

import kafkatrial.suite

kafkatrial.suite.activate()

import chaos.targets  # registers the targets `simulation` and `defective:NAME`
from conformance.concurrent.replay import run_program
{imports}

trial = {source}

if __name__ == "__main__":
    raise SystemExit(run_program(trial, {target!r}{targets}))
'''


def program_of(trial: Trial, target: str) -> str:
    """Return the source of a program that runs a trial and judges its history.

    The program exits with 0 (ok), 1 (violation) or 6 (unknown), or with 3 or 4 if there is no verdict.
    """
    source = printed(trial, used=len("trial = "))
    targets = targets_argument(target)
    return _PROGRAM.format(trial=trial, imports=imports_of(trial), source=source, target=target, targets=targets)
