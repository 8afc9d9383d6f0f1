"""Cost of checking valid histories for all anomalies in memory, and its growth with the number of records.

    .venv/bin/python bench/checkers/anomalies.py [--records 10000000] [--json FILE]

The local engine judges small histories in memory. A new process reads each history, validates it, and checks every
anomaly. `growth` is the processor time for all records, divided by the processor time for a tenth of them on the same
number of partitions: 10 is linear.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from measured import Cost, cost_of
from rich.console import Console
from rich.table import Table

from linearizability.check import judge_history
from linearizability.history.reader import open_history
from linearizability.history.validate import validate
from linearizability.judgement import Verdict
from linearizability.synthetic.writing import Request, synthesize

PARTITIONS = (1, 1000)
GOAL_RECORDS = 10_000_000
GOAL_S, GOAL_MB, GOAL_GROWTH = 60.0, 4096.0, 15.0
"""Maximum processor time in seconds, memory in megabytes, and growth.

The maximum growth is above 10, because rows are sorted, and because the larger history exceeds the processor's cache.
"""


def check_without_violation(run_dir: Path) -> None:
    history = open_history(run_dir)
    validate(history)
    judgement = judge_history(history)
    assert judgement.verdict is Verdict.OK, judgement.anomalies


def measure(records: int, partitions: int) -> Cost:
    with tempfile.TemporaryDirectory() as directory:
        run_dir = Path(directory) / "run"
        synthesize(run_dir, Request(records, partitions), lambda _: None)
        command = [sys.executable, __file__, "--measure", str(run_dir)]
        output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return Cost(**json.loads(output))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=GOAL_RECORDS, help="Number of records (default: %(default)s).")
    parser.add_argument("--json", type=Path, help="Also write the results to this file.")
    parser.add_argument("--measure", type=Path, metavar="RUN_DIR", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        sys.stdout.write(json.dumps(asdict(cost_of(lambda: check_without_violation(arguments.measure)))))
        return 0
    table = Table("records", "partitions", "processor s", "clock s", "peak MB", "growth", "")
    figures, met = [], True
    for partitions in PARTITIONS:
        small, large = (measure(records, partitions) for records in (arguments.records // 10, arguments.records))
        growth = large.cpu_s / small.cpu_s
        holds = growth <= GOAL_GROWTH and large.peak_mb <= GOAL_MB and large.cpu_s <= GOAL_S
        met = met and holds
        for records, cost, shown in (
            (arguments.records // 10, small, ("", "")),
            (arguments.records, large, (f"{growth:.1f}", "met" if holds else "missed")),
        ):
            costs = (f"{cost.cpu_s:.1f}", f"{cost.wall_s:.1f}", f"{cost.peak_mb:.0f}")
            table.add_row(f"{records:,}", f"{partitions:,}", *costs, *shown)
            figures.append({"records": records, "partitions": partitions, **asdict(cost)})
    goals = f"Goals at {GOAL_RECORDS:,} records: {GOAL_S:g} s, {GOAL_MB:g} MB; growth at most {GOAL_GROWTH:g}."
    Console().print(table, goals)
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2))
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
