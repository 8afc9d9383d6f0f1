"""One mutant on trial, in a process of its own: the simulation runs until something is wrong, or the time is over.

It goes through the attempts that it is given, then through seeds until the time is over. A mutant is *killed* by the
first violation, whatever its name, and by what ends its process: its time-out, an exception, a lack of memory.
Everything else *survives*.

Times are the processor's, which others on the machine do not stretch; only a process that computes nothing at all, all
of whose threads wait for each other, is given up by the clock on the wall.
"""

import multiprocessing
import resource
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, count
from multiprocessing.connection import Connection

from chaos.mutants.loading import install
from chaos.mutants.mutations import Mutant
from linearizability.isolated_python import isolate_children

HUNG = "did not end"
_GRACE_S = 20
"""Beyond its time, for a process that is in the middle of a script."""
_WALL_OVER_CPU = 40
_FIRST_SEED = 1_000
"""Of those that no attempt has used."""
_PRELOADED = [
    "hypothesis",
    "kio.index",
    "numpy",
    "pyarrow.parquet",
    "fixtures.clients.raw",
    "linearizability.check",
    "conformance.registry",
]
"""What is the same for every mutant: imported once, before the processes part."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a mutant; `killed_by` is empty where it survived."""

    mutant: Mutant
    killed_by: str
    seconds: float
    scripts: int


def try_mutant(mutant: Mutant | None, attempts: Sequence[str], seconds: float) -> tuple[str, float, int]:
    """Put one on trial in a child of this process; null: the clean core. What killed it, seconds and scripts."""
    isolate_children()
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_serve, args=(mutant, attempts, seconds, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        if not ours.poll(_WALL_OVER_CPU * (seconds + _GRACE_S)):
            return HUNG, seconds, 0
        killed_by, taken, scripts = ours.recv()
    except EOFError:
        process.join()
        return (HUNG if process.exitcode == -signal.SIGXCPU else f"exit {process.exitcode}"), seconds, 0
    finally:
        process.kill()
        process.join()
    return killed_by, taken, scripts


def _serve(mutant: Mutant | None, attempts: Sequence[str], seconds: float, answers: Connection) -> None:
    limit_s = int(seconds) + _GRACE_S
    resource.setrlimit(resource.RLIMIT_CPU, (limit_s, limit_s + 1))
    if mutant is not None:
        install(mutant)
    scripts = 0
    killed_by = ""
    try:
        from chaos.mutants.attempts import attempt  # imports the core, the mutant among it

        for name in chain(attempts, map(str, count(_FIRST_SEED))):
            found = attempt(name)
            scripts += 1
            if found:
                killed_by = f"{found} in {name}"
            if killed_by or time.process_time() > seconds:
                break
    except Exception as error:  # noqa: BLE001 - a mutant may raise whatever it likes
        killed_by = f"{type(error).__name__}: {error}"[:200]
    answers.send((killed_by, time.process_time(), scripts))
