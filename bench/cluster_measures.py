"""Measurements of a running cluster with confluent-kafka: throughput, latency, failover, memory and idle CPU.

Throughput and latency are measured with acks=all, on topics with a replica on every node. A failover is the time from
SIGKILL of the leader to the next acknowledged record.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import psutil
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from fixtures.clients import requests
from fixtures.clients.messages import ApiKey
from fixtures.clients.raw import RawClient
from fixtures.targets.target import Target

RECORDS = 200_000
WAIT_S = 120
SHORT_BACKOFFS = {
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 100,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 100,
    "topic.metadata.refresh.fast.interval.ms": 50,
    "log_level": 0,
}
"""Client properties with short backoffs, so that a failover measures the cluster and not the client's backoff."""


class Brokers:
    """The broker processes of a target that has just started.

    A descendant of this process counts as a broker if it has no children and is not in `excluded`.
    """

    def __init__(self, excluded: Sequence[psutil.Process] = ()) -> None:
        descendants = psutil.Process().children(recursive=True)
        self.processes = [each for each in descendants if not each.children() and each not in excluded]

    def memory_mb(self) -> float:
        """Return the resident memory of all brokers together."""
        return sum(process.memory_info().rss for process in self.processes) / 1e6

    def idle_cpu_percent(self, duration_s: float) -> float:
        """Return the CPU time of the busiest broker during an interval, in percent of one core.

        The caller must send no requests during the interval.
        """
        before = {process.pid: _cpu_s(process) for process in self.processes}
        time.sleep(duration_s)
        return max(_cpu_s(process) - before[process.pid] for process in self.processes) / duration_s * 100


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def create_topics(target: Target, *topics: str, partitions: int = 1) -> None:
    admin = AdminClient({"bootstrap.servers": target.bootstrap_servers})
    replicas = len(target.nodes)
    futures = admin.create_topics(
        [NewTopic(topic, partitions, replicas) for topic in topics], operation_timeout=WAIT_S, request_timeout=WAIT_S
    )
    for future in futures.values():
        future.result(WAIT_S)


def produce(target: Target, topic: str, payload: bytes, records: int = RECORDS, batch_bytes: int = 1_000_000) -> float:
    """Produce records with one payload, and return the records per second.

    The time ends with the acknowledgement of the last record.

    :param batch_bytes: maximum size of a batch; the default is that of librdkafka.
    """
    producer = Producer(
        {
            "bootstrap.servers": target.bootstrap_servers,
            "acks": "all",
            "linger.ms": 5,
            "batch.size": batch_bytes,
            "queue.buffering.max.messages": 200_000,
        }
    )
    started = time.monotonic()
    for _ in range(records):
        while True:
            try:
                producer.produce(topic, payload, partition=0)
                break
            except BufferError:  # the producer's queue is full
                producer.poll(0.01)
    if producer.flush(WAIT_S):
        raise SystemExit(f"{target.name}: records were not acknowledged within {WAIT_S} s")
    return records / (time.monotonic() - started)


def consume(target: Target, topic: str) -> float:
    """Consume `RECORDS` records of a topic, and return the records per second.

    By default, librdkafka stops fetching for a second when its own queue is full. That pause would be measured instead
    of the cluster, so it is shortened here.
    """
    consumer = Consumer(
        {
            "bootstrap.servers": target.bootstrap_servers,
            "group.id": "bench",
            "enable.auto.commit": False,
            "fetch.queue.backoff.ms": 10,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    consumed, started = 0, time.monotonic()
    while consumed < RECORDS:
        messages = consumer.consume(10_000, timeout=10)
        if not messages:
            raise SystemExit(f"{target.name}: consumed {consumed} of {RECORDS} records, then nothing for 10 s")
        consumed += len(messages)
    elapsed = time.monotonic() - started
    consumer.close()
    return RECORDS / elapsed


def single_latencies_ms(target: Target, topic: str, records: int) -> list[float]:
    """Produce records one by one, and return the milliseconds until each was acknowledged.

    The first tenth of the records warms up the cluster, and is left out.
    """
    producer = Producer({"bootstrap.servers": target.bootstrap_servers, "acks": "all", "linger.ms": 0})
    return [produce_one(producer, topic) * 1e3 for _ in range(records)][records // 10 :]


def produce_one(producer: Producer, topic: str) -> float:
    """Produce one record and return the seconds until it was acknowledged."""
    started = time.monotonic()
    errors: list[object] = []
    producer.produce(topic, b"x" * 100, partition=0, on_delivery=lambda error, _: errors.append(error))
    producer.flush(WAIT_S)
    if errors != [None]:
        raise SystemExit(f"{topic}: a record was not acknowledged: {errors}")
    return time.monotonic() - started


# --- failover


def failovers(target: Target, topic_prefix: str) -> Iterator[tuple[str, float]]:
    """Yield the names and seconds of two failovers.

    In the first failover, the killed leader is not the active controller. In the second one, it is.
    """
    for name, is_controller in (("failover_s", False), ("failover_of_controller_s", True)):
        controller = active_controller(target)
        others = {node.id for node in target.nodes} - {controller}
        topic = _create_topic_led_by(target, f"{topic_prefix}-{name}", {controller} if is_controller else others)
        leader = await_leader(target, topic)
        producer = Producer({"bootstrap.servers": target.bootstrap_servers, "acks": "all", **SHORT_BACKOFFS})
        produce_one(producer, topic)
        target.processes.kill(leader)
        yield name, produce_one(producer, topic)
        target.processes.restart(leader)
        _wait_until(lambda t=topic: len(_partition(target, t).isr_nodes) == len(target.nodes))


def _create_topic_led_by(target: Target, prefix: str, leaders: set[int]) -> str:
    """Create up to twenty topics, until the leader of one is in `leaders`, and return the name of that topic."""
    for number in range(20):
        topic = f"{prefix}-{number}"
        create_topics(target, topic)
        if await_leader(target, topic) in leaders:
            return topic
    raise SystemExit(f"{target.name}: none of 20 topics has its leader in {sorted(leaders)}")


def await_leader(target: Target, topic: str) -> int:
    """Wait until the topic's only partition has a leader, and return its id."""
    _wait_until(lambda: _partition(target, topic) is not None and _partition(target, topic).leader_id > 0)
    return int(_partition(target, topic).leader_id)


def active_controller(target: Target) -> int:
    with _connected(target) as client:
        response = client.request(requests.describe_quorum(client.schema_for(ApiKey.DESCRIBE_QUORUM)))
        return int(response.topics[0].partitions[0].leader_id)


def _partition(target: Target, topic: str) -> Any:
    """Return partition 0 of a topic in a Metadata response; None if the response has no partitions."""
    with _connected(target) as client:
        schema = client.schema_for(ApiKey.METADATA, 8)
        response = client.request(
            schema.MetadataRequest(
                topics=(schema.MetadataRequestTopic(name=topic),),
                allow_auto_topic_creation=False,
                include_cluster_authorized_operations=False,
                include_topic_authorized_operations=False,
            )
        )
        return response.topics[0].partitions[0] if response.topics[0].partitions else None


def _connected(target: Target) -> RawClient:
    return RawClient(target.nodes[0].host, target.nodes[0].port)


def _wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit(f"the cluster has not reached the expected state within {WAIT_S} s")
        time.sleep(0.02)
