"""Cost of breakable links: three nodes of Apache Kafka without them, with the link mesh, and with packet filters.

    .venv/bin/python bench/links.py [--target apache-kafka:4.3.1] [--rounds 7] [--records 30000]

Three clusters with the same settings run at once, each in a process with its own client. The process with packet
filters enters a network namespace. The clusters are measured in turn, while the others are idle; the order alternates.
Records of 1,024 bytes are produced with acks=all to one partition with three replicas. A ratio is computed in each
round, and the median of the rounds is printed.

Finally the benchmark prints the time until one of three nodes is isolated from the others, and until the links are
healed.
"""

import argparse
import os
import statistics
import time
from collections import defaultdict
from multiprocessing import get_context
from multiprocessing.connection import Connection

from cluster_measures import create_topics, produce

from fixtures.network import namespace
from fixtures.targets.catalogue import parse_target
from fixtures.targets.controls import Barrier, Direction, LinkCondition
from fixtures.targets.target import Capability

KINDS = ("direct", "streams", "packets")
GOALS = {"streams": 0.90, "packets": 0.97}
"""Minimum throughput with breakable links, relative to the throughput without them."""
EFFECT_GOAL_MS = 10
RECORD_BYTES = 1024
TURNS = 15
NODES = (1, 2, 3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="apache-kafka:4.3.1")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--records", type=int, default=30_000)
    arguments = parser.parse_args()
    if reason := namespace.why_no_namespace():
        print(f"not on packets: {reason}")
    kinds = [kind for kind in KINDS if kind != "packets" or not reason]
    spawning = get_context("spawn")  # because a process must enter a namespace before it has threads
    clients = {}
    for kind in kinds:
        clients[kind], theirs = spawning.Pipe()
        spawning.Process(target=serve, args=(kind, arguments.target, theirs), daemon=True).start()
    for client in clients.values():
        client.recv()
    measure(clients, arguments.rounds, arguments.records)
    for client in clients.values():
        client.send(None)
        client.recv()
    print(f"load of {os.cpu_count()} processors: {os.getloadavg()[0]:.1f}")


def serve(kind: str, target: str, requests: Connection) -> None:
    """Run one cluster, and measure it on request."""
    if kind == "packets":
        namespace.enter()
    prepare = {Capability.PACKET_FAULTS} if kind == "packets" else set()
    with parse_target(target, len(NODES), mesh=kind != "direct", prepare=prepare) as cluster:
        create_topics(cluster, "topic")
        requests.send("ready")
        while (records := requests.recv()) is not None:
            requests.send(produce(cluster, "topic", b"x" * RECORD_BYTES, records) if records else isolate(cluster))
    requests.send("gone")


def isolate(cluster) -> tuple[float, float]:
    """Return the time to isolate a node, and to heal the links, in milliseconds."""
    apart = [direction for other in NODES[1:] for direction in (Direction(1, other), Direction(other, 1))]
    began = time.monotonic()
    with cluster.links.impair(apart, LinkCondition(Barrier.HOLDS)):
        held = time.monotonic()
    return (held - began) * 1e3, (time.monotonic() - held) * 1e3


def measure(clients: dict[str, Connection], rounds: int, records: int) -> None:
    rates = defaultdict(list)
    for number in range(rounds + 1):
        for kind in list(clients) if number % 2 else list(clients)[::-1]:
            rate = request(clients[kind], records)
            if number:  # the first round warms up
                rates[kind].append(rate)
    print(f"{'direct':8} {statistics.median(rates['direct']):>9,.0f} records/s")
    for kind in [kind for kind in clients if kind != "direct"]:
        ratio = statistics.median(on / off for on, off in zip(rates[kind], rates["direct"], strict=True))
        met = "met" if ratio >= GOALS[kind] else "MISSED"
        median = f"{statistics.median(rates[kind]):>9,.0f} records/s"
        print(f"{kind:8} {median}  ratio {ratio:.2f}  goal {GOALS[kind]:.2f}: {met}")
    for kind in [kind for kind in clients if kind != "direct"]:
        held_ms, healed_ms = zip(*(request(clients[kind], 0) for _ in range(TURNS)), strict=True)
        met = "met" if statistics.median(held_ms) <= EFFECT_GOAL_MS else "MISSED"
        figures = f"{statistics.median(held_ms):.1f} ms, healed in {statistics.median(healed_ms):.1f} ms"
        print(f"{kind:8} a node isolated in {figures}  goal {EFFECT_GOAL_MS} ms: {met}")


def request(client: Connection, records: int):
    client.send(records)
    return client.recv()


if __name__ == "__main__":
    main()
