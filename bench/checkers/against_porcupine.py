"""The generic checker against Go porcupine v1.3.0, on porcupine's own histories, printed as ratios with their goals.

    .venv/bin/python bench/checkers/against_porcupine.py [--rounds 5] [--json FILE]

Both judge the same histories in the same run, with one thread each: 102 logs of Jepsen's test of etcd, and histories of
a key-value store with 10 and with 50 clients, linearizable ones and others. The histories are part of porcupine's
module, which Go downloads. Reading them into memory is not timed. Processor time is measured, because the machine may
have other load. The two alternate in rounds, because the machine's speed drifts; the shortest time of all rounds counts
for each history. As with `timeit`, Python's cycle collector is off while a history is timed. A ratio below 1.0 means
that this checker is faster.

No search has yet decided every key of the history kv c50-bad. After the comparison, this history is therefore judged
again, with a budget and past the first violation, and the verdict of each key is printed.
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
NOT_USED = "etcd_095"
"""Porcupine's tests skip this log."""
REPEATS = 3
NO_LIMIT = Budget(time_s=None, memory_mb=None)
HARD_BUDGET = Budget(time_s=20, memory_mb=2048)
GOALS = {"etcd, 102 logs": 0.10, "etcd_002": 0.03, "etcd_007": 0.03, "c50-ok": 1.5}
"""Maximum times relative to porcupine's."""
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
class Timed:
    """The shortest time so far, and the verdict."""

    ns: int
    verdict: Verdict

    def take(self, other: "Timed") -> None:
        self.ns = min(self.ns, other.ns)


class Porcupine:
    """The Go program beside this file, built for one run."""

    def __init__(self, directory: Path) -> None:
        if shutil.which("go") is None:
            sys.exit("there is no Go on PATH; install it from https://go.dev/doc/install")
        self._binary = directory / "porcupine_timer"
        self._go("build", "-o", str(self._binary), ".")
        self.test_data = Path(self._go("list", "-m", "-f", "{{.Dir}}", MODULE).strip()) / "test_data"

    def times(self, histories: Sequence[History]) -> dict[str, Timed]:
        lines = "".join(json.dumps(self._request(history)) + "\n" for history in histories)
        environment = {**os.environ, "GOMAXPROCS": "1"}
        done = subprocess.run([self._binary], input=lines, env=environment, capture_output=True, text=True, check=True)
        results = [json.loads(line) for line in done.stdout.splitlines()]
        return {result["name"]: Timed(result["ns"], VERDICTS[result["result"]]) for result in results}

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
    """Return events for the Go program.

    The program requires an end of every operation. An operation of unknown outcome ends after all other events, marked
    as unknown, so that porcupine accepts any result.
    """
    lines: list[list[Any]] = []
    running: dict[Any, Event] = {}
    for event in events:
        if event.kind is EventKind.INVOKE:
            running[event.op_id] = event
            lines.append([0, event.op_id, int(event.process), *_arguments(event.value)])
        elif event.kind is EventKind.OK:
            f = running.pop(event.op_id).value[0]
            lines.append([1, event.op_id, int(event.process), f, "", *_result(f, event.value)])
    unknown = 2
    ends = [[1, op_id, int(event.process), event.value[0], "", 0, unknown] for op_id, event in running.items()]
    return lines + ends


def _arguments(given: tuple[Any, ...]) -> list[Any]:
    if given[0] in ("get", "put", "append"):
        return [given[0], given[1], given[2] if len(given) > 2 else "", 0]
    return [given[0], "", *given[1:], *[0] * (3 - len(given))]


def _result(f: str, output: Any) -> list[Any]:
    if f in ("get", "put", "append"):
        return [output or "", 0]
    return [-1 if output is None else int(output), int(f == "cas" and output)]


def histories_of(test_data: Path) -> list[History]:
    logs = [path for path in sorted((test_data / "jepsen").glob("etcd_*.log")) if path.stem != NOT_USED]
    etcd = [History(path.stem, ETCD, read_etcd_log(path)) for path in logs]
    stores = [test_data / "kv" / f"{name}.txt" for name in ("c10-ok", "c10-bad", "c50-ok", "c50-bad")]
    return [*etcd, *(History(path.stem, STORE, read_key_value_log(path)) for path in stores)]


