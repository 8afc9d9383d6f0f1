"""Command for trials of defects on real processes; it prints the violations and the duration of each trial.

`python -m chaos.defects.live [NAME…]` runs the round that is saved for each defect (`chaos.defects.live.rounds`) on
brokers with the defect, and repeats a round without a violation. Then it runs each of these rounds on the clean broker,
where a violation is a false alarm.

Exit code 0: all defects were detected, without a false alarm. 1: a defect was missed or could not be tried, or there
was a false alarm. 4: there is no such defect, or it has no saved round.
"""

import argparse
import sys

from chaos.defects.live.registry import live_defect
from chaos.defects.live.rounds import ROUNDS
from chaos.defects.live.trial import CLEAN, LiveTrialResult, try_defects
from chaos.defects.registry import UnknownDefectError
from conformance.trial.source import printed
from linearizability.printable import printable

_ROUNDS_MAX = 4


def main() -> int:
    """Run the command, and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m chaos.defects.live", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="Defects to try (default: all with a saved round).")
    parser.add_argument(
        "--rounds",
        type=int,
        default=_ROUNDS_MAX,
        metavar="N",
        help="Maximum number of times that the round of a defect runs (default: %(default)s).",
    )
    parser.add_argument("--show", action="store_true", help="Print the rounds instead of running them.")
    options = parser.parse_args()
    names = tuple(options.names) or tuple(ROUNDS)
    try:
        without_round = [name for name in names if live_defect(name).name not in ROUNDS]
    except UnknownDefectError as error:
        sys.stderr.write(f"error: there is no defect {error.name!r}; docs/defects.md lists them\n")
        return 4
    if without_round:
        sys.stderr.write(
            f"error: there is no saved round for {', '.join(without_round)}; use kafkatrial simulate --defect NAME\n"
        )
        return 4
    if options.show:
        sys.stdout.writelines(f"{name}\n{printed(ROUNDS[name])}\n\n" for name in names)
        return 0
    return _run(names, options.rounds)


def _run(names: tuple[str, ...], rounds_max: int) -> int:
    detected = alarms = 0
    for result in try_defects(names, rounds_max=rounds_max):
        sys.stdout.write(f"{printable(result_line(result))}\n")
        sys.stdout.flush()
        is_clean = result.target == CLEAN
        detected += bool(result.violations) and not is_clean
        alarms += bool(result.violations) and is_clean
    sys.stdout.write(f"{detected} of {len(names)} defects detected; {alarms} false alarms\n")
    return 1 if detected < len(names) or alarms else 0


def result_line(result: LiveTrialResult) -> str:
    """Return the result as one line."""
    if result.not_run:
        return f"{result.target}: not run: {result.not_run}"
    names = ", ".join(dict.fromkeys(violation.name for violation in result.violations))
    without_violation = "no violation" if result.target == CLEAN else "missed"
    runs = f"{result.rounds} round{'' if result.rounds == 1 else 's'}, {result.seconds:.0f} s"
    return f"{result.target}: {names or without_violation} ({runs})"


if __name__ == "__main__":
    sys.exit(main())
