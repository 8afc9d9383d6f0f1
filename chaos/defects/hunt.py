"""`python -m chaos.defects.hunt [NAME…]`: find and save a counterexample for each defect without a valid one.

A saved counterexample is valid if its run still shows the same violation within `SECONDS_MAX` of computing, and the
clean broker shows none. The text, time and digest of a valid one are updated. An invalid one, for example after a
change of trials or of the order of events, is replaced: its seed and then the seeds from `--first` on are tried for
`--seconds`, and the failing trial is shrunk and saved (`saved.keep`). A defect that a requirement detects has no
counterexample.
"""

import argparse
import itertools
import math
import sys
import time
from dataclasses import replace
from typing import Final

from chaos.campaign.counterexample import Counterexample
from chaos.defects.defect import Defect
from chaos.defects.registry import DEFECTS, defect
from chaos.defects.saved import keep, saved_counterexample
from chaos.sensitivity import try_defect, violation_of
from chaos.simulation.run import run
from chaos.simulation.work import ENDLESS, run_seed, shrink_seed, working

SECONDS_MAX: Final = 2.0
"""Limit of the computing time of a saved counterexample."""
_RUNS_MAX: Final = 400


def again(saved: Counterexample, seconds_max: float = math.inf) -> Counterexample | None:
    """Run a saved counterexample, and return it with its present result; None if it is no longer valid."""
    seeded = defect(saved.defect)
    began_s = time.process_time()
    found = violation_of(saved.trial, seeded)
    took_s = time.process_time() - began_s
    if found is None or found.name != saved.name or took_s >= seconds_max or violation_of(saved.trial) is not None:
        return None
    with seeded.seeded():
        digest = run(saved.trial).digest
    return replace(saved, text=found.text, at_ms=found.at_ms, digest=digest)


def hunt(of: Defect, *, first: int, seconds: float, shrink_seconds: float) -> str:
    """Find and shrink a counterexample, save it if it is valid, and return a description of the result."""
    saved = saved_counterexample(of.name)
    known = [saved.seed] if saved is not None and saved.seed is not None else []
    tried = try_defect(of, itertools.chain(known, itertools.count(first)), seconds)
    if tried.seed is None or tried.name == ENDLESS:
        detected_by = tried.name or "nothing"
        return f"{detected_by} in {tried.trials} trials, {tried.seconds:.0f} s: nothing to save"
    with working(of.name):
        failing = run_seed(tried.seed)
        found = shrink_seed(failing, defect=of.name, runs_max=_RUNS_MAX, seconds_max=shrink_seconds)
    if not found.is_confirmed or again(found, SECONDS_MAX) is None:
        return f"seed {tried.seed} shows {tried.name}, but the shrunk trial is not valid"
    keep(found)
    return f"{found.name} by seed {tried.seed}, trial {tried.trials}, {tried.seconds:.0f} s: {found.size}"


def main() -> int:
    """Return 1 if a missing or invalid counterexample was not replaced; else 0.

    A defect that a requirement detects needs no counterexample.
    """
    parser = argparse.ArgumentParser(prog="python -m chaos.defects.hunt", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="names of defects (default: all)")
    parser.add_argument("--first", type=int, default=0, help="first seed (default: 0)")
    parser.add_argument("--seconds", type=float, default=600.0, help="computing time of the search")
    parser.add_argument("--shrink-seconds", type=float, default=30.0, help="computing time of the shrinking")
    options = parser.parse_args()
    left = 0
    for name in options.names or DEFECTS:
        of = defect(name)
        saved = saved_counterexample(name)
        if saved is not None and (now := again(saved, SECONDS_MAX)) is not None:
            keep(now)
            continue
        result = hunt(of, first=options.first, seconds=options.seconds, shrink_seconds=options.shrink_seconds)
        sys.stdout.write(f"{name}: {result}\n")
        sys.stdout.flush()
        left += saved_counterexample(name) in {None, saved} and "/" not in result.partition(" ")[0]
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
