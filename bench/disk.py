"""Cost of a FUSE disk: Apache Kafka on it and on a plain directory, side by side in one run.

    .venv/bin/python bench/disk.py [--rounds 9] [--records 30000] [--nodes 1]

Two clusters with the same settings run at once and are measured in turn, while the other one is idle; the order
alternates. Records of 1,024 bytes are produced with acks=all to one partition, in three ways: in batches of a megabyte
(librdkafka's default), in batches of 16 KiB (the default of Kafka's producer), and in batches of 16 KiB with
`flush.messages=1`. The throughputs are divided in each round, and the median of these ratios is printed. The
plain directory is in the temporary directory. Its flushes reach the real disk. Those of the FUSE disk do not, so the
FUSE disk may be faster.

Each write on the FUSE disk waits for its daemon. On a machine with other load that wait dominates the figures, so the
load of the machine is printed too.

Finally the benchmark prints the durations of the FUSE disk's own actions: a mount, writes, flushes, the start of a
fault, a power cut and an unmount.
"""

import argparse
import os
import statistics
import tempfile
import time
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path

from cluster_measures import create_topics, produce
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from fixtures.disk.faults import DiskFault, Unflushed
from fixtures.disk.fuse_disk import FuseDisk
from fixtures.disk.kinds import DiskKind
from fixtures.targets.catalogue import parse_target
from fixtures.targets.target import Target

KAFKA = "apache-kafka:4.3.1"
RECORD_BYTES = 1024
GOAL = 0.65
"""Minimum throughput on the FUSE disk relative to a plain directory, without flushes."""
MEASURES = (
    ("large batches", "default", 1_000_000, 1),
    ("small batches", "default", 16_384, 1),
    ("flushed", "flushed", 16_384, 10),
)
"""Name, topic, batch size in bytes, and divisor of the number of records."""
TURNS = 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9, help="Number of rounds (default: %(default)s).")
    parser.add_argument("--records", type=int, default=30_000, help="Number per round (default: %(default)s).")
    parser.add_argument("--nodes", type=int, default=1, help="Number of nodes per cluster (default: %(default)s).")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kafkatrial-bench-") as directory:
        measure_kafka(Path(directory), arguments.nodes, arguments.rounds, arguments.records)
        measure_disk(Path(directory) / "alone")
    print(f"load of {os.cpu_count()} processors: {os.getloadavg()[0]:.1f}")


def measure_kafka(directory: Path, nodes: int, rounds: int, records: int) -> None:
    with ExitStack() as running:
        targets = {
            name: parse_target(KAFKA, nodes, mesh=False, disk=disk, work_dir=directory / name)
            for name, disk in (("plain", None), ("fuse", DiskKind.FUSE))
        }
        for target in targets.values():
            running.enter_context(target)
            create_topics(target, "default", "flushed")
            flush_each_record(target, "flushed")
        figures = defaultdict(list)
        payload = os.urandom(RECORD_BYTES)
        for number in range(rounds + 1):
            order = list(targets) if number % 2 else list(targets)[::-1]
            for measure, topic, batch_bytes, divisor in MEASURES:
                for name in order:
                    rate = produce(targets[name], topic, payload, records // divisor, batch_bytes)
                    if number:  # the first round warms up
                        figures[measure, name].append(rate)
    for measure, topic, *_ in MEASURES:
        plain, fuse = figures[measure, "plain"], figures[measure, "fuse"]
        ratio = statistics.median(on / off for on, off in zip(fuse, plain, strict=True))
        goal = "" if topic == "flushed" else f"  goal {GOAL:.2f}: {'met' if ratio >= GOAL else 'MISSED'}"
        median = f"{statistics.median(fuse):>9,.0f} of {statistics.median(plain):>9,.0f} records/s"
        print(f"{measure:13} on FUSE {median}  ratio {ratio:.2f} ({min(fuse):,.0f} to {max(fuse):,.0f}){goal}")


def flush_each_record(target: Target, topic: str) -> None:
    entry = ConfigEntry("flush.messages", "1", incremental_operation=AlterConfigOpType.SET)
    admin = AdminClient({"bootstrap.servers": target.bootstrap_servers})
    for changed in admin.incremental_alter_configs(
        [ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])]
    ).values():
        changed.result(30)


def measure_disk(directory: Path) -> None:
    mount_point = directory / "data"
    mount_point.mkdir(parents=True)
    disk = FuseDisk(directory / "disk", mount_point, directory / "disk.log")
    times_ms = defaultdict(list)
    try:
        for turn in range(TURNS):
            with timed(times_ms["mount"]):
                disk.mount()
            write_log(mount_point / str(turn), 1000, 2_000, times_ms["2,000 writes of 1,000 bytes"])
            with timed(times_ms["2,000 flushes of 4,096 bytes"]):
                write_and_flush(mount_point / str(turn), 2_000)
            fault = disk.broken(DiskFault(error=None, files="nothing"))
            with timed(times_ms["start of a fault"]):
                fault.__enter__()
            fault.__exit__(None, None, None)
            with timed(times_ms["power cut"]):
                disk.lose(Unflushed.LOST, 0)
            with timed(times_ms["unmount"]):
                disk.unmount()
    finally:
        disk.unmount()
    for name, values in times_ms.items():
        print(f"{name:30} {statistics.median(values):8.1f} ms  (longest {max(values):.1f})")


class timed:  # noqa: N801  reads as a verb
    """Context manager that appends its duration in milliseconds."""

    def __init__(self, times_ms: list[float]) -> None:
        self._times_ms = times_ms

    def __enter__(self) -> None:
        self._started = time.monotonic()

    def __exit__(self, *exc_info: object) -> None:
        self._times_ms.append((time.monotonic() - self._started) * 1e3)


def write_log(path: Path, size: int, count: int, times_ms: list[float]) -> None:
    with path.open("wb", buffering=0) as log, timed(times_ms):
        for _ in range(count):
            log.write(bytes(size))


def write_and_flush(path: Path, count: int) -> None:
    with path.open("ab", buffering=0) as log:
        for _ in range(count):
            log.write(bytes(4096))
            os.fsync(log.fileno())


if __name__ == "__main__":
    main()
