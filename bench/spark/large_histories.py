"""Cost of judging a large history with DuckDB's SQL, the local engine and Spark, and of laying it out.

    .venv/bin/python bench/spark/large_histories.py [--records 1000000 10000000] [--skew 0 0.4] [--cores 2]

A valid history is synthesized and laid out at the same time; then each way runs once, in a separate process.
`duckdb` counts nine anomalies by the SQL of `tests/linearizability/shards/anomalies.sql`. `local` and `spark` check all
anomalies. `layout` lays out the tables again. Wall times begin after imports and after the start of Spark's session,
whose time is printed separately. Processor times are those of all processes, and are a better measure on a machine with
other load. Memory is the highest sum of the resident memory of all processes.

There is a case for each number of records, with the first skew, and a case for each further skew, with the last number
of records. The cases with a further skew measure the engines only. The growth of the engines' times and memory from
case to case is printed last.
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
WAYS = ("layout", "duckdb", "local", "spark")
ENGINES = ("local", "spark")


def lay_out(run, cores):
    from linearizability.history.reader import open_history
    from linearizability.shards.laying_out import lay_out as make
    from linearizability.shards.running import Processes

    with Processes(cores) as processes:
        processes.start()
        yield
        make(open_history(run), processes)


def duckdb(run, cores):
    import duckdb as engine

    with engine.connect(config={"threads": cores}) as connection:
        for name in ("operations", "records", "positions"):
            connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{run}/history/{name}.parquet')")
        yield
        for part in SQL.read_text().split("\n-- "):
            if ";" in part:
                connection.execute(part.split("\n", 1)[1]).fetchall()


def local(run, cores):
    from linearizability.history.reader import open_history
    from linearizability.shards.engine import judge_in_shards
    from linearizability.shards.running import Processes

    with Processes(cores) as processes:
        yield
        report(judge_in_shards(open_history(run), processes))


def spark(run, cores):
    from reports.spark.check import judge_with_spark
    from reports.spark.session import spark_session

    with spark_session(f"local[{cores}]"):
        yield
        report(judge_with_spark(run))


def report(judgement):
    sys.stderr.write(f"{judgement.verdict} {[(a.name, a.count) for a in judgement.anomalies]}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, nargs="+", default=[10_000_000])
    parser.add_argument("--partitions", type=int, default=200)
    parser.add_argument("--skew", type=float, nargs="+", default=[0.0])
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    parser.add_argument("--run", type=Path, help="existing run directory to use instead of a new one")
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    parser.add_argument("--measure", choices=WAYS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        steps = globals()[{"layout": "lay_out"}.get(arguments.measure, arguments.measure)]
        sys.stdout.write(json.dumps(measured(steps(arguments.run, arguments.cores))))
        return
    if arguments.run:
        cases = {str(arguments.run): figures_of_run(arguments.ways, arguments.run, arguments.cores)}
    else:
        cases = {}
        for records in arguments.records:
            cases[f"{records:,} records"] = figures_of_case(arguments, arguments.ways, records, arguments.skew[0])
        engines = [way for way in arguments.ways if way in ENGINES]
        for skew in arguments.skew[1:]:
            records = arguments.records[-1]
            cases[f"{records:,} records, skew {skew}"] = figures_of_case(arguments, engines, records, skew)
    show_growth(cases)
    if arguments.json:
        arguments.json.write_text(json.dumps(cases, indent=2))


def figures_of_case(arguments, ways, records, skew):
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
            f"{records:,} records, skew {skew}: synthesized and laid out at {rate:,.0f} a second, {size_mb:,.0f} MB"
        )
        return figures_of_run(ways, run, arguments.cores)


def figures_of_run(ways, run, cores):
    figures = {way: figures_of(way, run, cores) for way in ways}
    show(figures)
    return figures


def figures_of(way, run, cores):
    for kept in run.glob(f"{HISTORY_FOLDER}/{SHARDS_FOLDER}/*/{RESULT}"):
        kept.unlink()  # otherwise the second engine would read the result of the first
    command = [sys.executable, __file__, "--measure", way, "--run", str(run), "--cores", str(cores)]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)


def show(figures):
    table = Table("", "start s", "clock s", "to DuckDB", "processor s", "to DuckDB", "peak MB")
    base = figures.get("duckdb")
    for way, own in figures.items():
        ratios = {name: f"{own[name] / base[name]:.2f}" if base else "" for name in ("wall_s", "cpu_s")}
        numbers = (f"{own['start_s']:.1f}", f"{own['wall_s']:.1f}", ratios["wall_s"], f"{own['cpu_s']:.1f}")
        table.add_row(way, *numbers, ratios["cpu_s"], f"{own['peak_mb']:.0f}")
    Console().print(table)


def show_growth(cases):
    """Print the ratios of times and memory of each case to the previous one."""
    table = Table("", "", "clock", "processor", "memory")
    names = list(cases)
    for before, name in itertools.pairwise(names):
        for way in ENGINES:
            if way in cases[name] and way in cases[before]:
                one, other = cases[before][way], cases[name][way]
                ratios = (f"{other[figure] / one[figure]:.2f}" for figure in ("wall_s", "cpu_s", "peak_mb"))
                table.add_row(f"{name}, to {before}", way, *ratios)
    if table.row_count:
        Console().print(table)


if __name__ == "__main__":
    main()
