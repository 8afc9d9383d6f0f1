"""Speed of the generic checker relative to porcupine v1.3.0 (Go), on porcupine's own histories.

    .venv/bin/python bench/checkers/against_porcupine.py [--rounds 5] [--json FILE]

Both checkers judge the same histories with one thread: 102 logs of Jepsen's test of etcd, and four histories of a
key-value store. Of these four, two have 10 clients and two have 50; one of each pair is linearizable. The histories are
part of porcupine's module, which Go downloads. A ratio below 1.0 means that this checker is faster. Some of the ratios
have a goal.

The measured time is processor time, because the machine may have other load. It does not include reading the histories
into memory. The two checkers take turns in rounds, because the speed of the machine changes over time. The shortest
time of all rounds counts for each history. As with `timeit`, Python's cyclic garbage collector is off while a history
is judged.

After the comparison, this checker judges all keys of the history c50-bad within a budget, and the verdict of each key
is printed. No search has decided every key of this history so far.
"""

import argparse
import gc
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from linearizability.importers.porcupine import read_etcd_log, read_key_value_log
from linearizability.judgement import Verdict
from linearizability.model import Model
from linearizability.models.compare_and_set import compare_and_set
from linearizability.models.key_value import key_value
from linearizability.operation import Event, EventKind
from linearizability.verify import Budget, Verification, check

TIMER = Path(__file__).parent / "porcupine_timer"
MODULE = "github.com/anishathalye/porcupine"
ETCD, STORE = "etcd", "kv"
SKIPPED_LOG = "etcd_095"
"""Porcupine's own tests skip this log, too."""
HARD_HISTORY = "c50-bad"
REPEATS = 3
"""Number of times that each history is judged in a round."""
NO_LIMIT = Budget(time_s=None, memory_mb=None)
HARD_BUDGET = Budget(time_s=20, memory_mb=2048)
GOALS = {"etcd, 102 logs": 0.10, "etcd_002": 0.03, "etcd_007": 0.03, "c50-ok": 1.5}
"""Maximum ratio to porcupine's time, by row of the printed table."""
STORE_FUNCTIONS = ("get", "put", "append")
VERDICTS = {"Ok": Verdict.OK, "Illegal": Verdict.VIOLATION, "Unknown": Verdict.UNKNOWN}


@dataclass(frozen=True, slots=True)
class History:
    name: str
    kind: str
    events: list[Event]

    @property
    def model(self) -> Model:
        return compare_and_set() if self.kind == ETCD else key_value()


@dataclass(slots=True)
class Timing:
    """The shortest time so far in which a checker judged a history, and its verdict."""

    ns: int
    verdict: Verdict

    def keep_shorter(self, other: "Timing") -> None:
        self.ns = min(self.ns, other.ns)


class Porcupine:
    """The Go program `porcupine_timer`, which is built for each run of this program."""

    def __init__(self, directory: Path) -> None:
        if shutil.which("go") is None:
            sys.exit("there is no Go on PATH; install it from https://go.dev/doc/install")
        self._binary = directory / "porcupine_timer"
        self._go("build", "-o", str(self._binary), ".")
        self.test_data = Path(self._go("list", "-m", "-f", "{{.Dir}}", MODULE).strip()) / "test_data"

    def timings(self, histories: Sequence[History]) -> dict[str, Timing]:
        lines = "".join(json.dumps(self._request(history)) + "\n" for history in histories)
        environment = {**os.environ, "GOMAXPROCS": "1"}
        done = subprocess.run([self._binary], input=lines, env=environment, capture_output=True, text=True, check=True)
        results = [json.loads(line) for line in done.stdout.splitlines()]
        return {result["name"]: Timing(result["ns"], VERDICTS[result["result"]]) for result in results}

    @staticmethod
    def _request(history: History) -> dict[str, Any]:
        model = "register" if history.kind == ETCD else "store"
        return {
            "name": history.name,
            "model": model,
            "rounds": REPEATS,
            "timeout_ms": 0,
            "events": [*porcupine_events(history.events)],
        }

    @staticmethod
    def _go(*arguments: str) -> str:
        done = subprocess.run(["go", *arguments], cwd=TIMER, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"go {arguments[0]} failed: {done.stderr.strip()}")
        return done.stdout


def porcupine_events(events: Sequence[Event]) -> list[list[Any]]:
    """Return events in the format of the Go program: [kind, id, process, function, key, a, b].

    The program requires an end of every operation. In the logs of etcd, an operation may have an unknown outcome. It
    ends after all other events and is marked as unknown, so that porcupine accepts any result.
    """
    lines: list[list[Any]] = []
    running: dict[Any, Event] = {}
    for event in events:
        if event.kind is EventKind.INVOKE:
            running[event.op_id] = event
            lines.append([0, event.op_id, int(event.process), *_arguments(event.value)])
        elif event.kind is EventKind.OK:
            function = running.pop(event.op_id).value[0]
            lines.append([1, event.op_id, int(event.process), function, "", *_result(function, event.value)])
    unknown = 2
    ends = [[1, op_id, int(event.process), event.value[0], "", 0, unknown] for op_id, event in running.items()]
    return lines + ends


def _arguments(call: tuple[Any, ...]) -> list[Any]:
    """Return the function, key, a and b of an invocation; an operation on a register has no key."""
    function, *arguments = call
    if function in STORE_FUNCTIONS:
        key, value = (*arguments, "")[:2]
        return [function, key, value, 0]
    return [function, "", *arguments, *[0] * (2 - len(arguments))]


