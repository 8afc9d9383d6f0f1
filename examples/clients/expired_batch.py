"""Duplicates of an idempotent librdkafka producer whose records reach `delivery.timeout.ms` (docs/findings.md).

    python examples/clients/expired_batch.py apache-kafka:4.3.1

The producer has one partition and one request in flight. Both followers are paused for longer than the delivery
timeout, so that the leader appends a batch and cannot acknowledge it. Records of that batch expire one by one; the
rest is sent again with the next producer epoch. Prints a line with the counts, and exits with 1 if there are
duplicates. With `--delivery-timeout 120` no record expires, and there are no duplicates.
"""

import argparse
import json
import sys
import time
from collections import Counter

import confluent_kafka as ck
from confluent_kafka.admin import AdminClient, NewTopic

from kafkatrial.cluster import KafkaCluster

TOPIC = "expiring"
DELIVERY_TIMEOUT_S = 20.0
PAUSE_S = DELIVERY_TIMEOUT_S + 2.0
AFTERWARDS_S = 15.0
FLUSH_TIMEOUT_S = 60.0
_PERIOD_S = 0.02
_SILENT = {"log_level": 0}


class Producer:
    """An idempotent producer that sends one record every 20 ms and counts the outcomes."""

    def __init__(self, bootstrap_servers: str, delivery_timeout_s: float) -> None:
        self.sent = 0
        self.outcomes: Counter[str] = Counter()
        self._producer = ck.Producer({
            **_SILENT,
            "bootstrap.servers": bootstrap_servers,
            "enable.idempotence": True,
            "max.in.flight.requests.per.connection": 1,
            "delivery.timeout.ms": int(delivery_timeout_s * 1000),
            "request.timeout.ms": 10_000,
        })  # fmt: skip

    def send_for(self, duration_s: float) -> None:
        """Send a record every 20 ms for this duration, and serve delivery reports."""
        end_s = time.monotonic() + duration_s
        while time.monotonic() < end_s:
            self._producer.produce(TOPIC, str(self.sent), partition=0, on_delivery=self._delivered)
            self.sent += 1
            self._producer.poll(_PERIOD_S)

    def _delivered(self, error: ck.KafkaError | None, _: ck.Message) -> None:
        self.outcomes["ok" if error is None else error.name()] += 1

    def flush(self) -> None:
        """Wait for every outcome, at most `FLUSH_TIMEOUT_S`."""
        self._producer.flush(FLUSH_TIMEOUT_S)


def copies_of_values(bootstrap_servers: str) -> Counter[bytes]:
    """Return how often each value is in the log."""
    consumer = ck.Consumer({**_SILENT, "bootstrap.servers": bootstrap_servers, "group.id": "copies"})
    _, end = consumer.get_watermark_offsets(ck.TopicPartition(TOPIC, 0))
    consumer.assign([ck.TopicPartition(TOPIC, 0, 0)])
    copies: Counter[bytes] = Counter()
    while copies.total() < end:
        copies.update(message.value() for message in consumer.consume(1_000, timeout=1.0) if message.error() is None)
    consumer.close()
    return copies


def run(target: str, delivery_timeout_s: float = DELIVERY_TIMEOUT_S) -> dict[str, object]:
    """Start a cluster of three nodes, run the schedule, and return the counts."""
    with KafkaCluster.start(target, nodes=3) as cluster:
        admin = AdminClient({**_SILENT, "bootstrap.servers": cluster.bootstrap_servers})
        admin.create_topics([NewTopic(TOPIC, 1, 3, config={"min.insync.replicas": "2"})])[TOPIC].result()
        producer = Producer(cluster.bootstrap_servers, delivery_timeout_s)
        producer.send_for(2.0)
        leader = cluster.leader(TOPIC)
        one, other = (node.id for node in cluster.nodes if node.id != leader)
        with cluster.pause(one), cluster.pause(other):
            producer.send_for(PAUSE_S)
        producer.send_for(AFTERWARDS_S)
        producer.flush()
        copies = copies_of_values(cluster.bootstrap_servers)
    duplicated = sum(count > 1 for count in copies.values())
    return {
        "target": target,
        "sent": producer.sent,
        "outcomes": dict(producer.outcomes),
        "records": copies.total(),
        "duplicated": duplicated,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", nargs="?", default="reference")
    parser.add_argument("--delivery-timeout", type=float, default=DELIVERY_TIMEOUT_S, metavar="SECONDS")
    arguments = parser.parse_args()
    counts = run(arguments.target, arguments.delivery_timeout)
    print(json.dumps(counts))
    sys.exit(1 if counts["duplicated"] else 0)
