"""Limits of a reference cluster: many partitions, and a long log.

    .venv/bin/python bench/reference_limits.py [--partitions 2000] [--records 10000000]

- Idle CPU of the busiest of three nodes, in percent of a core, without partitions and with `--partitions` on each.
- Time from the start of a process until it serves a log of `--records` records that was closed cleanly.
"""

import argparse
import tempfile
import time
from pathlib import Path

from cluster_measures import Brokers, create_topics, produce, produce_one
from confluent_kafka import Producer

from fixtures.targets.catalogue import parse_target

IDLE_S = 10.0
SETTLE_S = 5.0
TOPICS = 10
CPU_GROWTH_MAX_PERCENT = 10.0
OPEN_MAX_S = 2.0
RECORD_BYTES = 10


def idle_cpu_percents(partitions: int, work_dir: Path) -> tuple[float, float]:
    """Return the idle CPU before the partitions are created, and after."""
    with parse_target("reference", 3, mesh=False, work_dir=work_dir) as cluster:
        brokers = Brokers()
        time.sleep(SETTLE_S)
        before = brokers.idle_cpu_percent(IDLE_S)
        for number in range(TOPICS):
            create_topics(cluster, f"many-{number}", partitions=partitions // TOPICS)
        time.sleep(SETTLE_S)
        after = brokers.idle_cpu_percent(IDLE_S)
        produce_one(Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all"}), "many-0")
    return before, after


def opening_s(records: int, work_dir: Path) -> float:
    """Return the seconds until a restarted node serves a log of this length."""
    with parse_target("reference", 1, mesh=False, work_dir=work_dir) as cluster:
        create_topics(cluster, "long")
        print(f"{produce(cluster, 'long', b'x' * RECORD_BYTES, records):,.0f} records per second", flush=True)
        cluster.processes.shut_down(1)
        started = time.monotonic()
        cluster.processes.restart(1)
        return time.monotonic() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, default=2000, help="Number of partitions on each of three nodes.")
    parser.add_argument("--records", type=int, default=10_000_000, help="Number of records in the long log.")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kafkatrial-bench-") as directory:
        before, after = idle_cpu_percents(arguments.partitions, Path(directory) / "partitions")
        print(
            f"idle CPU: {before:.1f}% of a core, with {arguments.partitions:,} partitions on each node {after:.1f}% "
            f"(goal: at most {CPU_GROWTH_MAX_PERCENT:.0f}% more)",
            flush=True,
        )
        opening = opening_s(arguments.records, Path(directory) / "log")
        print(f"a log of {arguments.records:,} records opens in {opening:.2f} s (goal: under {OPEN_MAX_S:.0f} s)")


if __name__ == "__main__":
    main()