def _result(function: str, output: Any) -> list[Any]:
    """Return a and b of a result: the value, and for a cas, whether it was done."""
    if function in STORE_FUNCTIONS:
        return [output or "", 0]
    return [-1 if output is None else int(output), int(function == "cas" and output)]


def histories_of(test_data: Path) -> list[History]:
    logs = [path for path in sorted((test_data / "jepsen").glob("etcd_*.log")) if path.stem != SKIPPED_LOG]
    etcd = [History(path.stem, ETCD, read_etcd_log(path)) for path in logs]
    stores = [test_data / "kv" / f"{name}.txt" for name in ("c10-ok", "c10-bad", "c50-ok", "c50-bad")]
    return [*etcd, *(History(path.stem, STORE, read_key_value_log(path)) for path in stores)]


def own_timing(history: History) -> Timing:
    """Judge a history several times with this checker. As in porcupine, each check ends at the first violation."""
    model, best, verdict = history.model, sys.maxsize, Verdict.UNKNOWN
    for _ in range(REPEATS):
        gc.disable()
        begin_ns = time.process_time_ns()
        verdict = check(history.events, model, NO_LIMIT, first_violation_only=True).verdict
        best = min(best, time.process_time_ns() - begin_ns)
        gc.enable()
    return Timing(best, verdict)


def measure(
    porcupine: Porcupine, histories: Sequence[History], rounds: int
) -> tuple[dict[str, Timing], dict[str, Timing]]:
    """Return the timings of porcupine and of this checker, by history."""
    theirs: dict[str, Timing] = {}
    ours: dict[str, Timing] = {}
    for _ in range(rounds):
        for name, timing in porcupine.timings(histories).items():
            theirs.setdefault(name, timing).keep_shorter(timing)
        for history in histories:
            timing = own_timing(history)
            ours.setdefault(history.name, timing).keep_shorter(timing)
    return theirs, ours


def rows_of(
    histories: Sequence[History], theirs: dict[str, Timing], ours: dict[str, Timing]
) -> list[tuple[str, float, float, float | None]]:
    """Return rows of name, porcupine's milliseconds, kafkatrial's milliseconds, and the maximum ratio."""
    etcd = [history.name for history in histories if history.kind == ETCD]
    groups = {f"etcd, {len(etcd)} logs": etcd}
    groups |= {name: [name] for name in ("etcd_002", "etcd_007", "c10-ok", "c10-bad", "c50-ok", "c50-bad")}
    return [
        (
            group,
            sum(theirs[name].ns for name in names) / 1e6,
            sum(ours[name].ns for name in names) / 1e6,
            GOALS.get(group),
        )
        for group, names in groups.items()
    ]


def print_rows(console: Console, rows: Sequence[tuple[str, float, float, float | None]]) -> bool:
    """Print the rows, and return whether all goals are met."""
    table = Table("history", "porcupine ms", "kafkatrial ms", "ratio", "goal", "")
    all_met = True
    for group, theirs, ours, goal in rows:
        is_met = goal is None or ours / theirs <= goal
        all_met = all_met and is_met
        mark = "" if goal is None else ("met" if is_met else "missed")
        shown_goal = "" if goal is None else f"<= {goal}"
        table.add_row(group, f"{theirs:.2f}", f"{ours:.2f}", f"{ours / theirs:.3f}", shown_goal, mark)
    console.print(table)
    return all_met


def print_keys(console: Console, verification: Verification) -> None:
    """Print the verdict of each key of the hard history."""
    table = Table(f"{HARD_HISTORY}, key", "verdict", "steps", "peak MB", "engine or reason")
    for outcome in verification.outcomes:
        explanation = outcome.reason if outcome.verdict is Verdict.UNKNOWN else outcome.engine
        peak_mb = f"{outcome.peak_bytes / 1e6:.0f}"
        table.add_row(str(outcome.key), outcome.verdict, f"{outcome.steps:,}", peak_mb, explanation)
    console.print(table)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="Number of rounds (default: %(default)s).")
    parser.add_argument("--json", type=Path, help="File to which the figures are also written, as JSON.")
    arguments = parser.parse_args()
    console = Console()
    with tempfile.TemporaryDirectory() as directory:
        porcupine = Porcupine(Path(directory))
        histories = histories_of(porcupine.test_data)
        theirs, ours = measure(porcupine, histories, arguments.rounds)
    wrong = [name for name in ours if ours[name].verdict is not theirs[name].verdict]
    console.print(f"verdicts that differ from porcupine's: {', '.join(wrong) or 'none'} of {len(ours)}")
    rows = rows_of(histories, theirs, ours)
    all_met = print_rows(console, rows)
    hard = next(history for history in histories if history.name == HARD_HISTORY)
    verification = check(hard.events, hard.model, HARD_BUDGET)
    print_keys(console, verification)
    if arguments.json:
        figures = [dict(zip(("history", "porcupine_ms", "kafkatrial_ms", "goal"), row, strict=True)) for row in rows]
        verdicts = {str(outcome.key): str(outcome.verdict) for outcome in verification.outcomes}
        arguments.json.write_text(json.dumps({"times": figures, "wrong": wrong, HARD_HISTORY: verdicts}, indent=2))
    return 0 if all_met and not wrong else 1


if __name__ == "__main__":
    sys.exit(main())
