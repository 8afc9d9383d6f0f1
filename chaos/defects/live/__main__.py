"""`python -m chaos.defects.live [NAME…]`: trial of defects on real processes, with the violations and time of each.

The saved round of each defect (`chaos.defects.live.rounds`) runs on brokers with the defect, and again if it shows no
violation. Then each of these rounds runs on the clean broker, where it must show no violation. Exit code 1: a defect
was missed or not tried, or there was a false alarm.
"""

import argparse
import sys

from chaos.defects.live.registry import live_defect
from chaos.defects.live.rounds import ROUNDS
from chaos.defects.live.trial import CLEAN, LiveTried, try_defects
from chaos.defects.registry import UnknownDefectError
from conformance.trial.source import printed
from linearizability.printable import printable

_ROUNDS_MAX = 4


def main() -> int:
    """Return the exit code.

    It is 1 if a defect was missed or not tried, or for a false alarm; 4 for an unknown defect, or one without a saved
    round; otherwise 0.
    """
    parser = argparse.ArgumentParser(prog="python -m chaos.defects.live", description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="Defects to try; they need a saved round (default: all)."
    )
    parser.add_argument(
        "--rounds", type=int, default=_ROUNDS_MAX, metavar="N", help="Maximum number of runs of each defect's round."
    )
    parser.add_argument("--show", action="store_true", help="Print the rounds instead of running them.")
    options = parser.parse_args()
    names = tuple(options.names) or tuple(ROUNDS)
    try:
        unknown = [name for name in names if live_defect(name).name not in ROUNDS]
    except UnknownDefectError as error:
        sys.stderr.write(f"error: there is no defect {error.name!r}; docs/defects.md lists them\n")
        return 4
    if unknown:
        sys.stderr.write(f"error: there is no saved round for {', '.join(unknown)}; the simulation detects these\n")
        return 4
    if options.show:
        sys.stdout.writelines(f"{name}\n{printed(ROUNDS[name])}\n\n" for name in names)
        return 0
    return _run(names, options.rounds)


def _run(names: tuple[str, ...], rounds_max: int) -> int:
    caught = missed = alarms = 0
    for tried in try_defects(names, rounds_max=rounds_max):
        sys.stdout.write(f"{printable(described(tried))}\n")
        sys.stdout.flush()
        is_clean = tried.target == CLEAN
        caught += bool(tried.violations) and not is_clean
        missed += not tried.violations and not is_clean
        alarms += bool(tried.violations) and is_clean
    sys.stdout.write(f"{caught} of {len(names)} defects detected; {alarms} false alarms\n")
    return 1 if missed or alarms else 0


def described(tried: LiveTried) -> str:
    """Return the result as one line."""
    runs = f"{tried.rounds} round{'' if tried.rounds == 1 else 's'}, {tried.seconds:.0f} s"
    if tried.not_run:
        return f"{tried.target}: not run: {tried.not_run}"
    names = ", ".join(dict.fromkeys(violation.name for violation in tried.violations))
    quiet = "silent" if tried.target == CLEAN else "missed"
    return f"{tried.target}: {names or quiet} ({runs})"


if __name__ == "__main__":
    sys.exit(main())
