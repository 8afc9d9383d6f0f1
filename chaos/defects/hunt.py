"""`python -m chaos.defects.hunt [NAME…]`: find and save a counterexample for each defect without a valid one.

A saved counterexample is valid if its run still shows the same violation within `SECONDS_MAX` of computing time, and
the clean broker shows none. The text, time and digest of a valid one are updated. It may become invalid if trials or
the order of events change. Then it is replaced: its seed is tried first, and then the seeds from `--first` on, until
`--seconds` have passed. The first failing trial is shrunk and saved. A defect that a requirement detects needs no
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
from chaos.defects.registry import DEFECTS
from chaos.defects.registry import defect as defect_of
from chaos.defects.saved import keep, saved_counterexample
from chaos.sensitivity import try_defect, violation_of
from chaos.simulation.run import run
from chaos.simulation.work import ENDLESS, run_seed, shrink_seed, working

SECONDS_MAX: Final = 2.0
"""Maximum computing time of a saved counterexample."""
_RUNS_MAX: Final = 400
"""Maximum number of trials while a counterexample is shrunk."""


def run_again(saved: Counterexample, seconds_max: float = math.inf) -> Counterexample | None:
    """Run a saved counterexample, and return it with the result of this run; None if it is not valid any more."""
    defect = defect_of(saved.defect)
    began_s = time.process_time()
    violation = violation_of(saved.trial, defect)
    spent_s = time.process_time() - began_s
    if violation is None or violation.name != saved.name or spent_s >= seconds_max:
        return None
    if violation_of(saved.trial) is not None:
        return None
    with defect.seeded():
        digest = run(saved.trial).digest
    return replace(saved, text=violation.text, at_ms=violation.at_ms, digest=digest)


def hunt(defect: Defect, *, first: int, seconds: float, shrink_seconds: float) -> tuple[bool, str]:
    """Find, shrink and save a counterexample.

    :returns: whether a counterexample was saved or a requirement detects the defect, and a description of the result.
    """
    saved = saved_counterexample(defect.name)
    known_seeds = [saved.seed] if saved is not None and saved.seed is not None else []
    tried = try_defect(defect, itertools.chain(known_seeds, itertools.count(first)), seconds)
    if tried.seed is None or tried.name == ENDLESS:
        is_requirement = "/" in tried.name
        detected_by = tried.name or "nothing"
        return is_requirement, f"{detected_by} in {tried.trials} trials, {tried.seconds:.0f} s: nothing to save"
    with working(defect.name):
        failing = run_seed(tried.seed)
        found = shrink_seed(failing, defect=defect.name, runs_max=_RUNS_MAX, seconds_max=shrink_seconds)
    if not found.is_confirmed or run_again(found, SECONDS_MAX) is None:
        return False, f"seed {tried.seed} shows {tried.name}, but the shrunk trial is not valid"
    keep(found)
    return True, f"{found.name} by seed {tried.seed}, trial {tried.trials}, {tried.seconds:.0f} s: {found.size}"


def main() -> int:
    """Return 1 if a defect that needs a counterexample is left without a valid one; else 0."""
    parser = argparse.ArgumentParser(prog="python -m chaos.defects.hunt", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="Names of defects (default: all).")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="First seed (default: 0).")
    parser.add_argument("--seconds", type=float, default=600.0, help="Computing time of a search (default: 600).")
    parser.add_argument(
        "--shrink-seconds", type=float, default=30.0, help="Computing time of the shrinking (default: 30)."
    )
    options = parser.parse_args()
    exit_code = 0
    for name in options.names or DEFECTS:
        saved = saved_counterexample(name)
        if saved is not None and (updated := run_again(saved, SECONDS_MAX)) is not None:
            keep(updated)
            continue
        is_done, result = hunt(
            defect_of(name), first=options.first, seconds=options.seconds, shrink_seconds=options.shrink_seconds
        )
        sys.stdout.write(f"{name}: {result}\n")
        sys.stdout.flush()
        if not is_done:
            exit_code = 1
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
