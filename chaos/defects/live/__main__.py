"""`python -m chaos.defects.live [NAME…]`: which defects chaos on real processes catches, by what, and how soon.

Each is tried by the round that is kept for it (`chaos.defects.live.rounds`), and every such round then runs on the
clean broker, where it must show nothing. Exit code 1: a defect was missed, or there was a false alarm.
"""

import argparse
import sys

from chaos.defects.live.registry import live_defect
from chaos.defects.live.rounds import ROUNDS
from chaos.defects.live.trial import CLEAN, LiveTried, try_defects
from chaos.defects.registry import UnknownDefectError
from chaos.trial.source import printed
from linearizability.printable import printable

_ROUNDS_MAX = 4


def main() -> int:
    """Returns 0, or 1 where a defect was missed or there was a false alarm, or 4 where a name is no defect's."""
    parser = argparse.ArgumentParser(prog="python -m chaos.defects.live", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="of defects that have a round; all, if none is named")
    parser.add_argument("--rounds", type=int, default=_ROUNDS_MAX, metavar="N", help="for each, until it is caught")
    parser.add_argument("--show", action="store_true", help="print their rounds, and run nothing")
    options = parser.parse_args()
    names = tuple(options.names) or tuple(ROUNDS)
    try:
        unknown = [name for name in names if live_defect(name).name not in ROUNDS]
    except UnknownDefectError as error:
        sys.stderr.write(f"error: there is no defect {error.name!r}; docs/defects.md lists them\n")
        return 4
    if unknown:
        sys.stderr.write(f"error: no round is kept for {', '.join(unknown)}; the simulation catches these\n")
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
    sys.stdout.write(f"{caught} of {len(names)} defects caught; {alarms} false alarms\n")
    return 1 if missed or alarms else 0


def described(tried: LiveTried) -> str:
    """One line."""
    runs = f"{tried.rounds} round{'' if tried.rounds == 1 else 's'}, {tried.seconds:.0f} s"
    if tried.not_run:
        return f"{tried.target}: not run: {tried.not_run}"
    names = ", ".join(dict.fromkeys(violation.name for violation in tried.violations))
    quiet = "silent" if tried.target == CLEAN else "missed"
    return f"{tried.target}: {names or quiet} ({runs})"


if __name__ == "__main__":
    sys.exit(main())
