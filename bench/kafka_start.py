"""Start time of Apache Kafka with and without a class data archive (CDS), on one node and on three.

    python bench/kafka_start.py [ROUNDS] [VERSION]

Starts with and without the archive alternate, so that other load affects both; the medians and their ratio are printed.
Each start is that of a new cluster, from formatting its storage to reading back a record that was written with
`acks=all`. Processor time is that of all processes of the cluster, including the formatting tool, and depends less on
other load than wall time.
"""

import statistics
import sys
import time
from collections.abc import Mapping

import psutil

from fixtures.targets.apache_kafka import ApacheKafka, kafka_archive
from fixtures.targets.install import DEFAULT_KAFKA_VERSION
from fixtures.targets.jars import JarLock
from fixtures.targets.java import find_java

ROUNDS = 7


class WithoutArchive(ApacheKafka):
    def _java_command(self, node):
        return [word for word in super()._java_command(node) if not word.startswith("-XX:SharedArchiveFile=")]


WAYS: Mapping[str, type[ApacheKafka]] = {"without": WithoutArchive, "with": ApacheKafka}


def processor_s() -> float:
    """Return the processor time of all descendants of this process, ended and running."""
    ended = psutil.Process().cpu_times()
    running = (child.cpu_times() for child in psutil.Process().children(recursive=True))
    return (
        ended.children_user
        + ended.children_system
        + sum(times.user + times.system + times.children_user + times.children_system for times in running)
    )


def start(kind: type[ApacheKafka], version: str, nodes: int) -> tuple[float, float]:
    wall_s, cpu_s = time.monotonic(), processor_s()
    with kind(version, nodes, mesh=False):
        return time.monotonic() - wall_s, processor_s() - cpu_s


def main(rounds: int, version: str) -> None:
    if not kafka_archive(find_java(), JarLock.load(version)).options():
        raise SystemExit(f"there is no archive; run: kafkatrial targets install apache-kafka:{version}")
    for nodes in (1, 3):
        measured = {way: [] for way in WAYS}
        for _ in range(rounds):
            for way, kind in WAYS.items():
                measured[way].append(start(kind, version, nodes))
        for unit, column in (("wall", 0), ("processor", 1)):
            without, with_ = ([row[column] for row in measured[way]] for way in WAYS)
            ratio = statistics.median(with_) / statistics.median(without)
            print(f"{nodes} node(s), {unit:9} {_spread(without)} without, {_spread(with_)} with: {ratio:.2f}")


def _spread(seconds: list[float]) -> str:
    return f"{statistics.median(seconds):5.1f} s ({min(seconds):.1f} to {max(seconds):.1f})"


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS, sys.argv[2] if len(sys.argv) > 2 else DEFAULT_KAFKA_VERSION)
