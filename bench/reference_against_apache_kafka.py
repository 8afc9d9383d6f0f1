"""The reference broker against Apache Kafka: one node each, side by side in one run, printed as ratios.

    .venv/bin/python bench/reference_against_apache_kafka.py [--rounds 3] [--json FILE]

Measured with confluent-kafka as any user would: time until an acks=all record was written and read back, resident
memory after the load, produce and consume throughput at 100 and 1,024 bytes, and the latency of single acknowledged
records. Rounds alternate between the two brokers, because the machine's speed drifts; a ratio is taken inside a round
and the median of the rounds is shown. Below 1.0 is better for time and memory, above 1.0 for throughput.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from rich.console import Console
from rich.table import Table

from fixtures.targets.catalogue import parse_target
from fixtures.targets.target import Target

REFERENCE, KAFKA = "reference", "apache-kafka:4.3.1"
RECORDS = 200_000
SINGLE_RECORDS = 500
GOALS = {"ready_s": 0.1, "memory_mb": 0.2}
"""Time and memory are to stay below these ratios, throughput at or above 1.0, latency at or below it."""


def broker_memory_mb(pids: list[int]) -> float:
    return sum(psutil.Process(pid).memory_info().rss for pid in pids) / 1e6


def brokers_started_since(before: set[int]) -> list[int]:
    """The pids of the broker processes among our descendants: the largest of the new ones, without their guards."""
    new = [child for child in psutil.Process().children(recursive=True) if child.pid not in before]
    return [max(new, key=lambda child: child.memory_info().rss).pid]


def produce(servers: str, topic: str, size: int) -> float:
    """Records a second until the last of `RECORDS` records was acknowledged with acks=all."""
    producer = Producer(
        {"bootstrap.servers": servers, "acks": "all", "linger.ms": 5, "queue.buffering.max.messages": RECORDS}
    )
    payload = b"x" * size
    started = time.monotonic()
    for _ in range(RECORDS):
        while True:
            try:
                producer.produce(topic, payload, partition=0)
                break
            except BufferError:
                producer.poll(0.01)
    if producer.flush(120):
        raise SystemExit(f"{servers}: records were not acknowledged within 120 s")
    return RECORDS / (time.monotonic() - started)


def consume(servers: str, topic: str) -> float:
    """Records a second from the first poll to the last record of the topic.

    librdkafka stops fetching for a second, by default, when its own queue is full; that would measure the client.
    """
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": "bench", "enable.auto.commit": False, "fetch.queue.backoff.ms": 10}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    seen, started = 0, time.monotonic()
    while seen < RECORDS:
        messages = consumer.consume(10_000, timeout=10)
        if not messages:
            raise SystemExit(f"{servers}: consumed {seen} of {RECORDS} records, then nothing for 10 s")
        seen += len(messages)
    elapsed = time.monotonic() - started
    consumer.close()
    return RECORDS / elapsed


def single_latencies_ms(servers: str, topic: str) -> list[float]:
    """Milliseconds from produce to acknowledgement, one record in flight, acks=all, no lingering."""
    producer = Producer({"bootstrap.servers": servers, "acks": "all", "linger.ms": 0})
    latencies = []
    for _ in range(SINGLE_RECORDS):
        started = time.monotonic()
        producer.produce(topic, b"x" * 100, partition=0)
        if producer.flush(30):
            raise SystemExit(f"{servers}: a record was not acknowledged within 30 s")
        latencies.append((time.monotonic() - started) * 1e3)
    return sorted(latencies[len(latencies) // 10 :])


def create_topics(servers: str, topics: list[str]) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    for future in admin.create_topics([NewTopic(topic, 1, 1) for topic in topics]).values():
        future.result(30)


def measure(target: Target) -> dict[str, float]:
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    started = time.monotonic()
    with target:
        figures = {"ready_s": time.monotonic() - started}
        pids = brokers_started_since(before)
        servers = target.bootstrap_servers
        create_topics(servers, ["small", "large", "single"])
        for topic, size in (("small", 100), ("large", 1024)):
            figures[f"produce_{size}_per_s"] = produce(servers, topic, size)
            figures[f"consume_{size}_per_s"] = consume(servers, topic)
        latencies = single_latencies_ms(servers, "single")
        figures["latency_p50_ms"] = latencies[len(latencies) // 2]
        figures["latency_p99_ms"] = latencies[len(latencies) * 99 // 100]
        figures["memory_mb"] = broker_memory_mb(pids)
    return figures


def rounds(count: int, work_dir: Path) -> Iterator[Mapping[str, Mapping[str, float]]]:
    for number in range(count):
        order = (REFERENCE, KAFKA) if number % 2 == 0 else (KAFKA, REFERENCE)
        yield {
            name: measure(parse_target(name, nodes=1, work_dir=work_dir / f"{number}-{name}", mesh=False))
            for name in order
        }


def show(measured: list[Mapping[str, Mapping[str, float]]]) -> dict[str, dict[str, float]]:
    table = Table(title=f"Reference broker against Apache Kafka 4.3.1, one node, median of {len(measured)} rounds")
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
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    arguments = parser.parse_args()
    measured = []
    with tempfile.TemporaryDirectory(prefix="kafkatrial-bench-") as directory:
        for number, figures in enumerate(rounds(arguments.rounds, Path(directory)), 1):
            print(f"round {number} of {arguments.rounds} measured", flush=True)
            measured.append(figures)
    summary = show(measured)
    if arguments.json:
        arguments.json.write_text(json.dumps(summary, indent=1) + "\n")


if __name__ == "__main__":
    main()
