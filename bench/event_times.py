"""CPU time of the longest event of a node while requests of thousands of elements are processed.

    .venv/bin/python bench/event_times.py

A node has one thread, so all other requests wait until an event ends. Three nodes run in virtual time, on simulated
disks. From each request until all brokers have applied its effects, every event of every node is timed. Other processes
on the machine make events longer. Garbage collection has its own line, because three nodes share one heap here.
"""

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from reference_broker.core.clock import Now
from reference_broker.core.node import Node
from reference_broker.server.garbage_collection import GarbageCollection
from reference_broker.simulation import machine
from tests.reference_broker.cluster import Cluster

GOAL_MS = 50.0
EVENTS = ("handle", "handle_response", "write", "fire")
NAMES = [f"topic-{number:05d}" for number in range(2_000)]
VALIDATED_NAMES = [f"large-{number:05d}" for number in range(4_900)]
ELEMENTS = 9_999
PARTITIONS = 5_770


def new_topics(names: list[str], *, partitions: int = 1) -> list[dict[str, Any]]:
    return [{"name": name, "num_partitions": partitions, "replication_factor": 3} for name in names]


def partitions(number: int = ELEMENTS, **fields: Any) -> list[dict[str, Any]]:
    return [{**fields, "partition_index": index} for index in range(number)]


COMMIT = {"group_id": "group", "member_id": "", "generation_id_or_member_epoch": -1}
FETCH = {"fetch_offset": 0, "current_leader_epoch": -1, "last_fetched_epoch": -1, "partition_max_bytes": 1_000}
FETCHED = [{"topic": "orders", "partitions": [{**FETCH, "partition": index} for index in range(ELEMENTS)]}]
REQUESTS: dict[str, tuple[str, int, dict[str, Any]]] = {
    "CreateTopics": ("CreateTopics", 7, {"topics": new_topics(NAMES), "timeout": 30_000}),
    "DescribeConfigs": (
        "DescribeConfigs",
        4,
        {"resources": [{"resource_type": 2, "resource_name": name, "configuration_keys": None} for name in NAMES]},
    ),
    "Metadata": ("Metadata", 12, {"topics": None}),
    "CreateTopics, validate only": (
        "CreateTopics",
        7,
        {"topics": new_topics(VALIDATED_NAMES), "timeout": 30_000, "validate_only": True},
    ),
    "CreatePartitions": (
        "CreatePartitions",
        3,
        {"topics": [{"name": "orders", "count": PARTITIONS, "assignments": None}], "timeout": 30_000},
    ),
    "OffsetCommit": (
        "OffsetCommit",
        9,
        {**COMMIT, "topics": [{"name": "orders", "partitions": partitions(PARTITIONS, committed_offset=1)}]},
    ),
    "OffsetCommit, unknown": ("OffsetCommit", 9, {**COMMIT, "topics": [{"name": "no", "partitions": partitions()}]}),
    "OffsetFetch": ("OffsetFetch", 9, {"groups": [{"group_id": "group", "topics": None}]}),
    "Fetch": ("Fetch", 12, {"replica_id": -1, "max_wait": 0, "max_bytes": 10_000_000, "topics": FETCHED}),
    "Fetch, waiting": (
        "Fetch",
        12,
        {"replica_id": -1, "max_wait": 500, "min_bytes": 1, "max_bytes": 10_000_000, "topics": FETCHED},
    ),
    "ListOffsets": (
        "ListOffsets",
        8,
        {"replica_id": -1, "topics": [{"name": "orders", "partitions": partitions(timestamp=-1)}]},
    ),
    "DeleteTopics": ("DeleteTopics", 6, {"topics": [{"name": name} for name in [*NAMES, "orders"]], "timeout": 30_000}),
}


class Longest:
    """Number of events, and the time of the longest event of each kind."""

    def __init__(self) -> None:
        self.events = 0
        self._ms: dict[str, float] = {}

    def add(self, kind: str, began_s: float) -> None:
        self.events += 1
        self._ms[kind] = max((time.thread_time() - began_s) * 1000, self._ms.get(kind, 0.0))

    @property
    def max_ms(self) -> float:
        return max(self._ms.values(), default=0.0)

    def __str__(self) -> str:
        kinds = ", ".join(f"{kind} {ms:.1f}" for kind, ms in sorted(self._ms.items(), key=lambda entry: -entry[1]))
        return f"{self.max_ms:6.1f} ms of {self.events:7,} events: {kinds}"


class Measurement:
    """The longest events of all nodes since the last `begin`, and the longest of all garbage collections."""

    def __init__(self) -> None:
        self.events, self.collections = Longest(), Longest()
        self._garbage = GarbageCollection()

    def begin(self) -> None:
        self.events = Longest()

    @contextmanager
    def on_all_nodes(self) -> Iterator[None]:
        """Time all events, and collect garbage between them, as a node's process does."""
        originals = {name: getattr(Node, name) for name in EVENTS}
        fire_all, threshold = machine._fire_due_timers, gc.get_threshold()
        for name, original in originals.items():
            setattr(Node, name, self._timed(name, original))
        machine._fire_due_timers = _fire_one
        gc.collect()
        self._garbage.start()
        try:
            yield
        finally:
            gc.set_threshold(*threshold)
            gc.unfreeze()
            machine._fire_due_timers = fire_all
            for name, original in originals.items():
                setattr(Node, name, original)

    def _timed(self, name: str, original: Callable[..., None]) -> Callable[..., None]:
        @wraps(original)
        def call(*args: Any, **fields: Any) -> None:
            began_s = time.thread_time()
            original(*args, **fields)
            self.events.add(name, began_s)
            if self._garbage.is_due:
                began_s = time.thread_time()
                self._garbage.collect()
                self.collections.add("collection", began_s)

        return call


def _fire_one(node: Node, now: Now) -> None:
    if node.next_ms is not None and node.next_ms <= now.monotonic_ms:
        node.fire(now, actions_max=1)


def settle(cluster: Cluster) -> None:
    """Advance the time until every broker has applied the metadata."""

    def has_applied() -> bool:
        return all(
            node.broker is not None and node.broker.published_offset == node.broker.metadata_offset
            for node in cluster.nodes.values()
        )

    cluster.run(100)
    cluster.run_until(has_applied, within_ms=600_000)
    cluster.run(1_000)


def coordinator(cluster: Cluster) -> int:
    response = cluster.request(1, "FindCoordinator", 6, key_type=0, coordinator_keys=["group"])
    return int(response.coordinators[0].node_id)


def main() -> None:
    cluster = Cluster(3)
    cluster.run_until(lambda: all(node.is_ready for node in cluster.nodes.values()))
    cluster.request(1, "CreateTopics", 7, topics=new_topics(["orders"]), timeout=30_000)
    coordinator(cluster)
    settle(cluster)
    measurement, longest_ms = Measurement(), 0.0
    with measurement.on_all_nodes():
        for name, (api, version, fields) in REQUESTS.items():
            node_id = coordinator(cluster) if api.startswith("Offset") else 1
            measurement.begin()
            cluster.request(node_id, api, version, within_ms=600_000, **fields)
            settle(cluster)
            longest_ms = max(longest_ms, measurement.events.max_ms)
            print(f"{name:28}{measurement.events}", flush=True)
    print(f"{'garbage collection':28}{measurement.collections}")
    print(f"longest event: {longest_ms:.0f} ms (goal: at most {GOAL_MS:.0f} ms)")
    raise SystemExit(longest_ms > GOAL_MS)


if __name__ == "__main__":
    main()
