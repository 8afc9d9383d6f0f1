"""Whether chaos on real processes catches a defect: its round is run on `defective:NAME`, and on the clean broker too.

What catches it is whatever the report of a round calls a violation, as for any cluster. Real processes do not do the
same twice, so a round is run again where it showed nothing, up to a bound. What the clean broker violates in a round is
a false alarm, and that round proves nothing.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import chaos.targets  # noqa: F401  registers the target `defective`
from chaos.defects.live.rounds import ROUNDS
from chaos.live.report import Report, Violation
from chaos.live.round import Round
from chaos.live.session import fitted, run_on
from fixtures.targets.target import TargetError

CLEAN: Final = "reference"


@dataclass(frozen=True, slots=True)
class LiveTried:
    """One defect, or the clean broker, in one round.

    :ivar target: `defective:NAME`, or the clean broker.
    :ivar violations: names of all that the last run violated, and the text of the first; empty: missed, or clean.
    :ivar rounds: how many were run.
    :ivar refused: why it was not run: what this machine lacks, or why a cluster did not start. Empty where it was.
    """

    target: str
    violations: tuple[Violation, ...]
    rounds: int
    seconds: float
    refused: str = ""


Run = Callable[[str, Round, Path], Report]


def try_defects(names: Iterable[str], *, rounds_max: int, run: Run = run_on) -> Iterator[LiveTried]:
    """Try each defect by its round, then each of these rounds on the clean broker."""
    names = tuple(names)
    for name in names:
        yield _tried(f"defective:{name}", ROUNDS[name], rounds_max, run)
    for a_round in dict.fromkeys(ROUNDS[name] for name in names):
        yield _tried(CLEAN, a_round, 1, run)


def _tried(target: str, a_round: Round, rounds_max: int, run: Run) -> LiveTried:
    began_s = time.monotonic()
    lacking = "; ".join(fitted(target, a_round).refused.values())
    violations: tuple[Violation, ...] = ()
    rounds = 0
    while not lacking and not violations and rounds < rounds_max:
        rounds += 1
        try:
            with TemporaryDirectory(prefix="kafkatrial-") as directory:
                violations = run(target, a_round, Path(directory) / "run").violations
        except TargetError as error:
            lacking = str(error)
    return LiveTried(target, violations, rounds, time.monotonic() - began_s, lacking)
