"""`python -m chaos.mutants`: the share of generated bugs in the core that the simulation and requirements detect.

    python -m chaos.mutants --count 200 --seed 1 --seconds 30 --json mutants.json
    python -m chaos.mutants --rules omissions --count 100 --seed 3

The seed selects a sample of mutants. All attempts are first made on the clean core, which must survive them. Then
attempts are made on each mutant until one kills it or its time is over. Finally the score of each module and the
survivors are printed.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from chaos.campaign.interruption import interruptible
from chaos.mutants.attempts import names
from chaos.mutants.coverage import Coverage, measure, prioritised
from chaos.mutants.mutations import Mutant
from chaos.mutants.report import killers, load_survivors, score, table_by_file, table_of_survivors
from chaos.mutants.rules import CLASSIC, RULES
from chaos.mutants.sample import all_mutants, sample
from chaos.mutants.trial import CLEAN, Candidate, Tried, try_mutants

SEEDS = 60
"""Number of simulation seeds among the attempts (`attempts.names`). Further seeds are tried only when all attempts have
ended without killing the mutant (`trial.py`)."""
CLEAN_SECONDS = 120.0
"""Processor time for attempts on the clean core."""
_REPORTED_EVERY = 20
ROOT = Path(__file__).parents[2]
"""The directory with `chaos` and `reference_broker`."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Return 0; 1 if an attempt detects a violation of the clean core; 2 if interrupted."""
    options = _parser().parse_args(arguments)
    console = Console(width=None if sys.stdout.isatty() else 200)
    mutants = [
        mutant for mutant in all_mutants(ROOT, rules=RULES[options.rules]) if mutant.module.startswith(options.module)
    ]
    selected = sample(mutants, options.count, options.seed)
    if options.survivors_of is not None:
        survived = {row["id"] for row in json.loads(options.survivors_of.read_text()) if not row["killed_by"]}
        selected = [mutant for mutant in selected if mutant.id in survived]
    all_of_rules = f"{len(mutants)} mutants by {options.rules} rules"
    console.print(f"{len(selected)} of {all_of_rules}, seed {options.seed}, {options.seconds:g} s each")
    tried: list[Tried] = []
    with interruptible():
        try:
            coverages = _measure(console, selected, options.workers)
            if not _survives(console, coverages):
                return 1
            candidates = (Candidate(mutant, prioritised(mutant, coverages)) for mutant in selected)
            for each in try_mutants(candidates, options.seconds, options.workers):
                tried.append(each)
                _report(console, tried, len(selected), options.json)
        except KeyboardInterrupt:
            console.print("interrupted")
    _conclude(console, tried)
    return 0 if len(tried) == len(selected) else 2


def _survives(console: Console, coverages: Sequence[Coverage]) -> bool:
    """Return whether the clean core survives all attempts that are made within `CLEAN_SECONDS`; print the result."""
    clean = Candidate(CLEAN, [coverage.name for coverage in coverages])
    (tried,) = try_mutants(iter([clean]), CLEAN_SECONDS, workers=1)
    result = f"does not survive: {tried.killed_by}" if tried.killed_by else f"survives {tried.attempts} attempts"
    console.print(f"the clean core {result}")
    return not tried.killed_by


def _report(console: Console, tried: Sequence[Tried], total: int, file: Path | None) -> None:
    """Print the latest result, and write all results to the file, if there is one."""
    latest = tried[-1]
    result = f"killed by {latest.killed_by}" if latest.killed_by else "survived"
    line = f"{len(tried)}/{total} {latest.mutant.id} {result} ({latest.seconds:.1f} s)"
    console.print(line, markup=False, highlight=False)
    if file is not None:
        file.write_text(json.dumps([_as_json(each) for each in tried], indent=1))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m chaos.mutants", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=200, help="Number of mutants to try (default: 200).")
    parser.add_argument("--seed", type=int, default=1, help="Seed of the sample (default: 1).")
    parser.add_argument(
        "--rules", choices=sorted(RULES), default=CLASSIC.name, help="Set of mutation operators (default: classic)."
    )
    parser.add_argument(
        "--seconds", type=float, default=30.0, help="Computing time for each mutant, in seconds (default: 30)."
    )
    parser.add_argument("--workers", type=int, default=2, help="Number of worker processes (default: 2).")
    parser.add_argument(
        "--module",
        default="reference_broker.core",
        help="Prefix of the modules to mutate (default: reference_broker.core).",
    )
    parser.add_argument(
        "--survivors-of", type=Path, help="Result file of an earlier run (--json): try only its survivors."
    )
    parser.add_argument("--json", type=Path, help="File for the verdicts, rewritten after each mutant.")
    return parser


def _measure(console: Console, mutants: Sequence[Mutant], workers: int) -> Sequence[Coverage]:
    """Measure the coverage of all attempts on the clean core. This takes minutes."""
    planned = list(names(SEEDS))
    coverages = []
    for coverage in measure(planned, mutants, workers):
        coverages.append(coverage)
        if len(coverages) % _REPORTED_EVERY == 0:
            console.print(f"measured {len(coverages)} of {len(planned)} attempts on the clean core")
    functions = len({function for coverage in coverages for function in coverage.functions})
    console.print(f"{len(coverages)} attempts, which run {functions} functions of the core")
    return coverages


def _conclude(console: Console, tried: Sequence[Tried]) -> None:
    survivors = load_survivors()
    console.print(table_by_file(tried, survivors))
    console.print(table_of_survivors(tried, survivors))
    for name, count in killers(tried):
        console.print(f"{count:4d} {name}", markup=False, highlight=False)
    console.print(f"score {score(tried, survivors)}")


def _as_json(tried: Tried) -> dict[str, object]:
    mutant = tried.mutant
    return {
        "id": mutant.id,
        "operator": mutant.operator,
        "line": mutant.line,
        "killed_by": tried.killed_by,
        "seconds": round(tried.seconds, 2),
        "scripts": tried.attempts,
    }


if __name__ == "__main__":
    sys.exit(main())
