"""Comparison of the reference broker with Apache Kafka 4.3.1: ratios of times, throughput and memory.

    .venv/bin/python bench/reference_against_apache_kafka.py [--nodes 3] [--rounds 3] [--json FILE]

| measurement                 | what is measured                                                                    |
|-----------------------------|-------------------------------------------------------------------------------------|
| `ready_s`                   | time from the start until a record sent with acks=all has been read                 |
| `produce_…`, `consume_…`    | throughput with records of 100 and of 1,024 bytes                                   |
| `latency_…`                 | time until a single record is acknowledged                                          |
| `memory_mb`                 | resident memory of all nodes after this load                                        |
| `failover_s`                | time from the kill of a leader to the next acknowledged record                      |
| `failover_of_controller_s`  | the same for a leader that is also the active controller                            |

Failovers are not measured with a single node.

Ratios below 1.0 are better for times and memory, ratios above 1.0 for throughput. Both clusters have the same settings:
a replica on every node, and broker sessions of three seconds.

Because the speed of a machine drifts, both clusters run at once. One is measured at a time, while the other is idle;
their order alternates from round to round. Each ratio is computed in every round, and its median is printed.

`bench/reference_limits.py` measures the limits of the reference broker alone.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import product
from pathlib import Path

import psutil
from cluster_measures import Brokers, consume, create_topics, failovers, produce, single_latencies_ms
from rich.console import Console
from rich.table import Table

from fixtures.targets.catalogue import parse_target
from fixtures.targets.target import Target
from linearizability.printable import counted

REFERENCE, KAFKA = "reference", "apache-kafka:4.3.1"
SESSIONS = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}
THROUGHPUT_TURNS = 3
LATENCY_TURNS = 10
RECORDS_PER_LATENCY_TURN = 60
GOALS = {"ready_s": 0.1, "memory_mb": 0.2}
"""Maximum ratios of start time and memory. The goal for throughput is at least 1.0, that of the others at most 1.0."""


class MeasuredCluster:
    """One cluster and its measurements in one round.

    :ivar figures: the measurements by name.
    """

    def __init__(self, target: Target) -> None:
        self.target = target
        self.figures: dict[str, float] = {}
        self.latencies_ms: list[float] = []
        self.throughputs: defaultdict[str, list[float]] = defaultdict(list)

    def start(self, running: ExitStack, others: Sequence[psutil.Process]) -> None:
        """Start the cluster, and create the topics.

        :param running: stops the cluster at its end.
        :param others: the processes of the clusters that run already.
        """
        started = time.monotonic()
        running.enter_context(self.target)
        self.figures["ready_s"] = time.monotonic() - started
        self.brokers = Brokers(others)
        create_topics(self.target, "small", "large", "single")

    def produce(self, topic: str, size: int) -> None:
        self.throughputs[f"produce_{size}_per_s"].append(produce(self.target, topic, b"x" * size))

    def consume(self, topic: str, size: int) -> None:
        self.throughputs[f"consume_{size}_per_s"].append(consume(self.target, topic))

    def measure_latencies(self) -> None:
        self.latencies_ms += single_latencies_ms(self.target, "single", RECORDS_PER_LATENCY_TURN)

    def summarize(self) -> None:
        """Add medians and percentiles, and the present memory, to the figures."""
        self.figures |= {name: statistics.median(values) for name, values in self.throughputs.items()}
        latencies = sorted(self.latencies_ms)
        self.figures["latency_p50_ms"] = latencies[len(latencies) // 2]
        self.figures["latency_p99_ms"] = latencies[len(latencies) * 99 // 100]
        self.figures["memory_mb"] = self.brokers.memory_mb()

    def measure_failovers(self) -> None:
        if len(self.target.nodes) > 1:
            self.figures |= failovers(self.target, "failover")


def measure(targets: Sequence[Target]) -> Mapping[str, Mapping[str, float]]:
    """Run one round, and return the measurements by name of the target."""
    clusters = [MeasuredCluster(target) for target in targets]
    with ExitStack() as running:
        for number, cluster in enumerate(clusters):
            cluster.start(running, [process for other in clusters[:number] for process in other.brokers.processes])
        for (topic, size), _ in product((("small", 100), ("large", 1024)), range(THROUGHPUT_TURNS)):
            for cluster in clusters:
                cluster.produce(topic, size)
            for cluster in clusters:
                cluster.consume(topic, size)
        for _ in range(LATENCY_TURNS):
            for cluster in clusters:
                cluster.measure_latencies()
        for cluster in clusters:
            cluster.summarize()
        for cluster in clusters:
            cluster.measure_failovers()
    return {cluster.target.name: cluster.figures for cluster in clusters}


def rounds(count: int, nodes: int, work_dir: Path) -> Iterator[Mapping[str, Mapping[str, float]]]:
    """Run the rounds, and yield the measurements of each."""
    for number in range(count):
        order = (REFERENCE, KAFKA) if number % 2 == 0 else (KAFKA, REFERENCE)
        yield measure(
            [
                parse_target(name, nodes, work_dir=work_dir / f"{number}-{name}", mesh=False, properties=SESSIONS)
                for name in order
            ]
        )


def show(measured: list[Mapping[str, Mapping[str, float]]], nodes: int) -> dict[str, dict[str, float]]:
    """Print a table of the medians of all rounds, and return them by name of the measurement."""
    size = f"{counted(nodes, 'node')} each, median of {counted(len(measured), 'round')}"
    table = Table(title=f"Reference broker against Apache Kafka 4.3.1, {size}")
    for heading in ("measurement", "reference", "Apache Kafka", "ratio", "goal"):
        table.add_column(heading, justify="left" if heading == "measurement" else "right")
    summary = {}
    for name in measured[0][REFERENCE]:
        pairs = [(figures[REFERENCE][name], figures[KAFKA][name]) for figures in measured]
        reference, kafka = (statistics.median(values) for values in zip(*pairs, strict=True))
        ratio = statistics.median(one / other for one, other in pairs)
        goal = f"≥ {GOALS.get(name, 1.0)}" if name.endswith("_per_s") else f"≤ {GOALS.get(name, 1.0)}"
        table.add_row(name, f"{reference:,.2f}", f"{kafka:,.2f}", f"{ratio:.2f}", goal)
        summary[name] = {"reference": reference, "apache_kafka": kafka, "ratio": ratio}
    Console().print(table)
    return summary


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--nodes", type=int, default=3, help="Number of nodes of each cluster: 1, 3 or 5 (default: %(default)s)."
    )
    parser.add_argument("--rounds", type=int, default=3, help="Number of rounds (default: %(default)s).")
    parser.add_argument("--json", type=Path, help="Also write the results to this file.")
    arguments = parser.parse_args()
    measured = []
    with tempfile.TemporaryDirectory(prefix="kafkatrial-bench-") as directory:
        for number, figures in enumerate(rounds(arguments.rounds, arguments.nodes, Path(directory)), 1):
            print(f"round {number} of {arguments.rounds} measured", flush=True)
            measured.append(figures)
    summary = show(measured, arguments.nodes)
    if arguments.json:
        arguments.json.write_text(json.dumps(summary, indent=1) + "\n")


if __name__ == "__main__":
    main()
