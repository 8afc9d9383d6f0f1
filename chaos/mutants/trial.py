"""Trials of mutants, each in a separate process: attempts are made until one kills the mutant or its time is over.

After the given attempts, simulation seeds from `_FIRST_SEED` on are tried. A mutant is *killed* by any of these:

- a violation, whatever its name;
- an exception;
- the death of its process, for example because memory ran out;
- an attempt that does not end within `_GRACE_S` after the time is over.

Otherwise the mutant *survives*. Times are processor times, which do not depend on other load.
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
"""Additional processor time to finish the current attempt."""
_FIRST_SEED = 1_000
"""First simulation seed after the given attempts, whose seeds are all lower."""
CLEAN: Final = Mutant("", "the clean core", 0, "", "", "", 0)
"""Stands for the unchanged core where a mutant is expected."""
_PRELOADED = [
    "hypothesis",
    "kio.index",
    "numpy",
    "pyarrow.parquet",
    "fixtures.clients.raw",
    "linearizability.check",
    "conformance.registry",
]
"""Modules that no mutant changes. They are imported once, before the processes are forked."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A mutant, and the names of the attempts to make on it, in this order."""

    mutant: Mutant
    attempts: Sequence[str]


@dataclass(frozen=True, slots=True)
class Tried:
    """The result for one mutant.

    :ivar killed_by: violation or error, and the attempt; empty if the mutant survived.
    :ivar seconds: processor time.
    :ivar attempts: number of attempts that ended.
    """

    mutant: Mutant
    killed_by: str
    seconds: float
    attempts: int


def try_mutants(candidates: Iterator[Candidate], seconds: float, workers: int) -> Iterator[Tried]:
    """Try each candidate in a separate process; yield the results in the order of candidates.

    :param seconds: processor time of a mutant after which no further attempt begins.
    """
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
