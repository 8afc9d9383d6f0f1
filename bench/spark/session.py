"""Start time of a Spark session with the JVM's defaults, with one compiler, and with one compiler and the archive.

    python bench/spark/session.py [ROUNDS]

Each start is in a new process. The three ways are measured in turn, so that other load affects all of them; the medians
and their ratios to the first way are printed. The time is from the call of `spark_session` until the session is ready,
including the start of the JVM.
"""

import os
import statistics
import subprocess
import sys

from reports.spark.archive import archive_options, make_archive

ROUNDS = 5
PROGRAM = """
import time
from reports.spark.session import spark_session
began = time.monotonic()
with spark_session("local[2]"):
    print(time.monotonic() - began)
"""
ONE_COMPILER = "-XX:TieredStopAtLevel=1"


def main(rounds: int) -> None:
    make_archive()
    ways = {
        "JVM's defaults": "-Dkafkatrial.bench=1",  # without effect, but replaces the options that `spark_session` sets
        "one compiler": ONE_COMPILER,
        "with archive": " ".join([ONE_COMPILER, *archive_options()]),
    }
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way, options in ways.items():
            environment = {**os.environ, "SPARK_SUBMIT_OPTS": options}
            done = subprocess.run(
                [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
            )
            seconds[way].append(float(done.stdout))
    first = statistics.median(seconds["JVM's defaults"])
    for way, times in seconds.items():
        median = statistics.median(times)
        spread = f"{min(times):.1f} to {max(times):.1f}"
        print(f"{way:14} {median:5.1f} s ({spread})  {median / first:.2f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS)
