"""Cost of the layout of a large history if its rows are sorted by kafkatrial, by DuckDB, or by Spark.

    .venv/bin/python bench/layout.py [--records 1000000 10000000] [--rounds 3] [--methods ours duckdb] [--memory 2GB]

Four methods lay out one synthesized history in turn, each in a separate process and on the same number of cores:

- `ours`: kafkatrial's layout in worker processes.
- `duckdb`: rows that DuckDB has sorted, laid out in worker processes; compared with `ours`.
- `spark-ours`: kafkatrial's layout as tasks of a Spark session.
- `spark`: rows that Spark has sorted, laid out as tasks of a Spark session; compared with `spark-ours`.

The worker processes or the session are started before the measurement. Afterwards the history is judged from the
layout; if two verdicts differ, the benchmark ends. Kafkatrial's layout also checks the rules of the format. The layout
of `duckdb` checks most of them with `--rules`, and that of `spark` checks none.

For each method, the medians of wall time, processor time and peak resident memory of all processes are printed, with
the ratios to the method that it is compared with. The load of the machine is printed, too.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.process_group import measured
from bench.sorted_layout import settled, sorted_by_duckdb, sorted_by_spark
from linearizability.history.reader import open_history
from linearizability.shards.engine import judge_layout
from linearizability.shards.laying_out import draft_folder, lay_out
from linearizability.shards.manifest import layout_folder
from linearizability.shards.running import Processes
from linearizability.synthetic.writing import Request, synthesize

COMPARED_WITH = {"duckdb": "ours", "spark": "spark-ours"}
ANOMALIES = ["lost-write", "poll-skip"]
"""The anomalies of the synthesized history."""
FIGURES = ("wall_s", "cpu_s", "peak_mb", "last_s")
"""Results of `process_group.measured`; `last_s` is the time until the rows are sorted."""

# Each method is a generator for `process_group.measured`. Its first `yield` ends the preparation; its second one, if
# there is one, ends the sorting. It stores the layout in `result`.


def layout_by_ours(run, options, result):
    with Processes(options.cores) as processes:
        processes.start()
        yield
        result["layout"] = lay_out(open_history(run), processes)


def layout_by_duckdb(run, options, result):
    with Processes(options.cores) as processes:
        processes.start()
        yield
        folder = _draft(run)
        sorted_by_duckdb(run, folder, cores=options.cores, memory=options.memory, rules=options.rules)
        yield
        result["layout"] = settled(run, folder, processes, rules=options.rules)


def layout_by_spark_ours(run, options, result):
    from reports.spark.session import spark_session
    from reports.spark.tasks import tasks_on

    with spark_session(f"local[{options.cores}]") as spark:
        yield
        result["layout"] = lay_out(open_history(run), tasks_on(spark))


def layout_by_spark(run, options, result):
    from reports.spark.session import spark_session
    from reports.spark.tasks import tasks_on

    with spark_session(f"local[{options.cores}]") as spark:
        yield
        folder, history = _draft(run), open_history(run)
        sorted_by_spark(spark, run, folder, records=history.count("records"))
        yield
        result["layout"] = settled(run, folder, tasks_on(spark))


METHODS = {
    "ours": layout_by_ours,
    "duckdb": layout_by_duckdb,
    "spark-ours": layout_by_spark_ours,
    "spark": layout_by_spark,
}


def _draft(run):
    return draft_folder(layout_folder(open_history(run)))


def _remove_layout(run):
    shutil.rmtree(layout_folder(open_history(run)), ignore_errors=True)


def measure(options):
    """Measure one method in this process, judge the history from its layout, and print the results as JSON."""
    _remove_layout(options.run)
    result = {}
    figures = measured(METHODS[options.measure](options.run, options, result))
    history = open_history(options.run)
    with Processes(options.cores) as processes:
        judgement = judge_layout(history, result["layout"], processes)
    verdicts = [str(judgement.verdict), *sorted((a.name, str(a.verdict), a.count) for a in judgement.anomalies)]
    size_bytes = sum(path.stat().st_size for path in layout_folder(history).rglob("*.parquet"))
    _remove_layout(options.run)
    sys.stdout.write(json.dumps({**figures, "verdicts": verdicts, "layout_mb": size_bytes >> 20}))


def measured_in_a_process(method, run, options):
    """Return the results of `measure` in a new process."""
    command = [sys.executable, __file__, "--measure", method, "--run", str(run)]
    command += ["--cores", str(options.cores), "--memory", options.memory, *(["--rules"] if options.rules else [])]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--records", type=int, nargs="+", default=[1_000_000, 10_000_000], help="Sizes of the synthesized histories."
    )
    parser.add_argument("--partitions", type=int, default=200, help="Number of partitions (default: 200).")
    parser.add_argument("--skew", type=float, default=0.0, help="Minimum share of partition 0 (default: 0).")
    parser.add_argument("--cores", type=int, default=2, help="Number of worker processes or threads (default: 2).")
    parser.add_argument("--rounds", type=int, default=3, help="Number of measurements of each method (default: 3).")
    parser.add_argument("--memory", default="2GB", help="DuckDB's memory_limit (default: 2GB).")
    parser.add_argument("--rules", action="store_true", help="Check rules of the format with DuckDB, too.")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS, help="Methods (default: all).")
    parser.add_argument("--run", type=Path, help="Existing run directory, instead of synthesized histories.")
    parser.add_argument("--measure", choices=METHODS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(options)
    elif options.run:
        compare(options.run, options)
    else:
        for records in options.records:
            with tempfile.TemporaryDirectory() as folder:
                run = Path(folder) / "run"
                synthesize(run, Request(records, options.partitions, options.skew, ANOMALIES), lambda _: None)
                compare(run, options)


def compare(run, options):
    """Measure the methods in turn, and print the table."""
    rounds = {method: [] for method in options.methods}
    for _ in range(options.rounds):
        for method in options.methods:
            figures = measured_in_a_process(method, run, options)
            rounds[method].append(figures)
            sys.stderr.write(f"{method}: {json.dumps(figures)}, load {os.getloadavg()[0]:.1f}\n")
            first = next(iter(rounds.values()))[0]
            if figures["verdicts"] != first["verdicts"]:
                sys.exit(
                    f"{method}: the verdict {figures['verdicts']} differs from another layout's, {first['verdicts']}"
                )
    table = Table("", "wall s", "ratio", "processor s", "ratio", "peak MB", "ratio", "sort s", "layout MB")
    for method, own in rounds.items():
        medians = {name: statistics.median(one[name] for one in own) for name in FIGURES}
        others = rounds.get(COMPARED_WITH.get(method, ""))
        cells = []
        for name in ("wall_s", "cpu_s", "peak_mb"):
            cells += [f"{medians[name]:.1f}", _ratios(own, others, name) if others else ""]
        table.add_row(method, *cells, f"{medians['last_s']:.1f}", str(own[0]["layout_mb"]))
    console = Console(width=140)
    console.print(f"{open_history(run).count('records'):,} records, load {os.getloadavg()[0]:.1f}")
    console.print(table)


def _ratios(own, others, name):
    """Return the median, minimum and maximum of the ratios of two methods in the same rounds."""
    ratios = [one[name] / other[name] for one, other in zip(own, others, strict=True)]
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})"


if __name__ == "__main__":
    main()