def our_time(history: History) -> Timed:
    """Return the verdict and the shortest time of several checks; each ends at the first violation, as in porcupine."""
    model, best, verdict = history.model, sys.maxsize, Verdict.UNKNOWN
    for _ in range(REPEATS):
        gc.disable()
        begin_ns = time.process_time_ns()
        verdict = check(history.events, model, NO_LIMIT, first_violation_only=True).verdict
        best = min(best, time.process_time_ns() - begin_ns)
        gc.enable()
    return Timed(best, verdict)


def measure(
    porcupine: Porcupine, histories: Sequence[History], rounds: int
) -> tuple[dict[str, Timed], dict[str, Timed]]:
    theirs: dict[str, Timed] = {}
    ours: dict[str, Timed] = {}
    for _ in range(rounds):
        for name, timed in porcupine.times(histories).items():
            theirs.setdefault(name, timed).take(timed)
        for history in histories:
            timed = our_time(history)
            ours.setdefault(history.name, timed).take(timed)
    return theirs, ours


def rows_of(
    histories: Sequence[History], theirs: dict[str, Timed], ours: dict[str, Timed]
) -> list[tuple[str, float, float, float | None]]:
    """Return rows of name, porcupine's milliseconds, kafkatrial's milliseconds, and the maximum ratio."""
    etcd = [history.name for history in histories if history.kind == ETCD]
    groups = {f"etcd, {len(etcd)} logs": etcd}
    groups |= {name: [name] for name in ("etcd_002", "etcd_007", "c10-ok", "c10-bad", "c50-ok", "c50-bad")}
    return [
        (
            what,
            sum(theirs[name].ns for name in names) / 1e6,
            sum(ours[name].ns for name in names) / 1e6,
            GOALS.get(what),
        )
        for what, names in groups.items()
    ]


def print_rows(console: Console, rows: Sequence[tuple[str, float, float, float | None]]) -> bool:
    table = Table("history", "porcupine ms", "kafkatrial ms", "ratio", "goal", "")
    met = True
    for what, theirs, ours, goal in rows:
        holds = goal is None or ours / theirs <= goal
        met = met and holds
        mark = "" if goal is None else ("met" if holds else "missed")
        shown_goal = "" if goal is None else f"<= {goal}"
        table.add_row(what, f"{theirs:.2f}", f"{ours:.2f}", f"{ours / theirs:.3f}", shown_goal, mark)
    console.print(table)
    return met


def print_keys(console: Console, verification: Verification) -> None:
    table = Table("c50-bad, key", "verdict", "steps", "peak MB", "engine or reason")
    for outcome in verification.outcomes:
        by = outcome.reason if outcome.verdict is Verdict.UNKNOWN else outcome.engine
        peak_mb = f"{outcome.peak_bytes / 1e6:.0f}"
        table.add_row(str(outcome.key), outcome.verdict, f"{outcome.steps:,}", peak_mb, by)
    console.print(table)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    arguments = parser.parse_args()
    console = Console()
    with tempfile.TemporaryDirectory() as directory:
        porcupine = Porcupine(Path(directory))
        histories = histories_of(porcupine.test_data)
        theirs, ours = measure(porcupine, histories, arguments.rounds)
    wrong = [name for name in ours if ours[name].verdict is not theirs[name].verdict]
    console.print(f"verdicts that differ from porcupine's: {', '.join(wrong) or 'none'} of {len(ours)}")
    rows = rows_of(histories, theirs, ours)
    met = print_rows(console, rows)
    hard = next(history for history in histories if history.name == "c50-bad")
    keys = check(hard.events, hard.model, HARD_BUDGET)
    print_keys(console, keys)
    if arguments.json:
        figures = [dict(zip(("history", "porcupine_ms", "kafkatrial_ms", "goal"), row, strict=True)) for row in rows]
        verdicts = {str(outcome.key): str(outcome.verdict) for outcome in keys.outcomes}
        arguments.json.write_text(json.dumps({"times": figures, "wrong": wrong, "c50-bad": verdicts}, indent=2))
    return 0 if met and not wrong else 1


if __name__ == "__main__":
    sys.exit(main())
