"""Cost of a large history: of its layout, and of judging it with DuckDB's SQL, the local engine and Spark.

    .venv/bin/python bench/spark/large_histories.py [--records 1000000 10000000] [--skew 0 0.4] [--cores 2]

A valid history is synthesized, and laid out while it is written. Then it is processed in several ways, once and in a
separate process for each:

- `layout` lays the history out again.
- `duckdb` counts nine anomalies with the queries of `tests/linearizability/shards/anomalies.sql`.
- `local` and `spark` check all anomalies with the local engine and with Spark.

The time to import modules and to start Spark's session is printed separately (`start s`). Processor time and memory are
those of all processes; memory is the highest sum of their resident memory. On a machine with other load, processor time
is a better measure than wall time.

A case is a number of records and a skew. Each number of records is combined with the first skew, and all ways are
measured. Then the last number of records is combined with each other skew, and only the two engines are measured.
Finally, the times and memory of each case are divided by those of the case before it, and printed.
"""

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.process_group import measured
from linearizability.history.layout import HISTORY_FOLDER
from linearizability.shards.manifest import SHARDS_FOLDER
from linearizability.shards.results import RESULT

ROOT = Path(__file__).parents[2]
SQL = ROOT / "tests" / "linearizability" / "shards" / "anomalies.sql"


# The ways: generators that prepare, yield, and then do the work that is measured (`bench.process_group.measured`)


def run_layout(run, cores):
    from linearizability.history.reader import open_history
    from linearizability.shards.laying_out import lay_out
    from linearizability.shards.running import Processes

    with Processes(cores) as processes:
        processes.start()
        yield
        lay_out(open_history(run), processes)


def run_duckdb(run, cores):
    import duckdb

    with duckdb.connect(config={"threads": cores}) as connection:
        for name in ("operations", "records", "positions"):
            connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{run}/history/{name}.parquet')")
        yield
        for part in SQL.read_text().split("\n-- "):  # the name of an anomaly and its query, or a line of the header
            if ";" in part:
                connection.execute(part.split("\n", 1)[1]).fetchall()


def run_local_engine(run, cores):
    from linearizability.history.reader import open_history
    from linearizability.shards.engine import judge_in_shards
    from linearizability.shards.running import Processes

    with Processes(cores) as processes:
        yield
        report(judge_in_shards(open_history(run), processes))


def run_spark(run, cores):
    from reports.spark.check import judge_with_spark
    from reports.spark.session import spark_session

    with spark_session(f"local[{cores}]"):
        yield
        report(judge_with_spark(run))


def report(judgement):
    """Print the verdict to standard error, because standard output has the measurements."""
    sys.stderr.write(f"{judgement.verdict} {[(anomaly.name, anomaly.count) for anomaly in judgement.anomalies]}\n")


WAYS = {"layout": run_layout, "duckdb": run_duckdb, "local": run_local_engine, "spark": run_spark}
ENGINES = ("local", "spark")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--records", type=int, nargs="+", default=[10_000_000], help="Numbers of records (default: 10000000).")
    add("--partitions", type=int, default=200, help="Number of partitions (default: %(default)s).")
    add(
        "--skew",
        type=float,
        nargs="+",
        default=[0.0],
        help="Shares of the records in partition 0 (default: 0, an even share).",
    )
    add("--cores", type=int, default=2, help="Number of cores (default: %(default)s).")
    add("--ways", nargs="+", choices=WAYS, default=list(WAYS), help="Ways to measure (default: all).")
    add("--run", type=Path, help="Existing run directory to use instead of a synthesized history.")
    add("--json", type=Path, help="Also write the measurements to this file.")
    add("--measure", choices=WAYS, help=argparse.SUPPRESS)  # measures one way in this process
    arguments = parser.parse_args()
    if arguments.measure:
        way = WAYS[arguments.measure]
        sys.stdout.write(json.dumps(measured(way(arguments.run, arguments.cores))))
        return
    cases = measure_run(arguments) if arguments.run else measure_synthesized(arguments)
    show_growth(cases)
    if arguments.json:
        arguments.json.write_text(json.dumps(cases, indent=2))


def measure_run(arguments):
    """Return the measurements of an existing run, as the only case."""
    return {str(arguments.run): measure_ways(arguments.ways, arguments.run, arguments.cores)}


def measure_synthesized(arguments):
    """Return the measurements of synthesized histories by case."""
    cases = {}
    for records in arguments.records:
        cases[f"{records:,} records"] = measure_case(arguments, arguments.ways, records, arguments.skew[0])
    engines = [way for way in arguments.ways if way in ENGINES]
    records = arguments.records[-1]
    for skew in arguments.skew[1:]:
        cases[f"{records:,} records, skew {skew}"] = measure_case(arguments, engines, records, skew)
    return cases


def measure_case(arguments, ways, records, skew):
    """Synthesize a history, and return the measurements of some ways."""
    from linearizability.shards.running import Processes
    from linearizability.synthetic.writing import Request, synthesize

    with tempfile.TemporaryDirectory() as directory:
        run = Path(directory) / "run"
        begin_s = time.perf_counter()
        with Processes(arguments.cores) as processes:
            synthesize(run, Request(records, arguments.partitions, skew), lambda _: None, processes)
        rate = records / (time.perf_counter() - begin_s)
        size_mb = sum(path.stat().st_size for path in run.rglob("*") if path.is_file()) / 2**20
        Console().print(
            f"{records:,} records, skew {skew}: {rate:,.0f} a second synthesized and laid out, {size_mb:,.0f} MB"
        )
        return measure_ways(ways, run, arguments.cores)


def measure_ways(ways, run, cores):
    """Measure the ways one after the other, print the measurements, and return them by way."""
    figures = {way: measure_way(way, run, cores) for way in ways}
    show(figures)
    return figures


def measure_way(way, run, cores):
    """Return the measurements of one way, in a new process."""
    for result in run.glob(f"{HISTORY_FOLDER}/{SHARDS_FOLDER}/*/{RESULT}"):
        result.unlink()  # otherwise the second engine would read the result of the first
    command = [sys.executable, __file__, "--measure", way, "--run", str(run), "--cores", str(cores)]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)


def show(figures):
    table = Table("", "start s", "wall s", "÷ DuckDB", "processor s", "÷ DuckDB", "peak MB")
    base = figures.get("duckdb")
    for way, own in figures.items():
        wall_ratio, cpu_ratio = (f"{own[name] / base[name]:.2f}" if base else "" for name in ("wall_s", "cpu_s"))
        times = (f"{own['start_s']:.1f}", f"{own['wall_s']:.1f}", wall_ratio, f"{own['cpu_s']:.1f}", cpu_ratio)
        table.add_row(way, *times, f"{own['peak_mb']:.0f}")
    Console().print(table)


def show_growth(cases):
    """Print the times and memory of each case, divided by those of the case before it."""
    table = Table("", "", "wall", "processor", "memory")
    for (before_name, before), (name, after) in itertools.pairwise(cases.items()):
        for engine in ENGINES:
            if engine in before and engine in after:
                ratios = (f"{after[engine][key] / before[engine][key]:.2f}" for key in ("wall_s", "cpu_s", "peak_mb"))
                table.add_row(f"{name} ÷ {before_name}", engine, *ratios)
    if table.row_count:
        Console().print(table)


if __name__ == "__main__":
    main()
