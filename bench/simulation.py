"""Speed of the simulation: scripts per second, virtual time, memory over many seeds, time per event.

    .venv/bin/python bench/simulation.py [--scripts 30] [--seeds 2000] [--records 100000]

Everything runs on one core. The CPU time of a script includes the checks of its history for anomalies.

- Scripts per second of CPU time, and the ratio of virtual time to CPU time, for a script of 100 client operations and
  three faults on three nodes.
- Resident memory after a tenth of the seeds, and after all of them; for each seed, its generated script is run.
- CPU time of an event on a cluster with an empty log, and on one with `--records` records in the log.
"""

import argparse
import resource
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from itertools import count
from pathlib import Path

from kio.schema.create_topics.v7 import request as create_topics
from kio.schema.produce.v9 import request as produce

from chaos.simulation.run import run
from chaos.simulation.seeds import trial_of_seed
from conformance.trial.trial import Topic, Trial
from fixtures.clients.raw import encode_request
from fixtures.clients.record_batch import Record, RecordBatch, encode_batch
from fixtures.clients.steps import Consumer, Poll, Producer, SendBatches
from fixtures.faults import Isolate, Kill, Pause, Role, Timed
from reference_broker.simulation.clock import WALL_START_MS
from reference_broker.simulation.cluster import SimulatedCluster

SCRIPTS_MIN_PER_S = 10
TIMES_REAL_TIME_MIN = 500
MEMORY_GROWTH_MAX = 1.1
EVENT_GROWTH_MAX = 1.5
RECORDS_PER_BATCH = 100
TIMEOUT = timedelta(seconds=5)
SCRIPT = Trial(
    topics=(Topic(),),
    clients=(
        Producer(steps=(SendBatches(batches=40, records=2, pause_ms=250),)),
        Producer(steps=(SendBatches(batches=20, pause_ms=500),), idempotent=False),
        Consumer(steps=(Poll(times=40, pause_ms=250),)),
    ),
    schedule=(
        Timed(1_000, Kill(Role.LEADER), 2_000),
        Timed(5_000, Isolate(Role.FOLLOWER), 3_000),
        Timed(9_000, Pause(Role.FOLLOWER), 2_000),
    ),
)


def measure_scripts(scripts: int) -> tuple[float, float, float]:
    """Return scripts per second of CPU time, the ratio of virtual time to CPU time, and the operations per script."""
    run(SCRIPT)
    virtual_ms = operations = 0
    began = time.process_time()
    for seed in range(scripts):
        outcome = run(replace(SCRIPT, seed=seed))
        assert outcome.violation is None, outcome.violation
        virtual_ms += outcome.virtual_ms
        operations += outcome.operations
    taken_s = time.process_time() - began
    return scripts / taken_s, virtual_ms / 1000 / taken_s, operations / scripts


def measure_memory_mib(seeds: int) -> tuple[float, float]:
    """Run the script of each seed. Return this process's resident memory after a tenth of the seeds, and after all."""
    early_mib = 0.0
    for seed in range(seeds):
        run(trial_of_seed(seed))
        if seed == seeds // 10:
            early_mib = _resident_mib()
    return early_mib, _resident_mib()


def _resident_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


class _Load:
    """A cluster, and a producer that writes to it."""

    def __init__(self) -> None:
        self.cluster = SimulatedCluster(3)
        assert self.cluster.await_ready()
        self._numbers = count()
        self._responses = 0
        topic = create_topics.CreatableTopic(
            name="a", num_partitions=1, replication_factor=3, assignments=(), configs=()
        )
        self._connect(1)
        self._request(create_topics.CreateTopicsRequest(topics=(topic,), timeout=TIMEOUT, validate_only=False))
        self._await(lambda: self._leader() is not None)
        self._connect(self._leader())

    def _leader(self) -> int | None:
        found = self.cluster.nodes[1].metadata.image.partition("a", 0)
        return None if found is None else found.leader

    def _connect(self, node_id: int) -> None:
        self._connection = self.cluster.connect("client", node_id, self._received, lambda: None)

    def _received(self, _data: bytes) -> None:
        self._responses += 1

    def _await(self, condition: Callable[[], bool]) -> None:
        assert self.cluster.scheduler.run_until(condition, end_ms=self.cluster.scheduler.now_ms + 10_000)

    def _request(self, entity: object) -> None:
        expected = self._responses + 1
        frame = encode_request(entity, next(self._numbers), "bench")
        self._connection.send(len(frame).to_bytes(4, "big") + frame)
        self._await(lambda: self._responses == expected)

    def write(self, records: int) -> None:
        """Write at least this number of records, in batches; await the acknowledgement (acks=all) of each batch."""
        batch = encode_batch(
            RecordBatch(tuple(Record(b"x" * 20, timestamp_ms=WALL_START_MS) for _ in range(RECORDS_PER_BATCH)))
        )
        partition = produce.PartitionProduceData(index=0, records=batch)
        topic = produce.TopicProduceData(name="a", partition_data=(partition,))
        request = produce.ProduceRequest(transactional_id=None, acks=-1, timeout=TIMEOUT, topic_data=(topic,))
        for _ in range(0, records, RECORDS_PER_BATCH):
            self._request(request)


def measure_event_us(records_before: int, records: int = 20_000) -> float:
    """Return the mean CPU time of an event, in microseconds, while records are appended to a log.

    :param records_before: number of records that the log has before the measurement.
    """
    load = _Load()
    load.write(records_before)
    scheduler = load.cluster.scheduler
    events, began = scheduler.events, time.process_time()
    load.write(records)
    return (time.process_time() - began) / (scheduler.events - events) * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scripts", type=int, default=30, help="Number of scripts (default: %(default)s).")
    parser.add_argument(
        "--seeds",
        type=int,
        default=2_000,
        help="Number of seeds for measuring the growth of memory; 0 skips the measurement.",
    )
    parser.add_argument("--records", type=int, default=100_000, help="Number of records in the long log.")
    arguments = parser.parse_args()
    per_s, speedup, operations = measure_scripts(arguments.scripts)
    print(f"{per_s:.1f} scripts per second, of {operations:.0f} operations (goal: at least {SCRIPTS_MIN_PER_S})")
    print(f"{speedup:,.0f} times as fast as real time (goal: at least {TIMES_REAL_TIME_MIN})", flush=True)
    short_us, long_us = measure_event_us(0), measure_event_us(arguments.records)
    print(
        f"{short_us:.0f} us per event, {long_us:.0f} us after {arguments.records:,} records "
        f"(goal: at most {EVENT_GROWTH_MAX:g} times)",
        flush=True,
    )
    has_constant_memory = True
    if arguments.seeds:
        early_mib, late_mib = measure_memory_mib(arguments.seeds)
        print(
            f"{early_mib:.0f} MiB after {arguments.seeds // 10:,} seeds, {late_mib:.0f} MiB after {arguments.seeds:,} "
            f"(goal: at most {MEMORY_GROWTH_MAX:g} times)"
        )
        has_constant_memory = late_mib <= MEMORY_GROWTH_MAX * early_mib
    is_fast = per_s >= SCRIPTS_MIN_PER_S and speedup >= TIMES_REAL_TIME_MIN
    raise SystemExit(not (is_fast and has_constant_memory and long_us <= EVENT_GROWTH_MAX * short_us))


if __name__ == "__main__":
    main()
