"""Time and memory to check one partition as a linearizable log, for a million operations of fifty clients.

    .venv/bin/python bench/checkers/kafka_log.py [--operations 1000000] [--rounds 5] [--json FILE]

With such histories, porcupine runs out of memory at 3,000 operations. In a new process, three figures are measured:

- `checked`: the shortest time of several rounds in which columns in memory are checked.
- `checked, linearizable watermark`: the same, with a high watermark that must be linearizable, too.
- `from Parquet`: the time from opening the run directory to the verdict.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa
from measured import Cost, cost_of
from rich.console import Console
from rich.table import Table
from synthetic import TOPIC, write_log_of_one_partition

from linearizability.history.reader import open_history
from linearizability.partition_log import PartitionColumns, partition_columns

GOALS = {"checked": (0.5, 600.0), "checked, linearizable watermark": (None, None), "from Parquet": (1.5, None)}
"""Maximum processor time in seconds and maximum memory in megabytes; None if there is no goal."""


def load(run_dir: Path) -> PartitionColumns:
    return partition_columns(open_history(run_dir), TOPIC, 0)


def judge(run_dir: Path) -> None:
    assert load(run_dir).find_conflict() is None


def measure(run_dir: Path, rounds: int) -> dict[str, Cost]:
    """Measure the check of one history in this process, which does nothing else."""
    whole = cost_of(lambda: judge(run_dir))
    columns = load(run_dir)
    plain = min((cost_of(columns.find_conflict) for _ in range(rounds)), key=lambda cost: cost.cpu_s)
    linearizable = min(
        (cost_of(lambda: columns.find_conflict(linearizable=True)) for _ in range(rounds)), key=lambda cost: cost.cpu_s
    )
    return {"checked": plain, "checked, linearizable watermark": linearizable, "from Parquet": whole}


def print_costs(console: Console, costs: dict[str, Cost]) -> bool:
    table = Table("figure", "processor s", "clock s", "goal s", "peak MB", "goal MB", "")
    met = True
    for what, cost in costs.items():
        seconds, megabytes = GOALS[what]
        holds = (seconds is None or cost.cpu_s <= seconds) and (megabytes is None or cost.peak_mb <= megabytes)
        met = met and holds
        goals = ["" if goal is None else f"<= {goal:g}" for goal in (seconds, megabytes)]
        mark = "" if goals == ["", ""] else ("met" if holds else "missed")
        table.add_row(what, f"{cost.cpu_s:.2f}", f"{cost.wall_s:.2f}", goals[0], f"{cost.peak_mb:.0f}", goals[1], mark)
    console.print(table)
    return met


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--operations", type=int, default=1_000_000, help="Number (default: %(default)s).")
    parser.add_argument("--rounds", type=int, default=5, help="Number of rounds (default: %(default)s).")
    parser.add_argument("--json", type=Path, help="Also write the results to this file.")
    parser.add_argument("--measure", type=Path, metavar="RUN_DIR", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        pa.set_cpu_count(1)
        costs = measure(arguments.measure, arguments.rounds)
        sys.stdout.write(json.dumps({what: asdict(cost) for what, cost in costs.items()}))
        return 0
    with tempfile.TemporaryDirectory() as directory:
        write_log_of_one_partition(Path(directory), arguments.operations)
        command = [sys.executable, __file__, "--measure", directory, "--rounds", str(arguments.rounds)]
        measured = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    if arguments.json:
        arguments.json.write_text(json.dumps(measured, indent=2))
    return 0 if print_costs(Console(), {what: Cost(**cost) for what, cost in measured.items()}) else 1


if __name__ == "__main__":
    sys.exit(main())
