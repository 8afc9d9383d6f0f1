"""One mutant on trial, in a process of its own: the simulation runs until something is wrong, or the time is over.

Simulated campaigns and the requirements on the simulated cluster take turns, since each sees what the other does not.
A mutant is *killed* by the first violation, whatever its name; one whose process does not end is killed by its
time-out; one that no import survives is killed by that. Everything else *survives*.
"""

import multiprocessing
import resource
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from chaos.mutants.loading import install
from chaos.mutants.mutations import Mutant

HUNG = "did not end"
_GRACE_S = 20
"""Beyond its time, for a process that is in the middle of a script."""
_SEEDS_BEFORE_REQUIREMENTS = 20
_SCRIPTS_MAX = 5
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


def try_mutant(mutant: Mutant | None, seconds: float) -> tuple[str, float, int]:
    """Put one on trial in a child of this process; null: the clean core. What killed it, seconds and scripts."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_serve, args=(mutant, seconds, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        killed_by, taken, scripts = ours.recv()
    except EOFError:
        process.join()
        return (HUNG if process.exitcode == -signal.SIGXCPU else f"exit {process.exitcode}"), seconds, 0
    finally:
        process.kill()
        process.join()
    return killed_by, taken, scripts


def _serve(mutant: Mutant | None, seconds: float, answers: Connection) -> None:
    limit_s = int(seconds) + _GRACE_S
    resource.setrlimit(resource.RLIMIT_CPU, (limit_s, limit_s + 1))
    if mutant is not None:
        install(mutant)
    scripts = 0
    killed_by = ""
    try:
        for attempt in _attempts():
            killed_by = attempt()
            scripts += 1
            if killed_by or time.process_time() > seconds:
                break
    except Exception as error:  # noqa: BLE001 - a mutant may raise whatever it likes
        killed_by = f"{type(error).__name__}: {error}"[:200]
    answers.send((killed_by, time.process_time(), scripts))


def _attempts() -> Iterator[Callable[[], str]]:
    """Scripts without end; each says what is wrong, or nothing."""
    from chaos.simulation.run import run
    from chaos.simulation.seeds import script_of

    def campaign(seed: int) -> str:
        violation = run(script_of(seed)).violation
        return "" if violation is None else violation.name

    seeds = iter(range(10**9))
    for _ in range(_SEEDS_BEFORE_REQUIREMENTS):
        yield lambda: campaign(next(seeds))
    yield from _requirements()
    for seed in seeds:
        yield lambda seed=seed: campaign(seed)  # type: ignore[misc]


def _requirements() -> Iterator[Callable[[], str]]:
    """Each requirement, on one simulated cluster that serves them all; those of concurrent scripts take longer."""
    from chaos.simulation.target import Simulation
    from conformance.engine import run_requirements
    from conformance.events import RequirementJudged
    from conformance.profiles import Profile
    from conformance.registry import REQUIREMENTS

    chosen = sorted(REQUIREMENTS, key=lambda requirement: requirement.family)
    profile = Profile("mutants", scripts_max=_SCRIPTS_MAX, shrink_seconds=0.0)
    with tempfile.TemporaryDirectory() as directory:
        events = run_requirements([Simulation()], chosen, seed=1, profile=profile, run_dir=Path(directory))
        judged = (event for event in events if isinstance(event, RequirementJudged))

        def following() -> str:
            event = next(judged, None)
            return "" if event is None or event.verdict == "ok" else f"{event.requirement} {event.verdict}"

        for _ in chosen:
            yield following
