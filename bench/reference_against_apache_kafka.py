"""The reference broker against Apache Kafka 4.3.1, side by side in one run, printed as ratios.

    .venv/bin/python bench/reference_against_apache_kafka.py [--nodes 3] [--rounds 3] [--json FILE]

Time until an acks=all record was written to all nodes and read back, resident memory of all nodes after the load,
produce and consume throughput at 100 and 1,024 bytes, the latency of single acknowledged records, and with several
nodes the time that a killed leader is missed. Rounds alternate between the two, because the machine's speed drifts; a
ratio is taken inside a round and the median of the rounds is shown. Below 1.0 is better for time and memory, above 1.0
for throughput. Both have the same settings: replication factor N, sessions of three seconds.

`bench/reference_limits.py` has what is asked of the reference broker alone.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from cluster_measures import Brokers, consume, create_topics, failovers, produce, single_latencies_ms
from rich.console import Console
from rich.table import Table

from fixtures.targets.catalogue import parse_target
from fixtures.targets.target import Target

REFERENCE, KAFKA = "reference", "apache-kafka:4.3.1"
SESSIONS = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}
GOALS = {"ready_s": 0.1, "memory_mb": 0.2}
"""Time and memory are to stay below these ratios, throughput at or above 1.0, latency and failover at or below it."""


def measure(target: Target) -> dict[str, float]:
    brokers = Brokers()
    started = time.monotonic()
    with target:
        figures = {"ready_s": time.monotonic() - started}
        create_topics(target, "small", "large", "single")
        for topic, size in (("small", 100), ("large", 1024)):
            figures[f"produce_{size}_per_s"] = produce(target, topic, size)
            figures[f"consume_{size}_per_s"] = consume(target, topic)
        latencies = single_latencies_ms(target, "single")
        figures["latency_p50_ms"] = latencies[len(latencies) // 2]
        figures["latency_p99_ms"] = latencies[len(latencies) * 99 // 100]
        figures["memory_mb"] = brokers.memory_mb()
        if len(target.nodes) > 1:
            figures |= failovers(target, "failover")
    return figures


def rounds(count: int, nodes: int, work_dir: Path) -> Iterator[Mapping[str, Mapping[str, float]]]:
    for number in range(count):
        order = (REFERENCE, KAFKA) if number % 2 == 0 else (KAFKA, REFERENCE)
        yield {
            name: measure(
                parse_target(name, nodes, work_dir=work_dir / f"{number}-{name}", mesh=False, properties=SESSIONS)
            )
            for name in order
        }


def show(measured: list[Mapping[str, Mapping[str, float]]], nodes: int) -> dict[str, dict[str, float]]:
    how = f"{nodes} node{'s' if nodes > 1 else ''} each, median of {len(measured)} rounds"
    table = Table(title=f"Reference broker against Apache Kafka 4.3.1, {how}")
    for heading in ("measure", "reference", "Apache Kafka", "ratio", "goal"):
        table.add_column(heading, justify="left" if heading == "measure" else "right")
    summary = {}
    for name in measured[0][REFERENCE]:
        ours, theirs, ratio = (
            statistics.median(values)
            for values in zip(
                *((m[REFERENCE][name], m[KAFKA][name], m[REFERENCE][name] / m[KAFKA][name]) for m in measured),
                strict=True,
            )
        )
        goal = f"≥ {GOALS.get(name, 1.0)}" if name.endswith("_per_s") else f"≤ {GOALS.get(name, 1.0)}"
        table.add_row(name, f"{ours:,.2f}", f"{theirs:,.2f}", f"{ratio:.2f}", goal)
        summary[name] = {"reference": ours, "apache_kafka": theirs, "ratio": ratio}
    Console().print(table)
    return summary


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
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
