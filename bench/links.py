"""Cost of the two ways to inject link faults, into streams and into packets, while no fault is in effect.

    .venv/bin/python bench/links.py [--target apache-kafka:4.3.1] [--rounds 7] [--records 30000]

Three clusters of three nodes of Apache Kafka run at once, with the same settings, each in a process with its own
client. `direct` cannot inject link faults, `streams` has a proxy in each link, and `packets` is in a network namespace
with packet filters. One cluster is measured at a time, while the others are idle; the order alternates from round to
round.

In each round, records of 1,024 bytes are produced with acks=all to one partition with three replicas. The throughput is
divided by that of `direct` in the same round, and the median of these ratios is printed.

Finally, one of the nodes is isolated from the others several times. The median times to isolate it, and to heal its
links, are printed.
"""

import argparse
import os
import statistics
import time
from collections import defaultdict
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

from cluster_measures import create_topics, produce

from fixtures.network import namespace
from fixtures.targets.catalogue import parse_target
from fixtures.targets.controls import Barrier, Direction, LinkCondition, NetworkedTarget
from fixtures.targets.target import Capability

KINDS = ("direct", "streams", "packets")
GOALS = {"streams": 0.90, "packets": 0.97}
"""Minimum throughput, divided by that of `direct`."""
ISOLATION_GOAL_MS = 10
RECORD_BYTES = 1024
ISOLATIONS = 15
NODES = (1, 2, 3)
ISOLATE, STOP = "isolate", "stop"
"""Tasks of a cluster's process. Any other task is a number of records to produce."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="apache-kafka:4.3.1", help="Target to measure (default: %(default)s).")
    parser.add_argument("--rounds", type=int, default=7, help="Number of rounds (default: %(default)s).")
    parser.add_argument(
        "--records",
        type=int,
        default=30_000,
        help="Number of records per cluster and round (default: %(default)s).",
    )
    arguments = parser.parse_args()
    reason = namespace.why_no_namespace()
    if reason:
        print(f"packets is not measured: {reason}")
    kinds = [kind for kind in KINDS if kind != "packets" or not reason]
    spawning = get_context("spawn")  # because a process must enter a namespace before it has threads
    clusters = {}
    for kind in kinds:
        clusters[kind], connection = spawning.Pipe()
        spawning.Process(target=run_cluster, args=(kind, arguments.target, connection), daemon=True).start()
    for cluster in clusters.values():
        cluster.recv()
    measure(clusters, arguments.rounds, arguments.records)
    for cluster in clusters.values():
        run_task(cluster, STOP)
    print(f"load average of {os.cpu_count()} processors: {os.getloadavg()[0]:.1f}")


def run_cluster(kind: str, target: str, tasks: Connection) -> None:
    """Run a cluster in this process, and its tasks until `STOP`. Send a message after the start and after each task."""
    if kind == "packets":
        namespace.enter()
    prepare = {Capability.PACKET_FAULTS} if kind == "packets" else set()
    with parse_target(target, len(NODES), mesh=kind != "direct", prepare=prepare) as cluster:
        create_topics(cluster, "topic")
        tasks.send("ready")
        while (task := tasks.recv()) != STOP:
            tasks.send(isolate(cluster) if task == ISOLATE else produce(cluster, "topic", b"x" * RECORD_BYTES, task))
    tasks.send("stopped")


def run_task(cluster: Connection, task: int | str) -> Any:
    """Run a task in the process of a cluster, and return its result."""
    cluster.send(task)
    return cluster.recv()


def isolate(cluster: NetworkedTarget) -> tuple[float, float]:
    """Isolate a node and heal its links. Return how long each took, in milliseconds."""
    directions = [direction for other in NODES[1:] for direction in (Direction(1, other), Direction(other, 1))]
    began = time.monotonic()
    with cluster.links.impair(directions, LinkCondition(Barrier.HOLDS)):
        isolated = time.monotonic()
    return (isolated - began) * 1e3, (time.monotonic() - isolated) * 1e3


def measure(clusters: dict[str, Connection], rounds: int, records: int) -> None:
    """Measure throughput and isolation, and print the results."""
    rates = defaultdict(list)
    for number in range(rounds + 1):
        for kind in list(clusters) if number % 2 else list(clusters)[::-1]:
            rate = run_task(clusters[kind], records)
            if number:  # the first round warms up
                rates[kind].append(rate)
    impairable = [kind for kind in clusters if kind != "direct"]
    print(f"{'direct':8} {statistics.median(rates['direct']):>9,.0f} records/s")
    for kind in impairable:
        ratio = statistics.median(on / off for on, off in zip(rates[kind], rates["direct"], strict=True))
        rate = f"{statistics.median(rates[kind]):>9,.0f} records/s"
        print(f"{kind:8} {rate}  ratio {ratio:.2f}  goal {GOALS[kind]:.2f}: {verdict(ratio >= GOALS[kind])}")
    for kind in impairable:
        times_ms = zip(*(run_task(clusters[kind], ISOLATE) for _ in range(ISOLATIONS)), strict=True)
        isolated_ms, healed_ms = map(statistics.median, times_ms)
        figures = f"isolated in {isolated_ms:.1f} ms, healed in {healed_ms:.1f} ms"
        is_met = isolated_ms <= ISOLATION_GOAL_MS
        print(f"{kind:8} a node is {figures}  goal {ISOLATION_GOAL_MS} ms: {verdict(is_met)}")


def verdict(is_met: bool) -> str:
    return "met" if is_met else "MISSED"


if __name__ == "__main__":
    main()
