"""Source of a program that runs a concurrent script, to be read, changed and started by its user."""

from pprint import pformat

from conformance.concurrent.script import ConcurrentScript

_PROGRAM = '''\
"""A script of {requirement}. Prints the verdict on its history as JSON; another target may be named."""

import kafkatrial.suite

kafkatrial.suite.activate()

import chaos.targets  # registers the targets `simulation` and `defective:NAME`
from conformance.concurrent.replay import run_program
from fixtures.faults import *
from conformance.concurrent.moves import *
from conformance.concurrent.script import *

script = {script}

if __name__ == "__main__":
    raise SystemExit(run_program(script, {requirement!r}, {target!r}, nodes={nodes}))
'''


def program_of(script: ConcurrentScript, requirement_id: str, target: str, nodes: int) -> str:
    """Return the source of a program that runs and judges a script and exits with 0 (ok), 1 (violation) or 6."""
    return _PROGRAM.format(script=pformat(script, width=100), requirement=requirement_id, target=target, nodes=nodes)
