"""`python -m chaos.mutants`: how many plausible mistakes in the core the simulation sees.

    python -m chaos.mutants --count 200 --seed 1 --seconds 30 --json mutants.json
    python -m chaos.mutants --rules omissions --count 100 --seed 3

A sample of mutants is drawn from the seed and each is put on trial; the score by file is printed, and the survivors.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from rich.console import Console

from chaos.mutants.attempts import names
from chaos.mutants.mutations import Mutant
from chaos.mutants.report import killers, load_survivors, score, table_by_file, table_of_survivors
from chaos.mutants.rules import CLASSIC, RULES
from chaos.mutants.sample import all_mutants, draw
from chaos.mutants.touches import Touch, in_order_for, measure
from chaos.mutants.trial import Verdict, try_mutant

SEEDS = 60
"""Seeds among the attempts; more follow once all have been made."""
CLEAN_SECONDS = 120.0
ROOT = Path(__file__).parents[2]
"""The directory that holds `chaos` and `reference_broker`."""


def main(words: Sequence[str] | None = None) -> int:
    """Run the trials. Returns 0, or 1 where the clean core does not survive."""
    options = _parser().parse_args(words)
    console = Console(width=None if sys.stdout.isatty() else 200)
    mutants = [
        mutant for mutant in all_mutants(ROOT, rules=RULES[options.rules]) if mutant.module.startswith(options.module)
    ]
    drawn = draw(mutants, options.count, options.seed)
    if options.survivors_of is not None:
        survived = {row["id"] for row in json.loads(options.survivors_of.read_text()) if not row["killed_by"]}
        drawn = [mutant for mutant in drawn if mutant.id in survived]
    of = f"{len(mutants)} mutants by {options.rules} rules"
    console.print(f"{len(drawn)} of {of}, seed {options.seed}, {options.seconds:g} s each")
    touches = _touches(console, drawn)
    killed_by, _, scripts = try_mutant(None, [touch.name for touch in touches], CLEAN_SECONDS)
    if killed_by:
        console.print(f"the clean core does not survive: {killed_by}")
        return 1
    console.print(f"the clean core survives {scripts} attempts")
    verdicts = []
    for verdict in _trials(drawn, touches, options.seconds, options.workers):
        verdicts.append(verdict)
        fate = f"killed by {verdict.killed_by}" if verdict.killed_by else "survived"
        counted = f"{len(verdicts)}/{len(drawn)}"
        console.print(f"{counted} {verdict.mutant.id} {fate} ({verdict.seconds:.1f} s)", markup=False, highlight=False)
        if options.json is not None:
            options.json.write_text(json.dumps([_as_json(each) for each in verdicts], indent=1))
    _conclude(console, verdicts)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m chaos.mutants", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=200, help="how many mutants")
    parser.add_argument("--seed", type=int, default=1, help="of the sample")
    parser.add_argument("--rules", choices=sorted(RULES), default=CLASSIC.name, help="set of mutation operators")
    parser.add_argument("--seconds", type=float, default=30.0, help="for each mutant")
    parser.add_argument("--workers", type=int, default=2, help="how many at once")
    parser.add_argument("--module", default="reference_broker.core", help="only of modules that begin so")
    parser.add_argument("--survivors-of", type=Path, help="only what has survived there; a file that --json wrote")
    parser.add_argument("--json", type=Path, help="write the verdicts here, as they come")
    return parser


def _touches(console: Console, mutants: Sequence[Mutant]) -> Sequence[Touch]:
    """What each attempt runs; the mutants' own processes come from one that has not imported the core."""
    touches = measure(list(names(SEEDS)), mutants)
    functions = len({function for touch in touches for function in touch.functions})
    console.print(f"{len(touches)} attempts, which run {functions} functions of the core")
    return touches


def _trials(drawn: Sequence[Mutant], touches: Sequence[Touch], seconds: float, workers: int) -> Iterator[Verdict]:
    def put_on_trial(mutant: Mutant) -> Verdict:
        attempts = in_order_for(mutant, touches)
        return Verdict(mutant, *try_mutant(mutant, attempts, seconds))

    with ThreadPoolExecutor(workers) as pool:
        pending = [pool.submit(put_on_trial, mutant) for mutant in drawn]
        try:
            for done in as_completed(pending):
                yield done.result()
        except KeyboardInterrupt:
            pool.shutdown(cancel_futures=True)
            raise


def _conclude(console: Console, verdicts: Sequence[Verdict]) -> None:
    survivors = load_survivors()
    console.print(table_by_file(verdicts, survivors))
    console.print(table_of_survivors(verdicts, survivors))
    for name, count in killers(verdicts):
        console.print(f"{count:4d} {name}", markup=False, highlight=False)
    console.print(f"score {score(verdicts, survivors).share:.1%}")


def _as_json(verdict: Verdict) -> dict[str, object]:
    mutant = verdict.mutant
    return {
        "id": mutant.id,
        "operator": mutant.operator,
        "line": mutant.line,
        "killed_by": verdict.killed_by,
        "seconds": round(verdict.seconds, 2),
        "scripts": verdict.scripts,
    }


if __name__ == "__main__":
    sys.exit(main())
