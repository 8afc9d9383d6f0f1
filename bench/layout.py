"""Layout of a large history: our sorted runs compared with the same rows sorted by DuckDB and by Spark.

    .venv/bin/python bench/layout.py [--records 1000000 10000000] [--rounds 3] [--methods ours duckdb] [--memory 2GB]

The methods lay out the tables of one synthesized history in turn, each in a separate process and on the same number of
cores. `ours` and `duckdb` use worker processes; `spark-ours`, which is our layout too, and `spark` use a Spark session
that is already running. After each layout, the history is judged from that layout; a different verdict ends the
benchmark. Our layout also checks the rules of the format. DuckDB's checks most of them with `--rules`, and Spark's
checks none. For each method, the medians of wall time, processor time and peak of the total resident memory are
printed, with the ratios of `duckdb` to `ours` and of `spark` to `spark-ours`. The load is printed too.
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

BASES = {"duckdb": "ours", "spark": "spark-ours"}
METHODS = ("ours", "duckdb", "spark-ours", "spark")
PLANTS = ["lost-write", "poll-skip"]
FIGURES = ("wall_s", "cpu_s", "peak_mb", "last_s")


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


def _draft(run):
    return draft_folder(layout_folder(open_history(run)))


def _remove(run):
    shutil.rmtree(layout_folder(open_history(run)), ignore_errors=True)


def measure(options):
    """Measure one method in this process; then judge its layout."""
    _remove(options.run)
    result = {}
    figures = measured(globals()[f"layout_by_{options.measure.replace('-', '_')}"](options.run, options, result))
    history = open_history(options.run)
    with Processes(options.cores) as processes:
        judgement = judge_layout(history, result["layout"], processes)
    verdicts = [str(judgement.verdict), *sorted((a.name, str(a.verdict), a.count) for a in judgement.anomalies)]
    bytes_ = sum(path.stat().st_size for path in layout_folder(history).rglob("*.parquet"))
    _remove(options.run)
    sys.stdout.write(json.dumps({**figures, "verdicts": verdicts, "layout_mb": bytes_ >> 20}))


def measured_in_a_process(method, run, options):
    command = [sys.executable, __file__, "--measure", method, "--run", str(run)]
    command += ["--cores", str(options.cores), "--memory", options.memory, *(["--rules"] if options.rules else [])]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--partitions", type=int, default=200)
    parser.add_argument("--skew", type=float, default=0.0)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memory", default="2GB", help="memory_limit of DuckDB")
    parser.add_argument("--rules", action="store_true", help="check the rules of the format with DuckDB too")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--run", type=Path, help="existing run directory to use instead of a new one")
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
                synthesize(run, Request(records, options.partitions, options.skew, PLANTS), lambda _: None)
                compare(run, options)


def compare(run, options):
    rounds = {method: [] for method in options.methods}
    for _ in range(options.rounds):
        for method in options.methods:
            figures = measured_in_a_process(method, run, options)
            rounds[method].append(figures)
            sys.stderr.write(f"{method}: {json.dumps(figures)}, load {os.getloadavg()[0]:.1f}\n")
            first = next(iter(rounds.values()))[0]
            if figures["verdicts"] != first["verdicts"]:
                sys.exit(f"{method}: another verdict: {figures['verdicts']} instead of {first['verdicts']}")
    table = Table("", "clock s", "to ours", "processor s", "to ours", "peak MB", "to ours", "sort s", "layout MB")
    for method, own in rounds.items():
        medians = {name: statistics.median(one[name] for one in own) for name in FIGURES}
        base = rounds.get(BASES.get(method, ""))
        cells = []
        for name in ("wall_s", "cpu_s", "peak_mb"):
            ratios = [one[name] / other[name] for one, other in zip(own, base or (), strict=bool(base))]
            spread = f"{statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})" if base else ""
            cells += [f"{medians[name]:.1f}", spread]
        table.add_row(method, *cells, f"{medians['last_s']:.1f}", str(own[0]["layout_mb"]))
    console = Console(width=140)
    console.print(f"{open_history(run).count('records'):,} records, load {os.getloadavg()[0]:.1f}")
    console.print(table)


if __name__ == "__main__":
    main()
