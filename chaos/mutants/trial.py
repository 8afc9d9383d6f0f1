"""Trials of mutants, each in a separate process: attempts are made until one detects the mutant or its time is over.

After the given attempts, simulation seeds from `_FIRST_SEED` on are tried. A mutant is *killed* by the first violation,
whatever its name, by an exception, by a crash of its process (such as a lack of memory), or by an attempt that does not
end within `_GRACE_S` after the time is over. A mutant whose attempts end without any of these *survives*.

Times are processor times, which do not depend on other load.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, count
from typing import Final

from chaos.campaign.workers import Job, in_order
from chaos.mutants.loading import install
from chaos.mutants.mutations import Mutant

HUNG = "did not end"
_GRACE_S = 20
"""Additional time to finish the current attempt."""
_FIRST_SEED = 1_000
"""First simulation seed that is tried after the given attempts; all their seeds are lower."""
CLEAN: Final = Mutant("", "the clean core", 0, "", "", "", 0)
"""The unchanged core, as if it were a mutant."""
_PRELOADED = [
    "hypothesis",
    "kio.index",
    "numpy",
    "pyarrow.parquet",
    "fixtures.clients.raw",
    "linearizability.check",
    "conformance.registry",
]
"""Modules that are the same for every mutant: imported once, before the processes are forked."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A mutant, and the attempts to make on it, in this order."""

    mutant: Mutant
    attempts: Sequence[str]


@dataclass(frozen=True, slots=True)
class Tried:
    """The result for one mutant; `killed_by` is empty if it survived."""

    mutant: Mutant
    killed_by: str
    seconds: float
    attempts: int


def try_mutants(candidates: Iterator[Candidate], seconds: float, workers: int) -> Iterator[Tried]:
    """Try each candidate for a number of seconds in a child process; yield the results in the order of candidates."""
    job = Job(
        partial(_try, seconds=seconds),
        seconds + _GRACE_S,
        overdue=lambda candidate: Tried(candidate.mutant, HUNG, seconds, 0),
        died=lambda candidate, code: Tried(candidate.mutant, f"exit {code}", seconds, 0),
        recycled_after=1,
        preloaded=_PRELOADED,
        name=lambda candidate: candidate.mutant.id,
    )
    return in_order(job, candidates, workers)


def _try(candidate: Candidate, *, seconds: float) -> Tried:
    if candidate.mutant != CLEAN:
        install(candidate.mutant)
    attempts = 0
    killed_by = ""
    try:
        from chaos.mutants.attempts import attempt  # imports the core, including the mutant

        for name in chain(candidate.attempts, map(str, count(_FIRST_SEED))):
            found = attempt(name)
            attempts += 1
            if found:
                killed_by = f"{found} in {name}"
            if killed_by or time.process_time() > seconds:
                break
    except Exception as error:  # noqa: BLE001 - a mutant may raise anything
        killed_by = f"{type(error).__name__}: {error}"[:200]
    return Tried(candidate.mutant, killed_by, time.process_time(), attempts)
