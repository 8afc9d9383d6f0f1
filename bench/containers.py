"""Time until a fault of a container is in effect, and until it is healed.

    .venv/bin/python bench/containers.py [--version 4.3.1] [--turns 15]

Three nodes of Apache Kafka run in containers. The benchmark starts its own Docker engine in a separate network
namespace; this requires root, dockerd and busybox. Times are medians in milliseconds. The call that injects a fault
returns when the fault is in effect.
"""

import argparse
import os
import statistics
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from fixtures.network import namespace
from fixtures.targets.catalogue import parse_target
from fixtures.targets.controls import Barrier, Direction, LinkCondition

GOAL_MS = 50
HOLDS = LinkCondition(Barrier.HOLDS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", default="4.3.1", help="Version of Apache Kafka (default: 4.3.1).")
    parser.add_argument("--turns", type=int, default=15, help="Number of measurements per fault (default: 15).")
    arguments = parser.parse_args()
    namespace.enter()
    from tests.fixtures.containers.docker_engine import engine

    with ExitStack() as ending:
        directory = ending.enter_context(tempfile.TemporaryDirectory())
        ending.enter_context(engine(Path(directory), arguments.version))
        measure(ending.enter_context(parse_target(f"apache-kafka-container:{arguments.version}")), arguments.turns)
    print(f"load average on {os.cpu_count()} processors: {os.getloadavg()[0]:.1f}")


def measure(cluster, turns: int) -> None:
    from_nodes = [pair for other in (2, 3) for pair in (Direction(1, other), Direction(other, 1))]
    from_client = [Direction(1, "client"), Direction("client", 1)]
    faults = {
        "one direction cut": lambda: cluster.links.impair([Direction(1, 2)], HOLDS),
        "a node cut off from the other nodes": lambda: cluster.links.impair(from_nodes, HOLDS),
        "a node cut off from all nodes and clients": lambda: cluster.links.impair([*from_nodes, *from_client], HOLDS),
        "a node paused": lambda: cluster.processes.pause(1),
    }
    for name, impair in faults.items():
        begun_ms, healed_ms = zip(*(timed(impair) for _ in range(turns)), strict=True)
        show(name, begun_ms)
        print(f"    healed after {statistics.median(healed_ms):.1f} ms")
    show("a node killed", [killed_ms(cluster) for _ in range(turns)])


def timed(impair) -> tuple[float, float]:
    """Return the milliseconds until the fault is in effect, and from its end until it is healed."""
    start_s = time.perf_counter()
    with impair():
        begun_s = time.perf_counter()
        time.sleep(0.2)
        end_s = time.perf_counter()
    return (begun_s - start_s) * 1000, (time.perf_counter() - end_s) * 1000


def killed_ms(cluster) -> float:
    """Kill node 2, and return the milliseconds until its process has ended; its container is removed later."""
    process = cluster.processes.get(2)
    start_s = time.perf_counter()
    process.kill_without_waiting()
    while Path(f"/proc/{process.pid}/cmdline").exists() and Path(f"/proc/{process.pid}/cmdline").read_bytes():
        time.sleep(0.0005)
    taken_ms = (time.perf_counter() - start_s) * 1000
    cluster.processes.kill(2)
    cluster.processes.restart(2)
    return taken_ms


def show(name: str, times_ms) -> None:
    verdict = "ok" if statistics.median(times_ms) <= GOAL_MS else f"above {GOAL_MS} ms"
    print(f"{name}: {statistics.median(times_ms):.1f} ms ({min(times_ms):.1f} to {max(times_ms):.1f}), {verdict}")


if __name__ == "__main__":
    main()
